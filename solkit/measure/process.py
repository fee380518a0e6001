"""The worker's process as the parent sees it: what it is asked, what it says, how it ends."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from solkit.errors import BadInput, NoDevice, SolkitError
from solkit.measure.diagnosis import verdict_in
from solkit.measure.protocol import limit_s, line
from solkit.model import Verdict

_TAIL_BYTES = 2000  # of what a worker said on standard error, kept for its last words
_POLL_S = 1.0
_KILLED_WITHIN_S = 60.0  # a driver that takes a hung kernel off the card needs some seconds
_LEAVES_WITHIN_S = 5.0  # an idle worker, once it is told: CUDA's own end takes most of it
_CASE_S = 60.0  # of a case's stage where nobody says otherwise
_WORDS = {"at", "lost", "error", "done"}  # one of them is in each line of a worker
_BETWEEN_STACKS = ("another exception occurred:", "direct cause of the following exception:")


class WorkerDied(Exception):  # what became of the worker
    """The worker ended, hung or lost its device: at which job and stage, and what was said.

    verdict: `timeout`, else `out_of_memory` where its words say so, else `crashed`.
    """

    def __init__(self, index: int, stage: str, message: str, verdict: Verdict = "") -> None:
        super().__init__(message)
        self.index, self.stage, self.message = index, stage, message
        self.verdict: Verdict = verdict or verdict_in(message, "crashed")


class Process:
    """One worker process, its pipes, and the last thing it said it was doing."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.device_open = False
        self._busy = False  # with what it was asked, so that it would not hear the end of input
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "solkit.measure.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # its own group: what authors' code forks off can be ended, too
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._sender: threading.Thread | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def ask(
        self,
        message: dict[str, Any],
        on_case: Callable[[int, str], None] | None = None,
        timeout_s: float = _CASE_S,
    ) -> Any:  # noqa: ANN401  # JSON
        """Send a command and return its payload; WorkerDied when it ends or takes too long.

        timeout_s: how long a case's own stages may go on without a word.
        """
        index, stage = 0, "worker"
        self._busy = True
        try:
            self._send(line(message), limit_s(stage, timeout_s))
            while True:
                reply = self._next(index, stage, timeout_s)
                if "at" in reply:
                    index, stage = int(reply["at"]), str(reply["stage"])
                    if on_case is not None:
                        on_case(index, stage)
                elif "lost" in reply:
                    lost = reply["lost"]
                    raise WorkerDied(int(lost["at"]), lost["stage"], lost["message"])
                else:
                    self._busy = False
                    if "error" in reply:
                        raise _error(reply["error"])
                    return reply["done"]
        except BrokenPipeError as error:
            raise WorkerDied(index, stage, self._last_words()) from error

    def stop(self) -> None:
        """End the process, by force if need be; NoDevice where not even force ends it."""
        if self._sender is not None and self._sender.is_alive():  # it holds what is closed next
            self._kill()
            self._sender.join(_KILLED_WITHIN_S)
        if self._popen.stdin and not (self._sender and self._sender.is_alive()):
            with contextlib.suppress(BrokenPipeError):  # it may be gone already
                self._popen.stdin.close()
        try:
            self._popen.wait(timeout=0.1 if self._busy else _LEAVES_WITHIN_S)
        except subprocess.TimeoutExpired:
            pass
        finally:  # an interrupt while it is waited for, too
            self._kill()
            self._errors.close()
        try:
            self._popen.wait(timeout=_KILLED_WITHIN_S)
        except subprocess.TimeoutExpired as error:
            raise NoDevice(
                f"the worker (process {self._popen.pid}) was killed {_KILLED_WITHIN_S:g} s ago and "
                "is not gone: the driver holds it",
                remedy="look into the kernel log (dmesg); reset the card or reboot the machine",
            ) from error

    def _kill(self) -> None:
        """Kill the worker and whatever authors' code left in its group."""
        try:
            os.killpg(self._popen.pid, signal.SIGKILL)
        except (OSError, AttributeError):  # nobody is left, or no POSIX
            self._popen.kill()

    def _send(self, raw: bytes, most_s: float) -> None:
        """Write a command; a worker that does not read it (a pipe holds 64 KB) is killed."""
        pipe, failed = self._popen.stdin, threading.Event()
        if pipe is None:
            raise BrokenPipeError

        def write() -> None:
            try:
                pipe.write(raw)
                pipe.flush()
            except OSError:  # the worker is gone: its last words say how
                failed.set()

        self._sender = threading.Thread(target=write, daemon=True)  # Windows' pipes know no limit
        self._sender.start()
        self._sender.join(most_s)
        if self._sender.is_alive():
            self._kill()
            message = f"it did not read what it was asked within {most_s:g} s and was stopped"
            raise WorkerDied(0, "worker", message, "timeout")
        if failed.is_set():
            raise BrokenPipeError

    def _next(self, index: int, stage: str, timeout_s: float) -> dict[str, Any]:
        most_s = limit_s(stage, timeout_s)
        raw = self._line(time.monotonic() + most_s)
        if raw is None:
            self._kill()
            message = f"it did not finish within {most_s:g} s and was stopped"
            raise WorkerDied(index, stage, message, "timeout")
        if not raw.endswith(b"\n"):  # the end, maybe in the middle of an answer
            raise WorkerDied(index, stage, self._last_words())
        reply = _reply(raw)
        if reply is None:
            self._kill()
            message = f"the declarations wrote {raw[:80]!r} where the worker answers"
            raise WorkerDied(index, stage, message)
        return reply

    def _line(self, until_s: float) -> bytes | None:
        """Return the next line, nothing at the end, None when there is none by `until_s`.

        A child that authors' code left behind can hold the pipe open: the end is the worker's own.
        Lines that are there already count, whatever the time: this process may have been stopped.
        """
        ended = False
        while True:
            left_s = until_s - time.monotonic()
            try:
                return self._lines.get(timeout=min(max(left_s, 0.0), _POLL_S))
            except queue.Empty:
                if ended:
                    return b""
                if left_s <= 0:
                    return None
                ended = self._popen.poll() is not None

    def _read(self) -> None:
        if self._popen.stdout is not None:
            with self._popen.stdout as lines:
                for raw in lines:
                    self._lines.put(raw)
        self._lines.put(b"")

    def _last_words(self) -> str:
        try:
            code = self._popen.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._kill()
            code = self._popen.wait(timeout=_KILLED_WITHIN_S)
        known = {int(number): number.name for number in signal.Signals}
        how = f"signal {known.get(-code, -code)}" if code < 0 else f"exit code {code}"
        self._errors.seek(0, 2)
        start = max(0, self._errors.tell() - _TAIL_BYTES)
        self._errors.seek(start)
        if start:
            self._errors.readline()  # the end of a line whose beginning is not told
        tail = without_tracebacks(self._errors.read().decode("utf-8", "replace"))
        return f"the worker ended with {how}" + (f"; it said: {tail}" if tail else "")


def without_tracebacks(text: str) -> str:
    """Return what a process said without Python's stacks: of each, only its last line stays.

    Blank lines go; the text may begin in the middle of a stack.
    """
    kept: list[str] = []
    inside = text.startswith((" ", "\t"))
    for each in text.splitlines():
        if each.startswith("Traceback (most recent call last)"):
            inside = True
        elif each.strip() and not (inside and each.startswith((" ", "\t"))):
            inside = each.endswith(_BETWEEN_STACKS)
            if not inside:
                kept.append(each)
    return "\n".join(kept).strip()


def _reply(raw: bytes) -> dict[str, Any] | None:
    """Return what the worker answered; None for what no worker says (authors' code may)."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    match found:
        case (
            {"at": int(), "stage": str()}
            | {"lost": {"at": int(), "stage": str(), "message": str()}}
            | {"error": {"message": str(), "remedy": str()}}
            | {"done": _}
        ) if len(found.keys() & _WORDS) == 1:
            return dict(found)
    return None


def _error(said: dict[str, Any]) -> SolkitError:
    kind = NoDevice if said.get("exit") == NoDevice.exit_code else BadInput
    return kind(said["message"], remedy=said["remedy"])
