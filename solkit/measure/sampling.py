"""When to stop sampling, and when a kernel is warm: pure rules on samples."""

from collections.abc import Sequence
from dataclasses import dataclass

from solkit.stats import median, spread

PRECISION_TICKS = 3.0  # never finer than this many steps of the clock
LEAST_COUNT = 20
BUDGET_COUNT = 7  # fewer samples can never show a change (two-sided exact test, 7 against 7)
MOST_COUNT = 1000
STEADY_FRACTION = 0.01  # two batches this close: warm
AWAKE_FRACTION = 0.75  # of the highest clock: below it, a card may only be waking up
BATCH_S = 0.005  # work between two readings of the card's conditions
BATCH_COUNT = 32


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
    precision_fraction: float,
    tick_s: float,
    least: int = LEAST_COUNT,
) -> Verdict:
    """Stop when the median's 95 % interval is narrow enough, or time or the count is used up.

    precision_fraction: half that interval over the median; never finer than three steps of the
    clock.
    """
    count = len(times_s)
    if count >= least:
        seen = spread(times_s)
        allowed_s = max(precision_fraction * seen.median_s, PRECISION_TICKS * tick_s)
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


def batch_count(median_s: float | None, *, most: int) -> int:
    """Return how many calls a batch takes: five milliseconds of work, 32 calls at most.

    Until a time is known: few. A call that takes milliseconds is a batch by itself.
    """
    count = 4 if median_s is None else int(BATCH_S / max(median_s, 1e-9))
    return max(1, min(count, BATCH_COUNT, most))


def awake(clocks_hz: Sequence[float], highest_hz: float | None) -> bool:
    """Say whether a card has raised its clock: an idle one needs some milliseconds of work."""
    return not clocks_hz or not highest_hz or median(clocks_hz) >= AWAKE_FRACTION * highest_hz
