"""Kernels whose errors are hard to put into words, and one that speaks in the worker's place."""

import os
import stat
import sys

import numpy as np

from solkit import Arg, Array, Case, Kernel, Operator, Work


class Wordless(Exception):
    """An error that raises when it is asked what it says, and what it is."""

    def __str__(self) -> str:
        """Raise."""
        raise ValueError(self.args)

    @property
    def status(self) -> int:
        """Raise, where CuPy's errors have the driver's number."""
        raise OSError

    verdict = status


def wordless(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Raise what can't be printed."""
    raise Wordless


def surrogate(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Raise what UTF-8 can't carry."""
    message = "half \ud800 of a sign"
    raise ValueError(message)


def endless(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Raise what fills a report."""
    raise ValueError("x" * 1_000_000)


def says_done(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Write an answer, of no outcomes, to every pipe that is open."""
    for descriptor in range(3, 32):
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, b'{"done":[]}\n')
        except OSError:
            continue


def raises_at_exit(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Leave without a code of its own."""
    sys.exit(0)


def _work(case: Case) -> Work:
    """Raise as the kernels do, by the number of elements."""
    n = case.shape["n"]
    if n == 1:
        raise Wordless
    if n == 2:
        surrogate(np.zeros(1), np.zeros(1))
    if n == 4:
        says_done(np.zeros(1), np.zeros(1))
    return Work(4 * n, 4 * n)


OPERATOR = Operator(
    name="odd_work",
    args=(Arg("x", "n"), Arg("y", "n", "out")),
    work=_work,
    reference=lambda x: x,
)
KERNELS = [
    Kernel(name=function.__name__, operator="twice", function=function, device="cpu")
    for function in (wordless, surrogate, endless, says_done, raises_at_exit)
]
