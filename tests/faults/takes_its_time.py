"""A kernel that is right and slow: a sweep of it can be hit in the middle."""

import time

from solkit import Array, Kernel


def slow(x: Array, y: Array) -> None:
    """Write twice x to y, after a while."""
    time.sleep(0.01)
    y[...] = 2 * x


KERNEL = Kernel(name="slow", operator="twice", function=slow, device="cpu")
