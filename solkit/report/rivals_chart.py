"""Kernels of one operator drawn side by side: time over the fastest, a line for each group."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from solkit.judge.score import Judged, Scored
from solkit.report import marks, svg
from solkit.report.drawing import Look, draw_marks
from solkit.report.legend import framed, series_entries
from solkit.report.marks import Point, Series
from solkit.report.plain import TIMES
from solkit.report.plotting import GRID, INK, clean, svg_text, text_px
from solkit.report.rivals import KERNELS_MOST, Group, groups_of, names_of, rivals_alt, widest
from solkit.units import digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES_MOST = 16
_LINE_PX, _LANE_PX, _LANES_PX = 28.0, 7.0, 18.0
_TICKS = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
_LEAST_SPAN = 1.1  # an axis that ends nearer to 1 would blow noise up to the width of the page


def rivals_chart(
    number: int, operator: str, items: Mapping[int, Judged], look: Mapping[Series, Look]
) -> tuple[str, str]:
    """Return the figure (empty where no two kernels share a group) and what it says.

    items: the operator's outcomes by row. Call inside `plotting.look()`.
    """
    groups = groups_of(list(items.items()))
    if not groups:
        return "", ""
    alt = rivals_alt(operator, groups)
    names = names_of(groups)[:KERNELS_MOST]
    shown = widest(groups, LINES_MOST)
    points = [point for place, group in enumerate(shown) for point in _points(group, place, names)]
    if not all(point.series in look for point in points):
        return "", ""  # hot cases alone: they have no look, as no other chart holds them
    title = f"{clean(operator)}: kernels side by side" + (
        f" (the {len(shown)} widest of {len(groups):,} groups)" if len(groups) > len(shown) else ""
    )
    heads = _heads(shown)
    left = min(250.0, max(text_px(head, 9.5) for head in heads) * 0.94 + 18)
    figure, (axes,) = framed(
        title,
        series_entries(marks.single(points), look),
        [max(2, len(shown)) * _LINE_PX],
        left=left,
    )
    _dress(axes, max(point.at[0] for point in points), heads)
    axes.hlines(
        [-place for place in range(len(shown))],
        [1.0] * len(shown),
        [group.spread for group in shown],
        color=GRID,
        linewidth=4.0,
        zorder=1,
    )
    clusters = marks.single(points)
    draw_marks(axes, clusters, look, gid="rivals", dodge=False)
    tips = {f"#r{point.row}": point.tip for point in points}
    text = svg.sanitise(
        svg_text(figure),
        prefix=f"k{number}-",
        title=title,
        description=f"{alt} {svg.SEE_TABLE}",
        tips=tips,
    )
    return text, alt


def _points(group: Group, place: int, names: Sequence[str]) -> list[Point]:
    """Return the kernels of one group, each in a lane of its own, so that none hides another."""
    step = min(_LANE_PX, _LANES_PX / len(names)) / _LINE_PX
    fastest = group.fastest
    points = []
    for lane, name in enumerate(names):
        index, item = group.timed.get(name, (0, None))
        if item is None or fastest is None or not fastest.median_s:
            continue
        height = -place - (lane - (len(names) - 1) / 2) * step
        points.append(_point(index, item, fastest.median_s, height))
    return points


def _point(row: int, item: Scored, fastest_s: float, height: float) -> Point:
    case = item.outcome.case
    return Point(
        row=row,
        series=Series(case.kernel, case.dtype),
        kind=marks.kind_of(item),
        name="",
        scored=item,
        at=(item.median_s / fastest_s, height),
        span=(height, height),
    )


def _heads(groups: Sequence[Group]) -> list[str]:
    """Name each group by what tells it from the others, and its dtype."""
    cases = [next(iter(group.timed.values()))[1].outcome.case for group in groups]
    names = marks.short_names(cases)
    return [clean(f"{name} {case.dtype}", 38) for name, case in zip(names, cases, strict=True)]


def _dress(axes: "Axes", slowest: float, heads: Sequence[str]) -> None:
    """Give the axes their scale: time over the fastest, logarithmic, from 1 to the slowest."""
    high = max(_LEAST_SPAN, slowest)
    axes.set_xscale("log")
    axes.set_xlim(high**-0.025, high**1.04)
    ticks = _ticks(high)
    axes.set_xticks(ticks, [f"{digits(tick).rstrip('0').rstrip('.')}{TIMES}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("time over that of the fastest kernel of the group")
    axes.set_ylim(-len(heads) + 0.5, 0.5)
    axes.set_yticks([-place for place in range(len(heads))], heads, fontsize=9.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.axvline(1.0, color=INK, linewidth=1.3, zorder=2)


def _ticks(high: float) -> list[float]:
    """Return round ratios from 1 to the end of the axis, few enough to read."""
    ticks = [tick for tick in _TICKS if tick <= high]
    power = 100.0
    while power <= high:
        ticks.append(power)
        power *= 10
    least = math.log(high) / 12  # neighbours closer than a twelfth of the axis would touch
    kept = [1.0]
    for tick in ticks[1:]:
        if math.log(tick / kept[-1]) >= least:
            kept.append(tick)
    return kept
