"""An operator's cases over the runs of a card: those that stepped, before the band of the others.

Written by hand: paths and words in attributes alone, so that a chart shows where styles do not.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from solkit.judge.trend import Trend
from solkit.report.change_words import signed
from solkit.report.page import escaped
from solkit.report.plain import counted, isolated, line
from solkit.report.plotting import COLOURS, GRID, INK, MUTED, brief
from solkit.stats import median, quantile

CHARTS_MOST, DRAWN_MOST = 30, 6
WIDTH, HEIGHT = 380, 200  # as it is on a phone, so that its type is legible there
SPARK_WIDTH, SPARK_HEIGHT, SPARK_POINTS = 120, 20, 48
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 34, 12, 30
_LABEL_PX = 13.0
_LEAST_SPAN, _SHARED_MOST = 0.05, 0.35  # of log time: what fits is drawn to one scale everywhere
_SPARK_SPAN = 0.03
_BAND = "#dfe3e8"
_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 2", "10 4")
_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 9.0)


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart with its words; anchor is unique in the page."""

    anchor: str
    title: str
    svg: str
    caption: str


def panels(ordered: Sequence[Trend], rows: int) -> tuple[tuple[Panel, ...], int]:
    """Return a chart for each operator (and card), those with steps first, and how many are left.

    ordered: the cases as their table has them; its first `rows` have the ids c1, c2 ..., which the
    numbers at the lines lead to.
    """
    groups: dict[tuple[str, str], list[tuple[Trend, str]]] = {}
    for row, trend in enumerate(ordered, 1):
        if trend.points:
            key = trend.conditions.gpu_id, trend.case.operator
            groups.setdefault(key, []).append((trend, f"c{row}" if row <= rows else ""))
    cards = len({card for card, _ in groups})
    sorted_groups = sorted(groups.items(), key=lambda pair: _eventful(pair[1]), reverse=True)
    extents = {key: _extent(members) for key, members in groups.items()}
    shared = max([_LEAST_SPAN, *(each for each in extents.values() if each <= _SHARED_MOST)])
    made = []
    for place, ((card, operator), members) in enumerate(sorted_groups[:CHARTS_MOST]):
        extent = extents[card, operator]
        title = line(operator, 60) + (f" on {line(card, 40)}" if cards > 1 else "")
        own = extent > shared
        made.append(_panel(f"o{place}", title, members, extent if own else shared, own=own))
    return tuple(made), max(0, len(sorted_groups) - CHARTS_MOST)


def spark(trend: Trend) -> str:
    """Return a case's times as the path of a small line, more time up; empty below three runs."""
    values = [math.log(point.median_s) for point in trend.points]
    if len(values) < 3:  # noqa: PLR2004  # two points show no course
        return ""
    count = min(SPARK_POINTS, len(values))
    edges = [place * len(values) // count for place in range(count + 1)]
    points = [median(values[edges[each] : edges[each + 1]]) for each in range(count)]
    low, high = min(points), max(points)
    span = max(high - low, _SPARK_SPAN)
    top = (low + high + span) / 2
    places = (
        f"{round(place * SPARK_WIDTH / (count - 1))} {round((top - each) / span * SPARK_HEIGHT)}"
        for place, each in enumerate(points)
    )
    return f"M{' '.join(places)}"


def _eventful(members: Sequence[tuple[Trend, str]]) -> tuple[int, int]:
    """Count what a reader looks for: cases that stepped up, then steps of any kind."""
    return (
        sum(trend.stands_up for trend, _ in members),
        sum(len(trend.steps) for trend, _ in members),
    )


def _relative(trend: Trend) -> list[tuple[int, float]]:
    """Return each run's place and the log of its time over the case's first level."""
    first = math.log(trend.levels[0].median_s)
    return [(point.run, math.log(point.median_s) - first) for point in trend.points]


def _extent(members: Sequence[tuple[Trend, str]]) -> float:
    """Return how far from the first level the levels go, and the steadier others' noise."""
    levels = [
        abs(math.log(level.median_s / trend.levels[0].median_s))
        for trend, _ in members
        for level in trend.levels
    ]
    noise = sorted(trend.noise_fraction for trend, _ in members)
    return max(1.15 * max(levels) + quantile(noise, 0.5), 3 * quantile(noise, 0.8))


def _panel(
    anchor: str,
    title: str,
    members: Sequence[tuple[Trend, str]],
    extent: float,
    *,
    own: bool,
) -> Panel:
    stepped = sorted(
        (pair for pair in members if pair[0].steps),
        key=lambda pair: (pair[0].stands_up, max(abs(s.size_fraction) for s in pair[0].steps)),
        reverse=True,
    )
    drawn, quiet = stepped[:DRAWN_MOST], [trend for trend, _ in members if not trend.steps]
    last = max(point.run for trend, _ in members for point in trend.points)
    x, y = _scales(last, extent)
    caption = _caption(drawn, len(stepped), quiet, own=own)
    body = [
        *_axes(x, y, last, extent),
        *_band(quiet, x, y),
        *(each for place, pair in enumerate(drawn) for each in _line(pair[0], place, x, y)),
        *_labels(drawn, x, y),
    ]
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" font-size="11" '
        'font-family="system-ui, sans-serif" fill="none" stroke-linejoin="round" '
        f'aria-labelledby="{anchor}t {anchor}d"><title id="{anchor}t">{escaped(title)}: time of '
        f'each run against the first level</title><desc id="{anchor}d">{escaped(caption)} Data in '
        f"the table of every case.</desc>{''.join(body)}</svg>"
    )
    return Panel(anchor, title, svg, caption)


_Scale = Callable[[float], float]


def _scales(last: int, extent: float) -> tuple[_Scale, _Scale]:
    wide, high = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def x(run: float) -> float:
        return round(_LEFT + wide * (run / last if last else 0.5), 1)

    def y(log: float) -> float:
        inside = max(-extent, min(extent, log))
        return round(_TOP + high * (1 - inside / extent) / 2, 1)

    return x, y


def _axes(x: _Scale, y: _Scale, last: int, extent: float) -> list[str]:
    made = []
    inside = [tick for tick in _TICKS if math.log1p(tick) <= extent][-2:]
    for change in (*inside, *(-tick for tick in inside if math.log1p(-min(tick, 0.9)) >= -extent)):
        height = y(math.log1p(change))
        made.append(_rule(x(0), x(last), height, GRID))
        made.append(_text(_LEFT - 6, height + 4, brief(signed(1 + change)), anchor="end"))
    made.append(_rule(x(0), x(last), y(0), INK))
    made.append(_text(_LEFT - 6, y(0) + 4, "0 %", anchor="end"))
    bottom = HEIGHT - _BOTTOM + 16
    made.append(_text(x(0), bottom, "run 1"))
    if last:
        made.append(_text(x(last), bottom, f"run {last + 1}", anchor="end"))
        made.append(_text((x(0) + x(last)) / 2, bottom, "oldest to newest", anchor="middle"))
    return made


def _band(quiet: Sequence[Trend], x: _Scale, y: _Scale) -> list[str]:
    """Draw where the middle 80 % of the cases without a step lie, run by run, and their median."""
    values: dict[int, list[float]] = {}
    for trend in quiet:
        for run, log in _relative(trend):
            values.setdefault(run, []).append(log)
    if not values:
        return []
    held = [(run, sorted(logs)) for run, logs in sorted(values.items())]
    high = [(x(run), y(quantile(logs, 0.9))) for run, logs in held]
    low = [(x(run), y(quantile(logs, 0.1))) for run, logs in held]
    middle = [(x(run), y(quantile(logs, 0.5))) for run, logs in held]
    return [
        f'<path d="{_path([*high, *low[::-1]])}Z" fill="{_BAND}"/>',
        f'<path d="{_path(middle)}" stroke="{MUTED}" stroke-width="1.2"/>',
    ]


def _line(trend: Trend, place: int, x: _Scale, y: _Scale) -> list[str]:
    """Draw a case: its runs as a thin line, its levels as a thick one, a mark at each step."""
    face, edge = COLOURS[place % len(COLOURS)]
    first = math.log(trend.levels[0].median_s)
    points = [(x(run), y(log)) for run, log in _relative(trend)]
    levels: list[tuple[float, float]] = []
    for level in trend.levels:
        height = y(math.log(level.median_s) - first)
        ends = trend.points[level.start], trend.points[level.start + level.count - 1]
        levels += [(x(each.run), height) for each in ends]
    dash = f' stroke-dasharray="{_DASHES[place]}"' if _DASHES[place] else ""
    made = [
        f'<path d="{_path(points)}" stroke="{face}" stroke-width="1" stroke-opacity="0.55"/>',
        f'<path d="{_path(levels)}" stroke="{edge}" stroke-width="2.2"{dash}/>',
    ]
    for step, level in zip(trend.steps, trend.levels[1:], strict=True):
        at, height = x(step.run), y(math.log(level.median_s) - first)
        up = -5 if step.is_up else 5
        made.append(
            f'<path d="M{at - 5:g} {height - up:g}H{at + 5:g}L{at:g} {height + up:g}Z" '
            f'fill="{face}" stroke="{edge}"><title>{escaped(_tip(trend, step.size_fraction))}'
            "</title></path>"
        )
    return made


def _tip(trend: Trend, size_fraction: float) -> str:
    return f"{isolated(line(str(trend.case), 90))}: {signed(1 + size_fraction)}"


def _labels(drawn: Sequence[tuple[Trend, str]], x: _Scale, y: _Scale) -> list[str]:
    """Write a number at the end of each line, apart from the others; it leads to its row."""
    ends = sorted((y(_last_level(trend)), place) for place, (trend, _) in enumerate(drawn))
    made, lowest = [], _TOP - _LABEL_PX
    for index, (height, place) in enumerate(ends):
        trend, anchor = drawn[place]
        room = HEIGHT - 8 - (len(ends) - 1 - index) * _LABEL_PX  # for those still to come
        lowest = max(min(height, room), lowest + _LABEL_PX)
        edge = COLOURS[place % len(COLOURS)][1]
        label = _text(
            x(trend.points[-1].run) + 6, lowest + 4, _number(anchor), colour=edge, weight="600"
        )
        name = escaped(line(str(trend.case), 90))
        made.append(f'<a href="#{anchor}" aria-label="{name}">{label}</a>' if anchor else label)
    return made


def _number(anchor: str) -> str:
    return f"#{anchor[1:]}" if anchor else ""


def _last_level(trend: Trend) -> float:
    return math.log(trend.levels[-1].median_s / trend.levels[0].median_s)


def _caption(
    drawn: Sequence[tuple[Trend, str]], stepped: int, quiet: Sequence[Trend], *, own: bool
) -> str:
    said = [
        f"{_number(anchor)} {_tip(trend, math.expm1(_last_level(trend)))}".strip()
        for trend, anchor in drawn
    ]
    if stepped > len(drawn):
        said.append(f"{counted(stepped - len(drawn), 'more case')} with steps in the table")
    if quiet:
        said.append(
            f"grey: the middle 80 % of {counted(len(quiet), 'case')} without a step, and their "
            "median"
        )
    text = f"By now: {'; '.join(said)}" if drawn else f"{'; '.join(said)}".capitalize()
    return text + (". A scale of its own." if own else ".")


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + " ".join(f"{x:g} {y:g}" for x, y in points)


def _rule(left: float, right: float, height: float, colour: str) -> str:
    return f'<path d="M{left:g} {height:g}H{right:g}" stroke="{colour}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    colour: str = MUTED,
    weight: str = "400",
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escaped(text)}</text>'
    )
