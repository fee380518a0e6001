"""CUDA C++ to a cubin by NVRTC, in a child process, with a cache on disk.

A malformed instruction block can take the process that compiles it down with it, so none is ever
compiled in this one. Compiled code is kept in a folder (cache_folder says which); removing the
folder is always safe.
"""

import base64
import ctypes
import functools
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from solkit.errors import NoDevice, SolkitError
from solkit.measure.device import nvrtc_child
from solkit.model import Compiled

TIMEOUT_S = 300.0
_CHILD = Path(nvrtc_child.__file__)
_MAGIC = b"solkit-kernel/1\n"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)
# ptxas leaves something out and says so only here: C7508 to C7511, C7517 (setmaxnreg ignored, wgmma
# serialised). Such a kernel runs, slowly.
_DROPPED = re.compile(r"\bC75(?:08|09|10|11|17)\b")
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


class CompileError(SolkitError):
    """A source that doesn't compile: `log` is what the compiler said, with file and line."""

    def __init__(self, message: str, *, log: str = "", remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.log = log


@dataclass(frozen=True, slots=True)
class Compilation:
    """A cubin, the symbol of each entry in it, and what the compiler said of each."""

    cubin: bytes
    lowered: dict[str, str]
    log: str
    functions: dict[str, Compiled]
    cached: bool = False
    notes: tuple[str, ...] = ()


def compile_source(  # noqa: PLR0913  # a compiler takes what it takes
    source: str,
    *,
    name: str,
    entries: tuple[str, ...],
    arch: str,
    options: tuple[str, ...] = (),
    include_dirs: tuple[Path, ...] = (),
    cache: Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Compilation:
    """Compile `source` for one real architecture ("sm_90a"), or take it from the cache.

    name: what errors call the source. entries: name expressions, e.g. "copy<__half, 256, 8>".
    Raises CompileError (doesn't compile, crashed, took too long) and NoDevice (no NVRTC here).
    """
    flags = (
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "-default-device",
        "-lineinfo",
        "--ptxas-options=-v",
        *(f"--include-path={folder}" for folder in (*include_dirs, *cuda_include_dirs())),
        *options,
    )
    key = _key(source, name, entries, flags, include_dirs)
    path = (cache or cache_folder()) / f"{key}.kernel"
    found = _read(path)
    if found is not None:
        return found
    request = {
        "library": str(library()),
        "source": source,
        "name": name,
        "entries": list(entries),
        "options": list(flags),
    }
    answer = _ask_child(request, name, timeout_s)
    compilation = _compilation(base64.b64decode(answer["cubin"]), answer["lowered"], answer["log"])
    return replace(compilation, notes=_write(path, compilation))


def cache_folder() -> Path:
    """Return where compiled kernels are kept: $SOLKIT_CACHE_DIR, else the user's cache folder."""
    own = os.environ.get("SOLKIT_CACHE_DIR")
    if own:
        return Path(own).expanduser() / "kernels"
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:  # no home folder is known
        home = Path(tempfile.gettempdir())
    return home / "solkit" / "kernels"


def version() -> str:
    """Return NVRTC's version, e.g. "13.0"."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    if _nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)):
        raise NoDevice(f"{library()} does not tell its version", remedy=_INSTALL)
    return f"{major.value}.{minor.value}"


def targets() -> tuple[int, ...]:
    """Return the architectures NVRTC compiles for, e.g. (75, 80, ..., 120)."""
    count = ctypes.c_int()
    nvrtc = _nvrtc()
    if nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)):
        raise NoDevice(f"{library()} does not tell its targets", remedy=_INSTALL)
    numbers = (ctypes.c_int * count.value)()
    if nvrtc.nvrtcGetSupportedArchs(numbers):
        raise NoDevice(f"{library()} does not tell its targets", remedy=_INSTALL)
    return tuple(sorted(numbers))


_INSTALL = "pip install 'solkit[cuda13]' (or cuda12), or set CUDA_HOME to a CUDA toolkit"


@functools.cache
def library() -> Path:
    """Find NVRTC: by cuda.pathfinder, in site-packages, in CUDA_HOME, by the system's loader."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # noqa: PLC0415  # not always installed

        found = load_nvidia_dynamic_lib("nvrtc").abs_path
        if found:
            return Path(found)
    except (ImportError, RuntimeError):  # not installed, or it found none (DynamicLibNotFoundError)
        pass
    patterns = [f"{folder}/**/libnvrtc.so*" for folder in _nvidia_packages()]
    patterns += [f"{home}/lib*/libnvrtc.so*" for home in _toolkits()]
    for pattern in patterns:
        for candidate in sorted(glob.glob(pattern, recursive=True), reverse=True):  # noqa: PTH207  # Path.glob takes no absolute pattern
            return Path(candidate)
    for soname in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        try:
            ctypes.CDLL(soname)
        except OSError:
            continue
        return Path(soname)
    raise NoDevice("NVRTC, CUDA's run-time compiler, was not found", remedy=_INSTALL)


@functools.cache
def cuda_include_dirs() -> tuple[Path, ...]:
    """Find the folder of cuda_fp16.h; empty when there is none (the compiler then says so)."""
    candidates: list[str | None] = []
    try:
        from cuda.pathfinder import find_nvidia_header_directory  # noqa: PLC0415  # as above

        candidates.append(find_nvidia_header_directory("cudart"))
    except (ImportError, RuntimeError):
        pass
    for folder in _nvidia_packages():
        candidates += sorted(glob.glob(f"{folder}/*/include"), reverse=True)  # noqa: PTH207  # as above
    for folder in _packages("cupy"):
        candidates += sorted(glob.glob(f"{folder}/_core/include/cupy/_cuda/cuda-*"), reverse=True)  # noqa: PTH207  # as above
    candidates += [f"{home}/include" for home in _toolkits()]
    for candidate in candidates:
        if candidate and (Path(candidate) / "cuda_fp16.h").is_file():
            return (Path(candidate),)
    return ()


def _packages(name: str) -> list[str]:
    """Return a package's folders without importing it."""
    return [f"{folder}/{name}" for folder in sys.path if Path(folder, name).is_dir()]


def _nvidia_packages() -> list[str]:
    return _packages("nvidia")


def _toolkits() -> list[str]:
    named = (os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH"))
    return [home for home in (*named, "/usr/local/cuda") if home]


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    try:
        return nvrtc_child.load(str(library()))
    except OSError as error:
        raise NoDevice(f"{library()}: {error}", remedy=_INSTALL) from error


def _ask_child(request: dict[str, object], name: str, timeout_s: float) -> dict[str, object]:
    """Compile in a child process; whatever ends it is a compile failure with what it said."""
    try:
        child = subprocess.run(  # noqa: S603  # this interpreter, our own file
            [sys.executable, "-I", "-S", str(_CHILD)],
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CompileError(
            f"{name}: the compiler took longer than {timeout_s:g} s and was stopped",
            log=(error.stderr or b"").decode(errors="replace"),
            remedy="unroll less, or instantiate fewer functions in a launch",
        ) from error
    said = child.stderr.decode(errors="replace").strip()
    try:
        answer: dict[str, object] = json.loads(child.stdout)
    except ValueError as error:
        raise CompileError(
            f"{name}: the compiler {_death(child.returncode)}"
            + (f": {said[-2000:]}" if said else ""),
            log=said,
            remedy="look for a malformed asm block: such crash the compiler instead of an error",
        ) from error
    if not answer["ok"]:
        log = str(answer["log"])
        raise CompileError(f"{name} does not compile:\n{log[:8000]}", log=log, remedy=_remedy(log))
    return answer


def _death(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _remedy(log: str) -> str:
    if re.search(r'open source file "cuda_\w+\.h"', log):
        return "CUDA's headers are missing: pip install nvidia-cuda-runtime, or set CUDA_HOME"
    if "gpu-architecture" in log:
        return f"this NVRTC ({version()}) compiles for: {', '.join(map(str, targets()))}"
    return "mend the source at the line named"


# --- what the compiler said -------------------------------------------------------------------


def _compilation(
    cubin: bytes, lowered: dict[str, str], log: str, *, cached: bool = False
) -> Compilation:
    return Compilation(cubin, lowered, log, _functions(log, lowered), cached)


def _functions(log: str, lowered: dict[str, str]) -> dict[str, Compiled]:
    """Read ptxas -v: registers, spills and static shared memory of each function, and warnings."""
    blocks: dict[str, list[str]] = {"": []}
    current = ""
    for line in log.splitlines():
        entered = _ENTRY.search(line)
        if entered:
            current = entered.group(1)
        blocks.setdefault(current, []).append(line)
    return {
        entry: _compiled(entry, "\n".join(blocks.get(symbol, ())), _warnings(log, symbol, blocks))
        for entry, symbol in lowered.items()
    }


def _compiled(entry: str, text: str, warnings: tuple[str, ...]) -> Compiled:
    registers, shared, spills = (rule.search(text) for rule in (_REGISTERS, _SHARED, _SPILLS))
    return Compiled(
        name=entry,
        register_count=int(registers.group(1)) if registers else None,
        spill_bytes=max(int(spills.group(1)), int(spills.group(2))) if spills else None,
        shared_bytes=(int(shared.group(1)) if shared else 0) if registers else None,
        warnings=warnings,
    )


def _warnings(log: str, symbol: str, blocks: dict[str, list[str]]) -> tuple[str, ...]:
    """Return this function's warnings from ptxas, and those that name no function.

    The front end's concern the source, and ptxas reports dropped instructions before it names the
    first function: both are held against every one.
    """
    anyones, own = blocks[""], blocks.get(symbol, [])
    found = []
    for line in log.splitlines():
        named = next((other for other in blocks if other and other in line), None)
        concerns = named == symbol or (named is None and (line in anyones or line in own))
        if "warning #" in line or (concerns and (_DROPPED.search(line) or "ptxas warning" in line)):
            found.append(line.strip())
    return tuple(dict.fromkeys(found))


# --- the cache --------------------------------------------------------------------------------


def _key(
    source: str,
    name: str,
    entries: Iterable[str],
    flags: Iterable[str],
    include_dirs: tuple[Path, ...],
) -> str:
    digest = sha256()
    for part in (version(), name, *entries, *flags, source, *_headers(source, include_dirs)):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def _headers(source: str, include_dirs: tuple[Path, ...]) -> list[str]:
    """Return the text of every header of ours that the source includes, directly or through others.

    CUDA's own headers are not read: the compiler's version and their folder stand for them.
    """
    texts: dict[Path, str] = {}
    waiting = [(source, include_dirs)]
    while waiting:
        text, folders = waiting.pop()
        for included in _INCLUDE.findall(text):
            for folder in folders:
                path = (folder / included).resolve()
                if path in texts or not path.is_file():
                    continue
                texts[path] = path.read_text(encoding="utf-8", errors="replace")
                waiting.append((texts[path], (path.parent, *include_dirs)))
    return [text for _, text in sorted(texts.items())]


def _read(path: Path) -> Compilation | None:
    """Return a cache entry, or None when there is none or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    header, separator, cubin = content.removeprefix(_MAGIC).partition(b"\n")
    if not content.startswith(_MAGIC) or not separator:
        return None
    try:
        facts = json.loads(header)
        lowered = {str(entry): str(symbol) for entry, symbol in facts["lowered"].items()}
        log = str(facts["log"])
        if facts["sha256"] != sha256(cubin + log.encode()).hexdigest():
            return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return _compilation(cubin, lowered, log, cached=True)


_told: set[Path] = set()


def _write(path: Path, compilation: Compilation) -> tuple[str, ...]:
    """Write a cache entry whole or not at all; return a note, once a folder, when it can't."""
    facts = {
        "lowered": compilation.lowered,
        "log": compilation.log,
        "sha256": sha256(compilation.cubin + compilation.log.encode()).hexdigest(),
    }
    content = _MAGIC + json.dumps(facts).encode() + b"\n" + compilation.cubin
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if path.parent in _told:
            return ()
        _told.add(path.parent)
        return (
            f"compiled kernels are not kept: {path.parent}: {error.strerror or error} "
            "(set SOLKIT_CACHE_DIR to a folder that can be written)",
        )
    return ()
