"""CUDA C++ to a cubin by NVRTC, in a child process, with a cache on disk.

A malformed instruction block can take the process that compiles it down with it, so none is ever
compiled in this one. Compiled code is kept on disk (nvrtc_cache).
"""

import base64
import contextlib
import ctypes
import functools
import glob
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from solkit.errors import NoDevice, SolkitError
from solkit.measure.device import nvrtc_cache, nvrtc_child, nvrtc_log
from solkit.measure.diagnosis import verdict_in
from solkit.model import Compiled, Verdict

TIMEOUT_S = 300.0
_CHILD = Path(nvrtc_child.__file__)


class CompileError(SolkitError):
    """A source that doesn't compile: `log` is what the compiler said, with file and line.

    verdict: `crashed` or `timeout` where it is the compiler that did not live to say so.
    """

    def __init__(
        self, message: str, *, log: str = "", remedy: str = "", verdict: Verdict = ""
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.log = log
        self.verdict: Verdict = verdict


@dataclass(frozen=True, slots=True)
class Compilation:
    """A cubin, the symbol of each entry in it, and what the compiler said of each."""

    cubin: bytes
    lowered: dict[str, str]
    log: str
    functions: dict[str, Compiled]
    cached: bool = False
    notes: tuple[str, ...] = ()


def compile_source(
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
    key = nvrtc_cache.key(source, (version(), name, *entries, *flags), include_dirs)
    path = (cache or cache_folder()) / f"{key}.kernel"
    stored = nvrtc_cache.read(path)
    cached = stored is not None
    notes: tuple[str, ...] = ()
    if stored is None:
        stored = _compile(source, name, entries, flags, timeout_s)
        notes = nvrtc_cache.write(path, stored)
    functions = nvrtc_log.functions(stored.log, stored.lowered)
    return Compilation(stored.cubin, stored.lowered, stored.log, functions, cached, notes)


def cache_folder() -> Path:
    """Return where compiled kernels are kept."""
    return nvrtc_cache.folder()


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
def family() -> str:
    """Return the CUDA major version that the installed CuPy is built for; "" without CuPy.

    Where wheels of several families are installed, the compiler must be of CuPy's: code of a newer
    family does not load on a driver of an older one.
    """
    for major in ("13", "12"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            metadata.distribution(f"cupy-cuda{major}x")
            return major
    return ""


@functools.cache
def library() -> Path:
    """Find NVRTC: the wheel of CuPy's CUDA family, else whatever is installed.

    Looked for with cuda.pathfinder, in site-packages, in CUDA_HOME, by the system's loader.
    """
    for folder in _nvidia_packages() if family() else ():
        for own in glob.glob(f"{folder}/**/libnvrtc.so.{family()}", recursive=True):  # noqa: PTH207  # Path.glob takes no absolute pattern
            return Path(own)
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
    wheels = {"12": "cuda_runtime", "13": "cu13"}
    own = wheels.get(family(), "cu13")
    candidates: list[str | None] = [f"{folder}/{own}/include" for folder in _nvidia_packages()]
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


def _compile(
    source: str, name: str, entries: tuple[str, ...], flags: tuple[str, ...], timeout_s: float
) -> nvrtc_cache.Stored:
    """Compile in a child process; whatever ends it is a compile failure with what it said."""
    request = {
        "library": str(library()),
        "source": source,
        "name": name,
        "entries": entries,
        "options": flags,
    }
    try:
        child = subprocess.run(  # noqa: S603  # this interpreter, our own file
            [sys.executable, "-I", "-S", str(_CHILD), name],  # the name is for people who look on
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
            verdict="timeout",
        ) from error
    said = child.stderr.decode(errors="replace").strip()
    try:
        answer = json.loads(child.stdout)
    except ValueError as error:
        words = f": {said[-2000:]}" if said else ""
        raise CompileError(
            f"{name}: the compiler {_death(child.returncode)}{words}",
            log=said,
            remedy="look for a malformed asm block: such can crash the compiler",
            verdict=verdict_in(said, "crashed"),
        ) from error
    log = str(answer["log"])
    if not answer["ok"]:
        raise CompileError(f"{name} does not compile:\n{log[:8000]}", log=log, remedy=_remedy(log))
    return nvrtc_cache.Stored(base64.b64decode(answer["cubin"]), answer["lowered"], log)


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
