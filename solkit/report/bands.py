"""What a chart of SOL against bytes shades: sizes that fit the cache, times near a launch's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solkit import units
from solkit.bound import Roof, bound, measured_roof
from solkit.judge.regime import LATENCY_FLOORS
from solkit.judge.score import Scored
from solkit.model import Run, Work
from solkit.report.drawing import pixels
from solkit.report.legend import Entry
from solkit.report.marks import Box
from solkit.report.plotting import INK, MUTED, brief
from solkit.stats import median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAUNCH, LAUNCH_EDGE, CACHE = "#fbf1df", "#ecd9b4", "#e6eff7"
SPEED_OF_LIGHT, ROOF_POINTS = "speed of light", 9.5
_STREAM: dict[str, Any] = {"linestyle": (0, (1, 1.5)), "linewidth": 1.5}  # as on the roofline


@dataclass(frozen=True, slots=True)
class FloorCurve:
    """Where a case that takes as long as an empty kernel would stand: places (bytes, SOL in %)."""

    floor_s: float
    places: tuple[tuple[float, float], ...]


def floor_curve(
    scored: Sequence[Scored], roof: Roof | None, limits: tuple[float, float], top: float
) -> FloorCurve | None:
    """Return SOL = memory_s / floor over bytes, for memory-bound work of the same read share."""
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
    places = [
        (traffic, 100 * bound(work, roof).memory_s / floor_s)
        for traffic, work in _sweep(limits, share)
    ]
    seen = min(place[1] for place in places) / LATENCY_FLOORS < top
    return FloorCurve(floor_s, tuple(places)) if seen else None


@dataclass(frozen=True, slots=True)
class StreamCurve:
    """Where the best streaming kernel of this device stands: places (bytes, SOL in %)."""

    places: tuple[tuple[float, float], ...]


def stream_curve(
    scored: Sequence[Scored], roof: Roof | None, run: Run, limits: tuple[float, float]
) -> StreamCurve | None:
    """Return the measured roof of memory over bytes, for work of the same read share.

    It holds the ramp of small sizes and the launch: what no kernel of so many bytes was seen to
    beat here. None where nothing was measured, or where it is the roof that scores are taken
    against, and where no case is bound by memory.
    """
    if run.gpu is None or run.ceilings is None or not run.ceilings.dram or roof is None:
        return None
    bound_by_memory = [item.outcome.work for item in scored if item.bound.limiter == "memory"]
    shares = [
        work.read_bytes / work.traffic_bytes for work in bound_by_memory if work.traffic_bytes
    ]
    if not shares:
        return None
    best = measured_roof(run.ceilings, settle=run.settle)
    places = []
    for traffic, work in _sweep(limits, median(shares)):
        reached_s = bound(work, best).memory_s
        places.append((traffic, 100 * bound(work, roof).memory_s / reached_s if reached_s else 0.0))
    return StreamCurve(tuple(places))


def _sweep(limits: tuple[float, float], share: float) -> Iterator[tuple[float, Work]]:
    """Yield bytes between two limits, evenly on a logarithmic axis, and work that moves them."""
    for step in range(81):
        traffic = limits[0] * (limits[1] / limits[0]) ** (step / 80)
        read = round(traffic * share)
        yield traffic, Work(read, max(0, round(traffic) - read))


def _l2_bytes(run: Run) -> int:
    return (run.gpu.l2_bytes if run.gpu else 0) or run.facts.l2_bytes or 0


def context_entries(
    run: Run,
    floor: FloorCurve | None,
    limits: tuple[float, float],
    stream: StreamCurve | None = None,
) -> list[Entry]:
    """Return the legend's entries for what is shaded."""
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.patches import Patch  # noqa: PLC0415

    entries: list[Entry] = []
    if stream is not None:
        entries.append((Line2D([], [], color=INK, **_STREAM), "measured roof: best stream"))
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


def draw_context(
    axes: "Axes", run: Run, floor: FloorCurve | None, top: float, stream: StreamCurve | None = None
) -> None:
    """Shade what the kernel can't help: the cache's sizes, and times near the cost of a launch.

    And draw what streaming kernels reach here, the roof that was measured.
    """
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
    if stream is not None:
        shown = [(x, y) for x, y in stream.places if y <= top]
        axes.plot([x for x, _ in shown], [y for _, y in shown], color=INK, zorder=2, **_STREAM)
    axes.axhline(100, color=INK, linewidth=1.3, zorder=2)
    axes.annotate(
        SPEED_OF_LIGHT,
        (high, 100),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        fontsize=ROOF_POINTS,
    )


def lines_taken(
    axes: "Axes", floor: FloorCurve | None, stream: StreamCurve | None = None
) -> list[Box]:
    """Return boxes along the lines of the chart and of its words, for labels to keep off."""
    low, high = axes.get_xlim()
    top = axes.get_ylim()[1]
    line = [(low * (high / low) ** (step / 40), 100.0) for step in range(41)]
    if floor is not None:
        line += [place for place in floor.places if place[1] < top]
    if stream is not None:
        line += [place for place in stream.places if place[1] < top]
    boxes = [(x - 4, y - 2, x + 4, y + 2) for x, y in pixels(axes, line)]
    right, roof = pixels(axes, [(high, 100.0)])[0]
    tall = ROOF_POINTS * axes.figure.dpi / 72
    wide = 0.6 * tall * len(SPEED_OF_LIGHT)  # a letter is 0.55 em wide on average
    return [*boxes, (right - wide, roof, right, roof + 3 + 1.3 * tall)]
