"""Where a series of times steps to another level: binary segmentation by medians.

The logarithms of the times are cut where that shortens their summed distance to the medians most,
the whole series first, then nested windows of it (a step and its repair would hide each other),
each cut paying a penalty. Of those, a step counts where it is large enough for the runs that show
it, and larger than the noise of the runs beside it.
"""

import math
from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import pairwise

from solkit.stats import median

STEP_FRACTION, FEWEST = 0.05, 2  # a step of 5 % needs two runs on each side,
SMALL_STEP_FRACTION, SMALL_FEWEST = 0.02, 5  # one of 2 % five
# With these, of 10,000 series of 50 runs with a normal noise of 0.7 %, and of 10,000 with 3 %, none
# had a step; in a noise of 0.7 %, a step of 5 % with five runs or more on each side was found
# within one run of its place in all of 300.
NOISE_FACTOR, PENALTY = 4.0, 3.0
FEW_FACTOR = 2.0  # noise is itself unsure where few runs show it: half as much again for four
MAD_SIGMA = 1.4826  # a normal deviation over its median absolute deviation
INTERVAL_SIGMA = 1.96
_SHORTEST_WINDOW = 4


def segments(
    logs: Sequence[float], widths: Sequence[float] = (), *, step_fraction: float = STEP_FRACTION
) -> list[int]:
    """Return where each level of a series begins, the first at 0.

    logs: natural logarithms of the times, in order. widths: half the width of each one's 95 %
    interval, on the same scale (relative); noise is never taken for less than that.
    """
    count = len(logs)
    cuts = [0, count]
    if count < 2 * FEWEST or max(logs) - min(logs) < math.log1p(
        min(step_fraction, SMALL_STEP_FRACTION)
    ):
        return [0]
    penalty = PENALTY * _jump_spread(logs) * math.log(count)
    todo = [(0, count)]
    while todo:
        start, end = todo.pop()
        cut = _best_cut(logs, start, end, penalty)
        if cut:
            insort(cuts, cut)
            todo += [(start, cut), (cut, end)]
    while len(cuts) > 2:  # noqa: PLR2004  # the two ends are no cuts
        noise = noise_of(logs, widths, cuts)
        scores = [
            _standing(logs, cuts[at - 1 : at + 2], noise, step_fraction)
            for at in range(1, len(cuts) - 1)
        ]
        weakest = min(range(len(scores)), key=scores.__getitem__)
        if scores[weakest] >= 1:
            break
        del cuts[weakest + 1]
    return cuts[:-1]


def _standing(
    logs: Sequence[float], ends: Sequence[int], noise: float, step_fraction: float
) -> float:
    """Return a step over the least that would count here: it counts from 1."""
    start, cut, end = ends
    fewer = min(cut - start, end - cut)
    size = abs(median(logs[cut:end]) - median(logs[start:cut]))
    least = min(
        math.log1p(step_fraction) if fewer >= FEWEST else math.inf,
        math.log1p(SMALL_STEP_FRACTION) if fewer >= SMALL_FEWEST else math.inf,
    )
    unsure = 1 + FEW_FACTOR / len(logs)
    blur = NOISE_FACTOR * unsure * noise * math.sqrt(1 / (cut - start) + 1 / (end - cut))
    wanted = max(least, blur)
    return size / wanted if wanted else math.inf


def noise_of(logs: Sequence[float], widths: Sequence[float], cuts: Sequence[int]) -> float:
    """Return the deviation of runs around their level, and never less than their own intervals."""
    within = median(widths) / INTERVAL_SIGMA if widths else 0.0
    return max(_spread_of(logs, cuts), within)


def _spread_of(logs: Sequence[float], cuts: Sequence[int]) -> float:
    """Return the deviation around levels by the median absolute deviation: outliers don't count.

    A level of n runs lies on n - 1 of them as it were; the factor makes up for that.
    """
    off: list[float] = []
    for start, end in pairwise(cuts):
        middle = median(logs[start:end])
        bias = math.sqrt((end - start) / max(1, end - start - 1))
        off += [abs(each - middle) * bias for each in logs[start:end]]
    return MAD_SIGMA * median(off)


def _jump_spread(logs: Sequence[float]) -> float:
    """Return the deviation of runs by what lies between neighbours: a step is one jump of many."""
    jumps = [abs(after - before) for before, after in pairwise(logs)]
    return MAD_SIGMA * median(jumps) / math.sqrt(2)


def _best_cut(logs: Sequence[float], start: int, end: int, penalty: float) -> int:
    """Return the cut of [start, end) that gains most, and more than the penalty; 0 for none."""
    best, found = penalty, 0
    for low, high in _windows(start, end):
        if _cost(logs[low:high]) <= best:  # no cut gains more than all there is
            continue
        gain, cut = _gain(logs[low:high])
        if gain > best:
            best, found = gain, low + cut
    return found


def _windows(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the whole and its windows of half the length, a quarter ..., overlapping by half."""
    yield start, end
    length = (end - start) // 2
    while length >= _SHORTEST_WINDOW:
        for low in range(start, end - length + 1, max(1, length // 2)):
            yield low, low + length
        length //= 2


def _gain(logs: Sequence[float]) -> tuple[float, int]:
    """Return by how much a cut shortens the summed distance to the medians, and where it is best.

    Distances, not their squares: one run that went wrong costs the same on either side.
    """
    count = len(logs)
    if count < 2 * FEWEST:
        return 0.0, 0
    left, right = _running_costs(logs), _running_costs(logs[::-1])
    costs = [left[cut] + right[count - cut] for cut in range(FEWEST, count - FEWEST + 1)]
    least = min(costs)
    return left[count] - least, FEWEST + costs.index(least)


def _running_costs(logs: Sequence[float]) -> list[float]:
    """Return the summed distance of the first n values to their median, for every n."""
    ordered: list[float] = []
    costs = [0.0]
    total = lower = 0.0  # the sum of all, and of the lower half: ordered[: len(ordered) // 2]
    for each in logs:
        half = len(ordered) // 2
        place = bisect_right(ordered, each)
        ordered.insert(place, each)
        total += each
        if place < half:
            lower += each - ordered[half]
        if len(ordered) % 2 == 0:
            lower += ordered[half]
            costs.append(total - 2 * lower)
        else:
            costs.append(total - 2 * lower - ordered[len(ordered) // 2])
    return costs


def _cost(logs: Sequence[float]) -> float:
    ordered, half = sorted(logs), len(logs) // 2
    return sum(ordered[len(logs) - half :]) - sum(ordered[:half])
