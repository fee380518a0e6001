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


def returns_a_row_less(x: Array, y: Array) -> Array:
    """Return one row too few."""
    del y
    return 2 * x[1:]


def returns_another_dtype(x: Array, y: Array) -> Array:
    """Return twice as many bits as are declared."""
    return (2 * x).astype(f"f{2 * y.itemsize}")


def returns_a_list(x: Array, y: Array) -> list[Array]:
    """Return what is no array."""
    del y
    return [2 * x]


def makes_nan(x: Array, y: Array) -> None:
    """Compute inf - inf in one place."""
    y[...] = 2 * x
    y[3, 5] = float("inf")
    y[3, 5] -= y[3, 5]


def makes_infinity(x: Array, y: Array) -> None:
    """Overflow in the last place."""
    y[...] = 2 * x
    y[-1, -1] = float("inf")


KERNELS = [
    Kernel(name=function.__name__, operator="twice", function=function, device="cpu")
    for function in (
        writes_nothing,
        writes_half,
        repeats_its_last_result,
        writes_to_its_input,
        returns_a_row_less,
        returns_another_dtype,
        returns_a_list,
        makes_nan,
        makes_infinity,
    )
]
