"""A tensor map: how the copy engine (TMA) of a card from CC 9.0 on sees an argument."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from solkit.declare.arg import Arg
from solkit.declare.operator import Operator
from solkit.dtypes import DTYPES
from solkit.errors import BadInput, unknown
from solkit.model import Case

MOST_AXES, MOST_BOX_EXTENT = 5, 256
SWIZZLES_BYTES = (0, 32, 64, 128)
PROMOTIONS_BYTES = (0, 64, 128, 256)
GRANULE_BYTES = 16  # of addresses, strides and a box's rows
_MOST_EXTENT, _STRIDE_LIMIT_BYTES = 2**32, 2**40


@dataclass(frozen=True, slots=True)
class TensorMap:
    """Among the args of a Launch: a CUtensorMap of the argument `arg` as it is stored.

    The kernel takes `const __grid_constant__ TensorMap` (kernels/include/tensor_map.cuh).
    box: the items that one copy moves along each stored axis, the contiguous axis last.
    swizzle_bytes: 0, or 32, 64 or 128, within which 16-byte chunks change places in shared memory,
    and which a row of the box must not exceed; a shorter row takes the place of a whole one there.
    l2_promotion_bytes: what the L2 fetches at once.
    Nothing is interleaved; outside of the tensor zeros are read and nothing is written.
    """

    arg: str
    box: tuple[int, ...]
    swizzle_bytes: int = 0
    l2_promotion_bytes: int = 128

    def __post_init__(self) -> None:
        """Refuse what no tensor could have, whatever its shape."""
        where = f"TensorMap({self.arg!r})"
        if not isinstance(self.arg, str):
            raise BadInput(f"{where}: its argument is no name", remedy="name an argument")
        whole = isinstance(self.box, tuple) and all(type(extent) is int for extent in self.box)
        if not whole or not 1 <= len(self.box) <= MOST_AXES:
            raise BadInput(
                f"{where}: the box is {self.box!r}, not 1 to {MOST_AXES} whole numbers",
                remedy="give a tuple of items along each stored axis: box=(64, 128)",
            )
        if not all(1 <= extent <= MOST_BOX_EXTENT for extent in self.box):
            raise BadInput(
                f"{where}: the box {self.box} has an extent outside of 1 to {MOST_BOX_EXTENT}",
                remedy="copy a larger tile by several boxes",
            )
        for what, value, known in (
            ("swizzle_bytes", self.swizzle_bytes, SWIZZLES_BYTES),
            ("l2_promotion_bytes", self.l2_promotion_bytes, PROMOTIONS_BYTES),
        ):
            if value not in known:
                raise BadInput(
                    f"{where}: {what} is {value!r}",
                    remedy=f"give one of {', '.join(map(str, known))}",
                )

    def tensor(self, operator: Operator, case: Case) -> "StoredTensor":
        """Return the tensor that a case's argument is; BadInput where the engine can't copy it."""
        args = {arg.name: arg for arg in operator.args_of(case)}
        if self.arg not in args:
            raise unknown("argument of a TensorMap", self.arg, args, where=str(case))
        found = StoredTensor.of(args[self.arg], case)
        problem, remedy = next(self._problems(found), ("", ""))
        if problem:
            raise BadInput(f"{case}: TensorMap({self.arg!r}): {problem}", remedy=remedy)
        return found

    def _problems(self, tensor: "StoredTensor") -> Iterator[tuple[str, str]]:
        """Yield what keeps the engine from copying boxes of a tensor, each with its remedy."""
        shape, kind, items = tensor.shape, tensor.dtype, GRANULE_BYTES // tensor.item_bytes
        row_bytes, box_row_bytes = (
            extent * tensor.item_bytes for extent in (shape[-1], self.box[-1])
        )
        box_row = f"a row of the box {self.box} is {box_row_bytes} bytes of {kind}"
        if len(self.box) != len(shape):
            problem = f"the box {self.box} has {len(self.box)} axes, the argument {len(shape)}"
            yield f"{problem}: {tensor.axes}", "give an extent for each stored axis, in that order"
        if box_row_bytes % GRANULE_BYTES:
            problem = f"{box_row}, no multiple of {GRANULE_BYTES}"
            yield problem, f"let its last extent be a multiple of {items}"
        if 0 < self.swizzle_bytes < box_row_bytes:
            problem = f"{box_row}, longer than the swizzle of {self.swizzle_bytes}"
            most = self.swizzle_bytes // tensor.item_bytes
            yield problem, f"copy rows by several boxes of {most} items, or without a swizzle"
        if any(stride % GRANULE_BYTES for stride in tensor.strides_bytes):
            problem = f"rows of {shape[-1]} {kind} are {row_bytes} bytes long"
            last = tensor.axes.split()[-1]
            yield (
                f"{problem}, no multiple of {GRANULE_BYTES}",
                f"refuse cases whose {last} is no multiple of {items}, or load those without a map",
            )
        widest = max(tensor.strides_bytes, default=0)
        if max(shape) > _MOST_EXTENT or widest >= _STRIDE_LIMIT_BYTES:
            problem = f"the extents are {shape}, strides up to {widest} bytes"
            yield f"{problem}: over 2^32 items or 2^40 bytes", "refuse such cases"


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A contiguous tensor as memory holds it: extents of its stored axes, the contiguous last.

    strides_bytes: from one index to the next, along every axis but the last, in that order.
    """

    dtype: str
    axes: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, arg: Arg, case: Case) -> "StoredTensor":
        """Return what an argument is in a case."""
        axes = " ".join(arg.stored_axes(case.params))
        return cls(arg.dtype_of(case), axes, arg.stored_shape(case))

    @property
    def item_bytes(self) -> int:
        """Bytes of an item."""
        return DTYPES[self.dtype].item_bytes

    @property
    def strides_bytes(self) -> tuple[int, ...]:
        """Bytes between neighbours along each axis but the last."""
        rows = accumulate(reversed(self.shape[1:]), lambda size, extent: size * extent)
        return tuple(reversed([items * self.item_bytes for items in rows]))
