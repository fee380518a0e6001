"""What a case must give: the NumPy reference in float64, whole or on sampled indices."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from solkit.declare.operator import Arg, Array, Normal, Operator, Tolerance
from solkit.dtypes import DTYPES
from solkit.measure.device.base import Buffers, Device
from solkit.measure.verdict import CheckFailed
from solkit.model import Case

# Elements over all arguments. A reference and its comparison take 5 to 20 ns an element in float64,
# twice a case: 5 to 20 ms a case in all, which leaves a sweep its pace.
ELEMENT_COUNT = 600_000
WHOLE_FLOP = 100_000_000
# Where outputs lie in tiles (two axes are free): 80 strata a side and both ends, so that every tile
# of 128 x 128 is looked into up to 5,120 a side. Rows come whole, so fewer of them will do.
LEAST_TILED = 96
LEAST_ROWS = 24
MOST_INDICES = 100_000  # of ten million: one in each hundred, so no block of threads is unseen
END_COUNT = 8  # at each end, where tails and last tiles live


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

    index: Mapping[str, Array | None]
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
    results = reference_at(device, operator, case, buffers, index)
    outputs = {
        arg.name: _expected(results[arg.name], operator.tolerance_for(arg.dtype_of(case)))
        for arg in operator.outputs
    }
    return Expectation(
        index=index,
        checksums={
            arg.name: device.checksum(buffers[arg.name])
            for arg in operator.args
            if arg.role == "in"
        },
        outputs=outputs,
        way=_way(case, index),
        seed=seed,
        inputs="; ".join(_distribution(arg, case) for arg in operator.inputs),
    )


def reference_at(
    device: Device,
    operator: Operator,
    case: Case,
    buffers: Buffers,
    index: Mapping[str, Array | None],
) -> dict[str, Array]:
    """Return each output at the chosen indices, in float64, as its dtype can hold it."""
    inputs = {arg.name: fetched(device, buffers, arg, case, index) for arg in operator.inputs}
    params = {name: case.params[name] for name in operator.reference_params}
    with np.errstate(all="ignore"):
        results: Any = operator.reference(**inputs, **params)
    if len(operator.outputs) == 1 and not isinstance(results, tuple):
        results = (results,)
    if not isinstance(results, tuple) or len(results) != len(operator.outputs):
        count = len(results) if isinstance(results, tuple) else 1
        raise CheckFailed(
            f"the reference of {operator.name!r} returned {count} outputs, "
            f"{len(operator.outputs)} are declared",
            remedy="return one array per output, in the order of args",
        )
    values = {}
    for arg, result in zip(operator.outputs, results, strict=True):
        wanted = tuple(
            case.shape[axis] if (chosen := index[axis]) is None else len(chosen)
            for axis in arg.axis_names
        )
        if np.shape(result) != wanted:
            raise CheckFailed(
                f"the reference of {operator.name!r} returned {arg.name!r} of shape "
                f"{np.shape(result)}, declared is {wanted} ({arg.axes})",
                remedy="make the reference and the argument's axes agree",
            )
        values[arg.name] = held(np.asarray(result, dtype=np.float64), arg.dtype_of(case))
    return values


def fetched(
    device: Device,
    buffers: Buffers,
    arg: Arg,
    case: Case,
    index: Mapping[str, Array | None],
) -> Array:
    """Return an argument's entries at the chosen indices, in float64 and logical axis order."""
    stored = arg.stored_axes(case.params)
    array = device.fetch(buffers[arg.name], arg.dtype_of(case), [index[axis] for axis in stored])
    if array.ndim < 2 or stored == arg.axis_names:  # noqa: PLR2004  # one axis has one order
        return array
    return array.transpose([stored.index(axis) for axis in arg.axis_names])


def held(values: Array, dtype: str) -> Array:
    """Return reference values as the dtype can hold them: beyond its largest they are infinite."""
    beyond = np.abs(values) >= DTYPES[dtype].largest
    return np.where(beyond, np.copysign(np.inf, values), values) if beyond.any() else values


def choose(operator: Operator, case: Case, seed: int) -> dict[str, Array | None]:
    """Choose indices for each axis: None (all) while that is cheap, else both ends and strata.

    Sampled are the axes along which outputs are independent: the most indices of each that leave
    all arguments together ELEMENT_COUNT elements, if that is no fewer than tell something.
    """
    index: dict[str, Array | None] = dict.fromkeys(operator.axes)
    flop = sum(operator.work(case).flop.values())
    if _element_count(operator, case, None) <= ELEMENT_COUNT and flop <= WHOLE_FLOP:
        return index
    free = operator.independent
    least = LEAST_ROWS if len(free) < 2 else LEAST_TILED  # noqa: PLR2004  # a tile has two sides
    longest = max((case.shape[axis] for axis in free), default=0)
    more = range(least, min(longest, MOST_INDICES) + 1)
    fitting = bisect_right(
        more, ELEMENT_COUNT, key=lambda most: _element_count(operator, case, most)
    )
    most = max(least, least + fitting - 1)
    rng = np.random.default_rng([seed, 1])
    for axis in free:
        if case.shape[axis] > most:
            index[axis] = _spread(rng, case.shape[axis], most)
    return index


def _spread(rng: np.random.Generator, extent: int, count: int) -> Array:
    """Return `count` of so many indices, in order: both ends, and a random one in each stratum.

    Strata leave no run of indices longer than two of them unseen, and need no sorting (choosing
    without replacement took 60 ms for a million).
    """
    strata = count - 2 * END_COUNT
    borders = np.arange(strata + 1)
    borders *= extent - 2 * END_COUNT
    borders //= strata
    borders += END_COUNT
    inner = borders[:-1]
    inner += (rng.random(strata) * (borders[1:] - inner)).astype(np.int64)
    return np.concatenate([np.arange(END_COUNT), inner, np.arange(extent - END_COUNT, extent)])


def _element_count(operator: Operator, case: Case, most: int | None) -> int:
    """Return the elements of all arguments, with at most so many indices of each free axis."""
    total = 0
    for arg in operator.args:
        count = 1
        for axis in arg.axis_names:
            extent = case.shape[axis]
            count *= (
                extent if most is None or axis not in operator.independent else min(extent, most)
            )
        total += count
    return total


def _expected(values: Array, tolerance: Tolerance) -> Expected:
    allowed = np.abs(values)
    allowed *= tolerance.relative_fraction
    allowed += tolerance.absolute_fraction
    return Expected(values, allowed, bool(np.isfinite(values).all()), tolerance)


def _way(case: Case, index: Mapping[str, Array | None]) -> str:
    sampled = [
        f"{len(chosen)} of {case.shape[axis]} {axis}"
        for axis, chosen in index.items()
        if chosen is not None
    ]
    return f"sampled {' x '.join(sampled)}, both ends among them" if sampled else "whole"


def _distribution(arg: Arg, case: Case) -> str:
    """Say what an input was filled with: `w normal(0, 1/sqrt(K=2560))`."""
    if not isinstance(arg.init, Normal):
        return f"{arg.name} uniform({arg.init.low:g}, {arg.init.high:g})"
    axis = arg.init.fan_in
    root = f"/sqrt({axis}={case.shape[axis]})" if axis else ""
    return f"{arg.name} normal(0, {arg.init.std:g}{root})"
