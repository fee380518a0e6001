"""The report's figures: per operator SOL against bytes and the roofline, and one strip plot of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solkit import units
from solkit.bound import Roof, bound, measured_roof, spec_roof
from solkit.judge.regime import LATENCY_FLOORS
from solkit.judge.score import Judged, Scored, valid
from solkit.model import Failed, Run, Work
from solkit.report import marks, svg
from solkit.report.drawing import (
    Entry,
    Look,
    draw_marks,
    framed,
    label_marks,
    looks,
    point_places,
    series_entries,
)
from solkit.report.marks import Cluster, Point, Series
from solkit.report.overview import overview
from solkit.report.plain import counted, listed
from solkit.report.plotting import (
    INK,
    MUTED,
    brief,
    clean,
    log_axis,
    log_limits,
    look,
    sol_axis,
    svg_text,
)
from solkit.report.roofmap import RoofMap, roof_map
from solkit.stats import median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["OperatorCharts", "operator_charts", "overview"]

_MARKS_IN_ALL = 2_400  # over all charts of a report: about 200 bytes each
_PANEL_PX = 270.0


@dataclass(frozen=True, slots=True)
class OperatorCharts:
    """The two figures of one operator, as `<svg>` elements for a page; empty where nothing can be drawn.

    sol_alt, roofline_alt: what the figures say, in a sentence or two. not_placed: what is on no
    figure or only on the first, with the reason. rule: which form of chart was chosen, and why.
    """

    sol_svg: str
    roofline_svg: str
    sol_alt: str
    roofline_alt: str
    not_placed: tuple[str, ...]
    rule: str


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
    roof = spec_roof(run.gpu) if run.gpu else measured_roof(run.ceilings) if run.ceilings else None
    drawn = sum(
        any(isinstance(judged[row], Scored) for row in members) for members in rows.values()
    )
    most = min(120, max(16, _MARKS_IN_ALL // (2 * max(drawn, 1))))
    setting = Setting(run, roof, looks(marks.all_series(judged)), most)
    with look():
        return {
            operator: _operator(number, operator, {row: judged[row] for row in members}, setting)
            for number, (operator, members) in enumerate(rows.items())
        }


def _operator(
    number: int, operator: str, items: dict[int, Judged], setting: Setting
) -> OperatorCharts:
    scored = {row: item for row, item in items.items() if isinstance(item, Scored)}
    absent = _absent(items)
    if not scored:
        nothing = f"{clean(operator)}: nothing was measured, so there is nothing to draw."
        return OperatorCharts("", "", nothing, nothing, absent, "nothing was measured")
    names = dict(
        zip(scored, marks.short_names([item.outcome.case for item in scored.values()]), strict=True)
    )
    sol_svg, sol_rule = _sol_chart(number, operator, scored, names, setting)
    drawn: RoofMap = roof_map(
        number,
        operator,
        scored,
        names,
        run=setting.run,
        look=setting.look,
        most_marks=setting.most_marks,
    )
    return OperatorCharts(
        sol_svg=sol_svg,
        roofline_svg=drawn.svg,
        sol_alt=sol_alt(operator, list(scored.values())),
        roofline_alt=drawn.alt,
        not_placed=(*drawn.not_placed, *absent),
        rule=f"SOL chart: {sol_rule}. Roofline: {drawn.rule}.",
    )


def _absent(items: dict[int, Judged]) -> tuple[str, ...]:
    """Say which cases have no mark at all: by what became of them, a few named."""
    groups: dict[str, list[str]] = {}
    for item in items.values():
        if not isinstance(item, Scored):
            became = (
                f"failed at {item.stage}"
                if isinstance(item, Failed)
                else f"skipped ({clean(item.reason, 120)})"
            )
            groups.setdefault(became, []).append(clean(item.case, 80))
    return tuple(
        f"{counted(len(names), 'case')} {became}: {listed(names, 3)}"
        for became, names in groups.items()
    )


def sol_alt(operator: str, scored: Sequence[Scored]) -> str:
    """Say in words what the chart of one operator shows."""
    good = sorted(valid(scored), key=lambda item: item.raw_fraction)
    bad = len(scored) - len(good)
    tail = f" {counted(bad, 'case is', 'cases are')} INVALID." if bad else ""
    if not good:
        return f"{clean(operator)}: no valid case.{tail} The table of cases holds the data."
    middle = units.percent(median([item.raw_fraction for item in good]))
    text = f"{clean(operator)}, {counted(len(good), 'case')}: median {middle} of SOL"
    if len(good) > 1:
        low, high = good[0], good[-1]
        text += (
            f", from {units.percent(low.raw_fraction)} ({clean(low.outcome.case, 80)})"
            f" to {units.percent(high.raw_fraction)} ({clean(high.outcome.case, 80)})"
        )
    return f"{text}.{tail} The table of cases holds the data."


def _sol_chart(
    number: int, operator: str, scored: dict[int, Scored], names: dict[int, str], setting: Setting
) -> tuple[str, str]:
    """Draw SOL against bytes; return the SVG and the rule that chose its marks."""
    points = [_point(row, item, names[row]) for row, item in scored.items()]
    traffic = [point.at[0] for point in points]
    top = max(105.0, max(max(point.span[1], point.at[1]) for point in points) * 1.06)
    floor = _floor_curve(list(scored.values()), setting.roof, log_limits(traffic, decades=1.5), top)
    context = _context_entries(setting.run, floor, log_limits(traffic, decades=1.5))
    # the legend's height depends on the entries, the groups on the axes: groups come last
    title = f"{clean(operator)}: SOL against bytes moved"
    entries = [*series_entries(marks.single(points), setting.look), *context]
    figure, (axes,) = framed(title, entries, [_PANEL_PX])
    log_axis(axes, "x", log_limits(traffic, decades=1.5), units.traffic)
    kinked = sol_axis(axes, "y", top)
    axes.set_xlabel("bytes the case must move at least")
    axes.set_ylabel("SOL, % of the " + ("spec roof" if setting.run.gpu else "measured roof"))
    _draw_context(axes, setting.run, floor, top)
    clusters, rule = _marks_of(axes, points, setting.most_marks)
    places = draw_marks(axes, clusters, setting.look, gid="sol")
    label_marks(axes, clusters, places)
    tips = {f"#r{cluster.worst.row}": cluster.tip for cluster in clusters}
    text = svg.sanitise(
        svg_text(figure),
        prefix=f"s{number}-",
        title=title,
        description=sol_alt(operator, list(scored.values())),
        tips=tips,
    )
    return text, rule + ("; the axis is logarithmic above 120 %" if kinked else "")


def _point(row: int, item: Scored, name: str) -> Point:
    return Point(
        row=row,
        series=Series(item.outcome.case.kernel, item.outcome.case.dtype),
        kind=marks.kind_of(item),
        name=name,
        tip=marks.tip_of(item),
        at=(max(1, item.outcome.work.traffic_bytes), 100 * item.raw_fraction),
        span=(100 * item.bound.sol_s / item.high_s, 100 * item.bound.sol_s / item.low_s),
        fraction=item.raw_fraction,
    )


def _marks_of(axes: "Axes", points: Sequence[Point], most: int) -> tuple[list[Cluster], str]:
    places = point_places(axes, points)
    overlap = marks.overlap_fraction(places)
    if len(points) <= marks.NAMED:
        return marks.cluster(points, places, most=most), "every case has a mark with its name"
    if len(points) <= marks.SINGLE and overlap <= marks.OVERLAP_FRACTION:
        return marks.single(points), "every case has a mark with the number of its row"
    clusters = marks.cluster(points, places, most=most)
    return (
        clusters,
        f"{counted(len(points), 'case')} as {counted(len(clusters), 'mark')}: those that share a place are one",
    )


@dataclass(frozen=True, slots=True)
class FloorCurve:
    """Where a case that takes as long as an empty kernel would stand: places (bytes, SOL in %)."""

    floor_s: float
    places: tuple[tuple[float, float], ...]


def _floor_curve(
    scored: Sequence[Scored], roof: Roof | None, limits: tuple[float, float], top: float
) -> FloorCurve | None:
    """Return SOL = memory_s / floor over bytes, for memory-bound work of this operator's read share."""
    floors = [item.outcome.floor_s for item in scored if item.outcome.floor_s > 0]
    if not floors or roof is None:
        return None
    floor_s = median(floors)
    shares = [
        item.outcome.work.read_bytes / item.outcome.work.traffic_bytes
        for item in scored
        if item.outcome.work.traffic_bytes
    ]
    share = median(shares) if shares else 0.5
    places = []
    for step in range(81):
        traffic = limits[0] * (limits[1] / limits[0]) ** (step / 80)
        read = round(traffic * share)
        places.append(
            (
                traffic,
                100 * bound(Work(read, max(0, round(traffic) - read)), roof).memory_s / floor_s,
            )
        )
    seen = min(place[1] for place in places) / LATENCY_FLOORS < top
    return FloorCurve(floor_s, tuple(places)) if seen else None


def _l2_bytes(run: Run) -> int:
    return (run.gpu.l2_bytes if run.gpu else 0) or run.facts.l2_bytes or 0


def _context_entries(
    run: Run, floor: FloorCurve | None, limits: tuple[float, float]
) -> list[Entry]:
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    entries: list[Entry] = []
    if floor is not None:
        text = units.seconds(floor.floor_s)
        entries.append(
            (
                Line2D([], [], color=MUTED, linestyle=(0, (4, 2)), linewidth=1.2),
                f"launch floor, {text}",
            )
        )
        entries.append(
            (
                Patch(facecolor=LAUNCH, edgecolor=LAUNCH_EDGE, hatch="////", linewidth=0),
                "launch-bound: < 3 floors",
            )
        )
    if _l2_bytes(run) > limits[0]:
        cache = "L2" if run.device == "cuda" else "the cache"
        entries.append(
            (Patch(facecolor=CACHE), f"fits {cache}, {brief(units.capacity(_l2_bytes(run)))}")
        )
    return entries


LAUNCH, LAUNCH_EDGE, CACHE = "#fbf1df", "#ecd9b4", "#e6eff7"


def _draw_context(axes: "Axes", run: Run, floor: FloorCurve | None, top: float) -> None:
    """Shade what the kernel can't help: the cache's sizes, and times near the cost of a launch."""
    low, high = axes.get_xlim()
    cache = _l2_bytes(run)
    if cache > low:
        axes.axvspan(low, min(cache, high), facecolor=CACHE, linewidth=0, zorder=0)
        if cache < high:
            axes.axvline(cache, color="#9db8cf", linewidth=0.8, zorder=0)
    if floor is not None:
        xs = [x for x, _ in floor.places]
        ys = [y for _, y in floor.places]
        axes.fill_between(
            xs,
            [min(top, y / LATENCY_FLOORS) for y in ys],
            [min(top, y) for y in ys],
            facecolor=LAUNCH,
            edgecolor=LAUNCH_EDGE,
            hatch="////",
            linewidth=0,
            zorder=0.5,
        )
        below = [(x, y) for x, y in floor.places if y <= top * 1.3]
        axes.plot(
            [x for x, _ in below],
            [y for _, y in below],
            color=MUTED,
            linestyle=(0, (4, 2)),
            linewidth=1.2,
            zorder=2,
        )
    axes.axhline(100, color=INK, linewidth=1.3, zorder=2)
