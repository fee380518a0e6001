"""The report's figures: per operator SOL against bytes and the roofline; a strip plot of all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solkit import units
from solkit.bound import Roof, measured_roof, spec_roof
from solkit.judge.score import Judged, Scored, valid
from solkit.model import Run
from solkit.report import marks, svg
from solkit.report.bands import (
    context_entries,
    draw_context,
    floor_curve,
    lines_taken,
    stream_curve,
)
from solkit.report.drawing import (
    NUMBERED,
    Look,
    draw_marks,
    label_marks,
    looks,
    moved_rule,
    named_count,
    pixels,
    point_places,
    shared_rule,
)
from solkit.report.legend import framed, series_entries
from solkit.report.marks import Cluster, Point, Series
from solkit.report.overview import overview
from solkit.report.plain import counted
from solkit.report.plotting import (
    clean,
    log_axis,
    log_limits,
    look,
    sol_axis,
    svg_text,
)
from solkit.report.rivals_chart import rivals_chart
from solkit.report.roofmap import roof_map
from solkit.stats import median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["OperatorCharts", "operator_charts", "overview"]

_MARKS_IN_ALL = 1_600  # over all charts of a report: about 200 bytes each
# Operators with charts, at 40 to 80 kB each: a page of 100 cases is to stay below 1 MB, and one of
# 10,000, whose table takes 3.3 MB, below 5.
OPERATORS_MOST, OF_MANY_CASES, MANY_CASES = 18, 12, 2_000
_PANEL_PX = 270.0


@dataclass(frozen=True, slots=True)
class OperatorCharts:
    """The two figures of one operator, as `<svg>` elements; empty where nothing can be drawn.

    sol_alt, roofline_alt: what the figures say, in a sentence or two. not_placed: which measured
    cases are on the first figure only, with the reason. rule: what a reader must know of how they
    are drawn; empty where each case has a mark in its place with its name beside it. rivals_svg,
    rivals_alt: the operator's kernels side by side, where there are several.
    """

    sol_svg: str
    roofline_svg: str
    sol_alt: str
    roofline_alt: str
    not_placed: tuple[str, ...]
    rule: str
    rivals_svg: str = ""
    rivals_alt: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all charts of one report share."""

    run: Run
    roof: Roof | None
    look: dict[Series, Look]
    most_marks: int


def operator_charts(judged: Sequence[Judged], run: Run) -> dict[str, OperatorCharts]:
    """Return the figures of each operator, in the order in which the operators first appear.

    judged: the result of scoring `run`; a mark links to `#r<its index there>`.
    """
    rows: dict[str, list[int]] = {}
    for index, item in enumerate(judged):
        case = item.outcome.case if isinstance(item, Scored) else item.case
        rows.setdefault(case.operator, []).append(index)
    roof = (
        spec_roof(run.gpu)
        if run.gpu
        else measured_roof(run.ceilings, settle=run.settle)
        if run.ceilings
        else None
    )
    drawn = _drawn(judged, rows)
    most = min(120, max(16, _MARKS_IN_ALL // (2 * max(len(drawn), 1))))
    setting = Setting(run, roof, looks(marks.all_series(judged)), most)
    with look():
        return {
            operator: _operator(number, operator, {row: judged[row] for row in members}, setting)
            if operator in drawn
            else _undrawn(operator, [judged[row] for row in members], len(drawn))
            for number, (operator, members) in enumerate(rows.items())
        }


def _drawn(judged: Sequence[Judged], rows: Mapping[str, Sequence[int]]) -> set[str]:
    """Return the operators that get charts: all, or of very many those that lose the most time."""
    most = OPERATORS_MOST if len(judged) <= MANY_CASES else OF_MANY_CASES
    if len(rows) <= most:
        return set(rows)
    lost_s = dict.fromkeys(rows, -1.0)
    for item in valid(judged):
        operator = item.outcome.case.operator
        lost_s[operator] = max(0.0, lost_s[operator]) + item.median_s - item.bound.sol_s
    return set(sorted(rows, key=lambda operator: -lost_s[operator])[:most])


def _undrawn(operator: str, items: Sequence[Judged], drawn_count: int) -> OperatorCharts:
    alt = sol_alt(operator, [item for item in items if marks.placed(item)])
    rule = f"No chart: there are charts of the {drawn_count} operators that lose the most time."
    return OperatorCharts("", "", alt, alt, (), rule)


def _operator(
    number: int, operator: str, items: dict[int, Judged], setting: Setting
) -> OperatorCharts:
    scored = {row: item for row, item in items.items() if marks.placed(item)}
    hot = sum(isinstance(item, Scored) and item.hot for item in items.values())
    left_out = (
        (f"{counted(hot, 'hot case')} in no chart: DRAM is no bound for hot data",) if hot else ()
    )
    if not scored:
        nothing = f"{clean(operator)}: nothing was measured, so there is nothing to draw."
        return OperatorCharts("", "", nothing, nothing, left_out, "")
    names = dict(
        zip(scored, marks.short_names([item.outcome.case for item in scored.values()]), strict=True)
    )
    sol_svg, sol_rule = _sol_chart(number, operator, scored, names, setting)
    rivals_svg, rivals_alt = rivals_chart(number, operator, items, setting.look)
    drawn = roof_map(
        number, operator, scored, run=setting.run, look=setting.look, most_marks=setting.most_marks
    )
    return OperatorCharts(
        sol_svg=sol_svg,
        roofline_svg=drawn.svg,
        sol_alt=sol_alt(operator, list(scored.values())),
        roofline_alt=drawn.alt,
        not_placed=(*drawn.not_placed, *left_out),
        rule=" ".join(
            f"{name}: {rule}."
            for name, rule in (("SOL chart", sol_rule), ("Roofline", drawn.rule))
            if rule
        ),
        rivals_svg=rivals_svg,
        rivals_alt=rivals_alt,
    )


def sol_alt(operator: str, scored: Sequence[Scored]) -> str:
    """Say in words what the chart of one operator shows."""
    good = sorted(valid(scored), key=lambda item: item.raw_fraction)
    bad = len(scored) - len(good)
    tail = f" {counted(bad, 'case is', 'cases are')} INVALID." if bad else ""
    if not good:
        return f"{clean(operator)}: no valid case.{tail}"
    middle = units.percent(median([item.raw_fraction for item in good]))
    text = f"{clean(operator)}, {counted(len(good), 'case')}: median {middle} of SOL"
    if len(good) > 1:
        low, high = good[0], good[-1]
        text += (
            f", from {units.percent(low.raw_fraction)} ({clean(low.outcome.case, 80)})"
            f" to {units.percent(high.raw_fraction)} ({clean(high.outcome.case, 80)})"
        )
    return f"{text}.{tail}"


def _sol_chart(
    number: int, operator: str, scored: dict[int, Scored], names: dict[int, str], setting: Setting
) -> tuple[str, str]:
    """Draw SOL against bytes; return the SVG and the rule that chose its marks."""
    points = [_point(row, item, names[row]) for row, item in scored.items()]
    traffic = [point.at[0] for point in points]
    top = max(112.0, max(max(point.span[1], point.at[1]) for point in points) * 1.06)
    floor = floor_curve(list(scored.values()), setting.roof, log_limits(traffic, decades=1.5), top)
    stream = stream_curve(
        list(scored.values()), setting.roof, setting.run, log_limits(traffic, decades=1.5)
    )
    context = context_entries(setting.run, floor, log_limits(traffic, decades=1.5), stream)
    # the legend's height depends on the entries, the groups on the axes: groups come last
    title = f"{clean(operator)}: SOL against bytes moved"
    entries = [*series_entries(marks.single(points), setting.look), *context]
    figure, (axes,) = framed(title, entries, [_PANEL_PX])
    log_axis(axes, "x", log_limits(traffic, decades=1.5), units.traffic)
    kinked = sol_axis(axes, "y", top)
    axes.set_xlabel("bytes the case must move at least")
    axes.set_ylabel("SOL, % of the " + ("spec roof" if setting.run.gpu else "measured roof"))
    draw_context(axes, setting.run, floor, top, stream)
    clusters, rule = _marks_of(axes, points, setting.most_marks)
    bent = "the axis is logarithmic above 120 %" if kinked else ""
    places = draw_marks(axes, clusters, setting.look, gid="sol")
    label_marks(axes, clusters, places, taken=lines_taken(axes, floor, stream))
    tips = {f"#r{cluster.worst.row}": cluster.tip for cluster in clusters}
    text = svg.sanitise(
        svg_text(figure),
        prefix=f"s{number}-",
        title=title,
        description=f"{sol_alt(operator, list(scored.values()))} {svg.SEE_TABLE}",
        tips=tips,
    )
    return text, "; ".join(filter(None, (rule, moved_rule(axes, clusters, places), bent)))


def _point(row: int, item: Scored, name: str) -> Point:
    return Point(
        row=row,
        series=Series(item.outcome.case.kernel, item.outcome.case.dtype),
        kind=marks.kind_of(item),
        name=name,
        scored=item,
        at=(max(1, item.outcome.work.traffic_bytes), 100 * item.raw_fraction),
        span=marks.interval(item, 100 * item.bound.sol_s),
    )


def _marks_of(axes: "Axes", points: Sequence[Point], most: int) -> tuple[list[Cluster], str]:
    places = point_places(axes, points)
    touching = marks.overlap_within(points, places) > marks.OVERLAP_FRACTION
    clusters = marks.cluster(points, places, most=most) if touching else marks.single(points)
    if named_count(clusters, pixels(axes, [cluster.at for cluster in clusters])) <= marks.NAMED:
        return clusters, shared_rule(points, clusters)
    if len(points) <= marks.SINGLE and not touching:
        return clusters, NUMBERED
    clusters = marks.cluster(points, places, most=most)
    return clusters, shared_rule(points, clusters)
