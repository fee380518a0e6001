"""The doctor's checks of the driver and of the CUDA libraries."""

from collections.abc import Sequence
from dataclasses import dataclass

from solkit.gpu import DeviceFacts
from solkit.measure.finding import Finding
from solkit.measure.remedies import catalogue, known, remedy_for
from solkit.measure.trial import Trial


@dataclass(frozen=True, slots=True)
class Compiler:
    """What NVRTC says of itself: version and targets (90 is sm_90), or why it is silent."""

    version: str = ""
    targets: tuple[int, ...] = ()
    error: str = ""
    remedy: str = ""


def version_numbers(text: str) -> tuple[int, ...]:
    """Turn '580.159.04' into numbers that compare; what follows a foreign part is left out."""
    numbers = []
    for part in text.split("."):
        digits = part.strip()
        if not (digits.isascii() and digits.isdigit()):
            break
        numbers.append(int(digits[:9]))
    return tuple(numbers)


def driver_version(driver: str, cuda_driver: str, compiler: Compiler) -> list[Finding]:
    """Compare the driver with the CUDA family in use: too old fails, an older minor version warns.

    A driver newer than the toolkit is fine. Sources: NVIDIA's minor version compatibility page.
    """
    have, toolkit = version_numbers(driver), version_numbers(compiler.version)
    serves = version_numbers(cuda_driver)
    least = catalogue().driver_minimum.get(toolkit[0]) if toolkit else None
    evidence = f"driver {driver or '?'}, serves CUDA up to {cuda_driver or '?'}"
    if not have:
        version = Finding("driver.version", "unknown", evidence)
    elif least is not None and have < version_numbers(least):
        version = Finding(
            "driver.version",
            "fail",
            f"{evidence}; CUDA {toolkit[0]} needs {least} or newer",
            known("driver_too_old").remedy,
        )
    else:
        version = Finding("driver.version", "ok", evidence)
    if not toolkit or not serves:
        return [
            version,
            Finding("cuda.runtime", "unknown", "CUDA's version or the driver's is not known"),
        ]
    told = f"CUDA {compiler.version} on a driver for {cuda_driver}"
    if toolkit[0] > serves[0]:
        runtime = Finding("cuda.runtime", "fail", told, known("driver_too_old").remedy)
    elif toolkit[:2] > serves[:2]:
        runtime = Finding(
            "cuda.runtime",
            "warn",
            f"{told}: machine code runs, compiling from PTX does not (error 222)",
            known("ptx_toolchain").remedy,
        )
    else:
        runtime = Finding("cuda.runtime", "ok", told)
    return [version, runtime]


def compiler_library(compiler: Compiler, *, card_is_here: bool) -> Finding:
    """See that NVRTC loads and tells its targets; without a card nobody needs it."""
    if not compiler.error:
        targets = ", ".join(f"sm_{target}" for target in compiler.targets)
        return Finding("nvrtc.library", "ok", f"NVRTC {compiler.version} compiles for {targets}")
    if not card_is_here:
        return Finding("nvrtc.library", "ok", f"not needed without a card ({compiler.error})")
    return Finding("nvrtc.library", "fail", compiler.error, compiler.remedy, required=True)


def compiler_target(facts: DeviceFacts, compiler: Compiler) -> Finding:
    """See that the compiler knows the card: the library is asked, no table is kept."""
    capability = version_numbers(facts.compute_capability)
    if compiler.error or len(capability) < 2:  # noqa: PLR2004  # major and minor
        return Finding(
            "nvrtc.target",
            "unknown",
            "the compiler or the card does not say what it is",
            required=True,
        )
    target = capability[0] * 10 + capability[1]
    told = f"NVRTC {compiler.version} and compute capability {facts.compute_capability}"
    if target in compiler.targets:
        return Finding("nvrtc.target", "ok", f"{told} fit")
    if compiler.targets and target < min(compiler.targets):
        remedy = "use the older CUDA family: pip install 'solkit[cuda12]'"
    else:
        remedy = "install a newer nvidia-cuda-nvrtc"
    return Finding("nvrtc.target", "fail", f"{told} do not: it has no sm_{target}", remedy)


def cupy_package(version: str, extra: str) -> Finding:
    """See that CuPy is installed; nothing is measured on a card without it."""
    if version:
        return Finding("cupy.package", "ok", f"CuPy {version}")
    return Finding(
        "cupy.package",
        "fail",
        "CuPy is not installed",
        f"pip install 'solkit[{extra}]'",
        required=True,
    )


def timer_package(version: str) -> Finding:
    """See that the best timer can be had; without it event pairs take the times."""
    if version:
        return Finding("cupti.package", "ok", f"cupti-python {version}: times by the GPU's records")
    return Finding(
        "cupti.package",
        "warn",
        "cupti-python is not installed: event pairs take the times, 3 us above the GPU's own",
        "pip install 'solkit[cupti]'",
    )


def context(trial: Trial, devices: Sequence[DeviceFacts]) -> Finding:
    """See that CUDA opens every visible device, and that they are the ones NVML names."""
    if trial.error:
        return Finding(
            "cuda.context",
            "fail",
            f"CUDA does not start: {trial.error}",
            remedy_for(
                trial.error, "read the message; reinstalling the CUDA extra cures a broken one"
            ),
            required=True,
        )
    expected = {facts.pci_bus_id for facts in devices}
    told = (
        f"CuPy {trial.cupy} with CUDA runtime {trial.runtime} opened {len(trial.bus_ids)} devices"
    )
    if not trial.bus_ids:
        return Finding("cuda.context", "fail", told, known("no_driver").remedy, required=True)
    if not set(trial.bus_ids) <= expected:
        strange = ", ".join(sorted(set(trial.bus_ids) - expected))
        return Finding(
            "cuda.context",
            "warn",
            f"{told}, of which NVML does not show {strange}",
            "pass the whole card into the container, its NVML device files included",
        )
    return Finding("cuda.context", "ok", told)


def visible_devices(devices: Sequence[DeviceFacts]) -> Finding:
    """List what `cuda:N` means here; a setting that was cut short or reordered is said."""
    told = "; ".join(f"cuda:{facts.index} is {facts.name} {facts.uuid}" for facts in devices)
    heard = dict.fromkeys(
        note
        for facts in devices
        for note in facts.notes
        if "CUDA_VISIBLE_DEVICES" in note or "CUDA_DEVICE_ORDER" in note
    )
    if heard:
        return Finding(
            "gpu.visible",
            "warn",
            f"{told}; {'; '.join(heard)}",
            "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name cards by UUID",
        )
    return Finding("gpu.visible", "ok", told)
