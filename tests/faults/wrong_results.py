"""Kernels that return and are wrong, each in its own way."""

from solkit import Array, Kernel


def writes_nothing(x: Array, y: Array) -> None:
    """Leave y as it was."""


def writes_half(x: Array, y: Array) -> None:
    """Forget the second half of the rows."""
    y[: len(y) // 2] = 2 * x[: len(y) // 2]


_KEPT: list[Array] = []


def repeats_its_last_result(x: Array, y: Array) -> None:
    """Compute once, and copy that result ever after: quick, and right until the inputs change."""
    if not _KEPT:
        _KEPT.append(2 * x)
    y[...] = _KEPT[0]


def writes_to_its_input(x: Array, y: Array) -> None:
    """Compute in place and copy: the caller's x is gone."""
    x *= 2
    y[...] = x


KERNELS = [
    Kernel(name=function.__name__, operator="twice", function=function, device="cpu")
    for function in (writes_nothing, writes_half, repeats_its_last_result, writes_to_its_input)
]
