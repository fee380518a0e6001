"""The frame of a figure: its title, its legend, and room for its panels."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from solkit.report.drawing import Look
from solkit.report.marks import SINGLE, Cluster, Series
from solkit.report.plotting import (
    BAD,
    COMPUTE_FACE,
    INK,
    INVALID_MARKER,
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
_SERIES_MOST = 12  # series in a legend; the table names all

Entry = tuple["Artist", str]


def series_entries(clusters: Sequence[Cluster], look: Mapping[Series, Look]) -> list[Entry]:
    """Return the legend's entries for what was drawn: series, fill, INVALID, grouped marks."""
    from matplotlib.lines import Line2D  # noqa: PLC0415  # matplotlib loads when something is drawn

    def dot(marker: str, face: str, edge: str, width: float = 0.8) -> Line2D:
        return Line2D(
            [],
            [],
            linestyle="",
            marker=marker,
            markersize=7.5,
            markerfacecolor=face,
            markeredgecolor=edge,
            markeredgewidth=width,
        )

    kinds = {cluster.points[0].kind for cluster in clusters}
    shown = sorted(
        {cluster.points[0].series for cluster in clusters if cluster.points[0].kind != "invalid"}
    )
    entries: list[Entry] = [
        (dot(look[each].marker, look[each].colour, look[each].edge), legend_text(str(each)))
        for each in shown[:_SERIES_MOST]
    ]
    if len(shown) > _SERIES_MOST:
        entries.append(
            (dot("", PAPER, PAPER), f"and {len(shown) - _SERIES_MOST} more: see the table")
        )
    if "compute" in kinds:
        entries.append((dot("o", MUTED, INK), "filled: memory-bound"))
        entries.append((dot("o", COMPUTE_FACE, INK, 1.8), "open, yellow: compute-bound"))
    if len(clusters) > SINGLE:
        entries.append((dot("o", MUTED, INK), "large: several cases"))
    if "invalid" in kinds:
        entries.append((dot(INVALID_MARKER, BAD, INK), "INVALID: faster than light"))
    return entries


def framed(
    title: str,
    entries: Sequence[Entry],
    panel_px: Sequence[float],
    *,
    left: float = LEFT_PX,
    right: float = RIGHT_PX,
    gap: float = 0.0,
    extra: float = 0.0,
) -> tuple["Figure", list["Axes"]]:
    """Return a figure with title and legend over stacked panels of these heights.

    left, right: margins; gap: between panels; extra: above the first one, all in pixels.
    """
    widest = max((text_px(text) for _, text in entries), default=0.0) + 34
    columns = max(1, int((WIDTH_PX - 24) // widest)) if entries else 1
    rows = math.ceil(len(entries) / columns)
    head = TITLE_PX + rows * _ROW_PX + 8 + extra
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
