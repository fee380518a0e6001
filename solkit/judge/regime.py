"""The regime a measurement was made in: launch-bound, or long enough to speak of throughput."""

from dataclasses import dataclass
from typing import Literal

LATENCY_FLOORS = 3.0  # below three empty-kernel floors, fixed cost dominates


@dataclass(frozen=True, slots=True)
class Regime:
    """The word, and the time as a multiple of the empty-kernel floor of the same method."""

    word: Literal["latency", "throughput"]
    floors_count: float


def regime(*, median_s: float, floor_s: float) -> Regime:
    """Return `latency` when the floor is over a third of the time, else `throughput`."""
    floors = median_s / floor_s if floor_s > 0 else float("inf")
    return Regime("latency" if floors < LATENCY_FLOORS else "throughput", floors)
