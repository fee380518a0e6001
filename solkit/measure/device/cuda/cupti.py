"""The `cupti` way: the GPU's own records of when each kernel, copy and fill began and ended.

A record costs the host about 40 us on an H200's host, so only kernels, copies and fills are
recorded, no API calls; records.py tells by the numbers of the driver's calls what belongs where.
This is the only importer of cupti-python.
"""

import contextlib
import ctypes
import time
from collections.abc import Sequence
from typing import Any

from cupti import cupti

from solkit.errors import NoDevice
from solkit.measure.device.base import Call, Sample
from solkit.measure.device.cuda.timers import MOST_CALLS, Flush, Tools, Way, run_batch
from solkit.measure.device.records import (
    STAMP,
    Places,
    Record,
    RecordsLost,
    sample_of,
    stray,
    windows,
)

_KINDS = (
    cupti.ActivityKind.CONCURRENT_KERNEL,
    cupti.ActivityKind.MEMCPY,
    cupti.ActivityKind.MEMSET,
)
_BUFFER_BYTES = 8 << 20
_ASKED_COUNT, _ASKED_S = 10, 0.001
_SKEW_NS = 50_000  # between CUPTI's clock and its records'; the batch before ended longer ago
# CUPTI records for a process, not for whoever asked: one list for all, and who still wants it.
_RECORDS: list[Record] = []
_USERS: set[int] = set()


class CuptiTimer:
    """Times calls by activity records."""

    method = "cupti"
    unblocked_method = "cupti_unblocked"
    tick_s = 32e-9  # its stamps lie on a grid of 32 ns on an H200
    most_calls = MOST_CALLS
    lead_count = 1

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        try:
            cupti.activity_register_callbacks(_buffer, _take)
            self.start()
        except cupti.cuptiError as error:
            self.stop()
            raise NoDevice(
                f"CUPTI refuses to record: {error}",
                remedy="stop other profilers of this process (ncu, nsys, a sanitizer)",
            ) from error

    def start(self) -> None:
        """Record kernels, copies and fills."""
        _USERS.add(id(self))
        for kind in _KINDS:
            cupti.activity_enable(kind)

    def stop(self) -> None:
        """Record no more, unless another timer still does."""
        _USERS.discard(id(self))
        for kind in _KINDS if not _USERS else ():
            with contextlib.suppress(cupti.cuptiError):  # what never began need not end
                cupti.activity_disable(kind)

    def time(self, calls: Sequence[Call], *, flush: Flush, way: Way) -> list[Sample]:
        """Return one sample of each call; RecordsLost where CUPTI did not deliver them all."""
        around, records = self._run(calls, flush, way)
        clocks = self._tools.stamps.clocks_hz(around)
        parts = windows(records, around)
        return [sample_of(part, hz) for part, hz in zip(parts, clocks, strict=True)]

    def stray(self, call: Call) -> str:
        """Say what of a call's work escapes its stream, or nothing; Unblockable where it waits."""
        (around,), records = self._run([call], None, "block")
        return stray(records, around)

    def _run(self, calls: Sequence[Call], flush: Flush, way: Way) -> tuple[Places, list[Record]]:
        """Run a batch; return the stamps around its calls, and its records."""
        since_ns = int(cupti.get_timestamp()) - _SKEW_NS

        def plain(_index: int, call: Call) -> None:
            call()

        try:
            around = run_batch(self._tools, calls, flush, plain, way)
        except Exception:
            cupti.activity_flush_all(0)  # its stamps are too young to be told from the next batch's
            _RECORDS.clear()
            raise
        return around, _delivered(since_ns, 1 + max(after for _, after in around))


def _delivered(since_ns: int, stamp_count: int) -> list[Record]:
    """Return what was recorded since a moment; what an earlier batch left over is dropped.

    CUPTI hands records over when it has them: stamps that are missing are asked for again.
    """
    for _ in range(_ASKED_COUNT):
        cupti.activity_flush_all(0)
        records = [record for record in _RECORDS if record.start_ns >= since_ns]
        if sum(record.name == STAMP for record in records) >= stamp_count:
            break
        time.sleep(_ASKED_S)
    _RECORDS.clear()
    dropped = ctypes.c_size_t()
    cupti.activity_get_num_dropped_records(0, 0, ctypes.addressof(dropped))
    if dropped.value:
        raise RecordsLost(
            f"CUPTI dropped {dropped.value} records",
            remedy="launch less in a call, or take --timer event_blocked",
        )
    return records


def _buffer() -> tuple[int, int]:
    return _BUFFER_BYTES, 0


def _take(activities: Sequence[Any]) -> None:
    _RECORDS.extend(
        Record(
            str(getattr(activity, "name", "")),  # copies and fills have none
            int(activity.start),
            int(activity.end),
            int(activity.correlation_id),
        )
        for activity in activities
    )
