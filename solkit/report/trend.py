"""A history in words: which cases stepped to another time, at which commit, and how all stand."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from solkit.entry import Entry
from solkit.history import History
from solkit.judge.steps import FEWEST, SMALL_FEWEST, SMALL_STEP_FRACTION, STEP_FRACTION
from solkit.judge.trend import Conditions, Step, Trend
from solkit.report.change_words import signed
from solkit.report.plain import counted, isolated, line, listed
from solkit.report.trend_rows import (
    DOWN,
    UP,
    Begin,
    CaseRow,
    RunRow,
    StepRow,
    at,
    begins_of,
    case_row,
    order,
    run_row,
    step_row,
    way,
    when,
)

CASES_MOST, STEPS_MOST, RUNS_MOST, BEGINS_MOST = 2_000, 200, 200, 20
NOTES_MOST = 12
_NUMBERS = {2: "two", 5: "five"}


@dataclass(frozen=True, slots=True)
class TrendView:
    """Everything the trend page says, worst and newest first; lists are bounded, and say so.

    ordered: all trends, the first of them in the order of `cases`.
    """

    title: str
    conditions: str
    verdict: str
    summary: str
    tiles: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    begins: tuple[Begin, ...]
    begins_more: str
    steps: tuple[StepRow, ...]
    steps_more: str
    cases: tuple[CaseRow, ...]
    cases_more: str
    runs: tuple[RunRow, ...]
    runs_more: str
    ordered: tuple[Trend, ...]


def view(
    history: History, found: Sequence[Trend], *, step_fraction: float = STEP_FRACTION
) -> TrendView:
    """Put a history and its trends into words; nothing in it is markup.

    step_fraction: the least step of two runs that the trends were made with.
    """
    entries = history.entries
    steps = sorted((step for trend in found for step in trend.steps), key=order, reverse=True)
    ordered = sorted(found, key=lambda trend: (not trend.stands_up, not trend.steps))
    shown = ordered[:CASES_MOST]
    owners = {id(step): f"c{row}" for row, trend in enumerate(shown, 1) for step in trend.steps}
    usual = _usual(found)
    begins = begins_of(steps)
    return TrendView(
        title=f"Trend of {counted(len(entries), 'run')}: {_verdict(entries, found, steps)}",
        conditions=_conditions(entries),
        verdict=_verdict(entries, found, steps),
        summary=_summary(entries, found, step_fraction),
        tiles=_tiles(found),
        notes=_notes(history),
        begins=begins[:BEGINS_MOST],
        begins_more=_more(len(begins) - BEGINS_MOST, "older run"),
        steps=tuple(step_row(step, owners.get(id(step), "")) for step in steps[:STEPS_MOST]),
        steps_more=_more(len(steps) - STEPS_MOST, "more step"),
        cases=tuple(
            case_row(trend, f"c{row}", entries, usual) for row, trend in enumerate(shown, 1)
        ),
        cases_more=_more(len(ordered) - CASES_MOST, "more case"),
        ordered=tuple(ordered),
        runs=tuple(run_row(entry) for entry in entries[::-1][:RUNS_MOST]),
        runs_more=_more(len(entries) - RUNS_MOST, "older run"),
    )


def _verdict(entries: Sequence[Entry], found: Sequence[Trend], steps: Sequence[Step]) -> str:
    if not found:
        return "No case in this history"
    timed = [trend for trend in found if trend.points]
    up = [trend for trend in timed if trend.stands_up]
    if up:
        newest = steps[0]  # they are sorted: what stands, newest first
        have = "has" if len(up) == 1 else "have"
        # one commit, several cases: the worst of them
        return (
            f"{len(up):,} of {counted(len(timed), 'case')} {have} stepped up; the newest at "
            f"{at(newest.entry)} on {when(newest.entry)}: {signed(1 + newest.size_fraction)}"
        )
    if not _judged(found):
        held = counted(len(entries), "run is here", "runs are here")
        return f"Too few runs for a trend: a case needs {2 * FEWEST} with a time, and {held}"
    down = sum(1 for trend in found if any(not step.is_up for step in trend.steps))
    faster = f"; {counted(down, 'case')} stepped down, to less time" if down else ""
    return f"No case of {len(timed):,} has stepped up{faster}"


def _judged(found: Sequence[Trend]) -> list[Trend]:
    return [trend for trend in found if len(trend.points) >= 2 * FEWEST]


def _summary(entries: Sequence[Entry], found: Sequence[Trend], step_fraction: float) -> str:
    if not entries:
        return ""
    span = f"from {when(entries[0])} to {when(entries[-1])}"
    few = len(found) - len(_judged(found))
    said = f"{counted(len(entries), 'run')} {span}."
    if few:
        said += (
            f" {counted(few, 'case')} with fewer than {2 * FEWEST} measured runs can't show a step."
        )
    small = ""
    if step_fraction > SMALL_STEP_FRACTION:
        small = f", or {_percent(SMALL_STEP_FRACTION)} with {_NUMBERS[SMALL_FEWEST]}"
    return (
        f"{said} A step is {_percent(step_fraction)} with {_NUMBERS[FEWEST]} runs or more on each "
        f"side{small}, and larger than the noise of the runs beside it."
    )


def _percent(value_fraction: float) -> str:
    return f"{value_fraction * 100:g} %"


def _conditions(entries: Sequence[Entry]) -> str:
    names = dict.fromkeys(isolated(line(entry.device_name)) for entry in entries)
    ways = dict.fromkeys(
        way(Conditions(entry.gpu_id, entry.method, entry.settle, entry.seed)) for entry in entries
    )
    return " · ".join((listed(list(names), 3), listed(list(ways), 3)))


def _usual(found: Sequence[Trend]) -> Conditions | None:
    """Return the conditions of most cases: those of the others stand at their names."""
    kinds = Counter(trend.conditions for trend in found)
    return kinds.most_common(1)[0][0] if kinds else None


def _tiles(found: Sequence[Trend]) -> tuple[tuple[str, str, str], ...]:
    kinds = Counter(_kind(trend) for trend in found)
    up, back, down, quiet, few = (kinds[kind] for kind in ("up", "back", "down", "quiet", "few"))
    return (
        (f"{UP} Stepped up", f"{up:,}", "slower, and still so"),
        ("\u21ba Taken back", f"{back:,}", "slower for some runs, then no more"),
        (f"{DOWN} Stepped down", f"{down:,}", "faster"),
        ("= No step", f"{quiet:,}", "as ever"),
        ("? Too few runs", f"{few:,}", f"fewer than {2 * FEWEST} with a time"),
    )


def _kind(trend: Trend) -> str:
    if trend.stands_up:
        return "up"
    if trend.steps:
        return "back" if any(step.is_up for step in trend.steps) else "down"
    return "quiet" if len(trend.points) >= 2 * FEWEST else "few"


def _notes(history: History) -> tuple[str, ...]:
    said = [f"not read: {each}" for each in history.problems] + list(history.notes)
    more = _more(len(said) - NOTES_MOST, "more")
    return tuple(line(each, 300) for each in (*said[:NOTES_MOST], *([more] if more else ())))


def _more(count: int, noun: str) -> str:
    return f"{counted(count, noun)} left out here; --format json has all." if count > 0 else ""
