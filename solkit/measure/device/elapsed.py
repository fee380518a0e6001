"""The host's own time in a call: what a CPU device measures, and what a launch costs on CUDA."""

import gc
import time
from collections.abc import Callable, Sequence


def elapsed_s(call: Callable[[], object]) -> float:
    """Return how long the host was in a call."""
    started_ns = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started_ns) * 1e-9


def elapsed_each_s(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Return how long the host was in each of the calls, with nothing between them.

    The garbage collector is off meanwhile: freeing device memory may wait for the device.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return [elapsed_s(call) for call in calls]
    finally:
        if collects:
            gc.enable()
