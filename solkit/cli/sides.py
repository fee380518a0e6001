"""The runs of both sides of a comparison, read from files and folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from solkit import record
from solkit.cli.outputs import AGAIN_FILE, RUN_FILE
from solkit.errors import BadInput
from solkit.model import Run


@dataclass(frozen=True, slots=True)
class Sides:
    """The runs of BASE and of HEAD, and what is worth saying of how they were named."""

    base: tuple[Run, ...]
    head: tuple[Run, ...]
    notes: tuple[str, ...]

    @property
    def operators(self) -> frozenset[str]:
        """The operators that occur on either side."""
        return frozenset(
            outcome.case.operator for run in (*self.base, *self.head) for outcome in run.outcomes
        )


def both_sides(base: Sequence[Path], head: Sequence[Path]) -> Sides:
    """Read both sides. Raises BadInput naming the file, and the folder that holds no run."""
    ours, theirs = files(base), files(head)
    read = {path: record.read(path) for path in dict.fromkeys((*ours, *theirs))}
    return Sides(
        base=tuple(read[path] for path in ours),
        head=tuple(read[path] for path in theirs),
        notes=_shared(ours, theirs),
    )


def runs_of(paths: Sequence[Path]) -> tuple[Run, ...]:
    """Read the runs that paths name; BadInput naming the file, or the folder that holds none."""
    return tuple(record.read(path) for path in files(paths))


def files(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the run files that paths name, each once, whatever links lead to it.

    A folder with a run.jsonl is that run, with what it measured once more; one without holds
    several: its .jsonl files, and the runs of the folders in it.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        for each in _files(path) if path.is_dir() else (path,):
            found.setdefault(_real(each), each)
    return tuple(found.values())


def segments(paths: Sequence[Path]) -> list[Path]:
    """Return the files that are read as one run, where paths hold segments of it.

    What a run measured once more against another one counts in comparisons alone: it was chosen
    for being unsure, and the run's own report doesn't hold it either.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir() and len(_own(path)) > 1:
            found += [each for each in sorted(path.glob("*.jsonl")) if each.name != AGAIN_FILE]
        else:
            found.append(path)
    return found


def _files(folder: Path) -> tuple[Path, ...]:
    if own := _own(folder):
        return own
    inside = (
        *sorted(folder.glob("*.jsonl")),
        *(path for each in sorted(folder.glob(f"*/{RUN_FILE}")) for path in _own(each.parent)),
    )
    if not inside:
        raise BadInput(
            f"{folder}: holds no run",
            remedy=f"give a {RUN_FILE}, its folder, or a folder with several of them",
        )
    return inside


def _own(folder: Path) -> tuple[Path, ...]:
    run, again = folder / RUN_FILE, folder / AGAIN_FILE
    return tuple(path for path in (run, again) if path.is_file()) if run.is_file() else ()


def _shared(base: Sequence[Path], head: Sequence[Path]) -> tuple[str, ...]:
    both = {_real(path) for path in base} & {_real(path) for path in head}
    if not both:
        return ()
    if len(base) == len(head) == 1:
        return ("BASE and HEAD are one file: nothing can differ",)
    return (f"on both sides: {', '.join(str(path) for path in base if _real(path) in both)}",)


def _real(path: Path) -> Path:
    """Return the file a path means; links in a circle mean themselves, and reading says so."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # RuntimeError: until Python 3.13
        return path
