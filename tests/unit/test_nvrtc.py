import contextlib
import os
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

from solkit.measure.device import nvrtc, nvrtc_cache

pytestmark = pytest.mark.skipif(
    os.name == "nt" or os.uname().sysname != "Linux", reason="NVRTC's wheels are for Linux"
)

SOURCE = """#include "twice.cuh"
template <typename T>
__global__ void __launch_bounds__(128) scale(const T* x, T* y) {
  y[threadIdx.x] = twice(x[threadIdx.x]);
}
"""
HEADER = "template <typename T> __device__ T twice(T value) { return value + value; }\n"
ENTRIES = ("scale<float>", "scale<int>")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with the header that SOURCE includes."""
    (tmp_path / "twice.cuh").write_text(HEADER)
    return tmp_path


def compiled(folder: Path, source: str = SOURCE, **changes: object) -> nvrtc.Compilation:
    settings: dict[str, object] = {
        "name": "scale.cu",
        "entries": ENTRIES,
        "arch": "sm_90a",
        "include_dirs": (folder,),
        "cache": folder / "cache",
    }
    return nvrtc.compile_source(source, **{**settings, **changes})  # type: ignore[arg-type]


def test_every_entry_gets_its_symbol_and_what_ptxas_said_of_it(folder: Path) -> None:
    """A name expression leads to a mangled name, its registers, spills and shared memory."""
    result = compiled(folder)
    assert b"\x7fELF" == result.cubin[:4]
    assert set(ENTRIES) == set(result.lowered)
    assert 2 == len(set(result.lowered.values()))
    for entry in ENTRIES:
        assert result.lowered[entry].encode() in result.cubin
        info = result.functions[entry]
        assert entry == info.name
        assert info.register_count is not None
        assert 4 <= info.register_count <= 32
        assert (0, 0, ()) == (info.spill_bytes, info.shared_bytes, info.warnings)


def test_static_shared_memory_is_counted(folder: Path) -> None:
    """64 floats of shared memory are 256 bytes."""
    source = """__global__ void turn(float* x) {
  __shared__ float slot[64];
  slot[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = slot[63 - threadIdx.x];
}"""
    assert 256 == compiled(folder, source, entries=("turn",)).functions["turn"].shared_bytes


def test_a_source_that_does_not_compile_gives_the_log_with_the_line(folder: Path) -> None:
    """The error names the file and the line, as the compiler does."""
    with pytest.raises(nvrtc.CompileError) as caught:
        compiled(folder, SOURCE.replace("twice(x[threadIdx.x])", "thrice(x[threadIdx.x])"))
    assert "scale.cu(4): error" in caught.value.log
    assert "thrice" in caught.value.message
    assert caught.value.remedy


def test_an_entry_that_does_not_exist_is_a_compile_error(folder: Path) -> None:
    """A launch that names no function of the source says which."""
    with pytest.raises(nvrtc.CompileError, match="shrink"):
        compiled(folder, entries=("shrink<float>",))


def test_an_unknown_architecture_is_answered_with_the_known_ones(folder: Path) -> None:
    """The remedy lists what this NVRTC compiles for."""
    with pytest.raises(nvrtc.CompileError) as caught:
        compiled(folder, arch="sm_10")
    assert ", 90" in caught.value.remedy


def test_warnings_of_the_front_end_reach_the_function(folder: Path) -> None:
    """An unused variable is told with its line."""
    source = SOURCE.replace("  y[", "  int idle;\n  y[")
    warnings = compiled(folder, source).functions["scale<float>"].warnings
    assert 1 == len(warnings)
    assert "scale.cu(4): warning" in warnings[0]


def test_an_instruction_that_ptxas_drops_is_a_warning(folder: Path) -> None:
    """Setmaxnreg without a minimum of blocks in the launch bounds is ignored: C7508 says so."""
    source = """__global__ void __launch_bounds__(384) grow(float* x) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  x[threadIdx.x] = 1;
}"""
    warnings = compiled(folder, source, entries=("grow",)).functions["grow"].warnings
    assert any("C7508" in warning for warning in warnings)


def test_the_second_time_comes_from_the_cache(folder: Path) -> None:
    """Equal input gives the same bytes and the same facts, without a compiler."""
    first, second = compiled(folder), compiled(folder)
    assert (False, True) == (first.cached, second.cached)
    assert first.cubin == second.cubin
    assert first.functions == second.functions


@pytest.mark.parametrize(
    "change",
    [
        {"source": SOURCE.replace("128", "256")},
        {"arch": "sm_80"},
        {"options": ("--use_fast_math",)},
        {"entries": ("scale<float>",)},
    ],
    ids=["source", "arch", "options", "entries"],
)
def test_any_change_of_the_input_is_compiled_anew(folder: Path, change: dict[str, object]) -> None:
    """Nothing that shapes the result is missing in the cache's key."""
    compiled(folder)
    assert not compiled(folder, **change).cached  # type: ignore[arg-type]


def test_a_changed_header_is_compiled_anew(folder: Path) -> None:
    """Headers count, those included by headers too."""
    (folder / "twice.cuh").write_text('#include "deep.cuh"\n' + HEADER)
    (folder / "deep.cuh").write_text("// one\n")
    compiled(folder)
    (folder / "deep.cuh").write_text("// two\n")
    assert not compiled(folder).cached
    assert compiled(folder).cached


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[:-100],
        lambda _: b"solkit-kernel/1\n{}\n",
        lambda _: b"?" * 9,
    ],
    ids=["empty", "cut short", "no facts", "foreign"],
)
def test_a_damaged_cache_entry_is_compiled_anew(folder: Path, damage: object) -> None:
    """A file that was cut or overwritten is never loaded, and is replaced."""
    first = compiled(folder)
    (path,) = (folder / "cache").glob("*.kernel")
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    again = compiled(folder)
    assert not again.cached
    assert first.cubin == again.cubin
    assert compiled(folder).cached


def test_no_unfinished_file_stays_in_the_cache(folder: Path) -> None:
    """An entry is written under another name and renamed."""
    compiled(folder)
    assert 1 == len(list((folder / "cache").iterdir()))


def test_a_cache_that_cannot_be_written_is_said_once(folder: Path) -> None:
    """Compiling goes on without a cache; the note says what to do."""
    blocked = folder / "blocked"
    blocked.write_text("a file where the folder should be")
    first = compiled(folder, cache=blocked)
    second = compiled(folder, cache=blocked, arch="sm_80")
    assert 1 == len(first.notes)
    assert "SOLKIT_CACHE_DIR" in first.notes[0]
    assert () == second.notes


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """SOLKIT_CACHE_DIR decides, then XDG_CACHE_HOME, then the home folder."""
    monkeypatch.setenv("SOLKIT_CACHE_DIR", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    assert Path("/one/kernels") == nvrtc_cache.folder()
    monkeypatch.delenv("SOLKIT_CACHE_DIR")
    assert Path("/two/solkit/kernels") == nvrtc_cache.folder()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/three")
    assert Path("/three/.cache/solkit/kernels") == nvrtc_cache.folder()


def child(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put another script in the compiler's place."""
    path = folder / "child.py"
    path.write_text(body)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(nvrtc, "_CHILD", path)


def test_a_crash_of_the_compiler_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child dies by a signal: the error names it and passes on its last words."""
    child(
        folder,
        "import os, sys\nprint('out of luck', file=sys.stderr, flush=True)\n"
        "os.kill(os.getpid(), 11)\n",
        monkeypatch,
    )
    with pytest.raises(nvrtc.CompileError, match=r"SIGSEGV.*out of luck") as caught:
        compiled(folder)
    assert "crashed" == caught.value.verdict


# Three thousand conditions inside each other keep the compiler busy for seconds.
LONG = f"__global__ void deep(int* x) {{ {'if (x[1]) ' * 3000} x[0] = 1; }}"


def _segfault_own_compiler() -> None:
    """Send SIGSEGV to the compiler that this process starts, as soon as it is there."""
    own = str(os.getpid())
    for _ in range(1000):
        for place in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                if (place / "stat").read_text().rpartition(") ")[2].split()[1] != own:
                    continue
                if b"nvrtc_child" in (place / "cmdline").read_bytes():
                    os.kill(int(place.name), signal.SIGSEGV)
                    return
        time.sleep(0.01)


def test_a_compiler_that_segfaults_at_work_fails_its_source_alone(folder: Path) -> None:
    """NVRTC itself, hit while it compiles; nothing half done is kept, and the next one compiles."""
    killer = threading.Thread(target=_segfault_own_compiler)
    killer.start()
    with pytest.raises(nvrtc.CompileError, match="the compiler was killed by SIGSEGV") as caught:
        compiled(folder, LONG, entries=("deep",))
    killer.join()
    assert ("crashed", True) == (caught.value.verdict, bool(caught.value.remedy))
    assert [] == list((folder / "cache").glob("*"))
    assert compiled(folder).cubin


def test_a_compiler_that_hangs_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the limit the child is ended, and the case fails."""
    child(folder, "import time\ntime.sleep(60)\n", monkeypatch)
    with pytest.raises(nvrtc.CompileError, match=r"longer than 0\.5 s") as caught:
        compiled(folder, timeout_s=0.5)
    assert "timeout" == caught.value.verdict


def test_targets_and_version_are_the_compilers_own() -> None:
    """NVRTC 12 and later compile for 7.5 and 9.0."""
    assert {75, 90} <= set(nvrtc.targets())
    assert 12 <= int(nvrtc.version().split(".")[0])


@pytest.mark.parametrize(("major", "wheel"), [("12", "cuda_nvrtc/lib"), ("13", "cu13/lib")])
def test_the_compiler_is_of_cupys_cuda_family(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, major: str, wheel: str
) -> None:
    """Where both families' wheels are installed, code must load on the driver CuPy is for."""
    for number, folder in (("12", "cuda_nvrtc/lib"), ("13", "cu13/lib")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"libnvrtc.so.{number}").touch()
    monkeypatch.setattr(nvrtc, "family", lambda: major)
    monkeypatch.setattr(nvrtc, "_nvidia_packages", lambda: [str(tmp_path)])
    assert tmp_path / wheel / f"libnvrtc.so.{major}" == nvrtc.library.__wrapped__()
