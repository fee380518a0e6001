"""run.jsonl <-> Run: the one file between measuring and judging.

Line 1 is the header, then one line an outcome, appended and synced to disk group by group, then an
end line. A run that was cut has no end line, or half a last line: it reads as far as it goes.
"""

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self

from solkit.errors import BadInput, NoDevice, SolkitError
from solkit.files import read_whole
from solkit.model import Case, CaseKey, Outcome, Run
from solkit.wire import (
    KINDS,
    SCHEMA,
    case_from_json,
    case_json,
    compact,
    from_json,
    header_from,
    header_json,
    loads,
    outcome_from,
    outcome_from_json,
    outcome_json,
    to_json,
)

__all__ = [
    "KINDS",
    "SCHEMA",
    "Writer",
    "case_from_json",
    "case_json",
    "from_json",
    "missing",
    "outcome_from_json",
    "outcome_json",
    "parse",
    "read",
    "to_json",
]

MOST_RUN_S = 1e9  # thirty years
MOST_FILE_BYTES = 1 << 30  # 10,000 outcomes with 100 samples each are 25 MB


class Writer:
    """Appends a run to its file as it happens; a context manager.

    The header is written on entry (with `append`, an existing file is continued instead and half a
    last line is cut off), `add` takes the outcomes of one group, leaving writes the end line:
    `complete`, or `interrupted` when an exception is on its way.
    """

    def __init__(self, path: Path, run: Run, *, append: bool = False, spent_s: float = 0.0) -> None:
        self.path = path
        self._run = run
        self._append = append
        self._file: FileIO | None = None
        self._counts: Counter[str] = Counter()
        self._start_s = monotonic() - spent_s

    def __enter__(self) -> Self:
        """Open the file and put the header in place."""
        try:
            file = FileIO(self.path, "r+" if self._append else "x")
            _keep_others_out(file, self.path)
            self._file = file
            if self._append:
                _cut_half_line(file)
        except FileExistsError as error:
            raise BadInput(
                f"{self.path}: holds a run already",
                remedy=f"finish it with --resume {self.path.parent}, or take another --out",
            ) from error
        except OSError as error:
            raise _disk(self.path, error) from error
        if not self._append:
            try:
                self._write([header_json(self._run)])
            except BaseException:  # a file without a header is no run
                self._file.close()
                self.path.unlink(missing_ok=True)
                raise
        return self

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Append the outcomes of one group and bring them to disk."""
        lines = [outcome_json(outcome) for outcome in outcomes]
        self._write(lines)
        self._counts.update(str(loads(line)["kind"]) for line in lines)  # as they can be read

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the end line and close; a full disk does not hide the error that is on its way."""
        end = {
            "record": "end",
            "status": "complete" if kind is None else "interrupted",
            "counts": {name: self._counts[name] for name in KINDS},
            "duration_s": round(monotonic() - self._start_s, 3),
        }
        try:
            self._write([compact(end)])
        except NoDevice:
            if kind is None:
                raise
        finally:
            if self._file is not None:
                with contextlib.suppress(
                    OSError
                ):  # what was not written and synced is told already
                    self._file.close()

    def _write(self, lines: Sequence[bytes]) -> None:
        if self._file is None:
            raise BadInput(f"{self.path}: is not open", remedy="use the writer in a with statement")
        text = b"".join(line + b"\n" for line in lines)
        start, written = self._file.seek(0, os.SEEK_END), 0
        try:
            while written < len(text):
                written += self._file.write(text[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _disk(self.path, error) from error
        finally:
            if written < len(text):  # a full disk: what comes next must not follow half a line
                with contextlib.suppress(OSError):  # reading copes with half a last line, too
                    self._file.truncate(start)


def _keep_others_out(file: FileIO, path: Path) -> None:
    """Lock the file: two that finish one run would write into each other's lines."""
    try:
        import fcntl  # noqa: PLC0415  # POSIX alone has it

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise NoDevice(
            f"{path}: another solkit is writing it", remedy="wait until that one has ended"
        ) from error
    except (ImportError, OSError):  # no locks here, or on this file system: nothing to keep out by
        return


def _cut_half_line(file: FileIO) -> None:
    """Leave the file at the end of its last whole line."""
    text = file.read()
    file.truncate(text.rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)


def _disk(path: Path, error: OSError) -> NoDevice:
    return NoDevice(
        f"{path}: can't be written: {error.strerror or error}",
        remedy="free some space, or take another --out",
    )


def read(paths: Path | Sequence[Path]) -> Run:
    """Read a run from its file; a folder or several files are the segments of one run.

    Segments must share schema, device, card and seed. Of two outcomes of one case the later wins,
    and a note says so. Raises BadInput naming file and line.
    """
    files = _files([paths] if isinstance(paths, Path) else paths)
    runs = [_read_file(path) for path in files]
    for path, run in zip(files[1:], runs[1:], strict=True):
        _refuse_stranger(runs[0], run, files[0], path)
    return _merged(runs)


def missing(run: Run, cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return the cases that a run has no outcome of."""
    held = {outcome.case.key for outcome in run.outcomes}
    return tuple(case for case in cases if case.key not in held)


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.glob("*.jsonl"))
            if not inside:
                raise BadInput(
                    f"{path}: holds no .jsonl file", remedy="give a run.jsonl, or the folder of one"
                )
            files += inside
        else:
            files.append(path)
    if not files:
        raise BadInput("no run was named", remedy="give a run.jsonl, or the folder of one")
    return list(dict.fromkeys(files))


def _read_file(path: Path) -> Run:
    try:
        text = read_whole(path, most_bytes=MOST_FILE_BYTES, remedy="split it into segments")
    except OSError as error:
        raise BadInput(
            f"{path}: can't be read: {error.strerror or error}",
            remedy="give the run.jsonl that `solkit run` wrote, or its folder",
        ) from error
    if not text.strip():
        raise BadInput(f"{path}: is empty", remedy="the run was cut before it began: measure again")
    return parse(text, str(path))


@dataclass(slots=True)
class _Reading:
    """What the lines have given so far."""

    run: Run | None = None
    outcomes: dict[CaseKey, Outcome] = field(default_factory=dict)
    twice_count: int = 0
    ended: str | None = None
    duration_s: float | None = None


def parse(text: bytes, where: str) -> Run:
    """Read a run from the bytes of its file; `where` is the name that errors give."""
    lines = text.split(b"\n")
    half = lines.pop()  # empty, unless the last line never got its newline
    reading = _Reading()
    for number, line in enumerate(lines, 1):
        if line.strip():
            _take_in(reading, line, f"{where}: line {number}")
    notes = []
    if half.strip():
        try:
            _take_in(reading, half, f"{where}: line {len(lines) + 1}")
        except BadInput:
            if reading.run is None:
                raise
            notes.append(f"{where}: the last line is cut short and was left out")
    if reading.run is None:
        raise BadInput(
            f"{where}: holds no run header", remedy="give the run.jsonl that `solkit run` wrote"
        )
    if reading.twice_count:
        notes.append(
            f"{where}: {reading.twice_count} cases are in it twice: the later outcome counts"
        )
    return replace(
        reading.run,
        outcomes=tuple(reading.outcomes.values()),
        ended=reading.ended,
        duration_s=reading.duration_s,
        notes=(*reading.run.notes, *notes),
    )


def _take_in(reading: _Reading, line: bytes, where: str) -> None:
    try:
        found = loads(line)
        if reading.run is None:
            reading.run = header_from(found)
            return
        match found.get("record"):
            case "outcome":
                outcome = outcome_from(found)
                reading.twice_count += outcome.case.key in reading.outcomes
                reading.outcomes[outcome.case.key] = outcome
                reading.ended = None  # whatever follows an end goes on with the run
            case "end":
                _end(reading, found)
            case other:
                raise BadInput(f"a record {str(other)[:40]!r}", remedy="known: run, outcome, end")
    except SolkitError as error:
        remedy = error.remedy or "delete that line, or read a copy of the file that is whole"
        raise BadInput(f"{where}: {error.message}", remedy=remedy) from error


def _end(reading: _Reading, line: dict[str, Any]) -> None:
    status, duration_s = line.get("status"), line.get("duration_s")
    if status not in ("complete", "interrupted"):
        raise BadInput(
            f"an end with the status {str(status)[:40]!r}", remedy="known: complete, interrupted"
        )
    if (
        isinstance(duration_s, bool)
        or not isinstance(duration_s, (int, float))
        or not 0 <= duration_s < MOST_RUN_S
    ):
        raise BadInput("an end whose duration_s is no time")
    reading.ended = status
    reading.duration_s = (reading.duration_s or 0.0) + float(duration_s)


def _refuse_stranger(base: Run, run: Run, base_path: Path, path: Path) -> None:
    for what, one, other in (
        ("device", base.device, run.device),
        ("card", base.facts.name, run.facts.name),
        ("spec", base.gpu, run.gpu),
        ("seed", base.seed, run.seed),
    ):
        if one != other:
            said = f" ({one} and {other})" if what != "spec" else ""
            raise BadInput(
                f"{base_path} and {path} are not segments of one run: they differ in {what}{said}",
                remedy="read them one by one, or compare them",
            )


def _merged(runs: Sequence[Run]) -> Run:
    base = runs[0]
    if len(runs) == 1:
        return base
    held: dict[CaseKey, Outcome] = {}
    for run in runs:
        held.update((outcome.case.key, outcome) for outcome in run.outcomes)
    twice_count = sum(len(run.outcomes) for run in runs) - len(held)
    notes = [note for run in runs for note in run.notes]
    if twice_count:
        notes.append(f"{twice_count} cases are in more than one segment: the later one counts")
    planned = [run.planned_count for run in runs]
    ends = [run.ended for run in runs]
    return replace(
        base,
        outcomes=tuple(held.values()),
        ceilings=next((run.ceilings for run in runs if run.ceilings), None),
        planned_count=sum(count or 0 for count in planned) if None not in planned else None,
        notes=tuple(dict.fromkeys(notes)),
        ended=None if None in ends else "interrupted" if "interrupted" in ends else "complete",
        duration_s=sum(run.duration_s or 0.0 for run in runs),
    )
