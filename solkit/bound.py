"""Roofs, and the least time a piece of work can take under one (docs/numbers.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise

from solkit.gpu import Gpu
from solkit.model import Bound, Ceilings, DramCeiling, Settle, Work

HALF_READ = 0.5  # the share of reads of a plain copy
NEAR_RIDGE_FRACTION = 0.10  # memory and compute time this close: say so


@dataclass(frozen=True, slots=True)
class Roof:
    """The limits a score is taken against.

    `dram` is one bandwidth, or for the measured roof the curve of what streaming kernels reach.
    """

    name: str
    dram_bytes_per_s: float
    pipes_flop_per_s: Mapping[str, float]
    dram_curve: tuple[DramCeiling, ...] = field(default=())


def spec_roof(gpu: Gpu) -> Roof:
    """Return the published limits of a card."""
    return Roof(
        "spec", gpu.dram_bytes_per_s, {name: pipe.flop_per_s for name, pipe in gpu.pipes.items()}
    )


def clock_roof(gpu: Gpu, sm_hz: float) -> Roof:
    """Return the card's limits at the SM clock truly held; DRAM has a clock of its own."""
    pipes = {
        name: gpu.sm_count * pipe.flop_per_clock_per_sm * sm_hz for name, pipe in gpu.pipes.items()
    }
    return Roof("clock", gpu.dram_bytes_per_s, pipes)


def hard_roof(gpu: Gpu) -> Roof:
    """Return what physics allows: pin rate, and every pipe at the card's highest clock."""
    pipes = {
        name: max(pipe.flop_per_s, gpu.sm_count * pipe.flop_per_clock_per_sm * gpu.max_clock_hz)
        for name, pipe in gpu.pipes.items()
    }
    pin = gpu.dram_pin_bytes_per_s or gpu.dram_published_bytes_per_s
    return Roof("hard", pin, pipes)


def measured_roof(ceilings: Ceilings, settle: Settle = "burst") -> Roof:
    """Return the limits measured on the device itself; the bandwidth is the best of all points.

    settle: which rates of a pipe count, those from rest or those at the clock of steady work. A
    pipe that has none of that kind is judged by what it has.
    """
    best = max((point.traffic_bytes / point.median_s for point in ceilings.dram), default=0.0)
    pipes: dict[str, float] = {}
    meant = {ceiling.pipe for ceiling in ceilings.pipes if ceiling.settle == settle}
    for ceiling in ceilings.pipes:
        if ceiling.settle == settle or ceiling.pipe not in meant:
            rate = ceiling.flop / ceiling.median_s
            pipes[ceiling.pipe] = max(pipes.get(ceiling.pipe, 0.0), rate)
    return Roof("measured", best, pipes, ceilings.dram)


def bound(work: Work, roof: Roof) -> Bound:
    """Return the least time `work` can take under `roof`.

    memory_s = traffic / bandwidth (or the curve at this traffic and share of reads);
    compute_s = exact flop / peak for each pipe; sol_s = the largest. A pipe the roof does not have
    is left out: the caller skips such cases, or the roof never measured that pipe.
    """
    memory_s = _memory_s(work, roof)
    compute_s = _times(work.flop, roof)
    worst = max(compute_s, key=lambda pipe: compute_s[pipe], default=None)
    worst_s = compute_s[worst] if worst is not None else 0.0
    limiter = f"compute:{worst}" if worst_s > memory_s else "memory"
    sol_s = max(memory_s, worst_s)
    near = min(memory_s, worst_s) >= (1 - NEAR_RIDGE_FRACTION) * sol_s > 0
    return Bound(memory_s, compute_s, sol_s, limiter, near, _times(work.estimated_flop, roof))


def _times(flop: Mapping[str, int], roof: Roof) -> dict[str, float]:
    peaks = roof.pipes_flop_per_s
    return {pipe: count / peaks[pipe] for pipe, count in flop.items() if peaks.get(pipe)}


def _memory_s(work: Work, roof: Roof) -> float:
    if not roof.dram_curve or not work.traffic_bytes:
        return work.traffic_bytes / roof.dram_bytes_per_s if roof.dram_bytes_per_s else 0.0
    share = work.read_bytes / work.traffic_bytes
    times = sorted(
        (reads, _curve_s(curve, work.traffic_bytes)) for reads, curve in _curves(roof.dram_curve)
    )
    return _between(_reads_are_no_dearer(times), share)


@lru_cache(maxsize=8)  # a run's cases share one roof: 10,000 of them would sort it 40,000 times
def _curves(points: tuple[DramCeiling, ...]) -> list[tuple[float, list[tuple[float, float]]]]:
    """Return each kind of stream: its share of reads, and its times in s over bytes of traffic."""
    by_kind: dict[str, list[DramCeiling]] = {}
    for point in points:
        by_kind.setdefault(point.kernel, []).append(point)
    return [
        (each[0].read_bytes / each[0].traffic_bytes, _undisturbed(each))
        for each in by_kind.values()
    ]


def _reads_are_no_dearer(times: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Let no stream that reads half or more be slower than one that reads a smaller share.

    Writes cost at least what reads do, so where a read kernel is the slower one (it has to add up
    what it reads, which a copy has not), the fault is the kernel's and not the card's.
    """
    found: list[tuple[float, float]] = []
    for share, time_s in times:
        before = found[-1][1] if found and found[-1][0] >= HALF_READ else time_s
        found.append((share, min(time_s, before)))
    return found


def _undisturbed(points: Sequence[DramCeiling]) -> list[tuple[float, float]]:
    """Return the points of one kind of stream as (bytes of traffic, s), in the order of bytes.

    A point slower than one with more bytes was disturbed, since fewer bytes can't need more time,
    and so was one slower than a smaller stream repeated.
    """
    ordered = sorted(points, key=lambda point: point.traffic_bytes)
    places = [float(point.traffic_bytes) for point in ordered]
    least_s = list(accumulate((point.median_s for point in reversed(ordered)), min))[::-1]
    for index in range(1, len(places)):
        repeated_s = least_s[index - 1] * places[index] / places[index - 1]
        least_s[index] = min(least_s[index], repeated_s)
    return list(zip(places, least_s, strict=True))


def _curve_s(curve: Sequence[tuple[float, float]], traffic_bytes: int) -> float:
    """Return the time one kind of stream needs for `traffic_bytes`: straight lines between points.

    A stream's time is a fixed part plus bytes over bandwidth, which a straight line meets exactly
    (on logarithmic axes it would come out too long). Below the smallest point its time is a floor;
    above the largest its bandwidth goes on.
    """
    last_bytes, last_s = curve[-1]
    if traffic_bytes >= last_bytes:
        return last_s * traffic_bytes / last_bytes
    return _between(curve, traffic_bytes)


def _between(curve: Sequence[tuple[float, float]], place: float) -> float:
    """Interpolate linearly in a curve sorted by its first member; flat beyond its ends."""
    if place <= curve[0][0]:
        return curve[0][1]
    for (left, left_value), (right, right_value) in pairwise(curve):
        if place <= right:
            return left_value + (right_value - left_value) * (place - left) / (right - left)
    return curve[-1][1]
