"""The measured roof: what the best streaming and matrix kernels reach on this very device."""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from solkit.declare.operator import Array
from solkit.declare.registry import Registry, bundled
from solkit.measure import buffers, group
from solkit.measure.device.base import Device, Program
from solkit.model import Case, Ceilings, DramCeiling, PipeCeiling
from solkit.stats import median

STREAMS = ("read", "triad", "copy", "write")
CUDA_TRAFFIC_BYTES = tuple(2**power for power in range(16, 31, 2))  # 64 KiB to 1 GiB
CPU_TRAFFIC_BYTES = (2**16, 2**20, 2**24, 2**28)
_STREAM_WARM, _STREAM_COUNT = 15, 41
_CPU_REPEATS = 9
_GEMM_REPEATS = 5
_GEMM_EXTENTS = (1024, 2048)


def cuda_ceilings(device: Device, settings: group.Settings, alive: Callable[[], None]) -> Ceilings:
    """Measure the bundled streaming kernels over traffic, by the run's own method, and cuBLAS.

    `alive` is called at each point, so that whoever waits knows that it goes on.
    """
    from solkit.measure.device.cuda.gemm import gemm_ceilings  # noqa: PLC0415  # CuPy, on a CUDA device alone

    registry = bundled()
    points = [
        point
        for operator in STREAMS
        for traffic in CUDA_TRAFFIC_BYTES
        if (point := _stream_point(device, registry, operator, traffic, settings, alive))
    ]
    return Ceilings(f"{device.method}, {device.cache}", tuple(points), tuple(gemm_ceilings(device)))


def _stream_point(
    device: Device,
    registry: Registry,
    operator: str,
    traffic_bytes: int,
    settings: group.Settings,
    alive: Callable[[], None],
) -> DramCeiling | None:
    """Return the best kernel's median at one traffic; None when the device has no room for it.

    These kernels' outputs are checked as any others' when they are cases; here they are only timed.
    """
    alive()
    declared = registry.operators[operator]
    streams = len(declared.args) if operator in ("copy", "triad") else 1
    elements = max(1, traffic_bytes // (4 * streams) // 1024) * 1024
    best: DramCeiling | None = None
    for name in registry.kernel_names(operator, "cuda"):
        case = Case(operator, name, {"elements": elements}, "fp32")
        if 2 * sum(arg.nbytes(case) for arg in declared.args) > device.free_bytes():
            continue
        kernel = registry.kernels[operator, name]
        program = device.prepare(kernel, declared, case, settings.include)
        sets = buffers.make(device, declared, case, settings.seed)
        work = declared.work(case)
        point = DramCeiling(
            operator, work.read_bytes, work.write_bytes, _median_s(device, program, sets)
        )
        best = point if best is None or point.median_s < best.median_s else best
    return best


def _median_s(device: Device, program: Program, sets: buffers.BufferSets) -> float:
    def samples(count: int) -> list[float]:
        calls = [program.bind(sets.buffers(sets.take())) for _ in range(count)]
        return [sample.time_s for sample in device.time(calls)]

    samples(_STREAM_WARM)
    return median(samples(_STREAM_COUNT))


def cpu_ceilings() -> Ceilings:
    """Measure this host: streams over cold buffers by one and by all cores, and matrix products.

    The fastest sample of both at each size is the ceiling; NumPy's element loops use one core.
    """
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    with ThreadPoolExecutor(cores) as pool:
        points = [
            _host_point(name, traffic, cores, pool)
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


def _host_point(name: str, traffic_bytes: int, cores: int, pool: ThreadPoolExecutor) -> DramCeiling:
    streams = {"read": 1, "copy": 2, "triad": 3, "write": 1}[name]
    count = traffic_bytes // (4 * streams)
    # Rotation over a quarter GiB and more leaves nothing of a set in a cache of up to 128 MiB.
    sets = max(2, min(1024, 2**28 // traffic_bytes))
    arrays = [np.ones((sets, count), dtype=np.float32) for _ in range(streams)]
    best_s = float("inf")
    for threads in {1, cores}:
        times = []
        for repeat in range(_CPU_REPEATS + 2):
            chosen = [array[(repeat * 7) % sets] for array in arrays]
            parts = [np.array_split(array, threads) for array in chosen]
            work = [tuple(part[index] for part in parts) for index in range(threads)]
            started = time.perf_counter_ns()
            if threads == 1:
                _stream(name, work[0])
            else:
                list(pool.map(lambda part: _stream(name, part), work))
            times.append((time.perf_counter_ns() - started) * 1e-9)
        best_s = min(best_s, *times[2:])  # what else runs on a host only ever adds time
    read = {"read": 1, "copy": 1, "triad": 2, "write": 0}[name] * count * 4
    return DramCeiling(name, read, traffic_of(name, count) - read, best_s)


def traffic_of(name: str, count: int) -> int:
    """Return the bytes that one pass of a host stream moves (fp32)."""
    return {"read": 1, "copy": 2, "triad": 3, "write": 1}[name] * count * 4


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
    best_s = min(_host_time(lambda: np.matmul(left, right, out=out)) for _ in range(_GEMM_REPEATS))
    return PipeCeiling(
        pipe, 2 * extent**3, best_s, f"numpy.matmul {extent}^3, best of {_GEMM_REPEATS}"
    )


def _host_time(call: Callable[[], object]) -> float:
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) * 1e-9
