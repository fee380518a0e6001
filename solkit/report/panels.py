"""Which cases share a panel of the roofline: those under one set of roofs, by kind of pipe."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solkit.gpu import Gpu
from solkit.judge.score import Scored
from solkit.model import Case, Work
from solkit.report import marks
from solkit.report.marks import Point, Series
from solkit.report.plotting import clean

ESTIMATED = "fp32 (estimated)"


@dataclass(frozen=True, slots=True)
class Panel:
    """Cases under one set of roofs: pipes of equal peak, or work that is only estimated."""

    pipes: tuple[str, ...]
    estimated: bool
    points: tuple[Point, ...]

    @property
    def title(self) -> str:
        """Name the pipes for the panel's head."""
        names = " and ".join(pipe.replace("_tensor", " tensor") for pipe in self.pipes)
        return f"{names} pipe{'s' if len(self.pipes) > 1 else ''}" + (
            ", estimated work" if self.estimated else ", dense"
        )


def charted_flop(work: Work) -> tuple[str, int] | None:
    """Return the pipe a case is drawn under and its FLOP: exact, else the fp32 estimate."""
    if not work.traffic_bytes:
        return None
    if sum(work.flop.values()):
        return max(work.flop, key=lambda pipe: work.flop[pipe]), sum(work.flop.values())
    estimate = work.estimated_flop.get("fp32", 0)
    return (ESTIMATED, estimate) if estimate else None


def panels_of(scored: Mapping[int, Scored], gpu: Gpu | None, *, whose: bool = False) -> list[Panel]:
    """Sort cases into panels, one for pipes of equal peak; the most cases first.

    whose: the cases are of several operators, so series and names say which.
    """
    grouped: dict[object, tuple[set[str], dict[int, Scored]]] = {}
    for row, item in scored.items():
        charted = charted_flop(item.outcome.work)
        if charted is None:
            continue
        pipe = charted[0]
        peak = gpu.pipes[pipe].flop_per_s if gpu and pipe in gpu.pipes else None
        pipes, members = grouped.setdefault(peak or pipe, (set(), {}))
        pipes.add(pipe)
        members[row] = item
    return [
        Panel(
            tuple("fp32" if pipe == ESTIMATED else pipe for pipe in sorted(pipes)),
            ESTIMATED in pipes,
            tuple(_points(members, whose=whose)),
        )
        for pipes, members in sorted(grouped.values(), key=lambda group: -len(group[1]))
    ]


def _points(members: Mapping[int, Scored], *, whose: bool) -> list[Point]:
    names = marks.short_names([item.outcome.case for item in members.values()])
    several = len({item.outcome.case.operator for item in members.values()}) > 1
    return [
        _point(row, item, f"{item.outcome.case.operator} {name}" if several else name, whose=whose)
        for (row, item), name in zip(members.items(), names, strict=True)
    ]


def _point(row: int, item: Scored, name: str, *, whose: bool) -> Point:
    case = item.outcome.case
    flop = (charted_flop(item.outcome.work) or ("", 0))[1]
    return Point(
        row=row,
        series=series_of(case, whose=whose),
        kind=marks.kind_of(item),
        name=clean(name),
        scored=item,
        at=(flop / item.outcome.work.traffic_bytes, flop / item.median_s),
        span=marks.interval(item, flop),
    )


def series_of(case: Case, *, whose: bool) -> Series:
    """Return what shares the case's colour and marker; over several operators, the operator too."""
    return Series(f"{case.operator}/{case.kernel}" if whose else case.kernel, case.dtype)


def intensity_decades(points: Sequence[Point]) -> float:
    """Return the widest spread of intensity within one series, in decades.

    Over valid cases; where there are none, over all.
    """
    spreads: dict[Series, list[float]] = {}
    for point in [each for each in points if each.kind != "invalid"] or points:
        spreads.setdefault(point.series, []).append(point.at[0])
    return max((math.log10(max(values) / min(values)) for values in spreads.values()), default=0.0)
