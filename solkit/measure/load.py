"""How a device is loaded while a rate is taken: from rest, or until its clock has settled.

On an H200 a bf16 product of 8192^3 runs at 1670 to 1620 MHz in a batch of five from rest, and at
1425 MHz half a second later: at the power cap the clock is what the load leaves of it.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

from solkit.measure import pace
from solkit.measure.device.base import Call, Device, Sample
from solkit.stats import median

BATCH_COUNT = 3  # calls from rest: enough to average a clock, too few to heat the chip
BATCH_S = 8e-3  # of work a batch; a longer call is a batch by itself
BURST_BATCHES = 4
SETTLED_COUNT = 20
REST_LEAST_S = 0.03  # 20 to 50 ms after a batch keep an H200's clock up
REST_TOTAL_S = 20.0  # of waiting for clock and power in all: a hot card must not take for ever
Rest = Callable[[], None]


class Rests:
    """Rests between batches until clock and power are back, REST_TOTAL_S in all; call it to rest.

    After that, and where the driver tells neither, a rest is REST_LEAST_S.
    """

    def __init__(self, device: Device, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._device, self._sleep = device, sleep
        self._conditions = pace.begun(device)
        self.waited_s = 0.0

    def __call__(self) -> None:
        """Rest."""
        self._sleep(REST_LEAST_S)
        if self.waited_s < REST_TOTAL_S:
            self.waited_s += pace.rest(self._device, self._conditions, sleep=self._sleep)


def burst(device: Device, call: Call, *, rest: Rest, batches: int = BURST_BATCHES) -> list[Sample]:
    """Return samples of a rested chip: batches of few calls, with a rest before each.

    The first calls warm up (they may load code, or choose an algorithm) and are no samples.
    """
    count = min(max(int(BATCH_S / _warm_s(device, call)), 1), BATCH_COUNT)
    samples: list[Sample] = []
    for _ in range(batches):
        rest()
        samples += device.time([call] * count, mode="hot")
    return samples


def sustained(
    device: Device, call: Call, *, now: Callable[[], float] = time.monotonic
) -> list[Sample]:
    """Return 20 samples of a chip whose clock has settled under this very call, back to back."""
    count = min(max(int(BATCH_S / _warm_s(device, call)), 1), SETTLED_COUNT)
    batch = partial(device.time, [call] * count, mode="hot", ahead=[call])
    pace.settle(batch, now=now)
    samples: list[Sample] = []
    while len(samples) < SETTLED_COUNT:
        samples += batch()
    return samples[:SETTLED_COUNT]


def clock_hz(samples: Sequence[Sample]) -> float | None:
    """Return the median SM clock of samples; None where none tells it."""
    held = [sample.sm_hz for sample in samples if sample.sm_hz]
    return median(held) if held else None


def _warm_s(device: Device, call: Call) -> float:
    """Run a call until it has loaded what it loads, and return about what it takes."""
    call()
    device.synchronize()
    return max(min(sample.time_s for sample in device.time([call] * 2, mode="hot")), 1e-9)
