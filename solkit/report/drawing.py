"""Marks, their labels and the legend, as every chart draws them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from solkit.report.marks import (
    NAMED,
    OVERLAP_FRACTION,
    SINGLE,
    TIMES,
    Box,
    Cluster,
    Kind,
    Place,
    Point,
    Series,
    overlap_fraction,
    place_labels,
)
from solkit.report.plain import counted
from solkit.report.plotting import (
    BAD,
    COLOURS,
    COMPUTE_FACE,
    INK,
    INVALID_MARKER,
    MARK_PX,
    MARKERS,
    MUTED,
    clean,
    text_px,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABEL_SIZE = 9.0
_SERIES_NAMED = 6  # marks of whole series that are named; of more, the legend tells
_DODGE_PX = 5.0
_MOVED_PX = 0.5  # a shift that can be seen
NUMBERED = "each mark has the number of its row (#) and leads to it"
_LEADER_PX = 12.0  # labels farther than this from their mark get a line to it


class Look(NamedTuple):
    """How a series looks everywhere in a report."""

    colour: str
    edge: str
    marker: str


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
    linked: bool = True,
) -> list[Place]:
    """Draw clusters into axes whose limits are set; return where they are, in pixels.

    A bar shows an interval (one case) or the lowest to the highest (several) where it is wider than
    its mark. Marks link to their row, `#r<row>`; of several cases, to the lowest.
    """
    places = pixels(axes, [cluster.at for cluster in clusters])
    if dodge:
        places = dodged(clusters, places)
    back = axes.transData.inverted()
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
        if linked:
            marks.set_urls(
                [_link(clusters[index], crowded=len(clusters) > SINGLE) for index in members]
            )
    return places


def pixels(axes: "Axes", places: Sequence[Place]) -> list[Place]:
    """Return places in the axes' units as pixels of the figure, counted from its lower left."""
    if not places:
        return []
    return [(float(x), float(y)) for x, y in axes.transData.transform(places)]


def _link(cluster: Cluster, *, crowded: bool) -> str | None:
    """Return the row a mark leads to. A link is a Tab stop, so a crowd of singles has none."""
    if crowded and len(cluster.points) == 1 and cluster.points[0].kind != "invalid":
        return None
    return f"#r{cluster.worst.row}"


def shared_rule(points: Sequence[Point], clusters: Sequence[Cluster]) -> str:
    """Say that marks stand for several cases, where some do."""
    if len(clusters) == len(points):
        return ""
    return (
        f"{counted(len(points), 'case')} as {counted(len(clusters), 'mark')}, "
        "cases that share a place share one"
    )


def moved_rule(axes: "Axes", clusters: Sequence[Cluster], places: Sequence[Place]) -> str:
    """Say that marks were drawn beside their place, where `draw_marks` did so."""
    true = pixels(axes, [cluster.at for cluster in clusters])
    moved = any(math.dist(one, other) > _MOVED_PX for one, other in zip(true, places, strict=True))
    return f"marks stand up to {_DODGE_PX:.0f} px aside so that none hides another" if moved else ""


def _diameter(count: int) -> float:
    return MARK_PX if count == 1 else min(2 * MARK_PX, MARK_PX + 1.5 * math.log2(count))


def _paint(look: Look, kind: Kind) -> dict[str, Any]:
    if kind == "invalid":
        return {"marker": INVALID_MARKER, "facecolors": BAD, "edgecolors": INK, "linewidths": 0.8}
    if kind == "compute":
        return {
            "marker": look.marker,
            "facecolors": COMPUTE_FACE,
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


def named_count(clusters: Sequence[Cluster], places: Sequence[Place]) -> int:
    """Return how many labels these marks need when each is named; neighbours share a name."""
    return len(_wanted(clusters, places, _named))


def label_marks(
    axes: "Axes",
    clusters: Sequence[Cluster],
    places: Sequence[Place],
    *,
    taken: Sequence[Box] = (),
    whole_series: bool = False,
    numbered: bool = True,
) -> None:
    """Name the marks: by shape while few, by row number while not too many, groups by size.

    taken: boxes in pixels that labels keep off. whole_series: each mark stands for a whole series.
    numbered: there is a table whose rows have numbers.
    """
    if whole_series:
        few = len(clusters) <= _SERIES_NAMED
        wanted = _wanted(clusters, places, _series_label if few else _nothing)
    elif named_count(clusters, places) <= NAMED:
        wanted = _wanted(clusters, places, _named)
    else:
        crowded = len(clusters) > SINGLE
        wanted = _wanted(
            clusters, places, _nothing if crowded else _numbered if numbered else _counted
        )
    box = axes.get_window_extent()
    frame = (float(box.x0), float(box.y0), float(box.x1), float(box.y1))
    sizes = [
        (text_px(text, _LABEL_SIZE) * (1.13 if bad else 1), _LABEL_SIZE * 1.15)
        for _, text, bad in wanted
    ]
    others = [(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    offsets = place_labels([place for place, _, _ in wanted], sizes, frame, [*taken, *others])
    back = axes.transData.inverted()
    for (place, text, bad), shift, size in zip(wanted, offsets, sizes, strict=True):
        leader = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4}
        axes.annotate(
            text,
            tuple(back.transform(place)),
            xytext=shift,
            textcoords="offset points",
            fontsize=_LABEL_SIZE,
            color=BAD if bad else INK,
            fontweight="bold" if bad else "normal",
            zorder=7,
            annotation_clip=False,
            arrowprops=leader if _gap(shift, size) > _LEADER_PX else None,
        )


def _gap(shift: Place, size: Place) -> float:
    """Return how far a label's box lies from its mark."""
    apart = [max(low, -(low + extent), 0.0) for low, extent in zip(shift, size, strict=True)]
    return math.hypot(*apart)


def _wanted(
    clusters: Sequence[Cluster], places: Sequence[Place], write: Callable[[Cluster], str]
) -> list[tuple[Place, str, bool]]:
    """Return each label's place, text and whether it is bad news; neighbours share a text."""
    wanted: list[tuple[Place, str, bool]] = []
    said: dict[str, list[Place]] = {}
    for cluster, place in zip(clusters, places, strict=True):
        text = write(cluster)
        if cluster.points[0].kind == "invalid":
            text = f"INVALID {text}".strip()
        near = any(math.dist(place, spot) < 3 * MARK_PX for spot in said.get(text, ()))
        if text and not near:  # two dtypes of one shape in one place share their label
            wanted.append((place, text, cluster.points[0].kind == "invalid"))
            said.setdefault(text, []).append(place)
    return wanted


def _named(cluster: Cluster) -> str:
    return cluster.name


def _series_label(cluster: Cluster) -> str:
    if len(cluster.points) == 1:
        return cluster.name
    return clean(f"{cluster.points[0].series} {TIMES}{len(cluster.points)}")


def _numbered(cluster: Cluster) -> str:
    return _counted(cluster) or str(cluster.worst.row)


def _counted(cluster: Cluster) -> str:
    return f"{TIMES}{len(cluster.points)}" if len(cluster.points) > 1 else ""


def _nothing(cluster: Cluster) -> str:
    """Leave a crowd without labels, but for what is INVALID: its sizes and its links tell more."""
    return _counted(cluster) if cluster.points[0].kind == "invalid" else ""


def point_places(axes: "Axes", points: Sequence[Point]) -> list[Place]:
    """Return where points fall, in pixels."""
    return pixels(axes, [point.at for point in points])
