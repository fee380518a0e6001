"""What a chart shows of a case: its mark, its short name, and which marks share a place. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

from solkit.judge.score import Judged, Scored
from solkit.model import Case
from solkit.report.plotting import MARK_PX, clean
from solkit.units import flop_rate, percent, seconds

Kind = Literal["memory", "compute", "invalid"]
Place = tuple[float, float]
Box = tuple[float, float, float, float]

TIMES = "\N{MULTIPLICATION SIGN}"
NAMED = 12  # so many marks carry their shape as text; more carry the number of their row
SINGLE = 60  # so many carry a number; more are grouped
OVERLAP_FRACTION = 0.15  # a larger share of marks that touch, and they are grouped
_FARTHEST_PX = 64.0  # a label farther than this from its mark helps nobody
LONELY_INVALID = 40  # invalid cases stay single up to so many in one chart


@dataclass(frozen=True, slots=True, order=True)
class Series:
    """Cases that share colour and marker: one kernel (of one operator) in one dtype."""

    name: str
    dtype: str

    def __str__(self) -> str:
        """Write the series as legends do."""
        return f"{self.name} {self.dtype}"


@dataclass(frozen=True, slots=True)
class Point:
    """One case on a chart: `at` in the axes' own units, `span` the interval of its y."""

    row: int
    series: Series
    kind: Kind
    name: str
    scored: Scored
    at: Place
    span: Place

    @property
    def fraction(self) -> float:
        """The score as it was seen, INVALID or not."""
        return self.scored.raw_fraction

    @property
    def tip(self) -> str:
        """The words that name the mark in full."""
        return tip_of(self.scored)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cases that share a place on the pixel grid; most hold one."""

    points: tuple[Point, ...]

    @property
    def worst(self) -> Point:
        """The case to look at first: the lowest score."""
        return min(self.points, key=lambda point: (point.fraction, point.row))

    @property
    def at(self) -> Place:
        """The middle case in each direction."""
        xs, ys = (sorted(point.at[axis] for point in self.points) for axis in (0, 1))
        return xs[len(xs) // 2], ys[len(ys) // 2]

    @property
    def span(self) -> Place:
        """From the lowest to the highest case; of a single case, its interval."""
        if len(self.points) == 1:
            return self.points[0].span
        ys = [point.at[1] for point in self.points]
        return min(ys), max(ys)

    @property
    def name(self) -> str:
        """The name of its case; of several, what they share or range over, and the count."""
        if len(self.points) == 1:
            return self.points[0].name
        values: dict[str, list[str]] = {}
        for point in self.points:
            for part in point.name.split():
                key, _, value = part.rpartition("=")
                values.setdefault(key, []).append(value)
        said = [
            f"{key}={_range(members)}" if key else members[0]
            for key, members in values.items()
            if _range(members)
        ]
        return f"{' '.join(said)} {TIMES}{len(self.points)}".strip()

    @property
    def tip(self) -> str:
        """The words shown on hovering."""
        if len(self.points) == 1:
            return self.points[0].tip
        scores = [point.fraction for point in self.points]
        spread = f"{percent(min(scores))} to {percent(max(scores))} of SOL"
        series = clean(self.points[0].series)
        return f"{len(self.points)} cases of {series}, {spread}; lowest: {self.worst.tip}"


def _range(values: Sequence[str]) -> str:
    """Write equal values as one, whole numbers as their range, others not at all."""
    if len(set(values)) == 1:
        return values[0]
    if all(value.isdecimal() for value in values):
        numbers = [int(value) for value in values]
        return f"{min(numbers)}\N{EN DASH}{max(numbers)}"
    return ""


def placed(item: Judged) -> TypeGuard[Scored]:
    """Say whether a chart of SOL holds a case: measured, and DRAM a bound for its data."""
    return isinstance(item, Scored) and not item.hot


def kind_of(item: Scored) -> Kind:
    """Return what the mark says by its fill: invalid, or the resource that bounds it."""
    if item.status == "invalid":
        return "invalid"
    return "compute" if item.bound.limiter.startswith("compute") else "memory"


def interval(item: Scored, amount: float) -> Place:
    """Return amount over time at both ends of the time's interval; a timer may have read 0."""
    return amount / (item.high_s or item.median_s), amount / (item.low_s or item.median_s)


def tip_of(item: Scored) -> str:
    """Return the words that name a mark in full."""
    said = (
        f"INVALID ({percent(item.raw_fraction)} of SOL)"
        if item.status == "invalid"
        else percent(item.raw_fraction)
    )
    flop = sum(item.outcome.work.flop.values())
    rate = f", {flop_rate(flop / item.median_s)}" if flop else ""
    return (
        f"{clean(item.outcome.case, 120)}: {said} of SOL, {seconds(item.median_s)}{rate}".replace(
            ") of SOL", ")"
        )
    )


def short_names(cases: Sequence[Case]) -> list[str]:
    """Name each case by what tells it from the others: the axes and params that differ."""
    modes = {case.cache_mode for case in cases}
    parts = [
        {**case.shape, **case.params, **({"cache": case.cache_mode} if len(modes) > 1 else {})}
        for case in cases
    ]
    keys = dict.fromkeys(key for part in parts for key in part)
    varying = [key for key in keys if len({str(part.get(key)) for part in parts}) > 1] or list(keys)
    return [
        clean(" ".join(f"{key}={part[key]}" for key in varying if key in part)) for part in parts
    ]


def all_series(judged: Sequence[Judged]) -> tuple[Series, ...]:
    """Return every kernel x dtype measured, sorted: a series looks the same in all charts."""
    cases = [item.outcome.case for item in judged if placed(item)]
    return tuple(sorted({Series(case.kernel, case.dtype) for case in cases}))


def overlap_fraction(places: Sequence[Place]) -> float:
    """Return the share of marks closer than 0.6 diameters to another one, in pixels."""
    near = 0.6 * MARK_PX
    cells: dict[tuple[int, int], list[Place]] = {}
    for place in places:
        cells.setdefault((math.floor(place[0] / near), math.floor(place[1] / near)), []).append(
            place
        )
    touching = 0
    for (column, line), members in cells.items():
        around = [
            other
            for step_x in (-1, 0, 1)
            for step_y in (-1, 0, 1)
            for other in cells.get((column + step_x, line + step_y), ())[:9]
        ]
        touching += sum(
            sum(math.dist(member, other) < near for other in around) > 1 for member in members
        )
    return touching / len(places) if places else 0.0


def overlap_within(points: Sequence[Point], places: Sequence[Place]) -> float:
    """Return the share of marks that touch one of their own series: only those can be grouped."""
    own: dict[tuple[Series, Kind], list[Place]] = {}
    for point, place in zip(points, places, strict=True):
        own.setdefault((point.series, point.kind), []).append(place)
    touching = sum(overlap_fraction(members) * len(members) for members in own.values())
    return touching / len(points) if points else 0.0


def cluster(points: Sequence[Point], places: Sequence[Place], *, most: int) -> list[Cluster]:
    """Group points on a pixel grid of 1.5 diameters, coarser until at most `most` marks are left.

    In case order, so deterministic; never across series or kinds. Invalid cases stay single while
    there are few of them.
    """
    cell = 1.5 * MARK_PX
    lonely = sum(point.kind == "invalid" for point in points) <= LONELY_INVALID
    while True:
        groups: dict[object, list[Point]] = {}
        for point, (x, y) in zip(points, places, strict=True):
            spot: object = (point.series, point.kind, math.floor(x / cell), math.floor(y / cell))
            groups.setdefault(point.row if lonely and point.kind == "invalid" else spot, []).append(
                point
            )
        if len(groups) <= max(most, 1) or cell > 400:  # noqa: PLR2004  # wider than that is one mark a series
            return [Cluster(tuple(members)) for members in groups.values()]
        cell *= 1.3


def single(points: Sequence[Point]) -> list[Cluster]:
    """Return a mark for each point."""
    return [Cluster((point,)) for point in points]


def by_series(points: Sequence[Point]) -> list[Cluster]:
    """Return one mark for each series and kind; invalid cases stay single while they are few."""
    lonely = sum(point.kind == "invalid" for point in points) <= LONELY_INVALID
    groups: dict[object, list[Point]] = {}
    for point in points:
        alone = lonely and point.kind == "invalid"
        groups.setdefault(point.row if alone else (point.series, point.kind), []).append(point)
    return [Cluster(tuple(members)) for members in groups.values()]


def place_labels(
    anchors: Sequence[Place], sizes: Sequence[Place], frame: Box, taken: Sequence[Box] = ()
) -> list[Place]:
    """Return for each label the offset of its lower left corner from its anchor, in pixels.

    Greedy, in order: of the places around a mark, nearest first, the one that covers least of the
    marks, of the labels before it and of what lies outside the frame.
    """
    busy: list[Box] = [*taken, *((x - 5, y - 5, x + 5, y + 5) for x, y in anchors)]
    offsets: list[Place] = []
    for (x, y), (width, height) in zip(anchors, sizes, strict=True):
        best, best_cost = (7.0, 4.0), math.inf
        reach = _FARTHEST_PX + width
        near = [
            box
            for box in busy
            if abs(box[0] - x) < reach + 60 and abs(box[1] - y) < _FARTHEST_PX + 20
        ]
        for index, (shift_x, shift_y) in enumerate(_around(width, height)):
            box = (x + shift_x, y + shift_y, x + shift_x + width, y + shift_y + height)
            outside = width * height - _common(box, frame)
            cost = sum(_common(box, other) for other in near) + 3 * outside + 0.8 * index
            if cost < best_cost:
                best, best_cost = (shift_x, shift_y), cost
        offsets.append(best)
        busy.append((x + best[0], y + best[1], x + best[0] + width, y + best[1] + height))
    return offsets


def _around(width: float, height: float) -> list[Place]:
    places: list[Place] = []
    for gap in (7.0, 16.0, 28.0, 44.0, _FARTHEST_PX):
        places += [
            (gap, -height / 2),
            (-gap - width, -height / 2),
            (-width / 2, gap),
            (-width / 2, -gap - height),
            (gap * 0.7, gap * 0.7),
            (-gap * 0.7 - width, gap * 0.7),
            (gap * 0.7, -gap * 0.7 - height),
            (-gap * 0.7 - width, -gap * 0.7 - height),
        ]
    return places


def _common(one: Box, other: Box) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0
