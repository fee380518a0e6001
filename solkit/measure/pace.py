"""The pace of a measurement: rests between batches, or steady work until the clock has settled.

A chip at work warms up and lowers its clock, so "how fast is this kernel" has two answers. On an
H200, cuBLAS's bf16 product of 8192^3 ran at 810 TFLOP/s from rest and 666 at its settled clock.
`burst`: after each batch wait until the clock and the power are back where they were. `sustained`:
work until the clock has settled, then take samples without a rest.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from solkit.measure.device.base import Device, Sample
from solkit.model import Clocks
from solkit.stats import median

REST_STEP_S = 0.005
REST_MOST_S = 0.5
BACK_FRACTION = 0.99  # of the highest clock the driver told: it is back
HALF = 0.5  # of the way from the power before to the limit: more is work, less is rest
SETTLE_LEAST_S, SETTLE_MOST_S, SETTLE_WINDOW_S = 1.0, 6.0, 0.5
SETTLED_FRACTION = 0.01  # the clocks of two windows this close
# Steady work before each sustained batch: while its records are read the chip rests for some
# milliseconds, a small part of this (an H200's clock takes 0.1 s to come back).
AHEAD_S = 0.1


@dataclass(slots=True)
class Conditions:
    """The driver's readings around and during a case, gathered into one."""

    first: Clocks = field(default_factory=Clocks)
    highest_hz: float = 0.0
    lowest_hz: float | None = None
    memory_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    reasons: dict[str, None] = field(default_factory=dict)

    def add(self, seen: Clocks) -> Clocks:
        """Take one reading in and give it back."""
        if seen.sm_hz is not None:
            self.highest_hz = max(self.highest_hz, seen.sm_hz)
            self.lowest_hz = min(self.lowest_hz or seen.sm_hz, seen.sm_hz)
        self.memory_hz = seen.memory_hz
        self.temperature_c = _larger(self.temperature_c, seen.temperature_c)
        self.power_w = _larger(self.power_w, seen.power_w)
        self.reasons.update(dict.fromkeys(seen.event_reasons))
        return seen


def begun(device: Device) -> Conditions:
    """Return conditions with the reading before the first batch."""
    found = Conditions()
    found.first = found.add(device.conditions())
    return found


def rest(
    device: Device, conditions: Conditions, *, sleep: Callable[[float], None] = time.sleep
) -> float:
    """Read the conditions; wait until clock and power are back, and return for how many seconds.

    At most half a second: a card that does not come back has another reason, which is recorded, and
    what it has then is what it has to come back to from now on.
    """
    rested_s = 0.0
    while not _back(device, conditions, now := conditions.add(device.conditions())):
        if rested_s >= REST_MOST_S:
            conditions.first, conditions.highest_hz = now, now.sm_hz or 0.0
            break
        sleep(REST_STEP_S)
        rested_s += REST_STEP_S
    return rested_s


def _back(device: Device, conditions: Conditions, now: Clocks) -> bool:
    if now.sm_hz is not None and now.sm_hz < BACK_FRACTION * conditions.highest_hz:
        return False
    before_w, limit_w = conditions.first.power_w, device.power_limit_w
    if now.power_w is None or before_w is None or limit_w is None:
        return True
    return now.power_w <= before_w + HALF * max(limit_w - before_w, 0.0)


def settle(
    batch: Callable[[], Sequence[Sample]], *, now: Callable[[], float] = time.monotonic
) -> float:
    """Run batches without a rest until the clock has settled; return the seconds it took.

    Settled: the median clock of the last half second lies within 1 % of that of the half second
    before. Without clocks (None) the least time is run.
    """
    started_s = now()
    seen: list[tuple[float, float]] = []
    while (spent_s := now() - started_s) < SETTLE_MOST_S:
        seen += [(spent_s, sample.sm_hz) for sample in batch() if sample.sm_hz]
        if spent_s >= SETTLE_LEAST_S and _flat(seen, spent_s):
            break
    return now() - started_s


def _flat(seen: Sequence[tuple[float, float]], now_s: float) -> bool:
    late = [hz for at_s, hz in seen if at_s > now_s - SETTLE_WINDOW_S]
    early = [
        hz for at_s, hz in seen if now_s - 2 * SETTLE_WINDOW_S < at_s <= now_s - SETTLE_WINDOW_S
    ]
    if not late or not early:
        return not seen
    return abs(median(late) - median(early)) <= SETTLED_FRACTION * median(early)


def _larger(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else max(one, other)
