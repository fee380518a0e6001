"""What a case must give: the NumPy reference in float64, whole or on sampled indices."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from solkit.declare import fp8
from solkit.declare.arg import Arg, Array, Bits, Indices, Normal
from solkit.declare.dims import dim
from solkit.declare.operator import Operator, Tolerance
from solkit.dtypes import DTYPES
from solkit.measure.chosen import Index, choose, entries_of, extents_of, words_of
from solkit.measure.device.base import Buffers, Device
from solkit.measure.verdict import CheckFailed
from solkit.model import Case

# What is divided is rounded to fp32 before: a tie may fall to either side.
FP8_SLACK_FRACTION = 1e-5


@dataclass(frozen=True, slots=True)
class Expected:
    """One output's reference values, what an error may be, and whether all are finite."""

    values: Array
    allowed: Array
    finite: bool
    tolerance: Tolerance


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a case must give at chosen indices, ready to be compared with any kernel's outputs.

    index: per axis the chosen indices, None for all. checksums: of the arguments that are only
    read, whole. way, inputs: what was compared, and the inputs' distributions, in words.
    """

    index: Index
    checksums: Mapping[str, int]
    outputs: Mapping[str, Expected]
    way: str
    seed: int
    inputs: str

    @property
    def whole(self) -> bool:
        """Whether every element of every output is compared."""
        return all(chosen is None for chosen in self.index.values())


def expect(
    device: Device, operator: Operator, case: Case, buffers: Buffers, seed: int
) -> Expectation:
    """Compute the reference in float64 from the device's own inputs, whole or sampled."""
    index = choose(operator, case, seed)
    inputs = _inputs_at(device, operator, case, buffers, index)
    results = _results(operator, case, inputs, index)
    outputs = {
        arg.name: _expected(results[arg.name], operator, arg.dtype_of(case))
        for arg in operator.outputs_of(case)
    }
    return Expectation(
        index=index,
        checksums={
            arg.name: device.checksum(buffers[arg.name])
            for arg in operator.args_of(case)
            if arg.role == "in"
        },
        outputs=outputs,
        way="; ".join([words_of(case, index), *_gathered_words(operator, case, inputs)]),
        seed=seed,
        inputs="; ".join(_distribution(arg, case) for arg in operator.inputs_of(case)),
    )


def reference_at(
    device: Device, operator: Operator, case: Case, buffers: Buffers, index: Index
) -> dict[str, Array]:
    """Return each output at the chosen indices, in float64, as its dtype can hold it."""
    return _results(operator, case, _inputs_at(device, operator, case, buffers, index), index)


def _results(
    operator: Operator, case: Case, inputs: Mapping[str, Array], index: Index
) -> dict[str, Array]:
    """Call the reference, and hold what it returns against what is declared."""
    outputs = operator.outputs_of(case)
    params = operator.completed(case).params
    taken: dict[str, Any] = {name: params[name] for name in operator.reference_params}
    for axis in operator.reference_axes:
        chosen = index[axis]
        taken[axis] = np.arange(case.shape[axis]) if chosen is None else chosen
    with np.errstate(all="ignore"):
        results: Any = operator.reference(**inputs, **taken)
    if len(outputs) == 1 and not isinstance(results, tuple):
        results = (results,)
    if not isinstance(results, tuple) or len(results) != len(outputs):
        count = len(results) if isinstance(results, tuple) else 1
        raise CheckFailed(
            f"the reference of {operator.name!r} returned {count} outputs, "
            f"{len(outputs)} are declared for this case ({', '.join(arg.name for arg in outputs)})",
            remedy="return one array per output that the case has, in the order of args",
        )
    values = {}
    for arg, result in zip(outputs, results, strict=True):
        wanted = extents_of(arg, case, index)
        if np.shape(result) != wanted:
            raise CheckFailed(
                f"the reference of {operator.name!r} returned {arg.name!r} of shape "
                f"{np.shape(result)}, declared is {wanted} ({arg.axes})",
                remedy="make the reference and the argument's axes agree",
            )
        values[arg.name] = held(np.asarray(result, dtype=np.float64), arg.dtype_of(case))
    return values


def _inputs_at(
    device: Device, operator: Operator, case: Case, buffers: Buffers, index: Index
) -> dict[str, Array]:
    """Return the inputs at the chosen indices, in float64.

    Of a gathered argument only the rows that its indices name are fetched, in order; the indices
    are then counted in these rows. Negative ones name no row and stay.
    """
    present = operator.inputs_of(case)
    inputs = {
        arg.name: fetched(device, buffers, arg, case, index)
        for arg in present
        if not arg.gathered_by
    }
    rows: dict[str, Array] = {}
    for arg in present:
        if arg.gathered_by:
            named = inputs[arg.gathered_by]
            if arg.gathered_by not in rows:
                rows[arg.gathered_by] = _rows(named)
            inputs[arg.name] = fetched(device, buffers, arg, case, index, rows[arg.gathered_by])
    for name, held_rows in rows.items():
        named = inputs[name]
        inputs[name] = np.where(named < 0, named, np.searchsorted(held_rows, named))
    return {arg.name: inputs[arg.name] for arg in present}


def _rows(named: Array) -> Array:
    """Return the rows that indices name, in order; the first where they name none."""
    rows = np.unique(named[named >= 0]).astype(np.int64)
    return rows if rows.size else np.zeros(1, dtype=np.int64)


def fetched(
    device: Device,
    buffers: Buffers,
    arg: Arg,
    case: Case,
    index: Index,
    rows: Array | None = None,
) -> Array:
    """Return an argument's entries at the chosen indices, in float64 and logical axis order.

    rows: the entries of the leading dim of one that is gathered.
    """
    entries = entries_of(arg, case, index, rows)
    array = device.fetch(buffers[arg.name], arg.dtype_of(case), entries)
    return array.transpose(arg.stored_places(case.params))


def held(values: Array, dtype: str) -> Array:
    """Return reference values as the dtype can hold them: beyond its largest they are infinite.

    8-bit floats have no infinity and saturate.
    """
    if dtype == fp8.NAME:
        return np.clip(values, -fp8.LARGEST, fp8.LARGEST)
    beyond = np.abs(values) >= DTYPES[dtype].largest
    return np.where(beyond, np.copysign(np.inf, values), values) if beyond.any() else values


def _expected(values: Array, operator: Operator, dtype: str) -> Expected:
    tolerance = operator.tolerance_for(dtype)
    allowed = np.abs(values)
    allowed *= tolerance.relative_fraction
    allowed += tolerance.absolute_fraction
    if dtype == fp8.NAME and dtype not in operator.tolerance:
        # A step is 1/16 to 1/8 of a value, so a share of it lets a neighbour's code pass.
        np.minimum(allowed, fp8.half_step(values) * (1 + FP8_SLACK_FRACTION), out=allowed)
    if not tolerance.absolute_fraction:  # integers: nothing may be off, and 0 / 0 is no error
        np.maximum(allowed, np.finfo(np.float64).tiny, out=allowed)
    return Expected(values, allowed, bool(np.isfinite(values).all()), tolerance)


def _gathered_words(operator: Operator, case: Case, inputs: Mapping[str, Array]) -> list[str]:
    """Say how much of each gathered argument was read: the rows that its indices name."""
    return [
        f"{len(inputs[arg.name])} of {arg.shape(case)[0]} rows of {arg.name} by {arg.gathered_by}"
        for arg in operator.inputs_of(case)
        if arg.gathered_by
    ]


def _distribution(arg: Arg, case: Case) -> str:
    """Say what an input was filled with: `w normal(0, 1/sqrt(K=2560))`."""
    match arg.init:
        case Normal(std=std, fan_in=axis):
            root = f"/sqrt({axis}={case.shape[axis]})" if axis else ""
            return f"{arg.name} normal(0, {std:g}{root})"
        case Bits():
            return f"{arg.name} random bits"
        case Indices(of=of, hole=hole, hole_every=every):
            holes = f", each {every}th {hole}" if every else ""
            return f"{arg.name} shuffle of {of}={dim(of).extent(case.shape)}{holes}"
        case uniform:
            return f"{arg.name} uniform({uniform.low:g}, {uniform.high:g})"
