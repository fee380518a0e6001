"""When did a case become slower? Its history in levels and steps, drift included.

Drift that no pair of runs shows adds up to a step between levels of many runs: see steps.py.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from solkit.entry import CaseEntry, Entry
from solkit.errors import BadInput
from solkit.judge.steps import STEP_FRACTION, noise_of, segments
from solkit.model import Case, CaseKey
from solkit.stats import median

_Seen = tuple[int, CaseEntry]  # a case in one run, by the run's place among all of its card


@dataclass(frozen=True, slots=True)
class Conditions:
    """What must be equal for times to be one series; a case's own method and cache state too."""

    gpu_id: str
    method: str
    settle: str
    seed: int
    cache: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a case: its place among all runs of the card, and its time (seconds)."""

    run: int
    median_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class Level:
    """Neighbouring points without a step between them: from which, how many, their median."""

    start: int
    count: int
    median_s: float


@dataclass(frozen=True, slots=True)
class Step:
    """A case became slower or faster, and stayed so for some runs.

    entry: the first run at the new level. previous: the run of the case before it; what else
    differs between the two may explain it. size_fraction: +0.05 is 5 % slower. run: the place of
    `entry` among all runs of the card. undone: the case is nearer its old level again by now.
    """

    case: Case
    entry: Entry
    previous: Entry
    run: int
    size_fraction: float
    before_s: float
    after_s: float
    before_count: int
    after_count: int
    undone: bool

    @property
    def is_up(self) -> bool:
        """Whether it became slower."""
        return self.size_fraction > 0

    @property
    def moved(self) -> tuple[tuple[str, str, str], ...]:
        """What changed on the machine between the two runs: (what, before, after)."""
        old, new = self.previous, self.entry
        pairs = (
            ("driver", old.driver, new.driver),
            ("card", old.device_uuid, new.device_uuid),
            ("power limit", _watts(old.power_limit_w), _watts(new.power_limit_w)),
            ("spec", old.spec_hash[:12], new.spec_hash[:12]),
            ("solkit", old.solkit, new.solkit),
        )
        return tuple((what, before, after) for what, before, after in pairs if before != after)


@dataclass(frozen=True, slots=True)
class Trend:
    """One case over the runs of its card under equal conditions.

    points: the runs that measured it, in order; a run in which it failed, was invalid or is missing
    has none. noise_fraction: the deviation of runs around their level. last: what the newest run
    that knows the case says of it, and last_run that run's place among all runs of the card.
    """

    case: Case
    conditions: Conditions
    points: tuple[Point, ...]
    levels: tuple[Level, ...]
    steps: tuple[Step, ...]
    noise_fraction: float
    last: CaseEntry
    last_run: int

    @property
    def change_fraction(self) -> float | None:
        """The newest level over the first one, minus 1; None without a measured run."""
        if not self.levels:
            return None
        return self.levels[-1].median_s / self.levels[0].median_s - 1

    @property
    def stands_up(self) -> bool:
        """Whether a step up stands: none of the later levels took it back."""
        return any(step.is_up and not step.undone for step in self.steps)


def trends(entries: Sequence[Entry], *, step_fraction: float = STEP_FRACTION) -> tuple[Trend, ...]:
    """Return every case's trend, in the order of the newest run that knows it, by card.

    step_fraction: the least step that two runs on each side can show (0.05: 5 %). Raises BadInput
    where it is no fraction.
    """
    if not (math.isfinite(step_fraction) and 0 < step_fraction < 1):
        raise BadInput(
            f"{step_fraction:g} is no least step",
            remedy="give a fraction above 0 and below 1, e.g. 0.05 for 5 %",
        )
    cards: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda each: (each.moment, each.id)):
        cards.setdefault(entry.gpu_id, []).append(entry)
    return tuple(trend for runs in cards.values() for trend in _card_trends(runs, step_fraction))


def newest_steps_up(found: Sequence[Trend], entries: Sequence[Entry], newest: int) -> list[Step]:
    """Return the steps up, not undone, that began in one of the newest runs of their card."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.gpu_id] = counts.get(entry.gpu_id, 0) + 1
    return [
        step
        for trend in found
        for step in trend.steps
        if step.is_up and not step.undone and step.run >= counts[trend.conditions.gpu_id] - newest
    ]


def _card_trends(runs: Sequence[Entry], step_fraction: float) -> Iterator[Trend]:
    series: dict[CaseKey, dict[Conditions, list[_Seen]]] = {}
    rows: dict[CaseKey, tuple[int, int]] = {}
    idle: list[tuple[Conditions, _Seen]] = []
    for place, entry in enumerate(runs):
        for row, each in enumerate(entry.cases):
            conditions = Conditions(
                entry.gpu_id, each.method or entry.method, entry.settle, entry.seed, each.cache
            )
            key = each.case.key
            rows[key] = (-place, row)
            if each.status in ("failed", "skipped"):
                idle.append((conditions, (place, each)))
            else:
                held = series.setdefault(key, {})
                held.setdefault(conditions, []).append((place, each))
    for conditions, seen in idle:  # it has no method of its own: it joins what the case has
        held = series.setdefault(seen[1].case.key, {conditions: []})
        alike = [known for known in held if _alike(known, conditions)] or [conditions]
        for known in alike:
            held.setdefault(known, []).append(seen)
    for key in sorted(series, key=lambda each: rows[each]):
        for conditions, found in series[key].items():
            ordered = sorted(found, key=lambda pair: pair[0])
            yield _trend(runs, conditions, ordered, step_fraction)


def _alike(one: Conditions, other: Conditions) -> bool:
    return (one.settle, one.seed) == (other.settle, other.seed)


def _trend(
    runs: Sequence[Entry],
    conditions: Conditions,
    seen: Sequence[_Seen],
    step_fraction: float,
) -> Trend:
    points = tuple(
        Point(place, each.median_s, each.low_s, each.high_s)
        for place, each in seen
        if each.status == "measured" and each.median_s and each.low_s and each.high_s
    )
    logs = [math.log(point.median_s) for point in points]
    widths = [math.log(point.high_s / point.low_s) / 2 for point in points]
    starts = segments(logs, widths, step_fraction=step_fraction)
    ends = [*starts[1:], len(points)]
    levels = tuple(
        Level(start, end - start, math.exp(median(logs[start:end])))
        for start, end in zip(starts, ends, strict=True)
        if end > start
    )
    last_run, last = seen[-1]
    return Trend(
        case=last.case,
        conditions=conditions,
        points=points,
        levels=levels,
        steps=tuple(_steps(runs, last.case, points, levels)),
        noise_fraction=noise_of(logs, widths, [0, *starts[1:], len(logs)]) if points else 0.0,
        last=last,
        last_run=last_run,
    )


def _steps(
    runs: Sequence[Entry], case: Case, points: Sequence[Point], levels: Sequence[Level]
) -> Iterator[Step]:
    for before, after in pairwise(levels):
        size = math.log(after.median_s / before.median_s)
        left = math.log(levels[-1].median_s / before.median_s)
        yield Step(
            case=case,
            entry=runs[points[after.start].run],
            previous=runs[points[after.start - 1].run],
            run=points[after.start].run,
            size_fraction=after.median_s / before.median_s - 1,
            before_s=before.median_s,
            after_s=after.median_s,
            before_count=before.count,
            after_count=after.count,
            undone=left / size < 0.5,  # noqa: PLR2004  # nearer the old level than the new one
        )


def _watts(value_w: float | None) -> str:
    return "" if value_w is None else f"{value_w:.0f} W"
