"""Order statistics of timing samples. No outlier is ever dropped."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

NORMAL_975 = 1.959964  # the 97.5 % point of the normal distribution
EXACT_COUNT = 1000  # up to here ranks come from the binomial distribution itself


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its 95 % interval, both read off the sorted samples."""

    median_s: float
    low_s: float
    high_s: float


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


def thin(samples: Sequence[float], most: int = 100) -> tuple[float, ...]:
    """Return at most `most` samples, evenly spaced, in their order."""
    count = len(samples)
    if count <= most:
        return tuple(samples)
    return tuple(samples[index * count // most] for index in range(most))
