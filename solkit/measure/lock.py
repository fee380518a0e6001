"""One solkit a card: two that measure at once would spoil both their times.

The lock is flock's, on a file named for the card in the machine's temporary folder, so that it
holds between users and is gone with whoever held it, SIGKILL included; the file stays. What is in
it (who holds the card) can have been written by anybody: it is shown, escaped, and never acted on.
SOLKIT_LOCK_DIR names another folder, for machines whose programs see different temporary folders.
"""

import contextlib
import json
import os
import re
import shlex
import stat
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from solkit.errors import NoDevice
from solkit.gpu import DeviceFacts

FOLDER = Path("/tmp")  # noqa: S108  # not TMPDIR, which differs between users and batch jobs
_MOST_BYTES = 4096
_MOST_SHOWN = 160
_ALL_MAY_LOCK = 0o666
_SETTLE_S, _SETTLE_COUNT = 0.05, 10  # a holder writes its name within this of having the lock


@dataclass(frozen=True, slots=True)
class Holder:
    """Who says that it holds a card: fit for a terminal, and true only if its writer was."""

    process_id: int | None = None
    command: str = ""
    started: str = ""

    def __str__(self) -> str:
        """Name it in words."""
        if self.process_id is None:
            return "another solkit, which does not say its process"
        command = f" ({self.command})" if self.command else ""
        return f"process {self.process_id}{command}" + (
            f", started {self.started}" if self.started else ""
        )


@contextlib.contextmanager
def held(facts: DeviceFacts) -> Iterator[None]:
    """Hold a card against every other solkit of this machine while the block runs.

    A host's CPU is not locked. NoDevice, naming the holder, where the card is held already, and
    where the lock can't be had at all.
    """
    if facts.kind != "cuda":
        yield
        return
    path = lock_path(facts)
    descriptor = _locked(path, facts.name)
    try:
        _sign(descriptor)
        yield
    finally:
        with contextlib.suppress(OSError):  # the name only; the lock goes with the descriptor
            os.ftruncate(descriptor, 0)
        os.close(descriptor)


def lock_path(facts: DeviceFacts) -> Path:
    """Return the file that stands for a card (or a MIG instance)."""
    folder = os.environ.get("SOLKIT_LOCK_DIR") or FOLDER
    name = facts.uuid or facts.pci_bus_id or f"cuda-{facts.index}"
    return Path(folder) / f"solkit-{re.sub(r'[^A-Za-z0-9-]', '-', name)[:80]}.lock"


def _locked(path: Path, card: str) -> int:
    """Open the file and lock it; one that was swept away meanwhile is made anew."""
    import fcntl  # noqa: PLC0415  # POSIX alone has it, and cards are measured on Linux alone

    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(descriptor, path):
                return descriptor
        except BlockingIOError as error:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise NoDevice(
                f"{_shown(card)} is being measured by {holder}",
                remedy="wait until it has ended, or measure on another card: --device cuda:N",
            ) from error
        except OSError as error:
            os.close(descriptor)
            raise _unusable(path, error) from error
        os.close(descriptor)


def _opened(path: Path) -> int:
    """Open a lock file, or make it.

    Without O_CREAT where it exists: Linux refuses that for another user's file in a sticky folder
    (fs.protected_regular). Never through a link of either kind, and never waiting for a pipe.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        while True:
            try:
                descriptor = os.open(path, flags)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):  # another was quicker
                    descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, _ALL_MAY_LOCK)
                    os.fchmod(descriptor, _ALL_MAY_LOCK)  # whatever the umask took
                    break
            else:
                break
    except OSError as error:
        raise _unusable(path, error) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise NoDevice(
            f"the lock of the card, {path}, is no file", remedy="remove it, or set SOLKIT_LOCK_DIR"
        )
    if found.st_nlink > 1:  # to write the holder's name would empty what it is also called
        os.close(descriptor)
        raise NoDevice(
            f"the lock of the card, {path}, is a hard link to another file",
            remedy="remove it (the other name stays), or set SOLKIT_LOCK_DIR",
        )
    return descriptor


def _is(descriptor: int, path: Path) -> bool:
    """Say whether the open file is still the one that others would find by its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _unusable(path: Path, error: OSError) -> NoDevice:
    return NoDevice(
        f"the lock of the card, {path}, can't be had: {error.strerror or error}",
        remedy="remove it if nobody measures, or name another folder in SOLKIT_LOCK_DIR",
    )


def _sign(descriptor: int) -> None:
    told = {
        "pid": os.getpid(),
        "command": shlex.join(["solkit", *sys.argv[1:]])[:_MOST_SHOWN],
        "started": f"{datetime.now(tz=UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    with contextlib.suppress(OSError):  # a full disk: held all the same, by nobody named
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(told).encode() + b"\n", 0)


def _holder(descriptor: int) -> Holder:
    """Read who holds it; one that has only just begun gets a moment to write its name."""
    for _ in range(_SETTLE_COUNT):
        text = os.pread(descriptor, _MOST_BYTES, 0)
        if text.endswith(b"\n"):
            break
        time.sleep(_SETTLE_S)
    return read_holder(text)


def read_holder(text: bytes) -> Holder:
    """Take what a lock file holds for what it may be: anybody's bytes."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return Holder()
    if not isinstance(told, dict):
        return Holder()
    process_id = told.get("pid")
    if type(process_id) is not int or not 0 < process_id < 2**31:
        return Holder()
    return Holder(process_id, _shown(told.get("command")), _shown(told.get("started")))


def _shown(text: object) -> str:
    """Return a stranger's text in one line of printable characters, cut."""
    if not isinstance(text, str):
        return ""
    plain = "".join(sign if sign.isprintable() else "?" for sign in text[: _MOST_SHOWN + 1])
    return plain if len(plain) <= _MOST_SHOWN else f"{plain[: _MOST_SHOWN - 3]}..."
