"""Kernels for a real card that break, each in its own way, beside one that is right."""

import ctypes
import os
import time
from typing import Any

from solkit import Array, Case, Kernel, Launch

BLOCK = 256  # of breaks_the_card.cu


def launched(entry: str, *, name: str = "", source: str = "breaks_the_card.cu") -> Kernel:
    """Declare one function of a source."""

    def launches(case: Case) -> tuple[Launch, ...]:
        blocks = -(-case.shape["rows"] * case.shape["cols"] // BLOCK)
        return (Launch(entry, grid=(blocks, 1, 1), block=(BLOCK, 1, 1)),)

    return Kernel(
        name=name or entry, operator="twice", source=source, launches=launches, dtypes=("fp32",)
    )


def _cupy() -> Any:
    import cupy  # noqa: PLC0415  # the worker alone has it

    return cupy


def slow(x: Array, y: Array) -> None:
    """Compute it rightly, after a while: a sweep of it can be hit in the middle."""
    time.sleep(0.01)
    _cupy().multiply(x, 2, out=y)


def exits(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Leave at once."""
    os._exit(7)


def segfaults(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Read the host's address zero."""
    ctypes.string_at(0)


def raises(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Give up."""
    message = "not today"
    raise ArithmeticError(message)


def spins(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Loop on the host without end."""
    while True:
        pass


def wants_all_memory(x: Array, y: Array) -> None:
    """Ask the card for 4 TiB in between."""
    between = _cupy().empty(2**40, dtype=x.dtype)
    y[...] = between[: x.size].reshape(x.shape)


def faults_and_waits(x: Array, y: Array) -> None:
    """Store far outside, and meet the error itself, as code that waits for the device does."""
    cupy = _cupy()
    source = 'extern "C" __global__ void far(float* y) { y[1ll << 44] = 1; }'
    cupy.RawKernel(source, "far")((1,), (1,), (y,))
    cupy.cuda.Device().synchronize()
    y[...] = 2 * x


def launches_nothing(x: Array, y: Array) -> None:
    """Leave the device alone."""


def returns_another_shape(x: Array, y: Array) -> Array:  # noqa: ARG001  # written by nobody
    """Return one row less than is declared."""
    return 2 * x[1:]


ENTRIES = (
    "illegal",
    "misaligned",
    "asserts",
    "traps",
    "loops",
    "loops_later",
    "writes_nothing",
)
FUNCTIONS = (
    slow,
    exits,
    segfaults,
    raises,
    spins,
    wants_all_memory,
    faults_and_waits,
    launches_nothing,
    returns_another_shape,
)
KERNELS = (
    launched("twice", name="good"),
    launched("twice", name="good_again"),
    *(launched(entry) for entry in ENTRIES),
    launched("deep", source="keeps_the_compiler_busy.cu"),
    *(
        Kernel(name=function.__name__, operator="twice", function=function, dtypes=("fp32",))
        for function in FUNCTIONS
    ),
)
