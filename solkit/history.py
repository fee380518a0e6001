"""The history of a card: one line a run in `DIR/<gpu id>.jsonl`, appended and never rewritten.

A run file holds everything of one run; a line here holds what a trend needs of it. Lines are
written whole and synced, one writer at a time; half a last line (a kill) costs itself alone.
"""

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from time import monotonic, sleep

from solkit.entry import SCHEMA, CaseEntry, Entry, Seen, entry, entry_from, entry_line
from solkit.errors import BadInput, NoDevice
from solkit.files import read_whole
from solkit.model import Failed, Run, Skipped
from solkit.wire import compact, loads

__all__ = ["SCHEMA", "CaseEntry", "Entry", "History", "append", "entry", "load", "prove_writable"]

MOST_FILE_BYTES = 1 << 30  # a run of 1,000 cases is a line of 250 kB
WAIT_S, PAUSE_S = 20.0, 0.05  # for another writer: a line takes milliseconds


@dataclass(frozen=True, slots=True)
class History:
    """The entries of a folder in the order in which their runs began, and what could not be read.

    problems: lines that are no entry, each with file and line number. notes: what was left out
    without a loss (half a last line, a run that is in twice).
    """

    entries: tuple[Entry, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def append(
    folder: Path,
    run: Run,
    judged: Sequence[Seen | Failed | Skipped],
    commit: str = "",
    *,
    branch: str = "",
) -> tuple[str, ...]:
    """Append a run to the history of its card; return what to say of it.

    A run that is in already, by its id and card, is not appended again. Raises NoDevice where the
    file can't be written (what was in it stays as it was), or another writer holds it for 20 s.
    """
    made = entry(run, judged, commit=commit, branch=branch)
    path = folder / f"{_file_stem(made.gpu_id)}.jsonl"
    line = entry_line(made)
    entry_from(line)  # whatever is appended can be read
    with _opened(path) as file:
        return _append(file, path, made, line)


def prove_writable(folder: Path) -> None:
    """Prove that a history can be written, before hours are measured for it; NoDevice if not."""
    proof = folder / f".writable-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        proof.write_bytes(b"x")
        proof.unlink()
    except OSError as error:
        raise _disk(folder, error) from error


def load(folder: Path) -> History:
    """Read every history of a folder (or one file), in the order in which the runs began.

    Raises BadInput where there is none, or a file can't be read; a line that is no entry is
    reported with its number, and costs itself alone.
    """
    files = [folder] if folder.is_file() else sorted(folder.glob("*.jsonl"))
    if not files:
        raise BadInput(
            f"{folder}: holds no history",
            remedy="give the folder that `solkit run --history DIR` appended to",
        )
    found = _Found()
    for path in files:
        _read(path, found)
    ordered = sorted(found.entries, key=lambda each: (each.moment, each.id))
    return History(tuple(ordered), tuple(found.problems), tuple(found.notes))


@dataclass(slots=True)
class _Found:
    """What the files have given so far."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _file_stem(gpu_id: str) -> str:
    """Return a file name for a model; ids of run files may hold anything, a path above all."""
    slug = re.sub(r"[^a-z0-9_]+", "-", gpu_id.casefold()).strip("-")[:60]
    if slug == gpu_id:
        return slug
    return f"{slug or 'device'}-{hashlib.sha256(compact(gpu_id)).hexdigest()[:8]}"


def _append(file: FileIO, path: Path, made: Entry, line: bytes) -> tuple[str, ...]:
    """Append a line to an open and locked file, after its last whole one."""
    notes = []
    try:
        text = file.readall()
        end = text.rfind(b"\n") + 1
        tail = text[end:]
        if tail.strip() and _is_entry(tail):  # whole, but its newline was lost
            line, end = b"\n" + line, len(text)
        elif tail:
            notes.append(f"{path}: the last line was cut short (a run that was killed): removed")
        held = [each for each in text[:end].splitlines() if _is_of(each, made)]
        if held:
            same = held[0].strip() == line.strip()
            other = "" if same else ", with other numbers or another commit"
            return (f"{path}: run {made.id[:80]} is in already{other}: not appended again",)
        _write(file, end, line)
    except OSError as error:
        raise _disk(path, error) from error
    return (*notes, f"{path}: run {made.id[:80]} appended")


def _write(file: FileIO, end: int, line: bytes) -> None:
    """Write a line at `end` and sync it; whatever fails, the lines before it stay as they were."""
    written = 0
    file.truncate(end)
    file.seek(end)
    try:
        while written < len(line):
            written += file.write(line[written:])
        os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):  # reading copes with half a last line, too
            file.truncate(end)
        raise


def _is_entry(text: bytes) -> bool:
    try:
        entry_from(text)
    except BadInput:
        return False
    return True


def _is_of(text: bytes, made: Entry) -> bool:
    """Say whether a line is of that run. Runs on the cards of one machine may share the second."""
    if compact(made.id) not in text:  # parsing every line of a long history takes a second
        return False
    try:
        held = loads(text)
    except BadInput:
        return False
    return (held.get("id"), held.get("device_uuid", "")) == (made.id, made.device_uuid)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[FileIO]:
    """Open a file for reading and appending, alone; it is made where there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            FileIO(path, "x").close()
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise NoDevice(f"{path}: is no file", remedy="take another --history")
        file = FileIO(path, "r+")
    except OSError as error:
        raise _disk(path, error) from error
    try:
        _keep_others_out(file, path)
        yield file
    finally:
        with contextlib.suppress(OSError):  # what was not written and synced is told already
            file.close()


def _keep_others_out(file: FileIO, path: Path) -> None:
    """Lock the file, waiting for a writer that is in it: jobs of one pipeline end together."""
    try:
        import fcntl  # noqa: PLC0415  # POSIX alone has it
    except ImportError:  # no locks here: nothing to keep out by
        return
    start_s = monotonic()
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if monotonic() - start_s > WAIT_S:
                raise NoDevice(
                    f"{path}: another solkit is writing it", remedy="wait until that one has ended"
                ) from error
            sleep(PAUSE_S)
        except OSError:  # no locks on this file system
            return
        else:
            return


def _disk(path: Path, error: OSError) -> NoDevice:
    return NoDevice(
        f"{path}: can't be written: {error.strerror or error}",
        remedy="free some space, or take another --history",
    )


def _read(path: Path, found: _Found) -> None:
    try:
        text = read_whole(path, most_bytes=MOST_FILE_BYTES, remedy="move its older lines elsewhere")
    except OSError as error:
        raise BadInput(
            f"{path}: can't be read: {error.strerror or error}", remedy="check its rights"
        ) from error
    lines = text.split(b"\n")
    ids = {_name(each) for each in found.entries}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            made = entry_from(line)
        except BadInput as error:
            if number == len(lines):  # it has no newline: a writer was killed in it
                found.notes.append(f"{path}: the last line is cut short and was left out")
            else:
                found.problems.append(f"{path}: line {number}: {error.message}")
            continue
        if _name(made) in ids:
            found.notes.append(
                f"{path}: line {number}: run {made.id[:80]} is in it again: left out"
            )
            continue
        ids.add(_name(made))
        found.entries.append(made)


def _name(made: Entry) -> tuple[str, str, str]:
    return made.gpu_id, made.device_uuid, made.id
