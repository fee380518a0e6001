"""The rows of a trend in words: steps, the runs at which they began, cases and runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from solkit import units
from solkit.entry import Entry
from solkit.judge.steps import FEWEST
from solkit.judge.trend import Conditions, Step, Trend
from solkit.model import Case
from solkit.report.change_words import signed
from solkit.report.plain import counted, isolated, line, listed
from solkit.report.table import NONE

UP, DOWN = "\u25b2", "\u25bc"
_COMMIT_MOST, _HASH_MOST = 30, 10
_HASH = re.compile(r"[0-9a-f]{10,64}")


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step.

    anchor: of its case's row, empty where that is left out. short: the case without the names of
    its axes. state: whether it stands. moved: what else changed then.
    """

    anchor: str
    case: str
    short: str
    is_up: bool
    size: str
    at: str
    when: str
    before: str
    after: str
    runs: str
    state: str
    moved: str


@dataclass(frozen=True, slots=True)
class Begin:
    """A run at which steps began: what they have in common says more than each alone."""

    at: str
    when: str
    up: str
    down: str
    largest: str
    moved: str


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case: how it stands now. state: what the newest run says of it, where it has no time."""

    anchor: str
    operator: str
    case: str
    last: str
    score: str
    change: str
    step: str
    noise: str
    runs: str
    state: str
    trend: Trend


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run, newest first."""

    when: str
    at: str
    driver: str
    cases: str
    id: str


def at(entry: Entry) -> str:
    """Name a run by what people look for: its commit, else its id."""
    if entry.commit:
        short = entry.commit[:_HASH_MOST] if _HASH.fullmatch(entry.commit) else entry.commit
        return f"commit {isolated(line(short, _COMMIT_MOST))}"
    return f"run {isolated(line(entry.id, 40))}"


def when(entry: Entry) -> str:
    """Write the day on which a run began."""
    return f"{entry.moment:%Y-%m-%d}"


def moved_text(step: Step) -> str:
    """Say what else changed with a step, so that it need not be the code: 'driver 1.0 -> 1.1'."""
    return listed(
        [
            f"{what} {line(before, 40) or NONE} \u2192 {line(after, 40) or NONE}"
            for what, before, after in step.moved
        ]
    )


def order(step: Step) -> tuple[bool, bool, datetime, float]:
    """Sort what stands before what was taken back, slower before faster, new first, then worst."""
    return step.is_up and not step.undone, step.is_up, step.entry.moment, abs(step.size_fraction)


def way(conditions: Conditions) -> str:
    """Say how times were taken: 'cupti burst seed 0'."""
    said = (line(conditions.method), line(conditions.settle), f"seed {conditions.seed}")
    return " ".join((*said, f"cache {line(conditions.cache)}" if conditions.cache else "")).strip()


def begins_of(steps: Sequence[Step]) -> tuple[Begin, ...]:
    """Return the runs at which steps began, newest first."""

    def run(step: Step) -> tuple[datetime, str, str]:
        return step.entry.moment, step.entry.id, step.entry.gpu_id

    groups = [list(group) for _, group in groupby(sorted(steps, key=run, reverse=True), key=run)]
    return tuple(_begin(group) for group in groups)


def _begin(steps: Sequence[Step]) -> Begin:
    entry = steps[0].entry
    up = [step for step in steps if step.is_up]
    worst = max(up or steps, key=lambda step: abs(step.size_fraction))
    moved = dict.fromkeys(text for step in steps if (text := moved_text(step)))
    return Begin(
        at=at(entry),
        when=when(entry),
        up=f"{UP} {counted(len(up), 'case')}" if up else "",
        down=f"{DOWN} {counted(len(steps) - len(up), 'case')}" if len(up) < len(steps) else "",
        largest=f"{signed(1 + worst.size_fraction)}, {isolated(line(str(worst.case)))}",
        moved=listed(list(moved), 2),
    )


def step_row(step: Step, anchor: str) -> StepRow:
    """Write a step; anchor is empty where its case has no row."""
    return StepRow(
        anchor=anchor,
        case=isolated(line(str(step.case))),
        short=_short(step.case),
        is_up=step.is_up,
        size=f"{UP if step.is_up else DOWN} {signed(1 + step.size_fraction)}",
        at=at(step.entry),
        when=when(step.entry),
        before=units.seconds(step.before_s),
        after=units.seconds(step.after_s),
        runs=f"{step.before_count:,} + {step.after_count:,}",
        state="taken back since" if step.undone else "stands",
        moved=moved_text(step),
    )


def case_row(
    trend: Trend, anchor: str, entries: Sequence[Entry], usual: Conditions | None
) -> CaseRow:
    """Write a case; the conditions of its series where they are not the usual ones."""
    last, change = trend.last, trend.change_fraction
    of_card = sum(1 for entry in entries if entry.gpu_id == trend.conditions.gpu_id)
    state: str = "" if last.status == "measured" else last.status
    if trend.last_run < of_card - 1:
        gone = of_card - 1 - trend.last_run
        state = f"{state + ', ' if state else ''}not in the newest {counted(gone, 'run')}"
    other = way(trend.conditions) if trend.conditions != usual else ""
    where = f" ({isolated(line(other, 80))})" if other else ""
    newest = trend.steps[-1] if trend.steps else None
    return CaseRow(
        anchor=anchor,
        operator=line(trend.case.operator),
        case=isolated(line(str(trend.case))) + where,
        last=units.seconds(trend.points[-1].median_s) if trend.points else NONE,
        score=NONE if last.sol_score is None else units.percent(last.sol_score),
        change=NONE if change is None else signed(1 + change),
        step=_newest(newest) if newest else NONE,
        noise=units.percent(trend.noise_fraction) if len(trend.points) >= 2 * FEWEST else NONE,
        runs=f"{len(trend.points):,}",
        state=state,
        trend=trend,
    )


def _newest(step: Step) -> str:
    sign = UP if step.is_up else DOWN
    back = ", taken back since" if step.undone else ""
    return f"{sign} {signed(1 + step.size_fraction)} at {at(step.entry)}{back}"


def run_row(entry: Entry) -> RunRow:
    """Write a run."""
    measured = sum(1 for each in entry.cases if each.status == "measured")
    branch = f" ({isolated(line(entry.branch, 40))})" if entry.branch else ""
    rest = len(entry.cases) - measured
    return RunRow(
        when=f"{entry.moment:%Y-%m-%d %H:%M}",
        at=(at(entry) if entry.commit else NONE) + branch,
        driver=line(entry.driver, 40) or NONE,
        cases=f"{measured:,}" + (f" + {rest:,} without a time" if rest else ""),
        id=isolated(line(entry.id, 60)),
    )


def _short(case: Case) -> str:
    """Write a case for a narrow place: extents without their axes."""
    extents = "x".join(map(str, case.shape.values()))
    mode = [] if case.cache_mode == "cold" else [case.cache_mode]
    words = (*case.params_words, *mode)
    return line(" ".join((f"{case.operator}/{case.kernel}", extents, case.dtype, *words)))
