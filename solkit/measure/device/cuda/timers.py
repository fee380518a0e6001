"""The ways of taking times on a CUDA device, behind one protocol, and the choice of one.

`cupti` (cupti.py): the GPU's own start and end of every kernel, copy and fill of a call.
`event_blocked`: an event pair round each call, the whole batch queued behind a blocked stream.
`event_unblocked`: plain event pairs behind a delay; host time may fall between them.
`graph` (graphs.py): many calls in one graph, its time over their number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import cupy as cp

from solkit.errors import BadInput, NoDevice, SolkitError
from solkit.measure.device.base import Call, Sample, Timer, Unblockable
from solkit.measure.device.cuda.hold import Hold, quiet
from solkit.measure.device.cuda.stamps import Stamps
from solkit.measure.device.records import Places, places

MOST_CALLS = 64  # a batch with its stamps and flushes stays far below the 1024 launches of a queue
Flush = Callable[[], None] | None
# How the host keeps ahead of the device: behind a blocked stream, or by a delay before each call.
Way = Literal["block", "delay"]


@dataclass(frozen=True, slots=True)
class Tools:
    """What every way needs.

    delay: keeps the stream busy while the host queues a call that can't be blocked, so that its
    own time does not begin before the call is there.
    """

    hold: Hold
    stamps: Stamps
    empty: Call
    delay: Call


class BatchTimer(Protocol):
    """One way of taking times.

    tick_s: the step of its clock. lead_count: calls at the head of a batch that are no samples,
    since the device has someone else's lines in its L2 then.
    """

    method: str
    unblocked_method: str
    tick_s: float
    most_calls: int
    lead_count: int

    def time(self, calls: Sequence[Call], *, flush: Flush, way: Way) -> list[Sample]:
        """Return samples of the calls, in order; see Device.time."""

    def start(self) -> None:
        """Begin to record, where that is a state of the process."""

    def stop(self) -> None:
        """Record no more, until the next start."""


def run_batch(
    tools: Tools,
    calls: Sequence[Call],
    flush: Flush,
    each: Callable[[int, Call], None],
    way: Way,
) -> Places:
    """Run a batch and wait for it; return the stamps before and after each call.

    each(index, call): runs one call, with whatever a timer puts right around it.
    """
    before = _delayed(tools, flush) if way == "delay" else flush
    stamps, around = tools.stamps, places(len(calls), flushed=before is not None)
    stamps.clear()

    def queue() -> None:
        last = -1
        for index, (call, (first, after)) in enumerate(zip(calls, around, strict=True)):
            if before is not None:
                before()
            if first != last:
                stamps.put(first)
            each(index, call)
            stamps.put(after)
            last = after

    if way == "block":
        tools.hold.run(queue)
    else:
        try:
            queue()
        except Exception:
            quiet()
            raise
        cp.cuda.runtime.deviceSynchronize()
    return around


def _delayed(tools: Tools, flush: Flush) -> Callable[[], None]:
    """Return what comes before a call that is not blocked: the flush, then the delay."""

    def both() -> None:
        if flush is not None:
            flush()
        tools.delay()

    return both


class EventTimer:
    """Event pairs, each inside its pair of stamps.

    An H200 writes events on a grid of 32 ns.
    """

    tick_s = 32e-9
    most_calls = MOST_CALLS
    lead_count = 1
    unblocked_method = "event_unblocked"

    def __init__(self, tools: Tools, *, blocked: bool) -> None:
        self._tools = tools
        self._blocked = blocked
        self.method = "event_blocked" if blocked else "event_unblocked"
        self._events = [(cp.cuda.Event(), cp.cuda.Event()) for _ in range(MOST_CALLS)]

    def time(self, calls: Sequence[Call], *, flush: Flush, way: Way) -> list[Sample]:
        """Return one sample of each call."""
        events = self._events

        def paired(index: int, call: Call) -> None:
            start, stop = events[index]
            start.record()
            call()
            stop.record()

        if way == "block" and not self._blocked:
            way = "delay"
        around = run_batch(self._tools, calls, flush, paired, way)
        clocks = self._tools.stamps.clocks_hz(list(around))
        return [
            Sample(cp.cuda.get_elapsed_time(start, stop) * 1e-3, hz)
            for (start, stop), hz in zip(events, clocks, strict=False)
        ]

    def start(self) -> None:
        """Do nothing: events need no start."""

    def stop(self) -> None:
        """Do nothing: events need no end."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The way that a run takes, and what there is to say of the choice."""

    timer: BatchTimer
    notes: tuple[str, ...] = ()


def choose(wanted: Timer, tools: Tools) -> Chosen:
    """Return the way that was asked for, or the best that works here with the reason for it.

    NoDevice where a way that was named can't be had on this machine.
    """
    if wanted == "graph":
        from solkit.measure.device.cuda.graphs import GraphTimer  # noqa: PLC0415  # when asked for

        return Chosen(GraphTimer(tools))
    if wanted == "cupti":
        return Chosen(_cupti(tools))
    if wanted == "event_blocked":
        problem = _not_blocked(tools)
        if problem:
            raise NoDevice(
                f"the timer event_blocked can't be had: {problem}",
                remedy="stop the profiler, unset CUDA_LAUNCH_BLOCKING, or --timer event_unblocked",
            )
    if wanted != "auto":
        return Chosen(EventTimer(tools, blocked=wanted == "event_blocked"))
    try:
        return Chosen(_cupti(tools))
    except SolkitError as error:
        problem = _not_blocked(tools)
        timer = EventTimer(tools, blocked=not problem)
        why = f"times are taken by {timer.method}, not by cupti: {error.message}"
        return Chosen(timer, (f"{why}; {error.remedy}", *((problem,) if problem else ())))


def _cupti(tools: Tools) -> BatchTimer:
    """Start CUPTI and prove it on empty calls; NoDevice, with the remedy, where it fails."""
    try:
        from solkit.measure.device.cuda.cupti import CuptiTimer  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise NoDevice(
            f"cupti-python can't be imported ({error})", remedy="pip install 'solkit[cupti]'"
        ) from error
    problem = _not_blocked(tools)
    if problem:
        raise NoDevice(
            problem,
            remedy="stop the profiler, unset CUDA_LAUNCH_BLOCKING, or --timer event_unblocked",
        )
    timer = CuptiTimer(tools)
    try:
        timer.time([tools.empty] * 2, flush=None, way="delay")
    except SolkitError as error:
        timer.stop()
        raise NoDevice(
            f"CUPTI does not record empty kernels: {error.message}", remedy=error.remedy
        ) from error
    return timer


def _not_blocked(tools: Tools) -> str:
    """Return why a stream can't be blocked here: launches that wait, as under a profiler."""
    try:
        tools.hold.run(lambda: _called(tools.empty), limit_s=0.2)
    except Unblockable:
        return (
            "each launch waits for the device (a profiler, or CUDA_LAUNCH_BLOCKING): "
            "host time may fall into the samples"
        )
    return ""


def _called(call: Call) -> None:
    call()


def refuse_flush(method: str, flush: Flush) -> None:
    """Raise BadInput where a way can't flush between its calls."""
    if flush is not None:
        raise BadInput(
            f"the timer {method} can't flush the L2 between its calls",
            remedy="take --cache cold or hot with it, or another --timer",
        )
