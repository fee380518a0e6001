"""The measured roof of this host: what NumPy's streams and products reach, now.

It is measured in every run and never stored: a host shares its memory and its cores with whatever
else runs, so ceilings of another hour would belong to another load.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle, repeat
from typing import Any

import numpy as np

from solkit.declare.arg import Array
from solkit.measure.ceilings import STREAMS
from solkit.measure.host import cpu_facts
from solkit.model import Ceilings, DramCeiling, PipeCeiling

CPU_TRAFFIC_BYTES = (2**16, 2**20, 2**24, 2**27)
_GEMM_EXTENTS = (1024, 2048)
_HOST_STREAMS = {"read": 1, "copy": 2, "triad": 3, "write": 1}  # arrays that each one goes over
_HOST_LEAST_COUNT, _HOST_MOST_COUNT, _HOST_SPEND_S = 9, 2000, 0.1
_ROTATION_BYTES = 2**28


def cpu_ceilings() -> Ceilings:
    """Measure this host: streams over cold buffers by one and by all cores, and matrix products.

    The fastest call of both at each size is the ceiling; NumPy's element loops use one core.
    """
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    cache_bytes = cpu_facts().l2_bytes or 0
    sets = {traffic: rotation_count(traffic, cache_bytes) for traffic in CPU_TRAFFIC_BYTES}
    # One arena for all: touching a new one for each point took longer than the measurement.
    arena = np.ones(max(traffic * count for traffic, count in sets.items()) // 4, dtype=np.float32)
    with ThreadPoolExecutor(cores) as pool:
        points = [
            _host_point(name, traffic, sets[traffic], arena, cores, pool)
            for name in STREAMS
            for traffic in CPU_TRAFFIC_BYTES
        ]
    pipes = [
        _host_gemm(pipe, kind, extent)
        for pipe, kind in (("fp32", np.float32), ("fp64", np.float64))
        for extent in _GEMM_EXTENTS
    ]
    return Ceilings(
        f"perf_counter, cold, the better of 1 and {cores} threads", tuple(points), tuple(pipes)
    )


def rotation_count(traffic_bytes: int, cache_bytes: int) -> int:
    """Return how many buffer sets leave nothing of one in a last-level cache until its turn."""
    return max(2, -(-max(2 * cache_bytes, _ROTATION_BYTES) // traffic_bytes))


def _host_point(
    name: str, traffic_bytes: int, sets: int, arena: Array, cores: int, pool: ThreadPoolExecutor
) -> DramCeiling:
    streams = _HOST_STREAMS[name]
    count = traffic_bytes // (4 * streams)
    arrays = list(arena[: streams * sets * count].reshape(streams, sets, count))
    best_s = min(
        fastest_s(_stream_calls(name, arrays, threads, pool)) for threads in sorted({1, cores})
    )
    read = {"read": 1, "copy": 1, "triad": 2, "write": 0}[name] * count * 4
    return DramCeiling(name, read, traffic_of(name, count) - read, best_s)


def _stream_calls(
    name: str, arrays: Sequence[np.ndarray], threads: int, pool: ThreadPoolExecutor
) -> Iterator[Callable[[], object]]:
    """Yield one call after the other, each on the next buffer set, split over the threads."""
    stream = partial(_stream, name)
    for number in cycle(range(len(arrays[0]))):
        parts = [np.array_split(array[number], threads) for array in arrays]
        work = list(zip(*parts, strict=True))
        yield partial(stream, work[0]) if threads == 1 else partial(_at_once, pool, stream, work)


def _at_once(
    pool: ThreadPoolExecutor, stream: Callable[[Any], None], work: Sequence[object]
) -> None:
    list(pool.map(stream, work))


def fastest_s(calls: Iterator[Callable[[], object]]) -> float:
    """Return the time of the fastest call: what else runs on a host only ever adds time.

    The first call is not timed (page faults, the start of BLAS's threads). A busy host is slow for
    a tenth of a second at a time, so the calls go on beyond that.
    """
    next(calls)()
    best_s, spent_s, count = float("inf"), 0.0, 0
    while count < _HOST_LEAST_COUNT or (spent_s < _HOST_SPEND_S and count < _HOST_MOST_COUNT):
        call = next(calls)
        started_ns = time.perf_counter_ns()
        call()
        time_s = (time.perf_counter_ns() - started_ns) * 1e-9
        best_s, spent_s, count = min(best_s, time_s), spent_s + time_s, count + 1
    return best_s


def traffic_of(name: str, count: int) -> int:
    """Return the bytes that one pass of a host stream moves (fp32)."""
    return _HOST_STREAMS[name] * count * 4


def _stream(name: str, part: Sequence[np.ndarray]) -> None:
    if name == "read":
        np.dot(part[0], part[0])
    elif name == "copy":
        np.copyto(part[1], part[0])
    elif name == "write":
        part[0].fill(1.0)
    else:
        np.add(part[1], part[2], out=part[0])


def _host_gemm(pipe: str, kind: type[np.floating[Any]], extent: int) -> PipeCeiling:
    rng = np.random.default_rng(0)
    left: Array = rng.standard_normal((extent, extent)).astype(kind)
    right: Array = rng.standard_normal((extent, extent)).astype(kind)
    out = np.empty_like(left)
    best_s = fastest_s(repeat(partial(np.matmul, left, right, out=out)))
    return PipeCeiling(pipe, 2 * extent**3, best_s, f"numpy.matmul {extent}^3, the fastest call")
