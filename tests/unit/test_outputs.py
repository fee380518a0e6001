"""Where a run and its report go: never over another, never half, never through a device."""

import os
import stat
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest

from solkit.cli import outputs
from solkit.errors import BadInput, NoDevice

needs_posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")


def test_a_run_is_named_for_its_time_and_device() -> None:
    """The time is UTC; the name holds nothing that a file system could object to."""
    when = datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC)
    assert "20260131-120005-nvidia-h200" == outputs.run_id("NVIDIA H200 /..", when)


def test_two_runs_of_one_second_get_two_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that comes second gets a number, even while the first folder is still empty."""
    monkeypatch.chdir(tmp_path)
    found = [outputs.make_folder(None, "run").name for _ in range(3)]
    assert ["run", "run-2", "run-3"] == found


def test_a_folder_that_holds_a_run_is_not_taken(tmp_path: Path) -> None:
    """--out names one folder; finishing it is what --resume is for."""
    (tmp_path / outputs.RUN_FILE).touch()
    with pytest.raises(BadInput, match="holds a run already") as caught:
        outputs.make_folder(tmp_path, "run")
    assert "--resume" in caught.value.remedy


def test_a_file_is_written_with_the_folders_it_needs(tmp_path: Path) -> None:
    """Nothing else is left beside it."""
    path = tmp_path / "new" / "report.html"
    outputs.write(path, "text")
    assert "text" == path.read_text(encoding="utf-8")
    assert [path] == list(path.parent.iterdir())


@needs_posix
def test_a_link_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    """Its target is written."""
    (tmp_path / "link").symlink_to("target")
    outputs.write(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert "text" == (tmp_path / "target").read_text(encoding="utf-8")


@needs_posix
def test_a_pipe_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    """As are /dev/null and /dev/stdout: an administrator's -o /dev/null must not make it a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    outputs.write(pipe, "text")
    assert b"text" == os.read(reading, 100)
    os.close(reading)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("place", "holds"),
    [
        ("report.html", True),
        ("new/deep/report.html", True),
        ("file", True),
        ("link", True),
        ("hanging", True),
        ("pipe", True),
        ("folder", False),
        ("link-to-folder", False),
        ("file/report.html", False),
        ("file/new/report.html", False),
        ("x" * 300, False),
        ("x" * 300 + "/report.html", False),
    ],
)
@needs_posix
def test_a_file_is_proved_writable_before_the_work_for_it(
    tmp_path: Path, place: str, *, holds: bool
) -> None:
    """What the proof says is what writing then meets; the proof changes nothing."""
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "hanging").symlink_to("away/target")
    (tmp_path / "link-to-folder").symlink_to("folder")
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    before = sorted(tmp_path.rglob("*"))

    def met() -> AbstractContextManager[object]:
        return nullcontext() if holds else pytest.raises(NoDevice, match="can't be written")

    with met():
        outputs.prove_writable(tmp_path / place)
    assert before == sorted(tmp_path.rglob("*"))
    assert "old" == (tmp_path / "file").read_text()
    with met():
        outputs.write(tmp_path / place, "text")
    os.close(reading)


@needs_posix
def test_a_pipe_is_proved_without_opening_it(tmp_path: Path) -> None:
    """One that nobody reads yet is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    outputs.prove_writable(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("place", ["file/report.html", "folder"])
def test_a_place_that_cant_be_written_is_named(tmp_path: Path, place: str) -> None:
    """A file where a folder should be, a folder where the file should be; nothing half is left."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(NoDevice, match=f"{place}: can't be written") as caught:
        outputs.write(tmp_path / place, "text")
    assert "name another file" == caught.value.remedy
    assert ["file", "folder"] == sorted(item.name for item in tmp_path.iterdir())
