"""An argument: one tensor of an operator, its dims, its dtype, and what it is filled with."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from solkit.declare.dims import Dim, dim, problems
from solkit.dtypes import DTYPES
from solkit.model import Case, Param

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
class Bits:
    """Every bit random: packed weights, and integers over their whole range."""


@dataclass(frozen=True, slots=True)
class Indices:
    """Integers that index a dim: a shuffle of 0 to extent - 1, repeated when there are more.

    So as many rows as there are entries are named, up to the extent: a work model may count on
    min(count, extent). of: the dim, in words. With hole_every = n, each n-th entry is `hole`.
    """

    of: str
    hole: int = -1
    hole_every: int = 0


Init = Normal | Uniform | Bits | Indices
INDEX_COUNT = 2**31  # as many as int32 holds
_WHEN = '{"mask": ("additive",)}'


@dataclass(frozen=True, slots=True)
class Layout:
    """The order in which a tensor's axes are stored, chosen by the value of a param."""

    param: str
    axes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Arg:
    """One tensor of an operator: its name, its dims in words, and what becomes of it.

    axes: the logical dims, e.g. "rows cols", "rows cols/128" or "batch*kv_len/16 16 head_dim"
    (a quotient is rounded up). dtype: None means the case's own.
    layout: how it is stored, where that is a param; references always see the logical order.
    when: the params' values with which it exists, {"mask": ("additive",)}; empty: always.
    gathered_by: the integer argument whose values index this one's leading dim.
    """

    name: str
    axes: str
    role: Role = "in"
    dtype: str | None = None
    init: Init = field(default_factory=Normal)
    layout: Layout | None = None
    when: Mapping[str, tuple[Param, ...]] = field(default_factory=dict)
    gathered_by: str = ""

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The words of the logical dims, in order; most are axes."""
        return tuple(self.axes.split())

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The logical dims, in order."""
        return tuple(dim(word) for word in self.axis_names)

    def exists(self, params: Mapping[str, Param]) -> bool:
        """Return whether a case with such params has this argument."""
        return all(params.get(name) in values for name, values in self.when.items())

    def shape(self, case: Case) -> tuple[int, ...]:
        """Return the extents in logical order."""
        return tuple(dim(word).extent(case.shape) for word in self.axis_names)

    def stored_axes(self, params: Mapping[str, Param]) -> tuple[str, ...]:
        """Return the dims' words in the order in which memory holds them, the last contiguous."""
        if self.layout is None:
            return self.axis_names
        return tuple(self.layout.axes[str(params[self.layout.param])].split())

    def stored_places(self, params: Mapping[str, Param]) -> tuple[int, ...]:
        """Return where in the stored order each logical dim stands; a word may come twice."""
        left, places = list(self.stored_axes(params)), []
        for word in self.axis_names:
            places.append(left.index(word))
            left[places[-1]] = ""
        return tuple(places)

    def stored_shape(self, case: Case) -> tuple[int, ...]:
        """Return the extents in stored order."""
        return tuple(dim(word).extent(case.shape) for word in self.stored_axes(case.params))

    def dtype_of(self, case: Case) -> str:
        """Return the name of this tensor's dtype in a case."""
        return self.dtype or case.dtype

    def count(self, case: Case) -> int:
        """Return the elements this tensor holds."""
        return math.prod(self.shape(case))

    def nbytes(self, case: Case) -> int:
        """Return the bytes this tensor holds."""
        return self.count(case) * DTYPES[self.dtype_of(case)].item_bytes

    def wrong_kinds(self) -> Iterator[str]:
        """Yield which fields don't hold what they should: an author's types are not checked."""
        named = f"argument {self.name!r}"
        if not isinstance(self.axes, str):
            yield f"{named} has the axes {self.axes!r}, not words like 'rows cols'"
        if not isinstance(self.init, Init):
            yield f"{named} has the init {self.init!r}: give a Normal, Uniform, Bits or Indices"
        elif isinstance(self.init, Indices) and not isinstance(self.init.of, str):
            yield f"{named} holds indices of {self.init.of!r}, not of a dim in words"
        if not isinstance(self.when, Mapping):
            yield f"{named} has when={self.when!r}, not a mapping like {_WHEN}"
            return
        yield from (
            f"{named} exists for {name}={values!r}, not for a tuple of values, as in {_WHEN}"
            for name, values in self.when.items()
            if not isinstance(values, (tuple, list)) or not values
        )

    def problems(
        self, params: Mapping[str, tuple[Param, ...]], axes: Collection[str]
    ) -> Iterator[str]:
        """Yield what is wrong with the declaration, given the operator's params and axes."""
        named = f"argument {self.name!r}"
        if self.role not in ("in", "out", "inout"):
            yield f"{named} has the role {self.role!r} (known: in, out, inout)"
        if self.dtype is not None and self.dtype not in DTYPES:
            yield f"{named} has the unknown dtype {self.dtype!r} (known: {', '.join(DTYPES)})"
        elif self.role != "out":
            yield from self._init_problems(named)
            yield from self._extent_problems(named, axes)
        for name, values in self.when.items():
            if name not in params:
                yield f"{named} exists for values of {name!r}, which is no param"
            elif odd := [value for value in values if value not in params[name]]:
                yield f"{named} exists for {name}={odd[0]}, which that param can't be"
        if self.layout is not None:
            yield from self._layout_problems(named, self.layout, params)

    def _init_problems(self, named: str) -> Iterator[str]:
        number = DTYPES[self.dtype].number if self.dtype else "float"
        if number == "code":
            yield f"{named} has the dtype {self.dtype}, which outputs alone can have"
        elif isinstance(self.init, Indices):
            if self.dtype != "int32":
                yield f"{named} holds indices, so its dtype is int32, not {self.dtype or 'own'}"
            if self.init.hole_every < 0:
                yield f"{named} has hole_every={self.init.hole_every}: 0 for none, or each n-th"
            if not -INDEX_COUNT <= self.init.hole < INDEX_COUNT:
                yield f"{named} has the hole {self.init.hole}, which int32 can't hold"
        elif isinstance(self.init, Bits):
            if number != "int":
                yield f"{named} is filled with random bits, so its dtype is int32, int8 or uint8"
        elif number != "float":
            yield f"{named} has the dtype {self.dtype}: init must be Bits() or Indices(of=...)"

    def _extent_problems(self, named: str, axes: Collection[str]) -> Iterator[str]:
        """Yield what of the init's extent no shape would tell."""
        if isinstance(self.init, Indices):
            wrong = list(problems(self.init.of))
            yield from wrong
            asked = () if wrong else dim(self.init.of).axes
        else:
            asked = (
                (self.init.fan_in,) if isinstance(self.init, Normal) and self.init.fan_in else ()
            )
        yield from (
            f"{named} is filled by the extent of {axis!r}, which is no axis of an argument "
            f"(known: {', '.join(axes)})"
            for axis in asked
            if axis not in axes
        )

    def _layout_problems(
        self, named: str, layout: Layout, params: Mapping[str, tuple[Param, ...]]
    ) -> Iterator[str]:
        if layout.param not in params:
            yield f"{named} is laid out by {layout.param!r}, which is no param"
            return
        for value in params[layout.param]:
            stored = layout.axes.get(str(value), "").split()
            if sorted(stored) != sorted(self.axis_names):
                yield (
                    f"{named} has the axes {self.axes!r}, but its layout for "
                    f"{layout.param}={value} is {' '.join(stored)!r}"
                )
