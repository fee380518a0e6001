"""Steady work: calls back to back, the device never idle and the host never far ahead."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

import cupy as cp

from solkit.measure.device.base import Call

CHUNK_S = 0.01  # of the host's time between two waits: while it waits, as much is queued
MOST_CHUNK = 256  # calls; two chunks stay below the 1024 launches of a queue


class Work:
    """Calls in turn, in chunks: the host waits for one chunk while the next is queued already."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls: Iterator[Call] = cycle(calls)
        self._before, self._now = cp.cuda.Event(), cp.cuda.Event()
        self._chunk = 1
        self.done_count = 0

    def go_on(self) -> None:
        """Queue a chunk, then wait until the one before it is done."""
        started_s = time.monotonic()
        for _ in range(self._chunk):
            next(self._calls)()
        self._now.record()
        if self.done_count:
            self._before.synchronize()
        self._before, self._now = self._now, self._before
        self.done_count += self._chunk
        if time.monotonic() - started_s < CHUNK_S / 2:  # short calls: queue more of them
            self._chunk = min(2 * self._chunk, MOST_CHUNK)

    def for_s(self, least_s: float) -> None:
        """Go on for so long; the last chunk is still running on return."""
        started_s = time.monotonic()
        while time.monotonic() - started_s < least_s:
            self.go_on()


def energy_per_call_j(
    calls: Sequence[Call], counter_j: Callable[[], float | None], *, least_s: float = 1.0
) -> float | None:
    """Return joules per call, by a counter that is read from step to step while the device works.

    None where nothing is counted. An H200's counter steps every 0.1 s.
    """
    if counter_j() is None:
        return None
    work = Work(calls)
    try:
        first_j, first_count = _at_step(work, counter_j)
        work.for_s(least_s)
        last_j, last_count = _at_step(work, counter_j)
    finally:
        cp.cuda.runtime.deviceSynchronize()
    done = last_count - first_count
    return (last_j - first_j) / done if done and last_j > first_j else None


def _at_step(work: Work, counter_j: Callable[[], float | None]) -> tuple[float, int]:
    """Work until the counter steps, half a second at most; return it and the calls done by then."""
    before_j = now_j = counter_j()
    started_s = time.monotonic()
    while now_j == before_j and time.monotonic() - started_s < 0.5:  # noqa: PLR2004  # five steps
        work.go_on()
        now_j = counter_j()
    return now_j or 0.0, work.done_count
