"""Kernels of known length: the truth every method is held against.

A spin kernel watches the GPU's global timer until so many nanoseconds have passed. What a method
reads on it, less what it reads on an empty kernel, must be that length.
"""

import statistics
from typing import Any

from accuracy_parts.parts import Save
from accuracy_parts.streams import median_us, quantiles_us

from solkit.measure.device.base import Sample, Timer
from solkit.measure.device.cuda.device import CudaDevice

LENGTHS_US = (2, 5, 10, 100)
SAMPLES, GRAPH_CALLS, GRAPH_BATCHES = 320, 20, 10
# CUPTI comes last: its records cost the host time, and event pairs round a call grow by 0.3 us.
METHODS: tuple[Timer, ...] = ("graph", "event_blocked", "event_unblocked", "cupti")


def measure(save: Save) -> None:
    """Save a row for each length and method; and why a method can't be had."""
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    for method in METHODS:
        try:
            device = CudaDevice(0, timer=method)
            floor_us = device.floor_s() * 1e6
            rows += [_row(device, method, length_us, floor_us) for length_us in LENGTHS_US]
        except Exception as error:  # noqa: BLE001  # recorded: the other methods go on
            missing[f"spin/{method}"] = f"{type(error).__name__}: {error}"
        print(f"  {method}: {len(rows)} rows so far", flush=True)
        save({"spin": rows, "missing": missing})


def _row(device: CudaDevice, method: str, length_us: int, floor_us: float) -> dict[str, Any]:
    samples = _samples(device, length_us)
    times_us = [sample.time_s * 1e6 for sample in samples]
    clocks_hz = [sample.sm_hz for sample in samples if sample.sm_hz]
    median = median_us(times_us)
    return {
        "us": length_us,
        "method": method,
        "floor_us": round(floor_us, 3),
        "median_us": median,
        "error_us": round(median - floor_us - length_us, 3),
        "count": len(times_us),
        "sm_hz": round(statistics.median(clocks_hz)) if clocks_hz else None,
        "quantiles_us": quantiles_us(times_us),
    }


def _samples(device: CudaDevice, length_us: int) -> list[Sample]:
    call, lead = device.spin(length_us * 1000), device.lead_count
    graph = device.method == "graph"
    size = GRAPH_CALLS if graph else device.most_calls
    device.time([call] * size, mode="hot")  # warms up
    taken: list[Sample] = []
    batches = 0
    while batches < GRAPH_BATCHES if graph else len(taken) < SAMPLES:
        taken += device.time([call] * size, mode="hot")[lead:]
        batches += 1
    return taken
