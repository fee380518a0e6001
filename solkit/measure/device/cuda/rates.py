"""Ceilings of a CUDA device that kernels of its own measure: the fp32 pipe, and reads of the L2."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda.function import Module

from solkit.declare.arg import Array
from solkit.measure.device import nvrtc
from solkit.measure.device.base import Call, Device
from solkit.measure.device.cuda import rate_forms as forms
from solkit.measure.load import Rest, burst, clock_hz
from solkit.model import DramCeiling, PipeCeiling
from solkit.stats import median
from solkit.units import capacity


@dataclass(frozen=True, slots=True)
class Rates:
    """The kernels of rates.cu, loaded on the current device."""

    functions: Mapping[str, Any]
    sm_count: int

    def fill(self, kind: str, array: Array, seed: int) -> None:
        """Fill an array of bytes with random values: `e4m3` (normal) or `int8` (uniform)."""
        grid = (self.sm_count * 16, 1, 1)
        self.functions[forms.FILL_KERNELS[kind]](
            grid, (256, 1, 1), (array, np.int64(array.size), np.int64(seed))
        )


def load_rates() -> Rates:
    """Compile (or take from the cache) and load the kernels for the current device."""
    device = cp.cuda.Device()
    # No instruction of these is newer than sm_75, so no architecture-specific target is needed.
    compilation = nvrtc.compile_source(
        forms.SOURCE.read_text(encoding="utf-8"),
        name=forms.SOURCE.name,
        entries=forms.ENTRIES,
        arch=f"sm_{device.compute_capability}",
    )
    module = Module()
    module.load(compilation.cubin)
    functions = {entry: module.get_function(compilation.lowered[entry]) for entry in forms.ENTRIES}
    return Rates(functions, int(device.attributes["MultiProcessorCount"]))


def fp32_ceiling(device: Device, rates: Rates, rest: Rest) -> PipeCeiling:
    """Return the rate of independent fused multiply-adds in fp32, each 2 flop."""
    blocks = rates.sm_count * forms.FMA_BLOCKS_PER_SM
    out = cp.empty(blocks * forms.FMA_BLOCK, dtype=cp.float32)
    arguments = (
        out,
        np.int64(forms.FMA_ROUNDS),
        np.float32(forms.FMA_SCALE),
        np.float32(forms.FMA_SHIFT),
    )
    call = functools.partial(
        rates.functions[forms.FMA_ENTRY], (blocks, 1, 1), (forms.FMA_BLOCK, 1, 1), arguments
    )
    samples = burst(device, call, rest=rest)
    times_s = tuple(sample.time_s for sample in samples)
    threads = forms.FMA_BLOCKS_PER_SM * forms.FMA_BLOCK
    how = f"FMA, {forms.FMA_CHAINS} chains a thread, {threads} threads an SM"
    return PipeCeiling(
        "fp32",
        forms.fma_flop(rates.sm_count),
        median(times_s),
        f"{how}, burst",
        sm_hz=clock_hz(samples),
        times_s=times_s,
    )


def l2_ceiling(device: Device, rates: Rates, rest: Rest) -> DramCeiling:
    """Return the best rate of reads of a buffer that stays in the L2, read many times a call."""
    vectors = device.cache_bytes // forms.L2_SHARE // 16
    buffer = cp.empty(vectors * 16, dtype=cp.uint8)
    rates.fill("int8", buffer, seed=1)
    points = [_l2_point(device, rates, form, buffer, rest) for form in forms.L2_FORMS]
    return min(points, key=lambda point: point.median_s / point.read_bytes)


def _l2_point(
    device: Device, rates: Rates, form: tuple[int, int, int], buffer: Array, rest: Rest
) -> DramCeiling:
    per_sm, block, items = form
    threads = rates.sm_count * per_sm * block
    vectors = buffer.size // 16
    loads = forms.l2_loads(threads, vectors, items)
    out = cp.empty(threads, dtype=cp.uint32)
    numbers = tuple(np.int64(number) for number in (vectors, threads % vectors, loads))
    call: Call = functools.partial(
        rates.functions[forms.L2_ENTRIES[form]],
        (rates.sm_count * per_sm, 1, 1),
        (block, 1, 1),
        (buffer, out, *numbers),
    )
    times_s = tuple(sample.time_s for sample in burst(device, call, rest=rest))
    variant = f"{capacity(buffer.size)}, {items} loads in flight, {per_sm} blocks of {block} an SM"
    return DramCeiling("read", 16 * threads * loads, 0, median(times_s), variant, times_s)
