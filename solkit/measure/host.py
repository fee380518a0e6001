"""The host's CPU as a device: its name, usable cores, memory and last-level cache.

Linux tells all of it through files; macOS and Windows tell less, and what they don't is None.
`root` is where those files are looked for, so that a test can give a machine of its own.
"""

import ctypes
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from solkit.gpu import DeviceFacts
from solkit.units import capacity, digits

_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
# cgroup v1 writes "no limit" as the largest multiple of a page: anything over 2**60 bytes is none.
_NO_LIMIT_BYTES = 2**60


def cpu_facts(*, root: Path = Path("/"), system: str = sys.platform) -> DeviceFacts:
    """Return the facts of the CPU device.

    core_count: cores this process may run on. dram_bytes and dram_free_bytes: of the machine or
    of its cgroup, whichever is less. l2_bytes: all last-level caches of the usable cores together
    (what a cold sample has to flush), by the name the field has for cards.
    """
    notes: list[str] = []
    cores = usable_cores()
    total, free = _memory_bytes(root, system)
    limit, left = cgroup_memory_bytes(root) if system.startswith("linux") else (None, None)
    if limit is not None and (total is None or limit < total):
        total = limit
        notes.append(f"memory is limited to {capacity(limit)} by the cgroup")
    if left is not None:
        free = left if free is None else min(free, left)
    quota = _cgroup_cpus(root) if system.startswith("linux") else None
    if quota is not None and quota < len(cores):
        notes.append(
            f"the cgroup grants the time of {digits(quota, 2)} of {len(cores)} cores: "
            "threads will be held up"
        )
    cache = _cache_bytes(root, cores) if system.startswith("linux") else None
    if cache is None:
        cache = _cache_elsewhere_bytes(system)
    if cache is None:
        notes.append("the size of the last-level cache is not told here")
    if free is None:
        notes.append("available memory is not told here")
    return DeviceFacts(
        kind="cpu",
        name=_name(root, system),
        core_count=len(cores),
        dram_bytes=total,
        dram_free_bytes=free,
        l2_bytes=cache,
        max_clock_hz=_max_clock_hz(root, cores),
        notes=tuple(notes),
    )


def usable_cores() -> tuple[int, ...]:
    """Return the numbers of the cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def cgroup_memory_bytes(root: Path = Path("/")) -> tuple[int | None, int | None]:
    """Return the memory limit of this process's cgroup and what is left; None where unlimited.

    Every ancestor's limit holds too, so the least of them counts. Page cache that the kernel can
    drop (inactive_file) is counted as free, as MemAvailable does.
    """
    limit = left = None
    for place, limit_file, used_file in _cgroup_places(root):
        most = _number(place / limit_file)
        if most is None or most >= _NO_LIMIT_BYTES:
            continue
        limit = most if limit is None else min(limit, most)
        used = _number(place / used_file)
        if used is not None:
            stat = _read(place / "memory.stat")
            droppable = re.search(r"^(?:total_)?inactive_file (\d+)$", stat, re.MULTILINE)
            here = max(0, most - used + (int(droppable[1]) if droppable else 0))
            left = min(here, most) if left is None else min(left, here, most)
    return limit, left


def _cgroup_places(root: Path) -> list[tuple[Path, str, str]]:
    """Return the folders that may limit this process: version 2, then version 1, leaf first."""
    places = []
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            base, files = root / "sys/fs/cgroup", ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        parts = [part for part in path.split("/") if part not in {"", ".", ".."}]
        places += [(base.joinpath(*parts[:depth]), *files) for depth in range(len(parts), -1, -1)]
    return places


def _cgroup_cpus(root: Path) -> float | None:
    """Return how many cores' time the cgroup (version 2) grants; None where it sets no quota."""
    least = None
    for place, limit_file, _ in _cgroup_places(root):
        quota = _read(place / "cpu.max").split() if limit_file == "memory.max" else []
        if len(quota) == 2 and quota[0].isdigit() and quota[1].isdigit() and int(quota[1]):  # noqa: PLR2004  # quota and period
            cpus = int(quota[0]) / int(quota[1])
            least = cpus if least is None else min(least, cpus)
    return least


def _memory_bytes(root: Path, system: str) -> tuple[int | None, int | None]:
    """Return the machine's total and available memory."""
    if system.startswith("linux"):
        told = dict(re.findall(r"^(\w+):\s+(\d+) kB$", _read(root / "proc/meminfo"), re.MULTILINE))
        return (
            int(told["MemTotal"]) * 1024 if "MemTotal" in told else None,
            int(told["MemAvailable"]) * 1024 if "MemAvailable" in told else None,
        )
    if system == "win32":
        return _windows_memory_bytes()
    total = _sysctl("hw.memsize")
    return (int(total) if total.isdigit() else None), None


def _windows_memory_bytes() -> tuple[int | None, int | None]:
    """Ask GlobalMemoryStatusEx, whose structure is two 32-bit and seven 64-bit numbers."""

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("total", ctypes.c_uint64),
            ("available", ctypes.c_uint64),
            ("rest", ctypes.c_uint64 * 5),
        )

    status = Status(length=ctypes.sizeof(Status))
    windll = getattr(ctypes, "windll", None)
    if windll is None or not windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None, None
    return int(status.total), int(status.available)


def _cache_bytes(root: Path, cores: tuple[int, ...]) -> int | None:
    """Add up the last-level caches of the cores, each shared cache once."""
    domains: dict[tuple[int, str], int] = {}
    for core in cores:
        for place in (root / f"sys/devices/system/cpu/cpu{core}/cache").glob("index*"):
            size = re.fullmatch(r"(\d+)([KMG]?)", _read(place / "size").strip())
            level = _number(place / "level")
            if size is None or level is None or _read(place / "type").strip() == "Instruction":
                continue
            shared = _read(place / "shared_cpu_list").strip() or f"core {core}"
            domains[level, shared] = int(size[1]) * _SIZES[size[2]]
    if not domains:
        return None
    last = max(level for level, _ in domains)
    return sum(size for (level, _), size in domains.items() if level == last) or None


def _cache_elsewhere_bytes(system: str) -> int | None:
    """Ask what is left to ask: the C library's configuration, or macOS."""
    if system == "darwin":
        told = _sysctl("hw.l3cachesize") or _sysctl("hw.l2cachesize")
        return int(told) or None if told.isdigit() else None
    for name in ("SC_LEVEL4_CACHE_SIZE", "SC_LEVEL3_CACHE_SIZE", "SC_LEVEL2_CACHE_SIZE"):
        if name in getattr(os, "sysconf_names", {}):
            size = os.sysconf(name)
            if size > 0:
                return size
    return None


def _name(root: Path, system: str) -> str:
    """Return the CPU's model; Arm Linux gives numbers instead of a name, then its board's name."""
    if system.startswith("linux"):
        model = re.search(r"^model name\s*:\s*(\S.*)$", _read(root / "proc/cpuinfo"), re.MULTILINE)
        board = _read(root / "sys/firmware/devicetree/base/model").strip("\0\n ")
        return (model[1].strip() if model else board) or f"{platform.machine()} CPU"
    if system == "darwin":
        return _sysctl("machdep.cpu.brand_string") or f"{platform.machine()} CPU"
    return platform.processor() or f"{platform.machine()} CPU"


def _max_clock_hz(root: Path, cores: tuple[int, ...]) -> float | None:
    """Return the highest clock of any usable core, where cpufreq tells it (in kHz)."""
    told = [
        _number(root / f"sys/devices/system/cpu/cpu{core}/cpufreq/cpuinfo_max_freq")
        for core in cores
    ]
    return max((khz * 1e3 for khz in told if khz), default=None)


def _sysctl(name: str) -> str:
    """Ask macOS for one value; empty where it has none."""
    try:
        done = subprocess.run(  # noqa: S603  # a fixed program and fixed names
            ["/usr/sbin/sysctl", "-n", name],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _read(path: Path) -> str:
    """Read a file of the kernel; one that is absent or closed to us says nothing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isascii() and text.isdigit() else None
