"""`solkit ceilings`: what it prints, keeps and refuses."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Self

import pytest

from solkit.cli.ceilings import command
from solkit.errors import NoDevice
from solkit.gpu import DeviceFacts
from solkit.measure.probe import Choice, cuda_devices
from solkit.model import Ceilings, DramCeiling


def solkit(*words: str, at: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SOLKIT_CACHE_DIR": str(at / "cache"), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "solkit", *words],
        cwd=at,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=200,
        check=False,
    )


@pytest.mark.slow
def test_a_hosts_ceilings_are_one_document(tmp_path: Path) -> None:
    """The same on stdout and in --out, with the samples' place; nothing is kept elsewhere."""
    done = solkit("ceilings", "--device", "cpu", "--json", "--out", "mine.json", at=tmp_path)
    assert 0 == done.returncode, done.stderr
    document = json.loads(done.stdout)
    assert "mine.json" == document.pop("path")
    assert json.loads((tmp_path / "mine.json").read_text(encoding="utf-8")) == document
    assert ("solkit.ceilings/1", "perf_counter") == (document["schema"], document["timer"])
    found = document["ceilings"]
    assert {"read", "copy", "triad", "write"} == {point["kernel"] for point in found["dram"]}
    assert {"perf_counter"} == set(found["floors_s"])
    assert "measuring the ceilings" in done.stderr
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("--timer", "sundial"), 2, "unknown timer 'sundial'"),
        (("--device", "abacus"), 2, "unknown device 'abacus'"),
        (("--device", "cpu", "--timer", "cupti"), 4, "cupti"),
        (("--device", "cpu", "--out", ""), 2, "--out names no file"),
        (("--device", "cpu", "--out", "."), 4, ".: can't be written"),
        (("--device", "cpu", "--out", "file/mine.json"), 4, "file/mine.json: can't be written"),
    ],
)
def test_what_can_not_be_measured_is_refused(
    tmp_path: Path, words: tuple[str, ...], code: int, why: str
) -> None:
    """Before anything is measured, with the exit code of its kind."""
    (tmp_path / "file").touch()
    done = solkit("ceilings", *words, at=tmp_path)
    assert code == done.returncode, done.stderr
    assert why in done.stderr
    assert "measuring" not in done.stderr
    assert "" == done.stdout
    assert ["file"] == [path.name for path in tmp_path.iterdir()]


def test_a_run_by_a_timer_that_is_not_here_measures_no_ceilings(tmp_path: Path) -> None:
    """The host has one timer: any other is refused before a word of measuring."""
    words = ("softmax", "rows=8", "cols=64", "--device", "cpu", "--timer", "cupti")
    done = solkit("run", *words, at=tmp_path)
    assert 4 == done.returncode, done.stderr
    assert "cupti" in done.stderr
    assert "measuring" not in done.stderr


class FakeBench:
    """A bench of a host that is measured in no time."""

    method = "perf_counter"
    notes = ()

    def __init__(self, _settings: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_why: object) -> None:
        pass

    def ceilings(self, _on_step: object) -> Ceilings:
        """Return a single point."""
        return Ceilings("perf_counter, cold", (DramCeiling("copy", 2**20, 2**20, 1e-4),), ())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command meet a host that takes no time."""
    host = Choice("cpu", 0, DeviceFacts("cpu", "A CPU"), "the CPU")
    monkeypatch.setattr("solkit.measure.bench.Bench", FakeBench)
    monkeypatch.setattr("solkit.measure.probe.choose", lambda _device: host)


def node(kind: str, at: Path) -> Path:
    """Make something that --out may name; return it."""
    path = at / kind
    if kind == "link":
        path.symlink_to("target")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            path.write_text("")
        except PermissionError:
            pytest.skip("no device node can be made here")
    elif kind == "file":
        path.write_text("old")
    return path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("kind", ["new", "file", "link", "pipe", "device"])
@pytest.mark.usefixtures("quick")
def test_out_is_written_and_stays_what_it_is(tmp_path: Path, kind: str) -> None:
    """An administrator's --out /dev/null must not make it a file."""
    path = node(kind, tmp_path)
    before = path.lstat().st_mode if kind != "new" else stat.S_IFREG
    held = os.open(path, os.O_RDWR | os.O_NONBLOCK) if kind == "pipe" else -1
    command(device="cpu", out=str(path))
    assert stat.S_IFMT(before) == stat.S_IFMT(path.lstat().st_mode)
    if kind == "device":
        return
    content = os.read(held, 2**16) if held >= 0 else path.read_bytes()
    assert "solkit.ceilings/1" == json.loads(content)["schema"]
    if held >= 0:
        os.close(held)


@pytest.mark.skipif(os.name != "posix", reason="there is no umask here")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
@pytest.mark.usefixtures("quick")
def test_out_has_the_umasks_mode(tmp_path: Path, umask: int, mode: int) -> None:
    """As any file that a person asks for."""
    before = os.umask(umask)
    try:
        command(device="cpu", out=str(tmp_path / "mine.json"))
    finally:
        os.umask(before)
    assert oct(mode) == oct((tmp_path / "mine.json").stat().st_mode & 0o777)


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.usefixtures("quick")
def test_what_was_measured_is_shown_where_the_disk_is_full_by_then(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    as_json: bool,
) -> None:
    """The numbers on stdout, then the error: a minute of measuring is not lost."""

    def full(_path: Path, _text: str) -> None:
        raise NoDevice("mine.json: can't be written: No space left on device")

    monkeypatch.setattr("solkit.cli.outputs.write", full)
    with pytest.raises(NoDevice, match="No space left"):
        command(device="cpu", out=str(tmp_path / "mine.json"), as_json=as_json)
    shown = capsys.readouterr().out
    assert "copy" in shown
    assert "mine.json" not in shown


@pytest.mark.skipif(bool(cuda_devices().devices), reason="a card is here")
def test_a_card_that_is_not_here_is_exit_4(tmp_path: Path) -> None:
    """No ceilings are made up for it."""
    done = solkit("ceilings", "--device", "cuda", at=tmp_path)
    assert 4 == done.returncode
    assert "error:" in done.stderr
