"""Order statistics of timing samples. No outlier is ever dropped."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

NORMAL_975 = 1.959964  # the 97.5 % point of the normal distribution


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

    The interval is the pair of order statistics whose ranks bracket n/2 by 1.96 * sqrt(n)/2
    (binomial ranks by the normal approximation; the whole range below six samples).
    """
    ordered = sorted(samples)
    count = len(ordered)
    half = NORMAL_975 * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - half))
    high = min(count - 1, math.ceil(count / 2 + half) - 1)
    return Spread(quantile(ordered, 0.5), ordered[low], ordered[max(high, 0)])


def thin(samples: Sequence[float], most: int = 100) -> tuple[float, ...]:
    """Return at most `most` samples, evenly spaced, in their order."""
    count = len(samples)
    if count <= most:
        return tuple(samples)
    return tuple(samples[index * count // most] for index in range(most))
