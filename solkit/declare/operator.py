"""An operator: what is computed, from which arguments, how much work it is, when it is right."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from solkit.dtypes import DTYPES
from solkit.errors import BadInput
from solkit.model import Case, Param, Step, Work

Array = Any  # a NumPy array in references, a CuPy array on the device: numpy loads only where used
Role = Literal["in", "out", "inout"]


@dataclass(frozen=True, slots=True)
class Normal:
    """Normally distributed values; with `fan_in`, std is divided by the root of that axis."""

    std: float = 1.0
    fan_in: str = ""


@dataclass(frozen=True, slots=True)
class Uniform:
    """Values evenly spread between low and high."""

    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True, slots=True)
class Layout:
    """The order in which a tensor's axes are stored, chosen by the value of a param."""

    param: str
    axes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Arg:
    """One tensor of an operator: its name, its axes in words, and what becomes of it.

    axes: the logical axes, e.g. "rows cols". dtype: None means the case's own.
    layout: how it is stored, where that is a param; references always see the logical order.
    """

    name: str
    axes: str
    role: Role = "in"
    dtype: str | None = None
    init: Normal | Uniform = field(default_factory=Normal)
    layout: Layout | None = None

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The logical axes, in order."""
        return tuple(self.axes.split())

    def stored_axes(self, params: Mapping[str, Param]) -> tuple[str, ...]:
        """Return the axes in the order in which memory holds them, the last one contiguous."""
        if self.layout is None:
            return self.axis_names
        return tuple(self.layout.axes[str(params[self.layout.param])].split())

    def stored_shape(self, case: Case) -> tuple[int, ...]:
        """Return the extents in stored order."""
        return tuple(case.shape[axis] for axis in self.stored_axes(case.params))

    def dtype_of(self, case: Case) -> str:
        """Return the name of this tensor's dtype in a case."""
        return self.dtype or case.dtype

    def nbytes(self, case: Case) -> int:
        """Return the bytes this tensor holds."""
        count = 1
        for axis in self.axis_names:
            count *= case.shape[axis]
        return count * DTYPES[self.dtype_of(case)].item_bytes


@dataclass(frozen=True, slots=True)
class Tolerance:
    """An element passes when |out - ref| <= absolute + relative * |ref|."""

    relative_fraction: float
    absolute_fraction: float


# The output is rounded once (epsilon), inputs are given: a few roundings of slack, per dtype.
DEFAULT_TOLERANCE = {
    "fp64": Tolerance(1e-12, 1e-12),
    "fp32": Tolerance(1e-5, 1e-5),
    "fp16": Tolerance(2e-3, 1e-3),
    "bf16": Tolerance(1.6e-2, 4e-3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What is computed.

    args: every input and output, in the order in which a kernel takes them.
    work(case): what it must at least do. unfused(case): the same as separate kernels.
    reference(**inputs, **params it names): NumPy, from float64 (fp32: see check) inputs in logical
    axis order; returns the output array, or a tuple in the order of the outputs.
    independent: axes along which an output depends only on its own index, so that a big case can be
    checked on sampled indices of them.
    params: each param's allowed values, the default first.
    """

    name: str
    args: tuple[Arg, ...]
    work: Callable[[Case], Work]
    reference: Callable[..., Any]
    unfused: Callable[[Case], tuple[Step, ...]] | None = None
    params: Mapping[str, tuple[Param, ...]] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("fp32", "fp16", "bf16")
    tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    independent: tuple[str, ...] = ()
    summary: str = ""

    def __post_init__(self) -> None:
        """Refuse a declaration that can't work, naming all that is wrong with it."""
        problems = "; ".join(self._problems())
        if problems:
            raise BadInput(
                f"operator {self.name!r}: {problems}", remedy="see docs/write-a-kernel.md"
            )

    @property
    def axes(self) -> tuple[str, ...]:
        """Every axis, in the order in which the arguments first name them."""
        return tuple(dict.fromkeys(axis for arg in self.args for axis in arg.axis_names))

    @property
    def inputs(self) -> tuple[Arg, ...]:
        """The arguments that are read, in-place ones included."""
        return tuple(arg for arg in self.args if arg.role != "out")

    @property
    def outputs(self) -> tuple[Arg, ...]:
        """The arguments that are written, in-place ones included."""
        return tuple(arg for arg in self.args if arg.role != "in")

    @property
    def reference_params(self) -> tuple[str, ...]:
        """The params that the reference asks for by name."""
        taken = inspect.signature(self.reference).parameters
        return tuple(name for name in self.params if name in taken)

    def tolerance_for(self, dtype: str) -> Tolerance:
        """Return this operator's tolerance for a dtype, else the dtype's own."""
        return self.tolerance.get(dtype, DEFAULT_TOLERANCE[dtype])

    def _problems(self) -> Iterator[str]:
        wrong = next(self._wrong_kinds(), "")  # the rules below may then trust every type
        if wrong:
            yield wrong
            return
        names = [arg.name for arg in self.args]
        if not self.outputs:
            yield "no argument has the role 'out' or 'inout'"
        if len(set(names)) < len(names):
            yield f"two arguments share a name: {', '.join(names)}"
        shared = [name for name in names if name in self.params or name in self.axes]
        if shared:
            yield f"the argument {shared[0]!r} has the name of a param or an axis"
        yield from (problem for arg in self.args for problem in _arg_problems(arg, self.params))
        unknown = [axis for axis in self.independent if axis not in self.axes]
        if unknown:
            yield f"independent names {unknown[0]!r}, which is no axis of an argument"
        for dtype in (*self.dtypes, *self.tolerance):
            if dtype not in DTYPES:
                yield f"the dtype {dtype!r} is unknown (known: {', '.join(DTYPES)})"
        yield from self._reference_problems()

    def _wrong_kinds(self) -> Iterator[str]:
        """Say which fields don't hold what they should: an author's types are not checked."""
        if not isinstance(self.name, str) or not self.name.strip():
            yield "its name is no text"
        if not isinstance(self.args, tuple):
            yield f"args is {self.args!r}, not a tuple of Arg"
            return
        yield from (
            f"args holds {arg!r}, which is no Arg" for arg in self.args if not isinstance(arg, Arg)
        )
        yield from (
            f"{what} is not a function"
            for what, held in (("its work", self.work), ("its reference", self.reference))
            if not callable(held)
        )
        words = [axis for arg in self.args if isinstance(arg, Arg) for axis in arg.axis_names]
        words += [arg.name for arg in self.args if isinstance(arg, Arg)]
        yield from (
            f"{word!r} can't be the name of an argument, an axis or a param: letters, digits and _"
            for word in (*words, *self.params)
            if not (isinstance(word, str) and word.isidentifier())
        )
        for name, values in self.params.items():
            if not isinstance(values, tuple) or not values:
                yield f"the param {name!r} has no values: give a tuple, the default first"
            elif not all(isinstance(value, (str, int, float, bool)) for value in values):
                yield f"the param {name!r} has values that are neither text nor numbers: {values!r}"

    def _reference_problems(self) -> Iterator[str]:
        taken = inspect.signature(self.reference).parameters
        missing = [arg.name for arg in self.inputs if arg.name not in taken]
        if missing:
            has = ", ".join(taken)
            yield f"its reference does not take the input {missing[0]!r} (it takes: {has})"
        inputs = {arg.name for arg in self.inputs}
        extra = [name for name in taken if name not in inputs and name not in self.params]
        if extra:
            yield f"its reference takes {extra[0]!r}, which is no input and no param"


def _arg_problems(arg: Arg, params: Mapping[str, tuple[Param, ...]]) -> Iterator[str]:
    if arg.role not in ("in", "out", "inout"):
        yield f"argument {arg.name!r} has the role {arg.role!r} (known: in, out, inout)"
    if arg.dtype is not None and arg.dtype not in DTYPES:
        known = ", ".join(DTYPES)
        yield f"argument {arg.name!r} has the unknown dtype {arg.dtype!r} (known: {known})"
    if arg.layout is None:
        return
    if arg.layout.param not in params:
        yield f"argument {arg.name!r} is laid out by {arg.layout.param!r}, which is no param"
        return
    for value in params[arg.layout.param]:
        stored = arg.layout.axes.get(str(value), "").split()
        if sorted(stored) != sorted(arg.axis_names):
            yield (
                f"argument {arg.name!r} has the axes {arg.axes!r}, but its layout for "
                f"{arg.layout.param}={value} is {' '.join(stored)!r}"
            )
