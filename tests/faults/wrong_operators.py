"""Operators whose reference or work model is wrong, which shows only when a case is looked at."""

import os

from solkit import Arg, Array, Case, Operator, Work

ARGS = (Arg("x", "rows cols"), Arg("y", "rows cols", "out"))


def right(x: Array) -> Array:
    """Return what is wanted."""
    return 2 * x


def work(case: Case) -> Work:
    """Count as it should be."""
    return Work(read_bytes=case.shape["rows"], write_bytes=case.shape["cols"])


def negative(case: Case) -> Work:
    """Count backwards."""
    return Work(read_bytes=-case.shape["rows"], write_bytes=case.shape["cols"])


def ends(case: Case) -> Work:
    """Take the worker down."""
    os._exit(case.shape["rows"] % 100)


OPERATORS = [
    Operator(name="wrong_shape", args=ARGS, work=work, reference=lambda x: right(x)[:, 0]),
    Operator(name="negative_work", args=ARGS, work=negative, reference=right),
    Operator(name="ending_work", args=ARGS, work=ends, reference=right),
    Operator(name="fine", args=ARGS, work=work, reference=right),
]
