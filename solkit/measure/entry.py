"""One kernel of a group on its way, and the guard that keeps its failure its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.declare.registry import raised_at
from solkit.errors import SolkitError, told, words
from solkit.measure.device.base import DeviceLost, Program, Sample
from solkit.measure.diagnosis import ends_the_context, verdict_of
from solkit.measure.remedies import remedy_for
from solkit.model import Check, Failed, Stage
from solkit.plan.jobs import Job

Say = Callable[[int, Stage], None]
RUN_ALONE = "run the case alone: solkit run OPERATOR AXIS=SIZE ..."


@dataclass(slots=True)
class Entry:
    """A job of the group: what was made of it, and what became of it.

    blocked: its calls can be queued behind a blocked stream, most_count of them at a time.
    spent_s: the host's time for its samples. ended: which rule ended the sampling; empty while it
    goes on. notes: what a reader of its outcome must know.
    """

    index: int
    job: Job
    operator: Operator
    kernel: Kernel
    program: Program | None = None
    check: Check | None = None
    samples: list[Sample] = field(default_factory=list)
    median_s: float | None = None
    blocked: bool = True
    most_count: int = 1024
    spent_s: float = 0.0
    ended: str = ""
    energy_j: float | None = None
    launch_s: float | None = None
    notes: list[str] = field(default_factory=list)
    failed: Failed | None = None

    @property
    def ready(self) -> Program:
        """The program of an entry that was prepared; TypeError before that."""
        if self.program is None:
            message = "an entry is called only once it is prepared"
            raise TypeError(message)
        return self.program

    @property
    def times_s(self) -> list[float]:
        """The samples' times, in order."""
        return [sample.time_s for sample in self.samples]


class Guard:
    """Turns what one entry's stage raises into that entry's failure; a lost device goes on up."""

    def __init__(self, entry: Entry, stage: Stage, say: Say, others: Sequence[Entry] = ()) -> None:
        self.entry, self.stage, self.others = entry, stage, others
        say(entry.index, stage)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None:
            return False
        if isinstance(error, DeviceLost) or not isinstance(error, Exception):
            return False
        if ends_the_context(error):
            raise DeviceLost(words(error)) from error
        message, remedy = explained(error)
        for entry in (self.entry, *self.others):
            compiled = entry.program.compiled if entry.program else ()
            if entry.failed is None:  # the first failure explains the later ones
                entry.failed = Failed(
                    entry.job.case, self.stage, message, remedy, compiled, verdict_of(error)
                )
        return True


def explained(error: Exception) -> tuple[str, str]:
    """Return what to say of an error, the line of the author's code with it, and a remedy.

    Neither is ever empty, and UTF-8 can carry both: they travel on the worker's pipe.
    """
    if isinstance(error, SolkitError):
        message = told(error.message) or type(error).__name__
        return message, told(error.remedy) or remedy_for(message, RUN_ALONE)
    message = f"{type(error).__name__}: {words(error)}"
    place = raised_at(error)
    if place is None:
        return message, remedy_for(message, RUN_ALONE)
    where = told(f"{place[0].name}, line {place[1]}")
    return f"{message} ({where})", remedy_for(message, "mend that line")


def alive(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that have not failed."""
    return [entry for entry in entries if entry.failed is None]
