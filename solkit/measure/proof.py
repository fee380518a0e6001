"""Proof that the cache modes do what their names say, on this very card, before a run.

A kernel that reads a buffer of half the L2 must be faster when the buffer is still there (`hot`)
than when it has to come from memory (`cold`), and a flush must bring it back to memory's time. A
mode that does not show it is not claimed.
"""

from collections.abc import Mapping, Sequence

from solkit.measure.device.base import Device
from solkit.model import CacheMode

HOT_FACTOR = 1.2  # above the floor, memory must take at least this much longer than the L2
FLUSHED_FRACTION = 0.85  # a flushed read takes at least this much of a cold one


def modes_proved(
    device: Device, modes: Sequence[CacheMode], *, floor_s: float
) -> tuple[dict[str, float], frozenset[CacheMode]]:
    """Return what a read of half the L2 took in each mode, and the modes that are proved.

    The CPU device reads nothing: its footprints alone are its proof. BadInput where a mode needs
    a flush between calls and the timer is a graph.
    """
    if device.kind == "cpu":
        return {}, frozenset(modes)
    wanted: tuple[CacheMode, ...] = tuple(dict.fromkeys((*modes, "cold", "hot")))
    times_s = {mode: device.read_s(mode, device.cache_bytes // 2) for mode in wanted}
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
