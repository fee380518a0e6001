"""Integer arguments that index a dim: what they are filled with, and whether they stay inside."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from solkit.declare.arg import INDEX_COUNT, Arg, Array, Indices
from solkit.declare.dims import dim
from solkit.declare.operator import Operator
from solkit.errors import BadInput
from solkit.measure.device.base import Device
from solkit.model import Case


def shuffled(arg: Arg, init: Indices, case: Case, seed: int) -> Array:
    """Return an argument's int32 values in stored shape: a shuffle, repeated, with its holes.

    Its entries but the holes name min(their count, extent) rows: a shuffle names each once.
    BadInput where the extent has indices that int32 can't hold.
    """
    shape, extent = arg.stored_shape(case), dim(init.of).extent(case.shape)
    if extent > INDEX_COUNT:
        raise BadInput(
            f"{case}: {arg.name!r} holds indices of {init.of}, which is {extent}, and int32 can "
            f"name {INDEX_COUNT} of them",
            remedy=f"take a smaller {' or '.join(dict.fromkeys(dim(init.of).axes))}",
        )
    values = np.empty(math.prod(shape), dtype=np.int32)
    rng = np.random.default_rng([seed, *arg.name.encode()])
    held = np.ones(values.size, dtype=bool)
    if init.hole_every:
        held[init.hole_every - 1 :: init.hole_every] = False
    count = int(held.sum())  # a shuffle of a long dim is not made for a few of its indices
    values[held] = np.resize(rng.choice(extent, min(count, extent), replace=False), count)
    values[~held] = init.hole
    return values.reshape(shape)


def refuse_outside(
    device: Device, operator: Operator, case: Case, arrays: Mapping[str, Sequence[Array]]
) -> None:
    """Raise BadInput where an index points outside the argument that is gathered by it.

    A negative hole of its declaration is no index. It is told before a kernel can read there.
    """
    indices = {arg.name: arg for arg in operator.inputs_of(case) if arg.dtype == "int32"}
    for arg in operator.inputs_of(case):
        index = indices.get(arg.gathered_by)
        if index is None:
            continue
        stored = index.stored_axes(case.params)
        values = device.fetch(arrays[index.name][0], "int32", [None] * len(stored))
        extent = arg.shape(case)[0]
        outside = (values < 0) | (values >= extent)
        if isinstance(index.init, Indices) and index.init.hole_every:
            outside &= (values >= 0) | (values != index.init.hole)
        if not outside.any():
            continue
        beyond = np.where(outside, np.maximum(values - extent + 1, -values), 0)
        place = np.unravel_index(int(beyond.argmax()), values.shape)
        at = ", ".join(f"{word} {where}" for word, where in zip(stored, place, strict=True))
        raise BadInput(
            f"{index.name}[{at}] is {int(values[place])}, which points outside {arg.name!r}: its "
            f"{arg.axis_names[0]} has the indices 0 to {extent - 1}; {int(outside.sum())} of "
            f"{values.size} entries of {index.name!r} do",
            remedy=f"fill {index.name!r} with Indices(of={arg.axis_names[0]!r}); "
            "a hole is negative",
        )
