"""Work that a call leaves on another stream, found by its poisoned outputs (without CUPTI).

What is queued behind a blocked stream can't run, so an output that changes meanwhile was written
from elsewhere; and one that still changes once the stream is idle was not waited for. Work that is
in a graph of events with the stream passes both. What runs elsewhere and ends before the stream
does can be seen by CUPTI's records alone.
"""

import time
from collections.abc import Callable, Sequence

import cupy as cp

from solkit.measure.device.base import Call
from solkit.measure.device.cuda.hold import Hold
from solkit.measure.device.records import EARLY, LATE

_WAIT_S = 0.002  # a kernel that may run has written something by then


def stray_by_poison(call: Call, hold: Hold, unwritten: Callable[[], Sequence[int]]) -> str:
    """Say what of a call's work escapes its stream, or nothing; Unblockable where it waits itself.

    unwritten: how many poisoned elements each output still has, counted on a stream of its own.
    """
    side = cp.cuda.Stream(non_blocking=True)

    def count() -> list[int]:
        with side:
            return list(unwritten())

    before = count()
    early: list[int] = []

    def queue() -> None:
        call()
        time.sleep(_WAIT_S)
        early.extend(count())

    hold.run(queue, wait=cp.cuda.get_current_stream().synchronize)
    if early != before:
        return EARLY
    left = count()
    cp.cuda.runtime.deviceSynchronize()
    return LATE if count() != left else ""
