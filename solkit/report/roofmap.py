"""One operator on the roofline: achieved FLOP/s over intensity, a panel for each kind of pipe."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solkit import units
from solkit.judge.score import Scored, valid
from solkit.model import Run, Work
from solkit.report import marks, svg
from solkit.report.drawing import (
    Entry,
    Look,
    draw_marks,
    framed,
    label_marks,
    point_places,
    series_entries,
)
from solkit.report.marks import Cluster, Point, Series
from solkit.report.plain import counted, listed
from solkit.report.plotting import MUTED, clean, log_axis, log_limits, svg_text
from solkit.report.roofs import (
    LINE_STYLES,
    RoofLine,
    device_roofs,
    draw_roofs,
    held_hz,
    lines_for,
    margin_px,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS_MOST = 4
NARROW_DECADES, WIDE_DECADES = 0.3, 1.0
_PANEL_PX, _GAP_PX = 280.0, 62.0
ESTIMATED = "fp32 (estimated)"


@dataclass(frozen=True, slots=True)
class RoofMap:
    """The figure (empty where no case has a place on it), its words, and who is not on it."""

    svg: str
    alt: str
    not_placed: tuple[str, ...]
    rule: str


@dataclass(frozen=True, slots=True)
class Panel:
    """Cases under one set of roofs. `pipes` share their peak; `estimated`: no exact count exists."""

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
    """Return the pipe a case is drawn under and its FLOP: exact where counted, else fp32 by estimate."""
    if sum(work.flop.values()):
        return max(work.flop, key=lambda pipe: work.flop[pipe]), sum(work.flop.values())
    estimate = work.estimated_flop.get("fp32", 0)
    return (ESTIMATED, estimate) if estimate and work.traffic_bytes else None


def panels_of(scored: Mapping[int, Scored], names: Mapping[int, str], run: Run) -> list[Panel]:
    """Sort cases into panels, one for pipes of equal peak; the most cases first."""
    grouped: dict[object, tuple[list[str], list[Point]]] = {}
    for row, item in scored.items():
        charted = charted_flop(item.outcome.work)
        if charted is None or not item.outcome.work.traffic_bytes:
            continue
        pipe, flop = charted
        peak = run.gpu.pipes[pipe].flop_per_s if run.gpu and pipe in run.gpu.pipes else None
        pipes, points = grouped.setdefault(peak if peak and pipe != ESTIMATED else pipe, ([], []))
        if pipe not in pipes:
            pipes.append(pipe)
        points.append(_point(row, item, names[row], flop))
    ordered = sorted(grouped.values(), key=lambda group: -len(group[1]))
    return [
        Panel(
            tuple("fp32" if pipe == ESTIMATED else pipe for pipe in sorted(pipes)),
            ESTIMATED in pipes,
            tuple(points),
        )
        for pipes, points in ordered
    ]


def _point(row: int, item: Scored, name: str, flop: int) -> Point:
    case = item.outcome.case
    return Point(
        row=row,
        series=Series(case.kernel, case.dtype),
        kind=marks.kind_of(item),
        name=name,
        tip=marks.tip_of(item),
        at=(flop / item.outcome.work.traffic_bytes, flop / item.median_s),
        span=(flop / item.high_s, flop / item.low_s),
        fraction=item.raw_fraction,
    )


def intensity_decades(points: Sequence[Point]) -> float:
    """Return the widest spread of intensity within one series, in decades, over valid cases."""
    spreads: dict[Series, list[float]] = {}
    for point in points:
        if point.kind != "invalid":
            spreads.setdefault(point.series, []).append(point.at[0])
    return max((math.log10(max(values) / min(values)) for values in spreads.values()), default=0.0)


def choose(axes: "Axes", points: Sequence[Point], most: int) -> tuple[list[Cluster], str]:
    """Return the marks of a panel whose limits are set, and the rule that chose them."""
    places = point_places(axes, points)
    overlap, decades = marks.overlap_fraction(places), intensity_decades(points)
    spread = f"intensity spans {decades:.2f} decades"
    if len(points) <= marks.NAMED and (
        overlap <= marks.OVERLAP_FRACTION or decades >= NARROW_DECADES
    ):
        return marks.cluster(
            points, places, most=most
        ), f"{spread}, {counted(len(points), 'case')}: each is named"
    if decades < NARROW_DECADES:
        return marks.by_series(
            points
        ), f"{spread} (< 0.3): one mark a series, its bar from lowest to highest"
    if (
        decades >= WIDE_DECADES
        and len(points) <= marks.SINGLE
        and overlap <= marks.OVERLAP_FRACTION
    ):
        return marks.single(
            points
        ), f"{spread} (>= 1): a mark for each case, with the number of its row"
    clusters = marks.cluster(points, places, most=most)
    return (
        clusters,
        f"{spread}, {overlap:.0%} of {counted(len(points), 'mark')} overlap: those that share a place are one",
    )


def roof_map(
    number: int,
    operator: str,
    scored: Mapping[int, Scored],
    names: Mapping[int, str],
    *,
    run: Run,
    look: Mapping[Series, Look],
    most_marks: int,
) -> RoofMap:
    """Draw the roofline of one operator. Call inside `plotting.look()`."""
    panels = panels_of(scored, names, run)
    shown, hidden = panels[:PANELS_MOST], panels[PANELS_MOST:]
    absent = _not_placed(scored, hidden)
    if not shown:
        reason = f"{clean(operator)} counts no FLOP: its chart is SOL against bytes"
        return RoofMap("", f"{reason}.", absent, reason)
    roofs = device_roofs(run.gpu, run.ceilings, held_hz(list(scored.values())))
    lines = [lines_for(panel.pipes, roofs) for panel in shown]
    everything = [point for panel in shown for point in panel.points]
    title = f"{clean(operator)}: roofline"
    entries = [*series_entries(marks.single(everything), look), *_roof_entries(lines)]
    right = margin_px([line for panel_lines in lines for line in panel_lines])
    figure, all_axes = framed(title, entries, [_PANEL_PX] * len(shown), right=right, gap=_GAP_PX)
    rules: list[str] = []
    tips: dict[str, str] = {}
    for index, (axes, panel, panel_lines) in enumerate(zip(all_axes, shown, lines, strict=True)):
        set_limits(axes, panel.points, panel_lines)
        dress(axes, panel, titled=len(shown) > 1)
        draw_roofs(axes, panel_lines)
        _drop_lines(axes, panel, panel_lines)
        clusters, rule = choose(axes, panel.points, max(12, most_marks // len(shown)))
        label_marks(axes, clusters, draw_marks(axes, clusters, look, gid=f"map{index}"))
        tips |= {f"#r{cluster.worst.row}": cluster.tip for cluster in clusters}
        rules.append(f"{panel.title}: {rule}" if len(shown) > 1 else rule)
    alt = _alt(operator, shown, lines, list(scored.values()))
    text = svg.sanitise(
        svg_text(figure), prefix=f"m{number}-", title=title, description=alt, tips=tips
    )
    return RoofMap(text, alt, absent, "; ".join(rules))


def set_limits(axes: "Axes", points: Sequence[Point], lines: Sequence[RoofLine]) -> None:
    """Choose log-log limits that hold the points, the ridges and the roofs' ceilings."""
    ridges = [line.ridge_flop_per_byte for line in lines if line.ridge_flop_per_byte]
    xs = [point.at[0] for point in points] + [
        ridge * factor for ridge in ridges for factor in (0.2, 4.0)
    ]
    x_limits = log_limits(xs or [0.1, 100.0], decades=1.5)
    ceilings = [line.flop_per_s for line in lines if line.flop_per_s] or [
        line.at(x_limits[1]) for line in lines
    ]
    slopes = [line.at(x_limits[0]) for line in lines if line.dram_bytes_per_s]
    lows = [min(point.at[1], point.span[0]) for point in points] or slopes
    ys = [*lows, *(max(point.at[1], point.span[1]) for point in points), *ceilings, *slopes]
    log_axis(axes, "x", x_limits, units.intensity)
    log_axis(
        axes, "y", log_limits(ys or [1e9, 1e12], pad=2.0, decades=1.5), units.flop_rate, most=6
    )


def dress(axes: "Axes", panel: Panel, *, titled: bool) -> None:
    """Name the axes; of estimated work, say so."""
    kind = "estimated fp32 FLOP per byte" if panel.estimated else "FLOP per byte"
    axes.set_xlabel(f"arithmetic intensity, {kind}")
    axes.set_ylabel("FLOP/s" + (" (estimated work)" if panel.estimated else ""))
    axes.set_xticks(
        axes.get_xticks(),
        [text.get_text().removesuffix(" FLOP/B") for text in axes.get_xticklabels()],
    )
    axes.set_yticks(
        axes.get_yticks(),
        [text.get_text().removesuffix("FLOP/s") for text in axes.get_yticklabels()],
    )
    if titled:
        axes.set_title(panel.title, fontsize=10.5, color=MUTED)


def _drop_lines(axes: "Axes", panel: Panel, lines: Sequence[RoofLine]) -> None:
    """Join each of a few points with the roof it is judged against: the gap is what is left to win."""
    if len(panel.points) > marks.NAMED or not lines:
        return
    axes.vlines(
        [point.at[0] for point in panel.points],
        [point.at[1] for point in panel.points],
        [lines[0].at(point.at[0]) for point in panel.points],
        colors="#b8b8b8",
        linewidth=0.8,
        zorder=1.5,
    )


def _roof_entries(panels: Sequence[Sequence[RoofLine]]) -> list[Entry]:
    from matplotlib.lines import Line2D  # noqa: PLC0415  # matplotlib loads when something is drawn

    words = {"spec": "spec roof", "clock": "roof at the held clock", "measured": "measured roof"}
    kinds = dict.fromkeys(line.kind for lines in panels for line in lines)
    return [
        (Line2D([], [], color="#1a1a1a", linestyle=LINE_STYLES[kind], linewidth=1.5), words[kind])
        for kind in kinds
    ]


def _not_placed(scored: Mapping[int, Scored], hidden: Sequence[Panel]) -> tuple[str, ...]:
    nothing = [
        clean(item.outcome.case, 80)
        for item in scored.values()
        if charted_flop(item.outcome.work) is None
    ]
    said = (
        [
            f"{counted(len(nothing), 'case')} not on the roofline, no FLOP is counted: {listed(nothing, 3)}"
        ]
        if nothing
        else []
    )
    said += [
        f"{counted(len(panel.points), 'case')} not on the roofline, it holds {PANELS_MOST} panels: {panel.title}"
        for panel in hidden
    ]
    return tuple(said)


def _alt(
    operator: str,
    panels: Sequence[Panel],
    lines: Sequence[Sequence[RoofLine]],
    scored: Sequence[Scored],
) -> str:
    """Say in words what the figure shows."""
    parts: list[str] = []
    for panel, panel_lines in zip(panels, lines, strict=True):
        roofs = [
            f"{line.name} {units.bandwidth(line.dram_bytes_per_s)}"
            + (f" and {units.flop_rate(line.flop_per_s)}" if line.flop_per_s else "")
            for line in panel_lines
        ]
        best = max(panel.points, key=lambda point: point.at[1])
        parts.append(
            f"{panel.title}: {counted(len(panel.points), 'case')} at {units.digits(min(p.at[0] for p in panel.points))} to "
            f"{units.intensity(max(p.at[0] for p in panel.points))}, up to {units.flop_rate(best.at[1])}; "
            f"roofs {'; '.join(roofs) or 'unknown'}"
        )
    bad = len(scored) - len(valid(scored))
    tail = f" {counted(bad, 'case is', 'cases are')} INVALID." if bad else ""
    return f"{clean(operator)} on the roofline. {'. '.join(parts)}.{tail} The table of cases holds the data."
