"""Files that a person names: read whole, but never endlessly."""

import os
import threading
from pathlib import Path

import pytest

from solkit.errors import BadInput
from solkit.files import read_whole

needs_posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    """Whatever its size, up to the most that is taken."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 3_000_000)
    assert b"x" * 3_000_000 == read_whole(path, most_bytes=3_000_000, remedy="split it")


def test_a_file_that_is_too_long_is_refused_with_its_remedy(tmp_path: Path) -> None:
    """One byte over the limit is over it."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 11)
    with pytest.raises(BadInput, match=r"file: is over 10 bytes") as caught:
        read_whole(path, most_bytes=10, remedy="split it")
    assert "split it" == caught.value.remedy


@needs_posix
def test_a_device_without_an_end_is_cut_short() -> None:
    """/dev/zero would fill the memory: a stream may have 64 MiB, whatever a file may have."""
    with pytest.raises(BadInput, match=r"/dev/zero: is over 67,108,864 bytes"):
        read_whole(Path("/dev/zero"), most_bytes=1 << 40, remedy="")


@needs_posix
def test_a_pipe_that_nobody_writes_to_is_empty(tmp_path: Path) -> None:
    """Waiting for a writer would be waiting for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert b"" == read_whole(pipe, most_bytes=10, remedy="")


@needs_posix
def test_a_pipe_is_read_to_the_end_of_a_slow_writer() -> None:
    """`solkit plan --shapes <(generate)` names a pipe that is already open at its other end."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as writer:
        writer.write(b"ver")
        threading.Timer(0.2, lambda: (writer.write(b"sion: 1\n"), writer.close())).start()
        path = Path(f"/dev/fd/{reading}")
        if not path.exists():
            pytest.skip("open pipes have no names here")
        assert b"version: 1\n" == read_whole(path, most_bytes=100, remedy="")
    os.close(reading)


def test_a_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    """The caller says what it wanted instead."""
    with pytest.raises(OSError):  # noqa: PT011  # which one it is depends on the system
        read_whole(tmp_path, most_bytes=10, remedy="")
