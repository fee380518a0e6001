"""An operator: what is computed, from which arguments, how much work it is, when it is right."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from solkit.declare import dims, presence
from solkit.declare.arg import Arg
from solkit.dtypes import CASE_DTYPES, DTYPES
from solkit.errors import BadInput
from solkit.model import Case, Param, Step, Work


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
    # Against the unrounded value, and never more than half of the step there (the check sees to
    # it), so that neither a truncated value nor a neighbour passes.
    "fp8_e4m3": Tolerance(0.0626, 0.00098),
    "int32": Tolerance(0.0, 0.0),
    "int8": Tolerance(0.0, 0.0),
    "uint8": Tolerance(0.0, 0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What is computed.

    args: every input and output, in the order in which a kernel takes them.
    work(case): what it must at least do. unfused(case): the same as separate kernels.
    reference(**inputs, **params it names): NumPy, from float64 (fp32: see check) inputs in logical
    axis order; returns the output array, or a tuple in the order of the outputs. It may name an
    axis, too, and gets that axis' indices, which a sample does not tell otherwise.
    independent: axes along which an output depends only on its own index, so that a big case can be
    checked on sampled indices of them.
    params: each param's allowed values, the default first.
    unnamed_defaults: params that a case names only where they differ from their default, such as
    factors of 1: left alone, they are no part of its identity. See completed().
    refuse(case): why the operator is not defined for a shape, or None; all its kernels skip it.
    """

    name: str
    args: tuple[Arg, ...]
    work: Callable[[Case], Work]
    reference: Callable[..., Any]
    unfused: Callable[[Case], tuple[Step, ...]] | None = None
    refuse: Callable[[Case], str | None] | None = None
    params: Mapping[str, tuple[Param, ...]] = field(default_factory=dict)
    unnamed_defaults: tuple[str, ...] = ()
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
        return tuple(
            dict.fromkeys(axis for arg in self.args for dim in arg.dims for axis in dim.axes)
        )

    def completed(self, case: Case) -> Case:
        """Return a case with the defaults that it does not name: as the functions here get it."""
        unnamed = [name for name in self.unnamed_defaults if name not in case.params]
        if not unnamed:
            return case
        return replace(case, params=case.params | {name: self.params[name][0] for name in unnamed})

    def args_of(self, case: Case) -> tuple[Arg, ...]:
        """Return the arguments that a case has, in order."""
        return tuple(arg for arg in self.args if arg.exists(case.params))

    def inputs_of(self, case: Case) -> tuple[Arg, ...]:
        """Return a case's arguments that are read, in-place ones included."""
        return tuple(arg for arg in self.args_of(case) if arg.role != "out")

    def outputs_of(self, case: Case) -> tuple[Arg, ...]:
        """Return a case's arguments that are written, in-place ones included."""
        return tuple(arg for arg in self.args_of(case) if arg.role != "in")

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

    @property
    def reference_axes(self) -> tuple[str, ...]:
        """The axes whose indices the reference asks for by name: all, or those of a sample."""
        taken = inspect.signature(self.reference).parameters
        return tuple(name for name in self.axes if name in taken)

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
        if any(not _never_both(one, other) for one, other in self._namesakes()):
            yield f"two arguments share a name: {', '.join(names)}"
        shared = [name for name in names if name in self.params or name in self.axes]
        if shared:
            yield f"the argument {shared[0]!r} has the name of a param or an axis"
        both = [name for name in self.params if name in self.axes]
        if both:
            yield f"{both[0]!r} is a param and an axis: a case could name one of them only"
        yield from (
            problem for arg in self.args for problem in arg.problems(self.params, self.axes)
        )
        taken = inspect.signature(self.reference).parameters
        yield from presence.problems(self.args, self.params, taken)
        yield from self._unnamed_problems()
        unknown = [axis for axis in self.independent if axis not in self.axes]
        if unknown:
            yield f"independent names {unknown[0]!r}, which is no axis of an argument"
        yield from self._sampling_problems()
        for dtypes, known in ((self.dtypes, CASE_DTYPES), (self.tolerance, tuple(DTYPES))):
            yield from (
                f"the dtype {dtype!r} is unknown (known: {', '.join(known)})"
                for dtype in dtypes
                if dtype not in known
            )
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
        if not isinstance(self.unnamed_defaults, tuple):
            yield f"unnamed_defaults is {self.unnamed_defaults!r}, not a tuple of params"
        must = (("its work", self.work), ("its reference", self.reference))
        may = (("its unfused", self.unfused), ("its refuse", self.refuse))
        yield from (
            f"{what} is not a function"
            for what, held in (*must, *((what, held) for what, held in may if held is not None))
            if not callable(held)
        )
        yield from (
            problem for arg in self.args if isinstance(arg, Arg) for problem in arg.wrong_kinds()
        )
        yield from (
            problem
            for arg in self.args
            if isinstance(arg, Arg) and isinstance(arg.axes, str)
            for word in arg.axis_names
            for problem in dims.problems(word)
        )
        words = [arg.name for arg in self.args if isinstance(arg, Arg)]
        yield from (
            f"{word!r} can't be the name of an argument or a param: letters, digits and _"
            for word in (*words, *self.params)
            if not (isinstance(word, str) and word.isidentifier())
        )
        for name, values in self.params.items():
            if not isinstance(values, tuple) or not values:
                yield f"the param {name!r} has no values: give a tuple, the default first"
            elif not all(isinstance(value, (str, int, float, bool)) for value in values):
                yield f"the param {name!r} has values that are neither text nor numbers: {values!r}"

    def _namesakes(self) -> Iterator[tuple[Arg, Arg]]:
        for place, arg in enumerate(self.args):
            yield from ((arg, other) for other in self.args[:place] if other.name == arg.name)

    def _unnamed_problems(self) -> Iterator[str]:
        """Yield which defaults can't be left out of a case: arguments are told by its params."""
        for name in self.unnamed_defaults:
            if name not in self.params:
                yield f"unnamed_defaults names {name!r}, which is no param"
            for arg in self.args:
                if name in arg.when or (arg.layout is not None and arg.layout.param == name):
                    yield f"{name!r} must be named: the argument {arg.name!r} depends on it"

    def _sampling_problems(self) -> Iterator[str]:
        """Yield which outputs a sample would cut through: several indices make an entry of them."""
        plain = {dim.axis for arg in self.args for dim in arg.dims}
        yield from (
            f"{axis!r} can't be independent: the output {arg.name!r} has the dim {dim.word!r}, and "
            f"a sample of {axis} leaves that whole"
            for arg in self.outputs
            for dim in arg.dims
            if dim.axis is None
            for axis in dim.factors
            if axis in self.independent and axis in plain
        )

    def _reference_problems(self) -> Iterator[str]:
        taken = inspect.signature(self.reference).parameters
        missing = [arg.name for arg in self.inputs if arg.name not in taken]
        if missing:
            has = ", ".join(taken)
            yield f"its reference does not take the input {missing[0]!r} (it takes: {has})"
        known = {*(arg.name for arg in self.inputs), *self.params, *self.axes}
        extra = [name for name in taken if name not in known]
        if extra:
            yield f"its reference takes {extra[0]!r}, which is no input, no param and no axis"


def _never_both(one: Arg, other: Arg) -> bool:
    """Return whether a param keeps two arguments of one name apart."""
    return any(
        not set(values) & set(other.when[name])
        for name, values in one.when.items()
        if name in other.when
    )
