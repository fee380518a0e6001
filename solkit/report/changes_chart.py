"""The picture of a comparison: each case's change in time against how long it takes in BASE."""

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from solkit import units
from solkit.judge.changes import CaseChange, Comparison, Word
from solkit.judge.compare import Change
from solkit.report import svg
from solkit.report.change_words import signed
from solkit.report.changes import effect
from solkit.report.legend import Entry, framed
from solkit.report.plain import counted
from solkit.report.plotting import (
    BAD,
    COLOURS,
    INK,
    INVALID_MARKER,
    brief,
    clean,
    log_axis,
    log_limits,
    look,
    svg_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINKS_MOST = 40  # each link is a Tab stop
_DRAWN_MOST = 600  # marks of one word; of more, those that would hide each other are drawn once
_GRID_PX = 3.0
_PANEL_PX, _LEFT_PX = 300.0, 82.0
BAND = "#e3ebf3"  # of the least effect: what lies in it is no change
_LEAST_SPAN_FRACTION, _MOST_RATIO = 0.05, 100.0
_MORE = (1.005, 1.01, 1.02, 1.03, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100)
_LESS = (0.995, 0.99, 0.98, 0.97, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
_TICKS_APART_FRACTION = 0.065  # of the axis: nearer, their texts would touch


class _Mark(NamedTuple):
    """How the cases of one word look; colour is never the only sign."""

    marker: str
    face: str
    edge: str
    size: float
    bar: float
    says: str


# In the order in which they are drawn: what matters lies on top.
_MARKS: dict[Word, _Mark] = {
    "SAME": _Mark("o", "#a8a8a8", "#6f6f6f", 4.5, 0.7, "same"),
    "FASTER": _Mark("v", *COLOURS[2], 8.5, 1.3, "faster"),
    "UNSURE": _Mark("D", *COLOURS[5], 6.5, 1.3, "unsure"),
    "INVALID": _Mark(INVALID_MARKER, BAD, INK, 8.5, 1.3, "INVALID"),
    "SLOWER": _Mark("^", *COLOURS[1], 8.5, 1.3, "slower"),
}


class _Point(NamedTuple):
    """Case `row` of the comparison, which has two times: where it stands, its interval's ends."""

    row: int
    item: CaseChange
    change: Change
    x: float
    y: float
    low: float
    high: float


def chart(comparison: Comparison) -> tuple[str, str]:
    """Return the chart as inline SVG, empty where nothing has two times, and what it shows."""
    least = comparison.min_effect_fraction
    points = [
        _point(row, item, item.change, least)
        for row, item in enumerate(comparison.changes)
        if item.change and item.word in _MARKS
    ]
    alt = _alt(points, len(comparison.changes) - len(points), least)
    if not points:
        return "", alt
    with look():
        return _draw(points, least, alt), alt


def _point(row: int, item: CaseChange, change: Change, least: float) -> _Point:
    low, middle, high = (
        _height(ratio, least)
        for ratio in (change.ratio_low_fraction, change.ratio_fraction, change.ratio_high_fraction)
    )
    return _Point(row, item, change, change.base.median_s, middle, low, high)


def _height(ratio_fraction: float, least: float) -> float:
    """Return the height of a ratio: even within the least effect, logarithmic far beyond it.

    So a case that takes three times as long leaves room to see those that take 3 % more. What is
    further off than the axis goes stands at its end.
    """
    kept = min(max(ratio_fraction, 1 / _MOST_RATIO), _MOST_RATIO)
    return math.asinh(math.log(kept) / math.log1p(least))


def _draw(points: Sequence[_Point], least: float, alt: str) -> str:
    groups: dict[Word, list[_Point]] = {word: [] for word in _MARKS}
    for point in points:
        groups[point.item.word].append(point)
    title = "Change in time against the time in BASE"
    entries = [_entry(word) for word in reversed(_MARKS) if groups[word]]
    figure, (axes,) = framed(title, entries, [_PANEL_PX], left=_LEFT_PX)
    log_axis(axes, "x", log_limits([point.x for point in points], pad=1.4), units.seconds)
    _ratio_axis(axes, points, least)
    axes.set_xlabel("median time in BASE (logarithmic)")
    axes.axhspan(_height(1 / (1 + least), least), _height(1 + least, least), color=BAND, zorder=0.4)
    axes.axhline(0, color=INK, linewidth=1.1, zorder=1)
    changed = sorted((each for each in points if each.item.word != "SAME"), key=_least_first)
    linked = {point.row for point in changed[-LINKS_MOST:]}
    for depth, (word, members) in enumerate(groups.items(), 3):
        if members:
            _draw_word(axes, _MARKS[word], members, linked, depth)
    return svg.sanitise(
        svg_text(figure),
        prefix="v-",
        title=title,
        description=f"{alt} The tables below hold the data.",
        tips={f"#c{point.row}": _tip(point) for point in changed},
    )


def _entry(word: Word) -> Entry:
    from matplotlib.lines import Line2D  # noqa: PLC0415  # matplotlib loads when something is drawn

    mark = _MARKS[word]
    line = Line2D(
        [],
        [],
        linestyle="",
        marker=mark.marker,
        markersize=7.5,
        markerfacecolor=mark.face,
        markeredgecolor=mark.edge,
        markeredgewidth=0.9,
    )
    return line, mark.says


def _least_first(point: _Point) -> float:
    return effect(point.item)


def _draw_word(
    axes: "Axes", mark: _Mark, members: Sequence[_Point], linked: Collection[int], depth: int
) -> None:
    """Draw the cases of one word, with their intervals where there is room for them."""
    shown = members if len(members) <= _DRAWN_MOST else _spread_out(axes, members)
    if shown is members:
        axes.vlines(
            [point.x for point in shown],
            [point.low for point in shown],
            [point.high for point in shown],
            color=mark.edge,
            linewidth=mark.bar,
            zorder=depth - 0.5,
        )
    drawn = axes.scatter(
        [point.x for point in shown],
        [point.y for point in shown],
        s=mark.size**2,
        marker=mark.marker,
        c=mark.face,
        edgecolors=mark.edge,
        linewidths=0.9,
        zorder=depth,
        clip_on=False,
    )
    drawn.set_gid(f"word-{mark.says.lower()}")
    if any(point.row in linked for point in shown):
        drawn.set_urls([f"#c{each.row}" if each.row in linked else None for each in shown])


def _spread_out(axes: "Axes", members: Sequence[_Point]) -> list[_Point]:
    """Keep one case for each place of a fine grid: the others would lie under its mark."""
    pixels = axes.transData.transform([(point.x, point.y) for point in members])
    kept: dict[tuple[int, int], _Point] = {}
    for (x, y), member in zip(pixels, members, strict=True):
        kept.setdefault((round(float(x) / _GRID_PX), round(float(y) / _GRID_PX)), member)
    return list(kept.values())


def _ratio_axis(axes: "Axes", points: Sequence[_Point], least: float) -> None:
    """Make the y axis the change in time, with room for the largest on either side.

    The interval of a case that nobody is sure of may end outside.
    """
    ends = [point.y for point in points]
    for point in points:
        if point.item.word not in ("UNSURE", "INVALID"):
            ends += (point.low, point.high)
    span = 1 + max(2 * least, _LEAST_SPAN_FRACTION)
    low = 1.14 * min(_height(1 / span, least), *ends)
    high = 1.14 * max(_height(span, least), *ends)
    axes.set_ylim(low, high)
    apart = (high - low) * _TICKS_APART_FRACTION
    kept, names = [0.0], ["0 %"]
    for ratio in (*_MORE, *_LESS):
        place = _height(ratio, least)
        if low <= place <= high and all(abs(place - other) >= apart for other in kept):
            kept.append(place)
            names.append(brief(signed(ratio)))
    axes.set_yticks(kept, names)
    axes.set_yticks([], minor=True)
    axes.set_ylabel("time in HEAD against BASE")


def _tip(point: _Point) -> str:
    case = clean(point.item.case, 90)
    return f"{case}: {signed(point.change.ratio_fraction)} ({point.item.word})"


def _alt(points: Sequence[_Point], left_count: int, least: float) -> str:
    """Say in words what the picture shows, and how many cases have no place in it."""
    parts = []
    for word in reversed(_MARKS):
        found = [point for point in points if point.item.word == word]
        if not found:
            continue
        said = f"{counted(len(found), 'case')} {_MARKS[word].says}"
        if word not in ("SAME", "INVALID"):
            most = max(found, key=_least_first)
            name = "most of all " if len(found) > 1 else ""
            name += clean(most.item.case, 70)
            said += f" ({name}, {signed(most.change.ratio_fraction)})"
        parts.append(said)
    if left_count:
        parts.append(f"{counted(left_count, 'case')} without a time on both sides, not drawn")
    said = "; ".join(parts) or "there is no case"
    return (
        f"{said[0].upper()}{said[1:]}. The band is what counts as no change, "
        f"{units.percent(least)} either way; further out the scale is logarithmic."
    )
