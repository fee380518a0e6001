"""The L2 before a call: flushes by reading and by zeroing, and lines that kernels had pinned."""

import contextlib
import ctypes
import functools
from typing import Any

import cupy as cp
import numpy as np

from solkit.measure.device.base import Call
from solkit.measure.device.cuda.timers import Flush
from solkit.model import CacheMode

LEAST_FLUSH_BYTES = 2**28
_PERSISTING_LIMIT = 6  # cudaLimitPersistingL2CacheSize


class L2:
    """Flushes move max(256 MiB, 2 x L2) through the cache; their buffer is made on first use."""

    def __init__(self, reader: Any, *, l2_bytes: int, sm_count: int) -> None:  # noqa: ANN401  # a CuPy function
        self._reader = reader
        self.size_bytes = l2_bytes
        self._bytes = max(LEAST_FLUSH_BYTES, 2 * l2_bytes)
        self._grid = (sm_count * 8, 1, 1)
        self._buffer: Any = None
        self._driver = ctypes.CDLL("libcuda.so.1")

    def flush(self, mode: CacheMode) -> Flush:
        """Return the call that brings the L2 into a mode's state; None where buffers do that."""
        if mode not in ("clean", "zeroed"):
            return None
        if self._buffer is None:
            self._buffer = cp.zeros(self._bytes, dtype=cp.uint8)
            self._sink = cp.zeros(1, dtype=cp.uint32)
        return self._read if mode == "clean" else self._zero

    def reads(self, nbytes: int, count: int) -> list[Call]:
        """Return calls that each read a buffer of their own, of so many bytes."""
        arena, sink = cp.zeros(count * nbytes, dtype=cp.uint8), cp.zeros(1, dtype=cp.uint32)
        items = np.int64(nbytes // 16)
        parts = [arena[place * nbytes : (place + 1) * nbytes] for place in range(count)]
        return [
            functools.partial(self._reader, self._grid, (512, 1, 1), (part, items, sink))
            for part in parts
        ]

    def unpin(self) -> None:
        """Take the set-aside part of the L2 back, and make persisting lines ordinary ones.

        A reset alone leaves the carve-out, so the limit goes first. Cards without one refuse both.
        """
        with contextlib.suppress(cp.cuda.runtime.CUDARuntimeError):
            cp.cuda.runtime.deviceSetLimit(_PERSISTING_LIMIT, 0)
        self._driver.cuCtxResetPersistingL2Cache()

    def _read(self) -> None:
        count = np.int64(self._bytes // 16)
        self._reader(self._grid, (512, 1, 1), (self._buffer, count, self._sink))

    def _zero(self) -> None:
        self._buffer.data.memset_async(0, self._bytes)
