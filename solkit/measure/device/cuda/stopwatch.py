"""Event pairs behind a delay: the way this device takes times, behind one door.

One sample is, in stream order: delay, stamp, event, the call, event, stamp. The delay keeps the GPU
busy until the host has queued the rest, so that no host time falls between the events; when the
host was slower than that, the sample is taken again behind a longer delay, and in the end marked
late. The pair of stamps gives the SM clock held around the call.
"""

from collections.abc import Callable, Sequence
from typing import Any

import cupy as cp
import numpy as np

from solkit.measure.device.base import Call, Sample
from solkit.stats import median

_LEAST_DELAY_NS = 30_000
_MOST_DELAY_NS = 4_000_000
_TRIES = 4
_FLOOR_COUNT = 101
_LEAST_HZ, _MOST_HZ = 2e8, 4e9  # a reading outside is a stamp that went wrong, not a clock


class Stopwatch:
    """Takes samples on the default stream."""

    method = "event_delayed"
    tick_s = 32e-9  # events on the H200 lie on a grid of 32 ns

    def __init__(self, *, delay: Any, stamp: Any, sm_count: int) -> None:  # noqa: ANN401  # CuPy functions
        self._delay = delay
        self._stamp = stamp
        self._sm_count = sm_count
        self._delay_ns = _LEAST_DELAY_NS * 2
        self._stamps = cp.zeros((2, 2), dtype=cp.int64)
        self._start = cp.cuda.Event()
        self._stop = cp.cuda.Event()

    def time(self, calls: Sequence[Call]) -> list[Sample]:
        """Return one sample of each call."""
        return [self._sample(call) for call in calls]

    def floor_s(self, empty: Callable[[], None]) -> float:
        """Return the median reading on an empty kernel."""
        self.time([empty] * 10)
        return median([self._sample(empty).time_s for _ in range(_FLOOR_COUNT)])

    def _sample(self, call: Call) -> Sample:
        for _ in range(_TRIES):
            late = self._queue(call)
            if not late or self._delay_ns >= _MOST_DELAY_NS:
                break
            self._delay_ns = min(self._delay_ns * 2, _MOST_DELAY_NS)
        time_s = cp.cuda.get_elapsed_time(self._start, self._stop) * 1e-3
        return Sample(time_s, self._clock_hz(), late)

    def _queue(self, call: Call) -> bool:
        """Queue one sample and wait for it; say whether the GPU had to wait for the host."""
        before, after = self._stamps[0], self._stamps[1]
        grid, one = (self._sm_count, 1, 1), (1, 1, 1)
        self._delay(one, one, (np.int64(self._delay_ns),))
        self._stamp(grid, one, (before,))
        self._start.record()
        call()
        self._stop.record()
        late = bool(self._start.done)
        self._stamp(grid, one, (after,))
        self._stop.synchronize()
        return late

    def _clock_hz(self) -> float | None:
        """Return cycles over nanoseconds between the stamps, or None where one is missing."""
        cp.cuda.runtime.deviceSynchronize()
        (first_ns, first_cycles), (last_ns, last_cycles) = self._stamps.get()
        self._stamps.data.memset_async(0, self._stamps.nbytes)
        if not first_ns or not last_ns or last_ns <= first_ns:
            return None
        hz = float(last_cycles - first_cycles) / float(last_ns - first_ns) * 1e9
        return hz if _LEAST_HZ <= hz <= _MOST_HZ else None
