"""One operator on the roofline: achieved FLOP/s over intensity, a panel for each kind of pipe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from solkit import units
from solkit.judge.score import Scored, valid
from solkit.model import Run
from solkit.report import marks, svg
from solkit.report.drawing import (
    NUMBERED,
    Look,
    draw_marks,
    label_marks,
    moved_rule,
    named_count,
    pixels,
    point_places,
    shared_rule,
)
from solkit.report.legend import Entry, framed, series_entries
from solkit.report.marks import Cluster, Point, Series
from solkit.report.panels import Panel, charted_flop, intensity_decades, panels_of
from solkit.report.plain import counted, listed
from solkit.report.plotting import INK, MUTED, clean, log_axis, log_limits, svg_text
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
    from matplotlib.figure import Figure

PANELS_MOST = 4
NARROW_DECADES, WIDE_DECADES = 0.3, 1.0
NARROW_NAMED = 6  # names in one column; more would lie on each other and on the roofs
_PANEL_PX, _GAP_PX = 280.0, 62.0


@dataclass(frozen=True, slots=True)
class RoofMap:
    """The figure (empty where no case has a place on it), its words, and who is not on it."""

    svg: str
    alt: str
    not_placed: tuple[str, ...]
    rule: str


class Choice(NamedTuple):
    """The marks of a panel, what a reader must know of them, and whether each is a whole series."""

    clusters: list[Cluster]
    rule: str
    whole_series: bool = False


def choose(axes: "Axes", points: Sequence[Point], most: int) -> Choice:
    """Choose the marks of a panel whose limits are set: by spread of intensity and overlap."""
    places = point_places(axes, points)
    touching = marks.overlap_within(points, places) > marks.OVERLAP_FRACTION
    decades = intensity_decades(points)
    clusters = marks.cluster(points, places, most=most) if touching else marks.single(points)
    names = named_count(clusters, pixels(axes, [cluster.at for cluster in clusters]))
    narrow = decades < NARROW_DECADES
    if names <= (NARROW_NAMED if narrow else marks.NAMED):
        return Choice(clusters, shared_rule(points, clusters))
    if narrow:
        rule = (
            "one mark a series, its bar from lowest to highest, "
            f"as intensity spans {decades:.2f} decades only"
        )
        return Choice(marks.by_series(points), rule, whole_series=True)
    if decades >= WIDE_DECADES and len(points) <= marks.SINGLE and not touching:
        return Choice(clusters, NUMBERED)
    clusters = marks.cluster(points, places, most=most)
    return Choice(clusters, shared_rule(points, clusters))


@dataclass(frozen=True, slots=True)
class Manner:
    """How a panel is drawn: looks of series; links and row numbers where there is a table."""

    look: Mapping[Series, Look]
    most_marks: int
    titled: bool
    table: bool = True


def draw_panel(
    axes: "Axes", panel: Panel, lines: Sequence[RoofLine], manner: Manner, *, gid: str
) -> tuple[Choice, dict[str, str]]:
    """Draw roofs and points into empty axes; return the choice of marks and each link's words."""
    set_limits(axes, panel.points, lines)
    dress(axes, panel, titled=manner.titled)
    taken = draw_roofs(axes, lines)
    choice = choose(axes, panel.points, manner.most_marks)
    if len(choice.clusters) <= marks.NAMED and not choice.whole_series:
        _drop_lines(axes, choice.clusters, lines)
    places = draw_marks(axes, choice.clusters, manner.look, gid=gid, linked=manner.table)
    label_marks(
        axes,
        choice.clusters,
        places,
        taken=taken,
        whole_series=choice.whole_series,
        numbered=manner.table,
    )
    rule = "; ".join(filter(None, (choice.rule, moved_rule(axes, choice.clusters, places))))
    words = {f"#r{cluster.worst.row}": cluster.tip for cluster in choice.clusters}
    return choice._replace(rule=rule), words


def roof_map(
    number: int,
    operator: str,
    scored: Mapping[int, Scored],
    *,
    run: Run,
    look: Mapping[Series, Look],
    most_marks: int,
) -> RoofMap:
    """Draw the roofline of one operator. Call inside `plotting.look()`."""
    panels = panels_of(scored, run.gpu)
    shown, hidden = panels[:PANELS_MOST], panels[PANELS_MOST:]
    if not shown:
        reason = f"none, as {clean(operator)} counts no FLOP"
        return RoofMap("", f"{reason}.", (), reason)
    roofs = device_roofs(run.gpu, run.ceilings, held_hz(list(scored.values())), run.settle)
    lines = [lines_for(panel.pipes, roofs) for panel in shown]
    title = f"{clean(operator)}: roofline"
    figure, all_axes = framed_panels(title, shown, lines, look)
    manner = Manner(look, max(12, most_marks // len(shown)), titled=len(shown) > 1)
    rules: list[str] = []
    tips: dict[str, str] = {}
    for index, (axes, panel, panel_lines) in enumerate(zip(all_axes, shown, lines, strict=True)):
        choice, words = draw_panel(axes, panel, panel_lines, manner, gid=f"map{index}")
        tips |= words
        if choice.rule:
            rules.append(f"{panel.title}: {choice.rule}" if manner.titled else choice.rule)
    alt = alt_text(clean(operator), shown, lines, list(scored.values()))
    text = svg.sanitise(
        svg_text(figure),
        prefix=f"m{number}-",
        title=title,
        description=f"{alt} {svg.SEE_TABLE}",
        tips=tips,
    )
    return RoofMap(text, alt, _not_placed(scored, hidden), "; ".join(rules))


def framed_panels(
    title: str,
    panels: Sequence[Panel],
    lines: Sequence[Sequence[RoofLine]],
    look: Mapping[Series, Look],
) -> tuple["Figure", list["Axes"]]:
    """Return a figure with room for these panels, the labels of their roofs, and the legend."""
    everything = [point for panel in panels for point in panel.points]
    entries = [*series_entries(marks.single(everything), look), *_roof_entries(lines)]
    right = margin_px([line for panel_lines in lines for line in panel_lines])
    heights = [_PANEL_PX] * len(panels)
    return framed(
        title, entries, heights, right=right, gap=_GAP_PX, extra=16 if len(panels) > 1 else 0
    )


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
    axes.set_ylabel("achieved FLOP/s" + (" (estimated work)" if panel.estimated else ""))
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


def _drop_lines(axes: "Axes", clusters: Sequence[Cluster], lines: Sequence[RoofLine]) -> None:
    """Join each of a few marks with the roof it is judged against: what is left to win."""
    if not lines or not clusters:
        return
    axes.vlines(
        [cluster.at[0] for cluster in clusters],
        [cluster.at[1] for cluster in clusters],
        [lines[0].at(cluster.at[0]) for cluster in clusters],
        colors="#b8b8b8",
        linewidth=0.8,
        zorder=1.5,
    )


def _roof_entries(panels: Sequence[Sequence[RoofLine]]) -> list[Entry]:
    from matplotlib.lines import Line2D  # noqa: PLC0415  # matplotlib loads when something is drawn

    words = {"spec": "spec roof", "clock": "roof at the held clock", "measured": "measured roof"}
    kinds = dict.fromkeys(line.kind for lines in panels for line in lines)
    return [
        (Line2D([], [], color=INK, linestyle=LINE_STYLES[kind], linewidth=1.5), words[kind])
        for kind in kinds
    ]


def _not_placed(scored: Mapping[int, Scored], hidden: Sequence[Panel]) -> tuple[str, ...]:
    """Say which cases are on the SOL chart only, and why."""
    uncounted = [item for item in scored.values() if charted_flop(item.outcome.work) is None]
    names = listed([clean(item.outcome.case, 80) for item in uncounted[:3]], 3)
    more = f" and {len(uncounted) - 3:,} more" if len(uncounted) > 3 else ""  # noqa: PLR2004  # three are named
    said = [
        f"{counted(len(uncounted), 'case')} not on the roofline, no FLOP is counted: {names}{more}"
    ]
    full = [
        f"{counted(len(panel.points), 'case')} not on the roofline, "
        f"which holds {PANELS_MOST} panels: {panel.title}"
        for panel in hidden
    ]
    return (*(said if uncounted else ()), *full)


def alt_text(
    what: str,
    panels: Sequence[Panel],
    lines: Sequence[Sequence[RoofLine]],
    scored: Sequence[Scored],
) -> str:
    """Say in words what a roofline shows."""
    parts: list[str] = []
    for panel, panel_lines in zip(panels, lines, strict=True):
        xs = sorted(point.at[0] for point in panel.points)
        best = max(point.at[1] for point in panel.points)
        roofs = "; ".join(roof_text(line) for line in panel_lines) or "unknown"
        parts.append(
            f"{panel.title}: {counted(len(xs), 'case')} at {units.digits(xs[0])} to "
            f"{units.intensity(xs[-1])}, "
            f"up to {units.flop_rate(best)}; roofs {roofs}"
        )
    bad = len(scored) - len(valid(scored))
    tail = f" {counted(bad, 'case is', 'cases are')} INVALID." if bad else ""
    return f"{what} on the roofline. {'. '.join(parts)}.{tail}"


def roof_text(line: RoofLine) -> str:
    """Write a roof in words: 'spec 4.80 TB/s and 989 TFLOP/s'."""
    peak = f" and {units.flop_rate(line.flop_per_s)}" if line.flop_per_s else ""
    return f"{line.name} {units.bandwidth(line.dram_bytes_per_s)}{peak}"
