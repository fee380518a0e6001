"""Correctness on values: outputs against the NumPy reference, whole or on sampled indices."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from solkit.declare.operator import Arg, Array, Operator
from solkit.dtypes import DTYPES
from solkit.errors import SolkitError
from solkit.measure.device.base import Buffers, Device
from solkit.model import Case, Check

# A reference in float64 takes about 10 ns an element here: 4 M elements stay under 0.1 s.
WHOLE_COUNT = 2_000_000
WHOLE_FLOP = 200_000_000
SAMPLED_COUNT = 32


class CheckFailed(SolkitError):
    """An output differs from its reference, or was not written."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The reference values of a case at chosen indices, ready to be compared with any kernel's."""

    index: Mapping[str, Array | None]
    inputs: Mapping[str, Array]
    values: Mapping[str, Array]
    way: str
    seed: int


def expect(
    device: Device, operator: Operator, case: Case, buffers: Buffers, seed: int
) -> Expectation:
    """Compute the reference in float64 from the device's own inputs, whole or sampled."""
    index = _choose(operator, case, seed)
    inputs = {
        arg.name: _logical(
            device.fetch(buffers[arg.name], arg.dtype_of(case), _along(arg, case, index)), arg, case
        )
        for arg in operator.inputs
    }
    params = {name: case.params[name] for name in operator.reference_params}
    with np.errstate(all="ignore"):
        results: Any = operator.reference(**inputs, **params)
    if len(operator.outputs) == 1 and not isinstance(results, tuple):
        results = (results,)
    if not isinstance(results, tuple) or len(results) != len(operator.outputs):
        raise CheckFailed(
            f"the reference of {operator.name!r} returned {_count(results)} outputs, "
            f"{len(operator.outputs)} are declared",
            remedy="return one array per output, in the order of args",
        )
    values = {}
    for arg, result in zip(operator.outputs, results, strict=True):
        wanted = tuple(_extent(axis, case, index) for axis in arg.axis_names)
        if np.shape(result) != wanted:
            raise CheckFailed(
                f"the reference of {operator.name!r} returned {arg.name!r} of shape "
                f"{np.shape(result)}, declared is {wanted} ({arg.axes})",
                remedy="make the reference and the argument's axes agree",
            )
        values[arg.name] = np.asarray(result, dtype=np.float64)
    sampled = [
        f"{len(chosen)} of {case.shape[axis]} {axis}"
        for axis, chosen in index.items()
        if chosen is not None
    ]
    way = "sampled " + ", ".join(sampled) if sampled else "whole"
    kept = {arg.name: inputs[arg.name] for arg in operator.args if arg.role == "in"}
    return Expectation(index, kept, values, way, seed)


def compare(
    device: Device, operator: Operator, case: Case, buffers: Buffers, expected: Expectation
) -> Check:
    """Compare every output with the expectation; CheckFailed names the output, place and values."""
    worst, compared = 0.0, 0
    tolerances = []
    for arg in operator.outputs:
        dtype = arg.dtype_of(case)
        array = buffers[arg.name]
        want = _held(expected.values[arg.name], dtype)
        seen = _logical(device.fetch(array, dtype, _along(arg, case, expected.index)), arg, case)
        _all_written(device.unwritten_count(array, dtype), arg, case, want)
        tolerance = operator.tolerance_for(dtype)
        with np.errstate(all="ignore"):
            allowed = tolerance.absolute_fraction + tolerance.relative_fraction * np.abs(want)
            error = np.abs(seen - want) / allowed
        same = (seen == want) | (np.isnan(seen) & np.isnan(want))
        error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
        if error.size and error.max() > 1.0:
            place = np.unravel_index(int(error.argmax()), error.shape)
            raise CheckFailed(
                f"{arg.name}{_where(arg, place, expected)} is {seen[place]:.6g}, "
                f"the reference says {want[place]:.6g}; {int((error > 1.0).sum())} of {error.size} "
                f"compared elements are off by more than {tolerance.relative_fraction:g} relative "
                f"+ {tolerance.absolute_fraction:g}",
                remedy="mend the kernel, or the operator's tolerance if rounding explains it",
            )
        worst = max(worst, float(error.max()) if error.size else 0.0)
        compared += error.size
        tolerances.append(
            f"{tolerance.relative_fraction:g} relative + {tolerance.absolute_fraction:g}"
        )
    return Check(worst, compared, expected.way, ", ".join(dict.fromkeys(tolerances)), expected.seed)


def changed_input(
    device: Device, operator: Operator, case: Case, buffers: Buffers, expected: Expectation
) -> str:
    """Return the first input that no longer holds what the reference was given, or nothing."""
    for arg in operator.args:
        if arg.role != "in":
            continue
        along = _along(arg, case, expected.index)
        held = _logical(device.fetch(buffers[arg.name], arg.dtype_of(case), along), arg, case)
        if not np.array_equal(held, expected.inputs[arg.name]):
            return arg.name
    return ""


def _held(values: Array, dtype: str) -> Array:
    """Return reference values as the dtype can hold them: beyond its largest they are infinite."""
    largest = DTYPES[dtype].largest
    return np.where(np.abs(values) >= largest, np.copysign(np.inf, values), values)


def _all_written(nan_count: int, arg: Arg, case: Case, want: Array) -> None:
    if nan_count and not np.isnan(want).any():
        total = arg.nbytes(case) // DTYPES[arg.dtype_of(case)].item_bytes
        raise CheckFailed(
            f"{nan_count} of {total} elements of {arg.name!r} are NaN: not written, or computed so",
            remedy="outputs are filled with NaN before each checked call; write every element",
        )


def _choose(operator: Operator, case: Case, seed: int) -> dict[str, Array | None]:
    """Choose indices for each axis: None (all) while that is cheap, else ends and random ones."""
    elements = sum(
        arg.nbytes(case) // DTYPES[arg.dtype_of(case)].item_bytes for arg in operator.args
    )
    flop = sum(operator.work(case).flop.values())
    index: dict[str, Array | None] = dict.fromkeys(operator.axes)
    if elements <= WHOLE_COUNT and flop <= WHOLE_FLOP:
        return index
    rng = np.random.default_rng([seed, 1])
    for axis in operator.independent:
        extent = case.shape[axis]
        most = _most(operator, case, axis)
        if extent > most:
            # Both ends, where tails and last tiles live, and the rest spread at random.
            ends = np.concatenate([np.arange(8), np.arange(extent - 8, extent)])
            inner = (
                rng.choice(extent, size=max(most - ends.size, 0), replace=False)
                if extent < 10**7
                else (rng.integers(0, extent, size=most))
            )
            # Not np.unique: 0.9 s for a million indices, where sorting takes 0.01 s.
            both = np.sort(np.concatenate([ends, inner]))
            index[axis] = both[np.diff(both, prepend=-1) > 0]
    return index


def _most(operator: Operator, case: Case, axis: str) -> int:
    """Return how many indices of an axis keep the sampled part within WHOLE_COUNT elements."""
    if len(operator.axes) == 1:
        return WHOLE_COUNT // max(len(operator.args), 1)
    rest = 1
    for other in operator.axes:
        if other != axis and other not in operator.independent:
            rest *= case.shape[other]
    return max(SAMPLED_COUNT, min(512, WHOLE_COUNT // max(rest * len(operator.args), 1)))


def _along(arg: Arg, case: Case, index: Mapping[str, Array | None]) -> list[Array | None]:
    return [index[axis] for axis in arg.stored_axes(case.params)]


def _logical(array: Array, arg: Arg, case: Case) -> Array:
    stored = arg.stored_axes(case.params)
    return (
        array.transpose([stored.index(axis) for axis in arg.axis_names])
        if array.ndim > 1
        else array
    )


def _extent(axis: str, case: Case, index: Mapping[str, Array | None]) -> int:
    chosen = index[axis]
    return case.shape[axis] if chosen is None else len(chosen)


def _where(arg: Arg, place: tuple[Any, ...], expected: Expectation) -> str:
    parts = []
    for axis, position in zip(arg.axis_names, place, strict=True):
        chosen = expected.index[axis]
        parts.append(f"{axis} {int(position) if chosen is None else int(chosen[position])}")
    return "[" + ", ".join(parts) + "]"


def _count(results: object) -> int:
    return len(results) if isinstance(results, tuple) else 1
