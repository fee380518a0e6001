"""Proof that the cache modes do what their names say, on this very card, before a run.

A kernel that reads a buffer of half the L2 must be faster when the buffer is still there (`hot`)
than when it has to come from memory (`cold`), and a flush must bring it back to memory's time. A
mode that does not show it is not claimed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from solkit.declare.registry import Registry
from solkit.measure import buffers
from solkit.measure.device.base import Device
from solkit.model import CacheMode, Case
from solkit.stats import median

HOT_FACTOR = 1.2  # above the floor, memory must take at least this much longer than the L2
FLUSHED_FRACTION = 0.85  # a flushed read takes at least this much of a cold one
_COUNT = 16


def modes_proved(
    device: Device,
    registry: Registry,
    modes: Sequence[CacheMode],
    *,
    floor_s: float,
    include: Path,
) -> tuple[dict[str, float], frozenset[CacheMode]]:
    """Return what a read of half the L2 took in each mode, and the modes that are proved.

    The CPU device reads nothing: its footprints alone are its proof. A graph can't flush.
    """
    if device.kind == "cpu":
        return {}, frozenset(modes)
    wanted: tuple[CacheMode, ...] = tuple(dict.fromkeys((*modes, "cold", "hot")))
    times_s = {mode: _read_s(device, registry, mode, include) for mode in wanted}
    return {str(mode): time_s for mode, time_s in times_s.items()}, frozenset(
        judged(times_s, floor_s=floor_s)
    ) & frozenset(modes)


def judged(times_s: Mapping[CacheMode, float], *, floor_s: float) -> set[CacheMode]:
    """Return the modes whose times are as their names say: pure, from the times of one read."""
    cold_s, hot_s = times_s["cold"] - floor_s, times_s["hot"] - floor_s
    if cold_s <= 0 or cold_s < HOT_FACTOR * hot_s:
        return set()
    proved: set[CacheMode] = {"cold", "hot"}
    flushed: tuple[CacheMode, ...] = ("clean", "zeroed")
    return proved | {
        mode
        for mode in flushed
        if mode in times_s and times_s[mode] - floor_s >= FLUSHED_FRACTION * cold_s
    }


def _read_s(device: Device, registry: Registry, mode: CacheMode, include: Path) -> float:
    operator, kernel = registry.operators["read"], registry.kernels["read", "solkit"]
    elements = device.cache_bytes // 2 // 4
    case = replace(Case("read", "solkit", {"elements": elements}, "fp32"), cache_mode=mode)
    program = device.prepare(kernel, operator, case, include)
    sets = buffers.make(device, operator, case, 0)

    def batch() -> list[float]:
        lead = device.lead_count
        calls = [program.bind(sets.buffers(number)) for number in sets.next(device, _COUNT + lead)]
        return [sample.time_s for sample in device.time(calls, mode=mode)[lead:]]

    batch()  # warms up
    return median(batch())
