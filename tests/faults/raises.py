"""Kernels that raise, or can't be called as declared."""

from solkit import Array, Kernel


def raises(x: Array, y: Array) -> None:  # noqa: ARG001  # never looked at
    """Give up."""
    message = "not today"
    raise ArithmeticError(message)


def wrong_argument_list(x: Array, out: Array) -> None:
    """Name the output otherwise than the operator does."""
    out[...] = 2 * x


KERNELS = [
    Kernel(name=function.__name__, operator="twice", function=function, device="cpu")
    for function in (raises, wrong_argument_list)
]
