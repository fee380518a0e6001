"""What a worker says and hears, and its last words as far as a person should see them."""

import os
import signal
import sys
import time

import pytest

from solkit.measure import protocol
from solkit.measure.process import Process, WorkerDied, _reply, without_tracebacks

FIRST = (
    'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nOSError: no pipe\n'
)
SECOND = (
    'Traceback (most recent call last):\n  File "b.py", line 2, in g\n    h()\nValueError: bad\n'
)
BETWEEN = "\nDuring handling of the above exception, another exception occurred:\n\n"


def test_plain_last_words_stay_as_they_are() -> None:
    """Indented lines too, where no stack is around them."""
    assert "out of luck\n  twice" == without_tracebacks("out of luck\n  twice\n")


def test_of_a_stack_only_the_error_stays() -> None:
    """What was said before and after it stays too."""
    said = f"before\n{FIRST}after\n"
    assert "before\nOSError: no pipe\nafter" == without_tracebacks(said)


def test_errors_that_follow_from_each_other_are_all_named() -> None:
    """The words with which Python joins them go."""
    assert "OSError: no pipe\nValueError: bad" == without_tracebacks(FIRST + BETWEEN + SECOND)


def test_a_stack_whose_head_was_cut_off_is_recognised() -> None:
    """Only the end of a long text is kept, which may begin inside a stack."""
    assert "OSError: no pipe" == without_tracebacks(FIRST.partition("\n")[2])


@pytest.mark.skipif(sys.platform != "linux", reason="runs are made on Linux")
@pytest.mark.parametrize("size_bytes", [10, 10_000_000])
def test_a_worker_that_does_not_listen_is_stopped(
    monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    """Whether what it is asked fits into the pipe (64 KB) or not; it is gone then."""
    monkeypatch.setitem(protocol.STAGE_LIMIT_S, "worker", 0.3)
    process = Process()
    os.kill(process._popen.pid, signal.SIGSTOP)
    started_s = time.monotonic()
    with pytest.raises(WorkerDied, match=r"within 0\.3 s and was stopped") as caught:
        process.ask({"do": "load", "paths": ["x" * size_bytes]})
    process.stop()
    assert time.monotonic() - started_s < 10
    assert ("timeout", "worker", 0) == (
        caught.value.verdict,
        caught.value.stage,
        caught.value.index,
    )
    assert -signal.SIGKILL == process._popen.returncode


@pytest.mark.skipif(sys.platform != "linux", reason="runs are made on Linux")
def test_a_worker_that_dies_while_it_is_told_says_how() -> None:
    """The rest of a long message has no reader."""
    process = Process()
    os.kill(process._popen.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="the worker ended with signal SIGKILL"):
        process.ask({"do": "load", "paths": ["x" * 10_000_000]})
    process.stop()


@pytest.mark.parametrize(
    "raw",
    [
        b'{"at":1,"stage":"time"}',
        b'{"done":null}',
        b'{"lost":{"at":0,"stage":"launch","message":"m"}}',
        b'{"error":{"message":"m","remedy":"r","exit":4}}',
    ],
)
def test_what_a_worker_says_is_understood(raw: bytes) -> None:
    """Each of its four kinds of lines."""
    assert _reply(raw) is not None


@pytest.mark.parametrize(
    "raw",
    [
        b"all is well",
        b"\xff",
        b"[]",
        b"{}",
        b'{"at":null,"stage":"time"}',
        b'{"at":0}',
        b'{"at":0,"stage":"time","done":[]}',
        b'{"lost":3}',
        b'{"lost":{"at":"0","stage":"time","message":"m"}}',
        b'{"error":"no"}',
        b'{"error":{"message":"m"}}',
        b"[" * 100_000,
    ],
)
def test_what_no_worker_says_is_no_reply(raw: bytes) -> None:
    """Authors' code can write to any descriptor: none of it may stop the parent."""
    assert _reply(raw) is None


def test_a_line_that_is_there_counts_however_late_it_is_looked_for() -> None:
    """The process may have been stopped meanwhile (Ctrl-Z): the worker is not to blame."""
    process = Process()
    try:
        process._lines.put(b'{"at":0,"stage":"time"}\n')
        assert b'{"at":0,"stage":"time"}\n' == process._line(time.monotonic() - 60.0)
        assert process._line(time.monotonic() - 60.0) is None
    finally:
        process.stop()
