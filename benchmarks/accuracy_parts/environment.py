"""Where and with what the figures were taken."""

import re
import shutil
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from accuracy_parts.parts import Save

from solkit import __version__
from solkit.measure.probe import cuda_devices

# By the name it has in the file: the distributions it may come from.
PACKAGES = {
    "cupy": ("cupy-cuda13x", "cupy-cuda12x"),
    "cupti": ("cupti-python",),
    "torch": ("torch",),
    "triton": ("triton",),
    "nvbench": ("cuda-bench",),
}


def measure(save: Save) -> None:
    """Save card, driver and versions."""
    found = cuda_devices()
    if not found.devices:
        raise RuntimeError(found.reason or "no CUDA device")
    facts = found.devices[0]
    environment: dict[str, Any] = {
        "card": facts.name,
        "uuid": facts.uuid,
        "driver": facts.driver,
        "cuda": facts.cuda_driver,
        "clocks": {"max_sm_hz": facts.max_clock_hz, "memory_hz": facts.memory_clock_hz},
        "power_limit_w": facts.power_limit_w,
        "ecc": facts.ecc,
        "l2_bytes": facts.l2_bytes,
        "solkit": __version__,
        **{name: version_of(*packages) for name, packages in PACKAGES.items()},
        "ncu": ncu_version(),
        "date": f"{datetime.now(tz=UTC):%Y-%m-%d}",
    }
    save({"environment": environment})


def version_of(*packages: str) -> str | None:
    """Return the version of the first of these packages that is installed; None without any."""
    for package in packages:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def ncu_version() -> str | None:
    """Return what `ncu --version` says of itself; None where there is none."""
    program = shutil.which("ncu")
    if program is None:
        return None
    said = subprocess.run([program, "--version"], check=False, capture_output=True, text=True)
    found = re.search(r"Version\s+([0-9.]+)", said.stdout)
    return found.group(1) if found else None
