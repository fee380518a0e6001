"""The course of a run drawn: clock, power and temperature over the cases, and the clock's events.

Up to a few hundred cases each has a mark; of more, neighbours share a step of a band from the
lowest to the highest, with a line at their median. Throttled cases keep a mark of their own.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from solkit.judge.score import Judged
from solkit.model import Run
from solkit.report import svg
from solkit.report.course import (
    Quantity,
    Station,
    course_alt,
    known,
    reasons_of,
    seen,
    stations,
)
from solkit.report.legend import Entry, framed
from solkit.report.marks import tip_of
from solkit.report.plotting import BAD, INK, MUTED, clean, look, svg_text, text_px
from solkit.stats import median
from solkit.units import power

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SINGLE_MOST = 500  # cases with a mark each
_STEPS = 240  # of a band
_MARKS_MOST = 120  # throttled cases with a mark each; of more, one of each step of the axis
_LINKS_MOST = 40  # throttled cases with a link each: a link is a Tab stop
_PANEL_PX, _GAP_PX, _EVENT_PX = 92.0, 16.0, 15.0
_DOT, _DOT_EDGE, _BAND, _THROTTLED = "#0072b2", "#004c77", "#b9d6e8", "v"
_TICKS_MOST = 4
# An axis spans at least this share of its highest value, so that noise stays small.
_LEAST_SPAN_FRACTION = 0.1


def course_chart(judged: Sequence[Judged], run: Run) -> tuple[str, str]:
    """Return the course of a run as SVG (empty where nothing was read), and what it says."""
    way = stations(judged)
    shown = seen(way)
    if not shown:
        return "", "No clock, power or temperature was read."
    alt = course_alt(run, way)
    with look():
        return _draw(way, shown, run, alt), alt


def _draw(way: Sequence[Station], shown: Sequence[Quantity], run: Run, alt: str) -> str:
    title = "Clock, power and temperature over the run"
    events = reasons_of(way)
    heads = [clean(reason, 24) for reason in events]
    left = min(190.0, max([66.0, *(text_px(head, 9) * 0.95 + 14 for head in heads)]))
    heights = [_PANEL_PX] * len(shown) + ([len(events) * _EVENT_PX] if events else [])
    figure, panels = framed(title, _entries(way), heights, left=left, gap=_GAP_PX)
    first, last = way[0].row, way[-1].row
    pad = max(1.0, (last - first) * 0.015)
    tips: dict[str, str] = {}
    for axes, quantity in zip(panels, shown, strict=False):
        tips |= _panel(axes, quantity, way)
        if quantity.name == "Power" and run.facts.power_limit_w:
            _limit(axes, run.facts.power_limit_w)
    for axes in panels:
        axes.set_xlim(first - pad, last + pad)
        axes.grid(visible=True, axis="x")
    if events:
        _events(panels[-1], list(events.values()), heads)
    for axes in panels[:-1]:
        axes.tick_params(axis="x", labelbottom=False, length=0)
    panels[-1].set_xlabel("case, by its number (#) in the order of the run")
    panels[-1].locator_params(axis="x", integer=True)
    return svg.sanitise(
        svg_text(figure), prefix="c-", title=title, description=f"{alt} {svg.SEE_TABLE}", tips=tips
    )


def _panel(axes: "Axes", quantity: Quantity, way: Sequence[Station]) -> dict[str, str]:
    """Draw one quantity; return the words of each link."""
    found = known(way, quantity)
    if len(found) > SINGLE_MOST:
        _band(axes, found)
    else:
        calm = [(station.row, value) for station, value in found if not station.throttled]
        axes.plot(
            [station.row for station, _ in found],
            [value for _, value in found],
            color=_BAND,
            linewidth=1.2,
            zorder=2,
        )
        axes.scatter(
            [row for row, _ in calm],
            [value for _, value in calm],
            s=14,
            facecolors=_DOT,
            edgecolors=_DOT_EDGE,
            linewidths=0.6,
            zorder=3,
        )
    _spans(axes, quantity, found)
    slowed = _told_apart([(station, value) for station, value in found if station.throttled])
    if slowed:
        marks = axes.scatter(
            [station.row for station, _ in slowed],
            [value for _, value in slowed],
            s=46,
            marker=_THROTTLED,
            facecolors=BAD,
            edgecolors=INK,
            linewidths=0.7,
            zorder=5,
            clip_on=False,
        )
        marks.set_gid(f"course-{quantity.name.split()[-1].lower()}")
        if len(slowed) <= _LINKS_MOST:
            marks.set_urls([f"#r{station.row}" for station, _ in slowed])
    _limits(axes, quantity)
    return {f"#r{station.row}": tip_of(station.scored) for station, _ in slowed}


def _told_apart(
    found: Sequence[tuple[Station, float]], most: int = _MARKS_MOST
) -> list[tuple[Station, float]]:
    """Return the first case of each step of the axis: more marks than steps would be a blur."""
    if len(found) <= most:
        return list(found)
    first, span = found[0][0].row, found[-1][0].row - found[0][0].row + 1
    steps: dict[int, tuple[Station, float]] = {}
    for station, value in found:
        steps.setdefault((station.row - first) * most // span, (station, value))
    return list(steps.values())


def _band(axes: "Axes", found: Sequence[tuple[Station, float]]) -> None:
    """Draw many cases as steps: from the lowest to the highest of neighbours, and their median."""
    edges = [place * len(found) // _STEPS for place in range(_STEPS + 1)]
    steps = [found[low:high] for low, high in pairwise(edges) if high > low]
    rows = [float(step[len(step) // 2][0].row) for step in steps]
    values = [[value for _, value in step] for step in steps]
    axes.fill_between(
        rows, list(map(min, values)), list(map(max, values)), facecolor=_BAND, linewidth=0, zorder=2
    )
    axes.plot(rows, [median(each) for each in values], color=_DOT_EDGE, linewidth=1.3, zorder=3)


def _spans(axes: "Axes", quantity: Quantity, found: Sequence[tuple[Station, float]]) -> None:
    """Draw the range of the samples' clocks behind each case's median, while there is room."""
    if quantity.name != "SM clock" or len(found) > SINGLE_MOST:
        return
    ends = [
        (station.row, clocks.sm_low_hz, clocks.sm_high_hz)
        for station, _ in found
        for clocks in (station.scored.outcome.clocks,)
        if clocks.sm_low_hz is not None and clocks.sm_high_hz is not None
    ]
    _strokes(axes, ends, MUTED, 0.9)


def _strokes(
    axes: "Axes", ends: Sequence[tuple[float, float, float]], colour: str, width: float
) -> None:
    """Draw upright strokes (place, low, high) as one path: one each would be five times as long."""
    gap = math.nan
    axes.plot(
        [x for place, _, _ in ends for x in (place, place, gap)],
        [y for _, low, high in ends for y in (low, high, gap)],
        color=colour,
        linewidth=width,
        solid_capstyle="butt",
        zorder=2.5,
    )


def _limits(axes: "Axes", quantity: Quantity) -> None:
    """Fit the axis to what was drawn, its ticks in units people read."""
    low, high = axes.get_ylim()
    short = max(0.0, _LEAST_SPAN_FRACTION * high - (high - low)) / 2
    low, high = low - short, high + short
    axes.set_ylim(low, high)
    # whole numbers, as the text of a tick has no decimals: 42.5 would read 42
    axes.locator_params(axis="y", nbins=_TICKS_MOST, steps=[1, 2, 5, 10], integer=True)
    ticks = [float(tick) for tick in axes.get_yticks() if low <= tick <= high]
    axes.set_yticks(ticks, [quantity.write(tick) for tick in ticks])


def _limit(axes: "Axes", limit_w: float) -> None:
    """Draw the power limit, and make room for it."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(high, limit_w * 1.08))
    axes.axhline(limit_w, color=INK, linewidth=1.1, linestyle=(0, (5, 2)), zorder=2)
    axes.annotate(
        f"power limit {power(limit_w)}",
        (1, limit_w),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        fontsize=9,
    )


def _events(axes: "Axes", cases: Sequence[Sequence[Station]], heads: Sequence[str]) -> None:
    """Mark the cases in which the driver named a reason, a line for each reason."""
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.set_yticks(range(len(cases)), heads, fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    for place, members in enumerate(cases):
        rows = [
            station.row for station, _ in _told_apart([(each, 0.0) for each in members], _STEPS)
        ]
        _strokes(axes, [(row, place - 0.32, place + 0.32) for row in rows], BAD, 1.6)


def _entries(way: Sequence[Station]) -> list[Entry]:
    from matplotlib.lines import Line2D  # noqa: PLC0415  # matplotlib loads when something is drawn
    from matplotlib.patches import Patch  # noqa: PLC0415

    def dot(marker: str, face: str, edge: str, size: float) -> Line2D:
        return Line2D(
            [],
            [],
            linestyle="",
            marker=marker,
            markersize=size,
            markerfacecolor=face,
            markeredgecolor=edge,
            markeredgewidth=0.7,
        )

    entries: list[Entry] = []
    if len(way) > SINGLE_MOST:
        entries.append((Line2D([], [], color=_DOT_EDGE, linewidth=1.3), "median of neighbours"))
        entries.append((Patch(facecolor=_BAND), "their lowest to highest"))
    else:
        entries.append((dot("o", _DOT, _DOT_EDGE, 4.5), "a case"))
        entries.append((Line2D([], [], color=MUTED, linewidth=0.9), "range of its samples (clock)"))
    if any(station.throttled for station in way):
        entries.append((dot(_THROTTLED, BAD, INK, 7), "throttled samples"))
    if any(station.reasons for station in way):
        entries.append((Line2D([], [], color=BAD, linewidth=1.6), "clock event"))
    return entries
