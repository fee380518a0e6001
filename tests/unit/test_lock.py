"""One solkit a card, between real processes; what a lock file says is anybody's word."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.errors import NoDevice
from solkit.gpu import DeviceFacts
from solkit.measure.lock import Holder, held, lock_path, read_holder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cards are measured on Linux")

CARD = DeviceFacts(kind="cuda", name="Example GPU 100", uuid="GPU-0000-fake")
OTHER = DeviceFacts(kind="cuda", name="Example GPU 100", uuid="GPU-1111-fake")
HOST = DeviceFacts(kind="cpu", name="a host")
HOLDS = """
import sys
sys.argv = ["solkit", "run", "softmax", "rows=8 9"]
from solkit.gpu import DeviceFacts
from solkit.measure.lock import held
with held(DeviceFacts(kind="cuda", name="Example GPU 100", uuid="GPU-0000-fake")):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep these locks apart from those of a real run."""
    monkeypatch.setenv("SOLKIT_LOCK_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """Return another process that holds the card."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "held\n" == process.stdout.readline()
        yield process
        process.kill()


def refusal(facts: DeviceFacts = CARD) -> NoDevice:
    with pytest.raises(NoDevice) as caught, held(facts):
        pass
    return caught.value


def test_a_second_solkit_is_refused_with_the_name_of_the_first(
    holder: subprocess.Popen[str],
) -> None:
    """Exit code 4; pid, command and start of who holds the card, and what to do."""
    said = refusal()
    assert 4 == said.exit_code
    assert said.message.startswith(
        f"Example GPU 100 is being measured by process {holder.pid} "
        "(solkit run softmax 'rows=8 9'), started 20"
    )
    assert "wait until it has ended" in said.remedy


def test_another_card_and_a_host_are_free(holder: subprocess.Popen[str]) -> None:
    """The lock is a card's, and a CPU has none."""
    assert holder.poll() is None
    with held(OTHER), held(HOST), held(HOST):
        assert lock_path(CARD) != lock_path(OTHER)


@pytest.mark.parametrize("end", ["SIGKILL", "SIGTERM", "its own"])
def test_the_lock_is_gone_with_its_holder(holder: subprocess.Popen[str], end: str) -> None:
    """However it ends; the name that a killed one leaves behind stands in nobody's way."""
    if end == "its own":
        holder.communicate()
    else:
        holder.send_signal(getattr(signal, end))
        holder.wait(timeout=10)
    with held(CARD):
        assert os.getpid() == json.loads(lock_path(CARD).read_bytes())["pid"]


def test_a_lock_is_held_once_in_a_process_too() -> None:
    """And is free again after the block, error or not."""
    with contextlib.suppress(ZeroDivisionError), held(CARD):
        assert f"process {os.getpid()}" in refusal().message
        _ = 1 / 0
    with held(CARD):
        pass
    assert b"" == lock_path(CARD).read_bytes()


def test_every_user_may_lock_whatever_the_umask_is() -> None:
    """A file that only its maker can open would lock the others out for good."""
    before = os.umask(0o077)
    try:
        with held(CARD):
            assert 0o666 == stat.S_IMODE(lock_path(CARD).stat().st_mode)
    finally:
        os.umask(before)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act as another user"
)
def test_another_user_is_refused_and_then_may_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of one user serves the next one, in a folder that all may write to."""
    nobody = HOLDS.replace("with held", "import fcntl, os\nos.setuid(65534)\nwith held")
    words = [sys.executable, "-c", nobody]
    with tempfile.TemporaryDirectory() as shared:
        Path(shared).chmod(0o1777)
        monkeypatch.setenv("SOLKIT_LOCK_DIR", shared)
        with held(CARD):
            done = subprocess.run(words, input="", capture_output=True, text=True, check=False)
            assert f"is being measured by process {os.getpid()}" in done.stderr
        done = subprocess.run(words, input="", capture_output=True, text=True, check=False)
        assert "held\n" == done.stdout, done.stderr


def test_a_file_that_was_swept_away_is_made_anew() -> None:
    """As a cleaner of temporary folders does."""
    with held(CARD):
        pass
    lock_path(CARD).unlink()
    with held(CARD):
        assert lock_path(CARD).is_file()


@pytest.mark.parametrize("what", ["folder", "pipe", "link", "hard link", "missing folder"])
def test_what_is_no_lock_file_is_refused_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Never followed, never waited for; the remedy names the variable."""
    path = lock_path(CARD)
    match what:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(folder / "elsewhere")
        case "hard link":
            (folder / "somebodys").write_text("keep me", encoding="utf-8")
            path.hardlink_to(folder / "somebodys")
        case _:
            monkeypatch.setenv("SOLKIT_LOCK_DIR", str(folder / "none"))
    said = refusal()
    assert (4, True) == (said.exit_code, "SOLKIT_LOCK_DIR" in said.remedy)
    assert not (folder / "elsewhere").exists()
    if what == "hard link":
        assert "hard link" in said.message
        assert "keep me" == (folder / "somebodys").read_text(encoding="utf-8")


def test_a_holder_that_says_nothing_is_still_a_holder(holder: subprocess.Popen[str]) -> None:
    """Its text may be anybody's, and gone."""
    assert holder.poll() is None
    lock_path(CARD).write_bytes(b"")
    assert "another solkit, which does not say its process" in refusal().message


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: json.dumps(text).encode()))
def test_what_a_lock_file_says_is_one_line_of_printable_characters(text: bytes) -> None:
    """Any bytes can be in it."""
    said = str(read_holder(text))
    assert said.isprintable()
    assert len(said) < 500


@given(command=st.text(max_size=1000), started=st.text(max_size=1000), number=st.integers())
def test_a_holders_name_is_escaped_and_cut(command: str, started: str, number: int) -> None:
    """A command could colour a terminal, or fill it."""
    told = json.dumps({"pid": number, "command": command, "started": started}).encode()
    said = str(read_holder(told))
    assert said.isprintable()
    assert len(said) < 500
    assert (f"process {number}" in said) == (0 < number < 2**31)


def test_a_pid_that_is_none_names_nobody() -> None:
    """True is no number, and a list is no command."""
    assert Holder() == read_holder(b'{"pid": true}')
    assert Holder(7) == read_holder(b'{"pid": 7, "command": ["rm"], "started": 3}')
