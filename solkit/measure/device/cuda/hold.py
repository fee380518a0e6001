"""A blocked stream: everything is queued before the device may run any of it.

A kernel of one thread polls a flag in host memory; whatever is queued behind it waits. So no host
time falls between two events or two kernels of a call. Traps, and what is done about them: a call
that waits for the device would wait for ever (the kernel gives up after `limit_s`, which is told);
more launches than the queue holds (1024 on an H200) block the host (callers queue far fewer); an
exception on the way must not leave the device blocked (the flag is raised whatever happens); the
garbage collector may free device memory, which waits (it is off meanwhile).
"""

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np

from solkit.measure.device.base import Unblockable

LIMIT_S = 1.0
_ONE = (1, 1, 1)


class Hold:
    """Blocks the current stream while work is queued on it."""

    def __init__(self, kernel: Any) -> None:  # noqa: ANN401  # a CuPy function
        self._kernel = kernel
        self._memory = cp.cuda.alloc_pinned_memory(8)
        self._flag = np.frombuffer(self._memory, dtype=np.uint32, count=2)

    def run(
        self,
        queue: Callable[[], None],
        *,
        limit_s: float = LIMIT_S,
        wait: Callable[[], None] = cp.cuda.runtime.deviceSynchronize,
    ) -> None:
        """Queue work behind the block, let it run, wait for the device.

        Unblockable when the queueing itself waited for the device or took longer than `limit_s`.
        """
        self._flag[:] = 0
        collects = gc.isenabled()
        gc.disable()
        try:
            arguments = (np.uint64(self._memory.ptr), np.int64(limit_s * 1e9))
            self._kernel(_ONE, _ONE, arguments)
            queue()
        except Exception:
            self._flag[0] = 1
            quiet()  # what is queued already must not run on into the next batch
            raise
        finally:
            self._flag[0] = 1
            if collects:
                gc.enable()
        wait()
        if self._flag[1]:
            raise Unblockable(
                f"the call waits for the device itself, or takes {limit_s:g} s to queue",
                remedy="leave waiting to the caller; times of such calls hold host work",
            )


def quiet() -> None:
    """Wait for the device; the error that is on its way already is the one to tell."""
    with contextlib.suppress(cp.cuda.runtime.CUDARuntimeError):
        cp.cuda.runtime.deviceSynchronize()
