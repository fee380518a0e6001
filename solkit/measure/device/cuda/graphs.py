"""The `graph` way: many calls captured in one graph; its time over their number.

What is left out is the cost of a launch from the host, which graph users don't pay; what is left in
is the gap between two nodes (on an H200 an empty kernel reads 0.7 to 1.3 us this way).
"""

import ctypes
from collections.abc import Sequence

import cupy as cp

from solkit.errors import BadInput
from solkit.measure.device.base import Call, NothingRan, Sample
from solkit.measure.device.cuda.timers import Flush, Tools, Way, refuse_flush

_REPLAYS = 5


class GraphTimer:
    """Captures a batch and replays it; a sample is one replay over the number of its calls."""

    method = unblocked_method = "graph"
    tick_s = 32e-9 / 16  # an event pair's step, shared by sixteen calls at least
    most_calls = 4096
    lead_count = 0

    def __init__(self, tools: Tools) -> None:
        self._stamps = tools.stamps
        self._stream = cp.cuda.Stream(non_blocking=True)
        self._start, self._stop = cp.cuda.Event(), cp.cuda.Event()

    def time(self, calls: Sequence[Call], *, flush: Flush, way: Way) -> list[Sample]:  # noqa: ARG002  # nothing is queued from the host
        """Return one sample a replay; the first replay only warms up."""
        refuse_flush(self.method, flush)
        graph = self._captured(calls)
        samples = []
        with self._stream:
            graph.launch(self._stream)
            for _ in range(_REPLAYS):
                self._stamps.clear()
                self._stamps.put(0)
                self._start.record()
                graph.launch(self._stream)
                self._stop.record()
                self._stamps.put(1)
                self._stream.synchronize()
                (hz,) = self._stamps.clocks_hz([(0, 1)])
                time_s = cp.cuda.get_elapsed_time(self._start, self._stop) * 1e-3
                samples.append(Sample(time_s / len(calls), hz))
        return samples

    def start(self) -> None:
        """Do nothing: a graph needs no start."""

    def stop(self) -> None:
        """Do nothing: a graph needs no end."""

    def _captured(self, calls: Sequence[Call]) -> cp.cuda.Graph:
        with self._stream:
            self._stream.begin_capture()
            problem: Exception | None = None
            try:
                for call in calls:
                    call()
            except Exception as error:  # noqa: BLE001  # the capture must end whatever the call raised
                problem = error
            try:
                graph = self._stream.end_capture()
            except cp.cuda.runtime.CUDARuntimeError as error:
                problem = problem or error
        if problem is not None:
            raise BadInput(
                f"the call can't be captured in a graph: {type(problem).__name__}: {problem}",
                remedy="work on CuPy's current stream, and wait for nothing; or another --timer",
            ) from problem
        if _node_count(graph) == 0:
            raise NothingRan(
                "no kernel ran: the call put nothing into the graph",
                remedy="launch on CuPy's current stream",
            )
        return graph


def _node_count(graph: cp.cuda.Graph) -> int | None:
    """Return how many nodes a graph has; None where the driver does not tell."""
    count = ctypes.c_size_t()
    ask = ctypes.CDLL("libcuda.so.1").cuGraphGetNodes
    known = ask(ctypes.c_void_p(graph.graph), None, ctypes.byref(count)) == 0
    return count.value if known else None
