"""Taking times on one card: the chosen way, the state of the L2, known calls to hold it against."""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import cupy as cp
import numpy as np

from solkit.errors import SolkitError
from solkit.measure.device.base import TIMERS, Call, Sample, Timer, Unblockable
from solkit.measure.device.cuda.hold import Hold
from solkit.measure.device.cuda.l2 import L2
from solkit.measure.device.cuda.stamps import Stamps
from solkit.measure.device.cuda.stray import stray_by_poison
from solkit.measure.device.cuda.timers import MOST_CALLS, BatchTimer, Tools, Way, choose
from solkit.measure.device.cuda.work import Work, energy_per_call_j
from solkit.measure.device.elapsed import elapsed_each_s
from solkit.measure.device.records import RecordsLost
from solkit.measure.pace import AHEAD_S
from solkit.model import CacheMode
from solkit.stats import median

_WAKE_NS = 20_000_000  # an idle card needs some milliseconds to raise its clock
_FLOOR_CALLS, _FLOOR_BATCHES, _READ_COUNT = 33, 8, 24
_GRAPH_FLOOR_CALLS = 20  # the fewest calls of a graph, over which its own fixed cost is shared
_DELAY_NS = 60_000  # the host queues a call and what surrounds it in about 30 us


class Timing:
    """One way of taking times, and the instruments it needs."""

    def __init__(
        self,
        instruments: Mapping[str, Any],
        *,
        wanted: Timer,
        sm_count: int,
        l2_bytes: int,
    ) -> None:
        self._instruments = instruments
        self._tools = Tools(
            hold=Hold(instruments["solkit_hold"]),
            stamps=Stamps(
                instruments["solkit_stamp"],
                sm_count=sm_count,
                most=2 * MOST_CALLS,
                step_ns=_step_ns(instruments["timer_step"]),
            ),
            empty=self.empty(),
            delay=self.spin(_DELAY_NS),
        )
        self.l2 = L2(instruments["flush_read"], l2_bytes=l2_bytes, sm_count=sm_count)
        self.spin(_WAKE_NS)()
        chosen = choose(wanted, self._tools)
        self.timer, self.notes = chosen.timer, chosen.notes

    def time(
        self, calls: Sequence[Call], *, mode: CacheMode, blocked: bool, ahead: Sequence[Call]
    ) -> list[Sample]:
        """Return samples of the calls, in order; see Device."""
        self.l2.unpin()
        if ahead:
            # A block behind the work costs the chip less than a millisecond of rest.
            self.timer.stop()
            try:
                Work(ahead).for_s(AHEAD_S)
            finally:  # a call that raises must not leave the next case without records
                self.timer.start()
        return self._time(self.timer, calls, mode=mode, blocked=blocked)

    def settle_cache(self, calls: Sequence[Call]) -> None:
        """Clean the L2 of others' dirty lines, then run the calls, untimed and unrecorded."""
        clean = self.l2.flush("clean")
        self.timer.stop()
        try:
            if clean is not None:
                clean()
            for call in calls:
                call()
            cp.cuda.runtime.deviceSynchronize()
        finally:
            self.timer.start()

    def launch_s(self, calls: Sequence[Call]) -> float:
        """Return the median of the host's time to enqueue one of the calls.

        Nothing is recorded meanwhile: CUPTI takes a part of every launch for itself.
        """
        self.timer.stop()
        try:
            cp.cuda.runtime.deviceSynchronize()
            times_s = elapsed_each_s(calls)
            cp.cuda.runtime.deviceSynchronize()
        finally:
            self.timer.start()
        return median(times_s)

    def read_s(self, mode: CacheMode, nbytes: int) -> float:
        """Return the median of a plain read of so many bytes, in a cache mode.

        Plain, since loads that ask to be evicted first leave nothing to be found (bundled streams
        read 32 MiB from memory even when it is the same 32 MiB again).
        """
        count = -(-3 * self.l2.size_bytes // nbytes) if mode == "cold" else 1
        calls = self.l2.reads(nbytes, count)
        if mode == "cold":
            self.settle_cache(calls)

        def batch() -> list[float]:
            wanted = _READ_COUNT + self.timer.lead_count
            drawn = [calls[place % count] for place in range(wanted)]
            taken = self._time(self.timer, drawn, mode=mode, blocked=True)
            return [sample.time_s for sample in taken[self.timer.lead_count :]]

        batch()  # warms up
        return median(batch())

    def stray_work(self, call: Call, unwritten: Callable[[], Sequence[int]]) -> str:
        """Say what of a call's work escapes its stream, or nothing; see stray.py."""
        by_records = getattr(self.timer, "stray", None)
        try:
            if by_records is None:
                return stray_by_poison(call, self._tools.hold, unwritten)
            try:
                return str(by_records(call))
            except RecordsLost:
                return str(by_records(call))
        except Unblockable:
            return ""  # it waits for the device: nothing is left to run when it returns

    def empty(self, blocks: int = 1, threads: int = 32) -> Call:
        """Return a call of a kernel that does nothing."""
        return functools.partial(self._instruments["empty"], (blocks, 1, 1), (threads, 1, 1), ())

    def spin(self, length_ns: int) -> Call:
        """Return a call that keeps one thread busy for a known time, by the global timer."""
        one = (1, 1, 1)
        return functools.partial(self._instruments["spin"], one, one, (np.int64(length_ns),))

    def floor_s(self) -> float:
        """Return what the chosen way reads on an empty kernel."""
        return self._floor_s(self.timer)

    def floors_s(self) -> dict[str, float]:
        """Return what each way that works here reads on an empty kernel, the chosen one first.

        Another way than the chosen one is left out where this machine lacks it, or where it fails:
        no time of this process is taken by it.
        """
        found = {self.timer.method: self.floor_s()}
        self.timer.stop()  # CUPTI adds 0.3 us to what event pairs read on an H200
        try:
            for name in TIMERS:
                if name not in ("auto", self.timer.method):
                    with contextlib.suppress(SolkitError):
                        found[name] = self._floor_of_s(name)
        finally:
            self.timer.start()
        return found

    def _floor_of_s(self, name: Timer) -> float:
        timer = choose(name, self._tools).timer
        try:
            return self._floor_s(timer)
        finally:
            timer.stop()

    def energy_per_call_j(
        self, calls: Sequence[Call], counter_j: Callable[[], float | None]
    ) -> float | None:
        """Return the energy of a call: what the counter rose by from step to step, over the calls.

        Nothing is recorded meanwhile, and the device has always work queued.
        """
        self.timer.stop()
        try:
            return energy_per_call_j(calls, counter_j)
        finally:
            self.timer.start()

    def _floor_s(self, timer: BatchTimer) -> float:
        count = _FLOOR_CALLS if timer.method != "graph" else _GRAPH_FLOOR_CALLS

        def batch() -> list[float]:
            taken = self._time(timer, [self.empty()] * count, mode="hot", blocked=True)
            return [sample.time_s for sample in taken[timer.lead_count :]]

        batch()  # warms up
        # Calls of one length in a row meet the clock's 32 ns grid in one phase: a batch's mean
        # wanders by a tick less than its median, and every batch has a phase of its own.
        return median([fmean(batch()) for _ in range(_FLOOR_BATCHES)])

    def _time(
        self, timer: BatchTimer, calls: Sequence[Call], *, mode: CacheMode, blocked: bool
    ) -> list[Sample]:
        way: Way = "block" if blocked else "delay"
        return timer.time(calls, flush=self.l2.flush(mode), way=way)


def _step_ns(kernel: Any) -> int:  # noqa: ANN401  # a CuPy function
    """Return the step of the global timer in nanoseconds."""
    found = cp.zeros(1, dtype=cp.int64)
    kernel((1, 1, 1), (1, 1, 1), (found,))
    return int(found[0])
