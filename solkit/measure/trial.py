"""Does CUDA itself work? CuPy is imported and every visible device opened, in a process of its own.

A broken installation then costs that process, not the doctor, and the doctor leaves no context
behind on a card that is about to be measured.
"""

import json
import subprocess
import sys
from dataclasses import dataclass

# deviceGetPCIBusId, since the bus id is what CUDA and NVML both know; memGetInfo opens a context.
_CODE = """
import json
import cupy
runtime = cupy.cuda.runtime
devices = []
for index in range(runtime.getDeviceCount()):
    runtime.setDevice(index)
    runtime.memGetInfo()
    devices.append(runtime.deviceGetPCIBusId(index))
told = {"cupy": cupy.__version__, "runtime": runtime.runtimeGetVersion(), "bus_ids": devices}
print(json.dumps(told))
"""
_LIMIT_S = 120


@dataclass(frozen=True, slots=True)
class Trial:
    """What CUDA answered: versions and bus ids in its order, or the last words of its failure."""

    cupy: str = ""
    runtime: str = ""
    bus_ids: tuple[str, ...] = ()
    error: str = ""


def try_cuda(*, code: str = _CODE, limit_s: float = _LIMIT_S) -> Trial:
    """Import CuPy and open each visible device; what goes wrong is told, not raised."""
    try:
        done = subprocess.run(  # noqa: S603  # this interpreter and the code above
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return Trial(error=f"CUDA did not answer within {limit_s:.0f} s")
    if done.returncode < 0:
        return Trial(error=f"the process died of signal {-done.returncode}")
    try:
        told = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else None
    except (ValueError, IndexError):
        told = None
    if not isinstance(told, dict):
        said = [line for line in done.stderr.strip().splitlines() if line.strip()]
        return Trial(
            error=said[-1].strip() if said else f"it ended with exit code {done.returncode}"
        )
    number = int(told["runtime"])
    return Trial(
        cupy=str(told["cupy"]),
        runtime=f"{number // 1000}.{number % 1000 // 10}",
        bus_ids=tuple(str(bus_id).lower() for bus_id in told["bus_ids"]),
    )
