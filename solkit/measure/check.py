"""Correctness on values: outputs against the expectation, inputs against what they were."""

from typing import Any

import numpy as np

from solkit.declare.arg import Arg, Array
from solkit.declare.operator import Operator
from solkit.dtypes import DTYPES
from solkit.measure.device.base import Buffers, Device
from solkit.measure.expectation import Expectation, Expected, expect, fetched, reference_at
from solkit.measure.verdict import CheckFailed
from solkit.model import Case, Check

__all__ = ["CheckFailed", "Expectation", "changed_input", "compare", "expect"]

_DIGITS, _INT_DIGITS = 6, 10  # of a value that is told; int32 has ten
INTEGER_POISON = -1  # every bit set
_FINITE_REMEDY = "look for an overflow, a division by zero, or memory that was read unwritten"


def compare(
    device: Device, operator: Operator, case: Case, buffers: Buffers, expected: Expectation
) -> Check:
    """Compare every output with the expectation; CheckFailed names the output, place and values.

    Values are compared where the reference was computed; what was not written, and NaN or infinity
    where the reference has none, is looked for in every element.
    """
    worst, compared = 0.0, 0
    tolerances = []
    for arg in operator.outputs_of(case):
        want, array = expected.outputs[arg.name], buffers[arg.name]
        seen = fetched(device, buffers, arg, case, expected.index)
        error = _error(seen, want)
        stray = 0 if expected.whole else _stray_count(device, array, arg, case, want)
        if not (error <= 1.0 and want.finite) or stray:
            _all_written(_unwritten_count(device, array, arg, case, want), arg, case)
            error = _exact_error(seen, want, arg, expected)
            if want.finite:
                _finite_beyond(device, operator, case, buffers, arg, stray)
        worst = max(worst, error)
        compared += seen.size
        tolerances.append(_allowance(want))
    return Check(
        error_fraction=worst,
        compared_count=compared,
        way=expected.way,
        tolerance=", ".join(dict.fromkeys(tolerances)),
        seed=expected.seed,
        inputs=expected.inputs,
    )


def changed_input(
    device: Device, operator: Operator, case: Case, buffers: Buffers, expected: Expectation
) -> str:
    """Return the first input that no longer holds what the reference was given, or nothing."""
    for arg in operator.args_of(case):
        if arg.role == "in" and device.checksum(buffers[arg.name]) != expected.checksums[arg.name]:
            return arg.name
    return ""


def _stray_count(device: Device, array: Array, arg: Arg, case: Case, want: Expected) -> int:
    """Return how many elements need a second look.

    What was not written is NaN, so floats that are finite throughout need none; of integers it is
    what holds the poison.
    """
    if DTYPES[arg.dtype_of(case)].number == "int":
        return _unwritten_count(device, array, arg, case, want)
    return device.non_finite_count(array, arg.dtype_of(case))


def _unwritten_count(device: Device, array: Array, arg: Arg, case: Case, want: Expected) -> int:
    """Return how many elements hold the poison.

    Where the reference of an integer output says -1 itself, some of them tell nothing; all do.
    """
    count = device.unwritten_count(array, arg.dtype_of(case))
    integer = DTYPES[arg.dtype_of(case)].number == "int"
    if integer and count < arg.count(case) and (want.values == INTEGER_POISON).any():
        return 0
    return count


def _error(seen: Array, want: Expected) -> float:
    """Return the largest error over its allowance; NaN where one of both is not finite."""
    if not seen.size:
        return 0.0
    with np.errstate(all="ignore"):
        error = np.subtract(seen, want.values, out=np.empty_like(seen))
        np.abs(error, out=error)
        error /= want.allowed
    return float(error.max())


def _exact_error(seen: Array, want: Expected, arg: Arg, expected: Expectation) -> float:
    """Return the largest error over its allowance; CheckFailed where that is more than one."""
    with np.errstate(all="ignore"):
        error = np.abs(seen - want.values) / want.allowed
    same = (seen == want.values) | (np.isnan(seen) & np.isnan(want.values))
    error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
    if not error.size or error.max() <= 1.0:
        return float(error.max(initial=0.0))
    stray = np.isfinite(want.values) & ~np.isfinite(seen)
    if stray.any():
        place = np.unravel_index(int(stray.argmax()), stray.shape)
        raise CheckFailed(
            f"{_told(seen, want, arg, place, expected)}; {int(stray.sum())} of {error.size} "
            "compared elements are NaN or infinite where the reference is finite",
            remedy=_FINITE_REMEDY,
            verdict="non_finite",
        )
    place = np.unravel_index(int(error.argmax()), error.shape)
    raise CheckFailed(
        f"{_told(seen, want, arg, place, expected)}; {int((error > 1.0).sum())} of {error.size} "
        f"compared elements are off by more than {_allowance(want)}",
        remedy="mend the kernel, or the operator's tolerance if rounding explains it",
        verdict="wrong_values",
    )


def _all_written(count: int, arg: Arg, case: Case) -> None:
    total = arg.count(case)
    message = f"{count} of {total} elements of {arg.name!r} were not written"
    if count == total > 0:
        raise CheckFailed(
            f"{message}: it wrote nothing there; no kernel ran, or it wrote elsewhere",
            remedy="launch the kernel, and write to the array that is passed, or return the result",
            verdict="unwritten",
        )
    if count:
        integer = DTYPES[arg.dtype_of(case)].number == "int"
        value = "; if -1 is a value of it, let another stand for that" if integer else ""
        raise CheckFailed(
            message,
            remedy="write every element: outputs hold no values before the call, so none may be "
            f"left, nor added to{value}",
            verdict="unwritten",
        )


def _finite_beyond(
    device: Device, operator: Operator, case: Case, buffers: Buffers, arg: Arg, count: int
) -> None:
    """Look at the first NaN or infinity beyond the sample, and whether the reference has it, too.

    The reference is computed there alone. It can't be where inputs changed in place: then a finite
    sample speaks for all.
    """
    array, dtype = buffers[arg.name], arg.dtype_of(case)
    place = np.unravel_index(device.first_non_finite(array, dtype), arg.stored_shape(case))
    at = [int(place[stored]) for stored in arg.stored_places(case.params)]
    named = (f"{word} {position}" for word, position in zip(arg.axis_names, at, strict=True))
    where = f"{arg.name}[{', '.join(named)}]"
    seen = device.fetch(array, dtype, [np.array([position]) for position in place]).item()
    says = "is finite in all of the sample"
    if all(other.role != "inout" for other in operator.args_of(case)):
        alone = [dim.axis if dim.axis in operator.independent else None for dim in arg.dims]
        index: dict[str, Any] = {
            axis: np.unique([spot for held, spot in zip(alone, at, strict=True) if held == axis])
            if axis in alone
            else None
            for axis in operator.axes
        }
        values = reference_at(device, operator, case, buffers, index)[arg.name]
        want = values[
            tuple(
                np.searchsorted(index[axis], spot) if axis else spot
                for axis, spot in zip(alone, at, strict=True)
            )
        ]
        if not np.isfinite(want):
            return
        says = f"says {want:.6g}"
    raise CheckFailed(
        f"{where} is {seen:.6g}, the reference {says}; {count} of {arg.count(case)} elements are "
        "NaN or infinite, none of them in the sample of the reference",
        remedy=_FINITE_REMEDY,
        verdict="non_finite",
    )


def _allowance(want: Expected) -> str:
    tolerance = want.tolerance
    return f"{tolerance.relative_fraction:g} relative + {tolerance.absolute_fraction:g}"


def _told(
    seen: Array, want: Expected, arg: Arg, place: tuple[Any, ...], expected: Expectation
) -> str:
    """Say what stands at a place, by its own indices: `y[rows 4, cols 1] is 7.5, ... says 6`."""
    parts = []
    for dim, position in zip(arg.dims, place, strict=True):
        chosen = expected.index[dim.axis] if dim.axis else None
        parts.append(f"{dim.word} {int(position) if chosen is None else int(chosen[position])}")
    where = f"{arg.name}[{', '.join(parts)}]"
    digits = _INT_DIGITS if not want.tolerance.absolute_fraction else _DIGITS
    return (
        f"{where} is {seen[place]:.{digits}g}, the reference says {want.values[place]:.{digits}g}"
    )
