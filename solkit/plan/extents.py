"""The extents of a shape: one point with all its axes, or a grid of lists and ranges."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from solkit.declare.catalog import OperatorInfo
from solkit.errors import BadInput, unknown
from solkit.plan.document import Item

MOST_EXTENT = 2**40
RANGE_KEYS = ("from", "to", "factor", "step")


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of one axis, counted before they are built."""

    count: int
    values: Callable[[], Iterable[int]]


def point_of(item: Item, operator: OperatorInfo) -> dict[str, int]:
    """Read one explicit shape; its axes stay in the order in which the file has them."""
    found = _axes(item, operator, "a shape")
    return {axis: _extent(value, axis, hint=True) for axis, value in found.items()}


def grid_of(item: Item, operator: OperatorInfo, *, most: int) -> dict[str, Axis]:
    """Read a grid, whose axes are single values, lists or ranges of `most` values at most."""
    found = _axes(item, operator, "grid")
    return {axis: _axis(value, axis, most) for axis, value in found.items()}


def _axes(item: Item, operator: OperatorInfo, what: str) -> dict[str, Item]:
    found = item.mapping(f"{what} of {operator.name!r}")
    for name, value in found.items():
        if name not in operator.axes:
            raise unknown(f"axis of {operator.name!r}", name, operator.axes, where=value.where)
    missing = [axis for axis in operator.axes if axis not in found]
    if missing:
        raise BadInput(
            f"{item.where}: {what} of {operator.name!r} lacks the axis {missing[0]!r}",
            remedy=f"give all of {', '.join(operator.axes)}",
        )
    return found


def _extent(item: Item, axis: str, *, hint: bool = False) -> int:
    if hint and (item.is_list or item.is_mapping):
        raise BadInput(
            f"{item.where}: {axis} in shapes must be one number",
            remedy="lists and ranges go under grid:",
        )
    return item.whole(axis, least=0, most=MOST_EXTENT)


def _axis(item: Item, axis: str, most: int) -> Axis:
    if not item.is_mapping:
        extents = tuple(_extent(value, axis) for value in item.each(axis))
        return Axis(len(extents), lambda: extents)
    keys = item.mapping(f"the range of {axis}", RANGE_KEYS)
    for name in ("from", "to"):
        if name not in keys:
            raise BadInput(
                f"{item.where}: the range of {axis} has no {name!r}", remedy="give from and to"
            )
    if ("factor" in keys) == ("step" in keys):
        raise BadInput(
            f"{item.where}: the range of {axis} needs either factor or step",
            remedy="e.g. {from: 1, to: 32768, factor: 4}",
        )
    first, last = (
        keys[name].whole(f"{axis}.{name}", least=1, most=MOST_EXTENT) for name in ("from", "to")
    )
    if last < first:
        raise BadInput(
            f"{item.where}: the range of {axis} ends below its start", remedy="swap from and to"
        )
    if "factor" in keys:
        factor = keys["factor"].whole(f"{axis}.factor", least=2, most=MOST_EXTENT)
        extents = tuple(_powers(first, last, factor))
        return Axis(len(extents), lambda: extents)
    steps = range(first, last + 1, keys["step"].whole(f"{axis}.step", least=1, most=MOST_EXTENT))
    if len(steps) > most:
        raise BadInput(
            f"{item.where}: the range of {axis} has {len(steps):,} values, over {most:,} cases",
            remedy="take a larger step, or factor, or allow more with --max-cases",
        )
    return Axis(len(steps), lambda: steps)


def _powers(first: int, last: int, factor: int) -> Iterable[int]:
    while first <= last:
        yield first
        first *= factor
