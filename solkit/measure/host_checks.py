"""The doctor's checks of the host: what every device needs, and what works without a card."""

import importlib
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from solkit.gpu import DeviceFacts
from solkit.measure.finding import Finding
from solkit.units import capacity

_LEAST_DISK_BYTES = 50 * 10**6  # a run's file and report take a few MB, compiled kernels some more
_GOOD_DISK_BYTES = 10**9
_GOOD_MEMORY_BYTES = 2 * 2**30  # the ceilings and the larger example cases need about 1 GiB
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def python(system: str) -> Finding:
    """Name the interpreter; measuring wants Linux, planning and reporting run anywhere."""
    evidence = f"Python {platform.python_version()} on {platform.platform(terse=True)}"
    if system.startswith("linux"):
        return Finding("host.python", "ok", evidence)
    return Finding(
        "host.python",
        "warn",
        f"{evidence}: planning and reporting work, cards are measured on Linux only",
        "measure in Linux or WSL",
    )


def numpy_threads(environ: Mapping[str, str], core_count: int | None) -> Finding:
    """See that NumPy loads, and how many threads its matrix products may use."""
    try:
        numpy = importlib.import_module("numpy")
    except ImportError as error:
        return Finding(
            "host.numpy",
            "fail",
            f"NumPy cannot be imported: {error}",
            "pip install --force-reinstall numpy",
            required=True,
        )
    evidence = f"NumPy {numpy.__version__}"
    for name in _THREAD_VARIABLES:
        setting = environ.get(name, "").strip()
        if setting.isdigit() and core_count is not None and int(setting) < core_count:
            return Finding(
                "host.numpy",
                "warn",
                f"{evidence}, held to {setting} of {core_count} cores by {name}",
                f"unset {name}, or keep it and compare only runs made with the same setting",
            )
    return Finding("host.numpy", "ok", f"{evidence}, free to use all {core_count or '?'} cores")


def memory(facts: DeviceFacts) -> Finding:
    """See that the references and the inputs fit the host's memory."""
    if facts.dram_free_bytes is None:
        return Finding("host.memory", "unknown", "the system does not tell its available memory")
    told = f"{capacity(facts.dram_free_bytes)} available"
    told += f" of {capacity(facts.dram_bytes)}" if facts.dram_bytes else ""
    if facts.dram_free_bytes < _GOOD_MEMORY_BYTES:
        return Finding(
            "host.memory", "warn", told, "free some memory: large cases are refused for want of it"
        )
    return Finding("host.memory", "ok", told)


def cpu_device(facts: DeviceFacts) -> Finding:
    """See how well the CPU itself can be measured; it needs no card and no driver."""
    told = f"{facts.name}, {facts.core_count} cores"
    works = "works without a card: solkit run --device cpu, plan, report, roofline"
    held = [note for note in facts.notes if "threads will be held up" in note]
    if held:
        return Finding(
            "host.cpu_device",
            "warn",
            f"{told}; {held[0]}; {works}",
            "grant whole cores, or expect noise",
        )
    if facts.l2_bytes is None:
        return Finding(
            "host.cpu_device",
            "warn",
            f"{told}; its last-level cache is not told, so cold times may be warm; {works}",
            "measure where /sys/devices/system/cpu/cpu0/cache can be read",
        )
    return Finding(
        "host.cpu_device", "ok", f"{told}, {capacity(facts.l2_bytes)} last-level cache; {works}"
    )


def folder(check_id: str, place: Path, what: str, remedy: str) -> Finding:
    """See that a folder can be written and has room, without leaving anything in it."""
    try:
        existing = place.absolute()
    except FileNotFoundError:
        return Finding(
            check_id, "fail", "the folder that this was started in is gone", "change to another one"
        )
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return Finding(check_id, "fail", f"{what} {place}: {existing} is no folder", remedy)
    try:
        with tempfile.TemporaryFile(dir=existing):
            free = shutil.disk_usage(existing).free
    except OSError as error:
        reason = error.strerror or str(error)
        return Finding(check_id, "fail", f"{what} {place} cannot be written: {reason}", remedy)
    told = f"{what} {place}: {capacity(free)} free"
    if free < _LEAST_DISK_BYTES:
        return Finding(check_id, "fail", told, remedy)
    if free < _GOOD_DISK_BYTES:
        return Finding(check_id, "warn", told, remedy)
    return Finding(check_id, "ok", told)


def profiler_rights(root: Path, *, administrator: bool | None = None) -> Finding:
    """See whether performance counters may be read; timing by events needs no such right."""
    held_by = _counter_holder(root)
    if held_by:
        return Finding(
            "profiler.counters",
            "warn",
            f"{held_by} is running and may hold the performance counters",
            "pause it while profiling: dcgmi profile --pause",
        )
    params = _read(root / "proc/driver/nvidia/params")
    setting = next(
        (
            line.partition(":")[2].strip()
            for line in params.splitlines()
            if line.startswith("RmProfilingAdminOnly:")
        ),
        "",
    )
    if setting == "0":
        return Finding("profiler.counters", "ok", "performance counters are open to all users")
    if setting == "":
        return Finding(
            "profiler.counters", "unknown", "the driver does not say who may read counters"
        )
    admin = _may_administer(root) if administrator is None else administrator
    if admin:
        return Finding(
            "profiler.counters", "ok", "performance counters are for administrators, as you are"
        )
    return Finding(
        "profiler.counters",
        "warn",
        "performance counters are for administrators only (ERR_NVGPUCTRPERM); times need none",
        "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN",
    )


def _may_administer(root: Path) -> bool:
    """Read CAP_SYS_ADMIN (bit 21) of this process: root in a container usually lacks it."""
    for line in _read(root / "proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.partition(":")[2].strip() or "0", 16) >> 21 & 1)
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _counter_holder(root: Path) -> str:
    """Name a running monitor that takes the performance counters for itself (DCGM)."""
    for place in (root / "proc").glob("[0-9]*/comm"):
        name = _read(place).strip()
        if name in {"nv-hostengine", "dcgm-exporter"}:
            return name
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
