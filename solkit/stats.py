"""Order statistics of timing samples. No outlier is ever dropped."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TypeVar

from solkit.model import SlowMode

T = TypeVar("T")
NORMAL_975 = 1.959964  # the 97.5 % point of the normal distribution
EXACT_COUNT = 1000  # up to here ranks come from the binomial distribution itself
TICKS_ALIKE = 3  # times closer than this many ticks of their clock can't be told apart
# A second group among samples: fewer, nearer or wider than this is a tail and no mode.
MODES_COUNT, SLOW_COUNT, SLOW_SHARE_FRACTION = 20, 4, 0.05
SLOW_EFFECT_FRACTION, SLOW_DEVIATIONS, HALF_WAY_FRACTION = 0.03, 6.0, 0.2


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its 95 % interval, both read off the sorted samples."""

    median_s: float
    low_s: float
    high_s: float


def widened(seen: Spread, fraction: float) -> Spread:
    """Return a spread whose interval reaches `fraction` of the median to both sides at least."""
    reach_s = fraction * seen.median_s
    low_s, high_s = seen.median_s - reach_s, seen.median_s + reach_s
    return Spread(seen.median_s, min(seen.low_s, low_s), max(seen.high_s, high_s))


def quantile(ordered: Sequence[float], fraction: float) -> float:
    """Return the linearly interpolated quantile of sorted samples (type 7)."""
    if not ordered:
        message = "a quantile needs at least one sample"
        raise ValueError(message)
    place = fraction * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def median(samples: Sequence[float]) -> float:
    """Return the middle sample, or the mean of the middle two."""
    return quantile(sorted(samples), 0.5)


def spread(samples: Sequence[float]) -> Spread:
    """Return the median and its distribution-free 95 % interval.

    The interval is the innermost symmetric pair of order statistics that holds the true median
    with a probability of 95 % at least: the number of samples below it is binomial (n, 1/2).
    Below six samples even the whole range holds it less often; it is returned all the same.
    """
    ordered = sorted(samples)
    middle = quantile(ordered, 0.5)
    low = low_rank(len(ordered))
    return Spread(middle, ordered[low], ordered[-1 - low])


@cache
def low_rank(count: int) -> int:
    """Return the rank (from 0) of the interval's lower end among `count` sorted samples.

    The normal approximation alone, rounded outwards, falls to 92.2 % at 21 samples.
    """
    if count > EXACT_COUNT:
        return math.floor(count / 2 - NORMAL_975 * math.sqrt(count) / 2) - 1
    ways, below, rank = 1, 1, 0  # below: outcomes with at most `rank` samples under the median
    while 40 * below <= 2**count:
        rank += 1
        ways = ways * (count - rank + 1) // rank
        below += ways
    return max(0, rank - 1)


def slow_mode(samples: Sequence[float], *, tick_s: float) -> SlowMode | None:
    """Return the second, slower group among samples, where there is one.

    The samples (seconds, any order) are cut where the sum of distances to the two groups' medians
    is least; an outlier costs the same on either side, so it can't draw the cut. The slower group
    counts only if it holds 5 % of the samples and four at least, stands further off than 3 ticks
    and 3 %, further than six times either group's median deviation, and if few samples lie
    half-way: a normal or an even spread cut in two stands 3.4 and 4 deviations apart, with a third
    of a group half-way. Below 20 samples a smooth spread looks cut in one case of twenty: None.
    """
    ordered = sorted(samples)
    count = len(ordered)
    least = max(SLOW_COUNT, math.ceil(SLOW_SHARE_FRACTION * count))
    if count < MODES_COUNT:
        return None
    sums = [0.0, *accumulate(ordered)]
    cut = min(range(least, count - least + 1), key=lambda at: _cost(sums, 0, at) + _cost(sums, at))
    fast, slow = ordered[:cut], ordered[cut:]
    fast_s, slow_s = quantile(fast, 0.5), quantile(slow, 0.5)
    apart_s, middle_s = slow_s - fast_s, (slow_s + fast_s) / 2
    near_s = max(TICKS_ALIKE * tick_s, SLOW_EFFECT_FRACTION * fast_s)
    wide_s = SLOW_DEVIATIONS * max(_deviation(fast, fast_s), _deviation(slow, slow_s))
    half_way = sum(1 for each in ordered if abs(each - middle_s) <= apart_s / 6)
    # a cut that is not where the groups meet was held back by `least`: one of them is too small
    if apart_s <= near_s or apart_s < wide_s or not fast[-1] <= middle_s < slow[0]:
        return None
    if half_way > HALF_WAY_FRACTION * min(len(fast), len(slow)):
        return None
    return SlowMode(slow_s, len(slow) / count)


def _cost(sums: Sequence[float], start: int, stop: int | None = None) -> float:
    """Return the summed distance of sorted samples to their median, from their running sums."""
    end = len(sums) - 1 if stop is None else stop
    low, high = (start + end) // 2, (start + end + 1) // 2
    return sums[end] - sums[high] - (sums[low] - sums[start])


def _deviation(samples: Sequence[float], middle: float) -> float:
    return median([abs(sample - middle) for sample in samples])


def thin(samples: Sequence[T], most: int = 100) -> tuple[T, ...]:
    """Return at most `most` samples, evenly spaced, in their order."""
    count = len(samples)
    if count <= most:
        return tuple(samples)
    return tuple(samples[index * count // most] for index in range(most))
