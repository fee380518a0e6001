"""`solkit doctor`: can this machine measure, how well, and what to do about it.

Every check has a fixed id, evidence and at most one remedy (docs/doctor.md lists them). Nothing is
changed, nothing is left running, and what cannot be asked is `unknown`, never `ok`.
"""

import os
import sys
from collections.abc import Callable, Mapping
from ctypes import CDLL
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

from solkit.errors import NoDevice, SolkitError
from solkit.gpu import DeviceFacts
from solkit.measure import card_checks, driver_checks, host_checks
from solkit.measure.device.health import health
from solkit.measure.device.nvml import Binding, Nvml
from solkit.measure.device.readings import conditions
from solkit.measure.driver_checks import Compiler
from solkit.measure.finding import Finding, document, exit_code, lines
from solkit.measure.host import cpu_facts
from solkit.measure.probe import Probe, cuda_devices, cupy_extra, find_device
from solkit.measure.trial import Trial, try_cuda

__all__ = ["Finding", "Machine", "document", "examine", "exit_code", "lines"]


def ask_compiler() -> Compiler:
    """Ask NVRTC for its version and targets; a library that is missing is an answer too."""
    from solkit.measure.device import nvrtc  # noqa: PLC0415  # loads the compiler, 100 MB of it

    try:
        return Compiler(nvrtc.version(), tuple(sorted(nvrtc.targets())))
    except SolkitError as error:
        return Compiler(error=error.message, remedy=error.remedy)


def kernel_cache_folder() -> Path:
    """Return where compiled kernels are kept."""
    from solkit.measure.device import nvrtc  # noqa: PLC0415  # as above

    return nvrtc.cache_folder()


def cupy_version() -> str:
    """Return the version of the installed CuPy, by whichever name it was installed; else empty."""
    for distribution in distributions():
        name = (distribution.metadata["Name"] or "").casefold()
        if name == "cupy" or name.startswith(("cupy-cuda", "cupy_cuda")):
            return distribution.version
    return ""


def cupti_version() -> str:
    """Return the version of the installed cupti-python; else empty."""
    try:
        return version("cupti-python")
    except PackageNotFoundError:
        return ""


def library_loads(name: str) -> bool:
    """Say whether a shared library can be loaded (loading libcuda starts nothing yet)."""
    try:
        CDLL(name)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Machine:
    """The ways in which the doctor asks; a test gives its own."""

    root: Path = Path("/")
    system: str = sys.platform
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    binding: Binding | None = None
    compiler: Callable[[], Compiler] = ask_compiler
    cupy: Callable[[], str] = cupy_version
    cupti: Callable[[], str] = cupti_version
    trial: Callable[[], Trial] = try_cuda
    loads: Callable[[str], bool] = library_loads
    kernel_cache: Callable[[], Path] = kernel_cache_folder


def examine(
    *,
    device: str = "auto",
    out: Path = Path("solkit-out"),
    need_bytes: int | None = None,
    machine: Machine | None = None,
) -> list[Finding]:
    """Examine the host, the driver, the CUDA libraries and every visible card, or the one named.

    device: as `--device` takes it; `cpu` leaves cards and drivers out. need_bytes: what a case
    would allocate on the card. Raises BadInput or NoDevice for a device that is named and not here.
    """
    machine = machine or Machine()
    found = _host(machine, out)
    if device.strip().casefold() == "cpu":
        return found
    compiler = machine.compiler()
    nvml = Nvml(binding=machine.binding, environ=machine.environ)
    try:
        nvml.open()
    except NoDevice as error:
        library = driver_checks.compiler_library(compiler, card_is_here=False)
        return [*found, _no_nvml(machine, error), library]
    with nvml:
        return found + _driver_and_cards(machine, nvml, compiler, device, need_bytes)


def _host(machine: Machine, out: Path) -> list[Finding]:
    facts = cpu_facts(root=machine.root, system=machine.system)
    return [
        host_checks.python(machine.system),
        host_checks.numpy_threads(machine.environ, facts.core_count),
        host_checks.memory(facts),
        host_checks.cpu_device(facts),
        host_checks.folder("host.out", out, "the folder for runs", "choose another: --out DIR"),
    ]


def _no_nvml(machine: Machine, error: NoDevice) -> Finding:
    """Tell a machine without a driver (nothing can be measured) from one whose NVML is missing."""
    if machine.loads("nvcuda.dll" if machine.system == "win32" else "libcuda.so.1"):
        return Finding(
            "driver.nvml",
            "unknown",
            f"CUDA's driver library is here, but NVML cannot be asked ({error.message})",
            error.remedy,
            required=True,
        )
    return Finding(
        "driver.nvml",
        "fail",
        f"no NVIDIA driver found ({error.message}); without a card: --device cpu, plan, report",
        error.remedy,
        required=True,
    )


def _driver_and_cards(
    machine: Machine, nvml: Nvml, compiler: Compiler, device: str, need_bytes: int | None
) -> list[Finding]:
    found = [Finding("driver.nvml", "ok", f"NVML answers, driver {nvml.driver or '?'}")]
    found += driver_checks.driver_version(nvml.driver, nvml.cuda_driver, compiler)
    probe = cuda_devices(binding=machine.binding, environ=machine.environ)
    found.append(driver_checks.compiler_library(compiler, card_is_here=bool(probe.devices)))
    if not probe.devices:
        return [*found, Finding("gpu.visible", "fail", probe.reason, probe.remedy, required=True)]
    found.append(driver_checks.visible_devices(probe.devices))
    cupy = machine.cupy()
    found.append(driver_checks.cupy_package(cupy, cupy_extra(probe.devices[0])))
    if cupy:
        found.append(driver_checks.timer_package(machine.cupti()))
        found.append(driver_checks.context(machine.trial(), probe.devices))
    found.append(
        host_checks.folder(
            "host.kernel_cache",
            machine.kernel_cache(),
            "the folder for compiled kernels",
            "free some room there, or choose another: SOLKIT_CACHE_DIR",
        )
    )
    found.append(host_checks.profiler_rights(machine.root))
    for facts in _asked_for(device, probe):
        about = card_checks.subject(facts)
        found.append(replace(driver_checks.compiler_target(facts, compiler), subject=about))
        found += card_checks.card(
            facts, health(nvml, facts.uuid), conditions(nvml, facts.uuid), need_bytes=need_bytes
        )
    return found


def _asked_for(device: str, probe: Probe) -> tuple[DeviceFacts, ...]:
    """Return the devices to examine: all of them, or the one that was named."""
    if device.strip().casefold() in {"auto", "cuda"}:
        return probe.devices
    return (find_device(device.strip(), probe),)
