"""The whole run at a glance: every case's SOL as a mark, one line for each operator and dtype."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solkit import units
from solkit.judge.score import Judged, Scored, valid
from solkit.model import Failed, Run
from solkit.report import marks, svg
from solkit.report.drawing import Look, draw_marks, looks
from solkit.report.legend import framed, series_entries
from solkit.report.marks import Cluster, Point, Series
from solkit.report.plain import listed
from solkit.report.plotting import (
    BAD,
    INK,
    MARK_PX,
    MUTED,
    clean,
    look,
    sol_axis,
    svg_text,
    text_px,
)
from solkit.stats import median, quantile

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

LINES_MOST = 40  # more would be a page of their own; the lowest medians stay
_LANE_MOST = 40  # cases of one kernel that are drawn one by one
_MARKS_MOST = 400  # cases that are drawn one by one, and lanes: 200 bytes each with their links
_LINE_PX, _LANE_PX, _LANES_PX = 30.0, 9.0, 20.0


@dataclass(frozen=True, slots=True)
class Line:
    """One operator in one dtype: its scored cases by row, and what became of the others."""

    operator: str
    dtype: str
    scored: dict[int, Scored]
    failed_count: int
    skipped_count: int

    @property
    def median_fraction(self) -> float | None:
        """The middle score of the valid cases."""
        good = [item.raw_fraction for item in valid(tuple(self.scored.values()))]
        return median(good) if good else None


def overview(judged: Sequence[Judged], run: Run) -> tuple[str, str]:
    """Return the strip plot of a run as SVG (empty without outcomes), and what it says."""
    lines = lines_of(judged)
    if not lines:
        return "", "The run has no outcomes."
    alt = _alt(lines)
    with look():
        return _draw(lines, marks.all_series(judged), run, alt), alt


def lines_of(judged: Sequence[Judged]) -> list[Line]:
    """Sort outcomes into lines, in the order in which operators and dtypes first appear.

    Lines in which everything was skipped say nothing about the card and are left out.
    """
    found: dict[str, dict[str, Line]] = {}
    counts: dict[tuple[str, str], list[int]] = {}
    for row, item in enumerate(judged):
        case = item.outcome.case if isinstance(item, Scored) else item.case
        line = found.setdefault(case.operator, {}).setdefault(
            case.dtype, Line(case.operator, case.dtype, {}, 0, 0)
        )
        count = counts.setdefault((case.operator, case.dtype), [0, 0])
        if marks.placed(item):
            line.scored[row] = item
        elif not isinstance(item, Scored):
            count[0 if isinstance(item, Failed) else 1] += 1
    ordered = [
        Line(line.operator, line.dtype, line.scored, *counts[line.operator, line.dtype])
        for dtypes in found.values()
        for line in dtypes.values()
    ]
    return [line for line in ordered if line.scored or line.failed_count]


def _draw(lines: Sequence[Line], series: Sequence[Series], run: Run, alt: str) -> str:
    lowest = sorted(
        range(len(lines)), key=lambda index: (lines[index].median_fraction or 0.0, index)
    )[:LINES_MOST]
    lowest = _with_room(lines, lowest)
    shown = [line for index, line in enumerate(lines) if index in set(lowest)]
    points = [
        point for place, line in enumerate(shown) for point in _points(line, len(shown) - 1 - place)
    ]
    top = max(105.0, max((point.at[0] for point in points), default=0.0) * 1.04)
    title = "SOL of every case" + (
        f" (the {len(shown)} lowest of {len(lines)} lines)" if len(lines) > len(shown) else ""
    )
    look_of = looks(series)
    asides = [_aside(line) for line in shown]
    right = min(250.0, max(text_px(text, 9.5) for text in asides) + 16)
    heads = [clean(f"{line.operator} {line.dtype}", 26) for line in shown]
    left = min(190.0, max(text_px(head, 10.5) for head in heads) + 18)
    few, crowds = _lanes(points)
    entries = series_entries(marks.single(few) + crowds, look_of)
    if crowds:
        entries.append((_line_sample(), "bars: all, middle half"))
    figure, (axes,) = framed(
        title, entries, [max(2, len(shown)) * _LINE_PX], left=left, right=right
    )
    kinked = sol_axis(axes, "x", top)
    axes.set_ylim(-0.5, len(shown) - 0.5)
    axes.set_yticks(range(len(shown)), heads[::-1], fontsize=10.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    roof = "spec roof" if run.gpu else "measured roof"
    axes.set_xlabel(f"SOL, % of the {roof}" + (" (logarithmic above 120 %)" if kinked else ""))
    axes.axvline(100, color=INK, linewidth=1.3, zorder=2)
    for place, (line, aside) in enumerate(zip(shown, asides, strict=True)):
        height = len(shown) - 1 - place
        axes.axhline(height, color="#efefef", linewidth=1, zorder=0.5)
        middle = line.median_fraction
        if middle is not None:
            axes.vlines(
                [100 * middle],
                [height - 0.42],
                [height + 0.42],
                color=INK,
                linewidth=2.6,
                zorder=5.5,
            )
        axes.annotate(
            aside,
            (1, height),
            xycoords=("axes fraction", "data"),
            xytext=(10, 0),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
            color=BAD if _troubled(line) else MUTED,
            annotation_clip=False,
        )
    for crowd in crowds:
        _draw_quarters(axes, crowd, look_of[crowd.points[0].series])
    step = 0.75 * MARK_PX * top / float(axes.get_window_extent().width)
    clusters = [*_binned(few, step), *crowds]
    draw_marks(axes, clusters, look_of, gid="strip", dodge=False)
    tips = {f"#r{cluster.worst.row}": cluster.tip for cluster in clusters}
    return svg.sanitise(
        svg_text(figure), prefix="o-", title=title, description=f"{alt} {svg.SEE_TABLE}", tips=tips
    )


def _points(line: Line, height: int) -> list[Point]:
    kernels = sorted({item.outcome.case.kernel for item in line.scored.values()})
    step = min(_LANE_PX, _LANES_PX / len(kernels)) / _LINE_PX if kernels else 0.0
    lane = {
        kernel: height + ((len(kernels) - 1) / 2 - index) * step
        for index, kernel in enumerate(kernels)
    }
    return [
        Point(
            row=row,
            series=Series(item.outcome.case.kernel, line.dtype),
            kind=marks.kind_of(item),
            name="",
            scored=item,
            at=(100 * item.raw_fraction, lane[item.outcome.case.kernel]),
            span=(lane[item.outcome.case.kernel],) * 2,
        )
        for row, item in line.scored.items()
    ]


def _binned(points: Sequence[Point], step: float) -> list[Cluster]:
    """Group the cases of one lane that would lie on each other."""
    groups: dict[object, list[Point]] = {}
    for point in points:
        groups.setdefault(
            (point.at[1], point.series, point.kind, math.floor(point.at[0] / step)), []
        ).append(point)
    return [Cluster(tuple(members)) for members in groups.values()]


def _lanes(points: Sequence[Point]) -> tuple[list[Point], list[Cluster]]:
    """Sort out the lanes with too many cases for a mark each: those are told by their quarters."""
    lanes: dict[tuple[float, Series], list[Point]] = {}
    for point in points:
        if point.kind != "invalid":
            lanes.setdefault((point.at[1], point.series), []).append(point)
    most = _most_singles([len(members) for members in lanes.values()])
    crowded = {lane for lane, members in lanes.items() if len(members) > most}
    few = [
        point
        for point in points
        if point.kind == "invalid" or (point.at[1], point.series) not in crowded
    ]
    return few, [Cluster(tuple(lanes[lane])) for lane in lanes if lane in crowded]


def _with_room(lines: Sequence[Line], lowest: Sequence[int]) -> list[int]:
    """Keep the lowest lines as long as each of their kernels has room for a lane; at least one."""
    counts = [len({it.outcome.case.kernel for it in lines[at].scored.values()}) for at in lowest]
    kept = sum(total <= _MARKS_MOST for total in itertools.accumulate(counts))
    return list(lowest[: max(1, kept)])


def _most_singles(sizes: Sequence[int]) -> int:
    """Return how many cases a lane may have to be drawn one by one: alike lanes are drawn alike."""
    most = _LANE_MOST
    while most > 1 and sum(size for size in sizes if size <= most) > _MARKS_MOST:
        most -= 1
    return most


def _line_sample() -> "Artist":
    from matplotlib.lines import Line2D  # noqa: PLC0415  # matplotlib loads when something is drawn

    return Line2D([], [], color=MUTED, linewidth=3.5)


def _draw_quarters(axes: "Axes", cluster: Cluster, look_of: Look) -> None:
    """Draw a lane as a thin line over all its cases and a thick one over their middle half."""
    scores = sorted(point.at[0] for point in cluster.points)
    height = cluster.points[0].at[1]
    axes.hlines([height], [scores[0]], [scores[-1]], color=look_of.edge, linewidth=1.0, zorder=3)
    low, high = quantile(scores, 0.25), quantile(scores, 0.75)
    axes.hlines([height], [low], [high], color=look_of.colour, linewidth=4.5, zorder=3.5)


def _troubled(line: Line) -> bool:
    return bool(line.failed_count) or len(valid(tuple(line.scored.values()))) < len(line.scored)


def _aside(line: Line) -> str:
    middle, good = line.median_fraction, len(valid(tuple(line.scored.values())))
    parts = [f"median {units.percent(middle)} of {good}" if middle is not None else "no score"]
    if len(line.scored) > good:
        parts.append(f"{len(line.scored) - good} INVALID")
    if line.failed_count:
        parts.append(f"{line.failed_count} failed")
    if line.skipped_count:
        parts.append(f"{line.skipped_count} skipped")
    return ", ".join(parts)


def _alt(lines: Sequence[Line]) -> str:
    """Say in words what the strip plot shows."""
    ranked = sorted(
        ((line.median_fraction, line) for line in lines if line.median_fraction is not None),
        key=lambda pair: pair[0],
    )
    bad = sum(len(line.scored) - len(valid(tuple(line.scored.values()))) for line in lines)
    failed = sum(line.failed_count for line in lines)
    tail = [
        text
        for text in (f"{bad} INVALID" if bad else "", f"{failed} failed" if failed else "")
        if text
    ]
    trouble = f" {', '.join(tail)}." if tail else ""
    if not ranked:
        return f"No case has a score.{trouble}"
    said = [
        f"{clean(line.operator)} {line.dtype} {units.percent(middle)}" for middle, line in ranked
    ]
    return f"Median SOL by operator and dtype, lowest first: {listed(said, 12)}.{trouble}"
