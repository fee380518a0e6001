"""How sure a difference is: normal tails, many tests at once, the interval of a rate."""

import math
from collections.abc import Callable, Sequence

FAMILY_ERROR_FRACTION = 0.05  # the chance of one false change or more among all cases compared


def two_sided_p(deviations: float) -> float:
    """Return the chance of a standard normal number as far from zero as `deviations`, or further.

    Infinite deviations have none.
    """
    return math.erfc(abs(deviations) / math.sqrt(2))


def holm(p_values: Sequence[float], *, error_fraction: float = FAMILY_ERROR_FRACTION) -> list[bool]:
    """Say of each p-value whether it stands when all of them are asked at once (Holm 1979).

    The smallest must be at most error_fraction / count, the next error_fraction / (count - 1), and
    so on; from the first that isn't, none stands. The chance that any of them stands by luck is
    then `error_fraction` at most, however they depend on each other.
    """
    stands = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > error_fraction / (len(p_values) - rank):
            break
        stands[place] = True
    return stands


def rate_interval(count: int, trials: int) -> tuple[float, float]:
    """Return the exact 95 % interval (Clopper-Pearson) of a rate seen as `count` of `trials`.

    Each end is the rate at which so many or more (low), so few or less (high) have a chance of
    2.5 %. The caller holds 0 <= count <= trials and trials >= 1.
    """
    low = _root(lambda rate: 1 - _at_most(count - 1, trials, rate), 0.025) if count else 0.0
    high = (
        1 - _root(lambda rate: _at_most(count, trials, 1 - rate), 0.025) if count < trials else 1.0
    )
    return low, high


def _at_most(count: int, trials: int, rate: float) -> float:
    """Return the chance of `count` or fewer in `trials`, each with a chance of `rate` in (0, 1)."""
    chances = (
        math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(hits + 1)
            - math.lgamma(trials - hits + 1)
            + hits * math.log(rate)
            + (trials - hits) * math.log1p(-rate)
        )
        for hits in range(count + 1)
    )
    return min(1.0, math.fsum(chances))


def _root(rising: Callable[[float], float], target: float) -> float:
    """Return where a rising function on (0, 1) meets the target, by halving."""
    low, high = 0.0, 1.0
    for _ in range(60):  # 2^-60: beyond what a float between 0 and 1 resolves
        middle = (low + high) / 2
        if rising(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2
