"""Stamps: the global timer and the cycle counter of SM 0, before and after each call."""

from typing import Any

import cupy as cp
import numpy as np

from solkit.measure.device.records import Places

_LEAST_HZ, _MOST_HZ = 2e8, 4e9  # a reading outside is a stamp that went wrong, not a clock
LEAST_STEPS = 50  # of the global timer between two stamps: fewer would tell the clock to no 4 %
_STAMP_BYTES = 16


class Stamps:
    """A row of stamps on the device, written in stream order and read back after a batch."""

    def __init__(self, kernel: Any, *, sm_count: int, most: int, step_ns: int) -> None:  # noqa: ANN401  # a CuPy function
        self._kernel = kernel
        self._grid = (sm_count, 1, 1)  # a thread an SM: only the one on SM 0 writes
        self._least_ns = LEAST_STEPS * step_ns
        self._held = cp.zeros((most, 2), dtype=cp.int64)

    def clear(self) -> None:
        """Forget the last batch: a stamp that is missing must not read as an old one."""
        self._held.data.memset_async(0, self._held.nbytes)

    def put(self, place: int) -> None:
        """Queue one stamp."""
        where = np.uint64(self._held.data.ptr + _STAMP_BYTES * place)
        self._kernel(self._grid, (1, 1, 1), (where,))

    def clocks_hz(self, pairs: Places) -> list[float | None]:
        """Return cycles over nanoseconds between each pair of stamps.

        None where one is missing, or where they are too near each other for the timer's step.
        """
        held = self._held.get()
        return [_clock_hz(held[first], held[last], self._least_ns) for first, last in pairs]


def _clock_hz(first: Any, last: Any, least_ns: int) -> float | None:  # noqa: ANN401  # rows of an array
    if not first[0] or not last[0] or last[0] - first[0] < least_ns:
        return None
    hz = float(last[1] - first[1]) / float(last[0] - first[0]) * 1e9
    return hz if _LEAST_HZ <= hz <= _MOST_HZ else None
