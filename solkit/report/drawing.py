"""Marks, their labels and the legend, as every chart draws them."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from solkit.report.marks import (
    NAMED,
    OVERLAP_FRACTION,
    SINGLE,
    Cluster,
    Kind,
    Place,
    Point,
    Series,
    overlap_fraction,
    place_labels,
)
from solkit.report.plotting import (
    BAD,
    COLOURS,
    INK,
    INVALID_MARKER,
    MARK_PX,
    MARKERS,
    MUTED,
    PAPER,
    axes_at,
    canvas,
    legend_text,
    text_px,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_PX = 640.0
LEFT_PX, RIGHT_PX, TITLE_PX, BOTTOM_PX = 66.0, 16.0, 28.0, 46.0
_ROW_PX = 16.5
_LABEL_SIZE = 9.0
_LEGEND_MOST = 12  # series in a legend; the table names all
_DODGE_PX = 5.0


class Look(NamedTuple):
    """How a series looks everywhere in a report."""

    colour: str
    edge: str
    marker: str


Entry = tuple["Artist", str]


def looks(series: Sequence[Series]) -> dict[Series, Look]:
    """Give each series its colour and marker, by its place among all series of the run."""
    return {
        each: Look(*COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)])
        for index, each in enumerate(series)
    }


def dodged(clusters: Sequence[Cluster], places: Sequence[Place]) -> list[Place]:
    """Move series aside by a few pixels where marks of different ones hide each other."""
    series = sorted({cluster.points[0].series for cluster in clusters})
    if len(series) < 2 or overlap_fraction(places) <= OVERLAP_FRACTION:  # noqa: PLR2004  # one alone hides nothing
        return list(places)
    step = min(_DODGE_PX, 3 * _DODGE_PX / len(series))
    shift = {each: (index - (len(series) - 1) / 2) * step for index, each in enumerate(series)}
    return [
        (x if cluster.points[0].kind == "invalid" else x + shift[cluster.points[0].series], y)
        for cluster, (x, y) in zip(clusters, places, strict=True)
    ]


def draw_marks(
    axes: "Axes",
    clusters: Sequence[Cluster],
    look: Mapping[Series, Look],
    *,
    gid: str,
    dodge: bool = True,
) -> list[Place]:
    """Draw clusters into axes whose limits are set; return where they are, in pixels.

    A bar shows an interval (one case) or the lowest to the highest (several) where it is wider than
    its mark. Marks link to their row, `#r<row>`; of several cases, to the lowest.
    """
    places = pixels(axes, [cluster.at for cluster in clusters])
    if dodge:
        places = dodged(clusters, places)
    back = axes.transData.inverted()
    linked = len(clusters) <= SINGLE or all(len(cluster.points) > 1 for cluster in clusters)
    groups: dict[tuple[Series, Kind], list[int]] = {}
    for index, cluster in enumerate(clusters):
        groups.setdefault((cluster.points[0].series, cluster.points[0].kind), []).append(index)
    for number, ((series, kind), members) in enumerate(groups.items()):
        look_of = look[series]
        data = back.transform([places[index] for index in members])
        _draw_bars(
            axes, [clusters[index] for index in members], [float(x) for x, _ in data], look_of, kind
        )
        marks = axes.scatter(
            data[:, 0],
            data[:, 1],
            s=[_diameter(len(clusters[index].points)) ** 2 for index in members],
            zorder=6 if kind == "invalid" else 5,
            clip_on=False,
            **_paint(look_of, kind),
        )
        marks.set_gid(f"{gid}-{number}")
        marks.set_urls(
            [
                f"#r{clusters[index].worst.row}"
                if linked or len(clusters[index].points) > 1 or kind == "invalid"
                else None
                for index in members
            ]
        )
    return places


def pixels(axes: "Axes", places: Sequence[Place]) -> list[Place]:
    """Return places in the axes' units as pixels of the figure, counted from its lower left."""
    if not places:
        return []
    return [(float(x), float(y)) for x, y in axes.transData.transform(places)]


def _diameter(count: int) -> float:
    return MARK_PX if count == 1 else min(2 * MARK_PX, MARK_PX + 1.5 * math.log2(count))


def _paint(look: Look, kind: Kind) -> dict[str, object]:
    if kind == "invalid":
        return {"marker": INVALID_MARKER, "facecolors": BAD, "edgecolors": INK, "linewidths": 0.8}
    if kind == "compute":
        return {
            "marker": look.marker,
            "facecolors": PAPER,
            "edgecolors": look.edge,
            "linewidths": 1.8,
        }
    return {
        "marker": look.marker,
        "facecolors": look.colour,
        "edgecolors": look.edge,
        "linewidths": 0.8,
    }


def _draw_bars(
    axes: "Axes", clusters: Sequence[Cluster], xs: Sequence[float], look: Look, kind: Kind
) -> None:
    lows = pixels(axes, [(x, cluster.span[0]) for x, cluster in zip(xs, clusters, strict=True)])
    highs = pixels(axes, [(x, cluster.span[1]) for x, cluster in zip(xs, clusters, strict=True)])
    wide = [high[1] - low[1] > MARK_PX for low, high in zip(lows, highs, strict=True)]
    bars = [(x, cluster.span) for x, cluster, seen in zip(xs, clusters, wide, strict=True) if seen]
    if bars:
        colour = BAD if kind == "invalid" else look.edge
        axes.vlines(
            [x for x, _ in bars],
            [low for _, (low, _) in bars],
            [high for _, (_, high) in bars],
            colors=colour,
            linewidth=1.4,
            zorder=4,
        )


def label_marks(
    axes: "Axes",
    clusters: Sequence[Cluster],
    places: Sequence[Place],
    *,
    taken: Sequence[tuple[float, float, float, float]] = (),
) -> None:
    """Name the marks: by shape while few, by the number of their row while not too many, groups by size."""
    count = sum(len(cluster.points) for cluster in clusters)
    wanted: list[tuple[Place, str, bool]] = []
    for cluster, place in zip(clusters, places, strict=True):
        text = _label(cluster, named=count <= NAMED, numbered=len(clusters) <= SINGLE)
        twin = any(
            text == other and math.dist(place, spot) < 3 * MARK_PX for spot, other, _ in wanted
        )
        if text and not twin:  # two dtypes of one shape in one place share their label
            wanted.append((place, text, cluster.points[0].kind == "invalid"))
    box = axes.get_window_extent()
    frame = (float(box.x0), float(box.y0), float(box.x1), float(box.y1))
    sizes = [(text_px(text, _LABEL_SIZE), _LABEL_SIZE * 1.15) for _, text, _ in wanted]
    others = [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    offsets = place_labels([place for place, _, _ in wanted], sizes, frame, [*taken, *others])
    back = axes.transData.inverted()
    for (place, text, bad), (shift_x, shift_y), (width, height) in zip(
        wanted, offsets, sizes, strict=True
    ):
        near_x = min(max(0.0, shift_x), shift_x + width)
        near_y = shift_y + height / 2
        far = (
            math.hypot(
                near_x if shift_x > 0 else shift_x + width if shift_x + width < 0 else 0.0, near_y
            )
            > 22
        )  # noqa: PLR2004
        axes.annotate(
            text,
            tuple(back.transform(place)),
            xytext=(shift_x, shift_y),
            textcoords="offset points",
            fontsize=_LABEL_SIZE,
            color=BAD if bad else INK,
            fontweight="bold" if bad else "normal",
            zorder=7,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": MUTED,
                "linewidth": 0.6,
                "shrinkA": 0,
                "shrinkB": 4,
            }
            if far
            else None,
        )


def _label(cluster: Cluster, *, named: bool, numbered: bool) -> str:
    point, more = cluster.worst, len(cluster.points) - 1
    word = "INVALID " if point.kind == "invalid" else ""
    if named:
        return f"{word}{point.name}" + (f" +{more}" if more else "")
    if more:
        return f"{word}×{more + 1}"
    return f"{word}{point.row}" if numbered or word else ""


def series_entries(clusters: Sequence[Cluster], look: Mapping[Series, Look]) -> list[Entry]:
    """Return the legend's entries for what was drawn: series, fill, INVALID, grouped marks."""
    from matplotlib.lines import Line2D  # noqa: PLC0415  # matplotlib loads when something is drawn

    def dot(marker: str, face: str, edge: str, width: float = 0.8) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, markersize=7.5, markerfacecolor=face, markeredgecolor=edge,
                      markeredgewidth=width)  # fmt: skip

    kinds = {cluster.points[0].kind for cluster in clusters}
    shown = sorted(
        {cluster.points[0].series for cluster in clusters if cluster.points[0].kind != "invalid"}
    )
    entries: list[Entry] = [
        (dot(look[each].marker, look[each].colour, look[each].edge), legend_text(str(each)))
        for each in shown[:_LEGEND_MOST]
    ]
    if len(shown) > _LEGEND_MOST:
        entries.append(
            (dot("", PAPER, PAPER), f"and {len(shown) - _LEGEND_MOST} more: see the table")
        )
    if "compute" in kinds:
        entries.append((dot("o", MUTED, INK), "filled: memory-bound"))
        entries.append((dot("o", PAPER, INK, 1.8), "open: compute-bound"))
    if "invalid" in kinds:
        entries.append((dot(INVALID_MARKER, BAD, INK), "INVALID: faster than light"))
    return entries


def has_groups(clusters: Sequence[Cluster]) -> bool:
    """Say whether any mark stands for several cases."""
    return any(len(cluster.points) > 1 for cluster in clusters)


def framed(
    title: str,
    entries: Sequence[Entry],
    panel_px: Sequence[float],
    *,
    left: float = LEFT_PX,
    right: float = RIGHT_PX,
    gap: float = 0.0,
) -> tuple["Figure", list["Axes"]]:
    """Return a figure with title and legend over stacked panels of these heights."""
    widest = max((text_px(text) for _, text in entries), default=0.0) + 34
    columns = max(1, int((WIDTH_PX - 24) // widest)) if entries else 1
    rows = math.ceil(len(entries) / columns)
    head = TITLE_PX + rows * _ROW_PX + 8
    height = head + sum(panel_px) + gap * (len(panel_px) - 1) + BOTTOM_PX
    figure = canvas(WIDTH_PX, height)
    figure.text(12 / WIDTH_PX, 1 - 18 / height, title, fontsize=12.5, fontweight="bold")
    if entries:
        figure.legend(
            handles=[handle for handle, _ in entries],
            labels=[text for _, text in entries],
            loc="upper left",
            bbox_to_anchor=(10 / WIDTH_PX, 1 - TITLE_PX / height),
            ncols=columns,
            frameon=False,
            borderaxespad=0,
            borderpad=0,
            handlelength=1.8,
            handletextpad=0.5,
            columnspacing=1.4,
            labelspacing=0.45,
        )
    panels = []
    top = head
    for panel in panel_px:
        panels.append(axes_at(figure, left=left, top=top, right=right, bottom=height - top - panel))
        top += panel + gap
    return figure, panels


def point_places(axes: "Axes", points: Sequence[Point]) -> list[Place]:
    """Return where points fall, in pixels."""
    return pixels(axes, [point.at for point in points])
