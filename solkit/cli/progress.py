"""How far a run is: a bar on a terminal, plain lines where there is none."""

import sys
from collections.abc import Sequence
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self

from solkit import units
from solkit.cli.console import VOICE, say
from solkit.model import Case, Failed, Measured, Outcome
from solkit.report.plain import line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PLAIN_EVERY_S = 1.0  # a log of 10,000 lines helps nobody
_NAME_MOST = 60
_BAR_COLUMNS = 32  # what the bar, the counts and the time take beside the words

# What a person reads for a stage of the worker.
_DOING = {
    "compile": "compiling",
    "allocate": "preparing",
    "launch": "checking",
    "check": "checking",
    "time": "timing",
}


class Progress:
    """Shows the case being worked on, the best score so far and the time left."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._best = 0.0
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._start_s = self._said_s = monotonic()

    def __enter__(self) -> Self:
        """Start the bar, where a terminal can show one."""
        if sys.stderr.isatty() and not VOICE.quiet:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                TimeRemainingColumn(compact=True, elapsed_when_finished=True),
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("", total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def at(self, case: Case | None, stage: str) -> None:
        """Hear what is being worked on."""
        if self._bar is not None and self._task is not None and case is not None:
            room = self._bar.console.width - _BAR_COLUMNS - 2 * len(str(self._total))
            words = f"{self._best_words()}{_DOING.get(stage, stage)} {_name(case)}"
            self._bar.update(self._task, description=line(words, max(room, 8)))

    def finished(self, outcomes: Sequence[Outcome]) -> None:
        """Hear how a group ended."""
        self._done += len(outcomes)
        for outcome in outcomes:
            if isinstance(outcome, Measured):
                self._best = max(self._best, _sol(outcome) or 0.0)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)
        elif outcomes:
            self._say_plainly(outcomes[-1])

    def _say_plainly(self, outcome: Outcome) -> None:
        now_s = monotonic()
        if self._done < self._total and now_s - self._said_s < PLAIN_EVERY_S:
            return
        self._said_s = now_s
        left_s = (now_s - self._start_s) / max(self._done, 1) * (self._total - self._done)
        left = f", {units.duration(left_s)} left" if self._done < self._total else ""
        best = f", best SOL {units.percent(self._best)}" if self._best else ""
        place = f"[{self._done}/{self._total}{left}{best}]"
        say(f"{place} {_name(outcome.case)}: {_became(outcome)}")

    def _best_words(self) -> str:
        return f"best {units.percent(self._best)}, " if self._best else ""


def _name(case: Case) -> str:
    return line(str(case), _NAME_MOST)


def _sol(outcome: Measured) -> float | None:
    """Return a case's score; None where it is hot: its data need not come from DRAM."""
    if outcome.case.cache_mode == "hot":
        return None
    return outcome.bound.sol_s / outcome.median_s


def _became(outcome: Outcome) -> str:
    if isinstance(outcome, Measured):
        sol = _sol(outcome)
        score = f", SOL {units.percent(sol)}" if sol is not None else ""
        return f"{units.seconds(outcome.median_s)}{score}"
    if isinstance(outcome, Failed):
        return f"failed at {outcome.stage}: {line(outcome.message, 100)}"
    return f"skipped: {line(outcome.reason, 100)}"
