"""Kernels that take the whole process with them."""

import ctypes
import os
import stat
import sys
import time

from solkit import Array, Kernel


def segfaults(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Read the byte at address zero."""
    ctypes.string_at(0)


def exits(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Leave by the front door."""
    sys.exit(3)


def says_why_and_exits(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Leave at once, with last words."""
    sys.stderr.write("out of luck\n")
    os._exit(7)


def hangs(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Wait for nothing."""
    time.sleep(3600)


def answers_for_the_worker(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Write to every pipe that is open: one of them leads to the parent."""
    for descriptor in range(3, 32):
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, b"all is well\n")
        except OSError:
            continue
    time.sleep(3600)


KERNELS = [
    Kernel(name=function.__name__, operator="twice", function=function, device="cpu")
    for function in (segfaults, exits, says_why_and_exits, hangs, answers_for_the_worker)
]
