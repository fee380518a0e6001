"""When to stop sampling, and when a kernel is warm: pure rules on samples."""

from collections.abc import Sequence
from dataclasses import dataclass

from solkit.stats import median, spread

PRECISION_FRACTION = 0.005  # half the 95 % interval of the median, over the median
PRECISION_TICKS = 3.0  # never finer than this many steps of the clock
LEAST_COUNT = 20
BUDGET_COUNT = 7  # fewer samples can never show a change (two-sided exact test, 7 against 7)
MOST_COUNT = 1000
STEADY_FRACTION = 0.01  # two batches this close: warm


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to stop, and which rule said so."""

    stop: bool
    reason: str


def enough(
    times_s: Sequence[float],
    *,
    spent_s: float,
    budget_s: float,
    tick_s: float,
    least: int = LEAST_COUNT,
) -> Verdict:
    """Stop when the median's 95 % interval is narrow enough, or time or the count is used up."""
    count = len(times_s)
    if count >= least:
        seen = spread(times_s)
        allowed_s = max(PRECISION_FRACTION * seen.median_s, PRECISION_TICKS * tick_s)
        if (seen.high_s - seen.low_s) / 2 <= allowed_s:
            return Verdict(stop=True, reason="precision reached")
    if count >= MOST_COUNT:
        return Verdict(stop=True, reason=f"{MOST_COUNT} samples taken")
    if count >= BUDGET_COUNT and spent_s >= budget_s:
        return Verdict(stop=True, reason=f"time budget of {budget_s:g} s used")
    return Verdict(stop=False, reason="")


def steady(before: Sequence[float], after: Sequence[float]) -> bool:
    """Say whether two batches of readings (times or clocks) agree: the median has settled."""
    if not before or not after:
        return False
    first, second = median(before), median(after)
    return abs(second - first) <= STEADY_FRACTION * max(abs(first), abs(second))
