"""Kernels that ask for what is not there: memory, time, an argument that holds."""

import os

import numpy as np

from solkit import Array, Kernel


def wants_all_memory(x: Array, y: Array) -> None:
    """Ask for 2^50 values in between."""
    between = np.empty(2**50, dtype=x.dtype)
    y[...] = between[: x.size].reshape(x.shape)


def spins(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Loop without end, and without giving anything back."""
    while True:
        pass


def aborts(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """End as a failed assertion in a C library does."""
    os.abort()


def asserts(x: Array, y: Array) -> None:
    """Insist on what is not so."""
    assert len(x) < 0, "rows are negative"  # the fault
    y[...] = 2 * x


def returns_another_shape(x: Array, y: Array) -> Array:  # noqa: ARG001  # written by nobody
    """Return one row less than is declared, and write nothing."""
    return 2 * x[1:]


KERNELS = [
    Kernel(name=function.__name__, operator="twice", function=function, device="cpu")
    for function in (wants_all_memory, spins, aborts, asserts, returns_another_shape)
]
