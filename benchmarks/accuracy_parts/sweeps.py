"""The sweeps that the accuracy benchmark measures through solkit's own command line.

Pure: from a number of cases to cases, and from cases to the text of a shapes.yaml in their order.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from solkit.model import Case

# What an H200 moves in a second from its DRAM, about: it places shapes on an axis of time, no more.
BYTES_PER_S = 4.0e12
LAUNCH_S = 1.2e-6
# A few widths only: softmax and add_rmsnorm compile a function for each.
COLUMNS = (1024, 2560, 4096, 8192)
SHORT_BYTES = 96_000_000  # 24 us at BYTES_PER_S: under 50 us for every bundled kernel
TRAFFIC = {"copy": 2, "read": 1, "softmax": 2, "add_rmsnorm": 4, "swiglu": 3, "bias_gelu": 2}
FLAT = ("copy",)  # one axis, `elements`
SPREAD = ("copy", "softmax", "add_rmsnorm", "copy", "swiglu", "read")
STREAM_COLUMNS = 1024  # of `read`, which writes 4 bytes a row: 0.2 % of what it reads in bf16


@dataclass(frozen=True, slots=True)
class Point:
    """One case as a shapes.yaml names it."""

    operator: str
    shape: dict[str, int]
    dtype: str = "bf16"
    params: dict[str, str] = field(default_factory=dict)

    def case(self, kernel: str) -> Case:
        """Return it as a case of a kernel."""
        return Case(self.operator, kernel, self.shape, self.dtype, dict(self.params))


def text(points: Sequence[Point], kernels: Sequence[str] = ()) -> str:
    """Return a shapes.yaml of the points in their order, each with the kernels that are named."""
    named = f", kernels: [{', '.join(kernels)}]" if kernels else ""
    lines = ["version: 1", "sweeps:"]
    for point in points:
        params = f", params: {_mapping(point.params)}" if point.params else ""
        lines.append(
            f"  - {{operator: {point.operator}, dtype: {point.dtype}{params}{named}, "
            f"shapes: [{_mapping(point.shape)}]}}"
        )
    return "\n".join(lines) + "\n"


def _mapping(values: dict[str, int] | dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in values.items()) + "}"


def stream(kernel: str, buffer_bytes: int) -> Point:
    """Return the bf16 case of `copy` or `read` whose input has so many bytes."""
    elements = buffer_bytes // 2
    if kernel in FLAT:
        return Point(kernel, {"elements": elements})
    return Point(kernel, {"rows": elements // STREAM_COLUMNS, "cols": STREAM_COLUMNS})


def spread(
    count: int, shortest_s: float, longest_s: float, operators: Sequence[str] = SPREAD
) -> list[Point]:
    """Return `count` different cases whose times lie evenly on a logarithmic axis, roughly.

    The operators take turns, so that each is met at every length.
    """
    found: dict[tuple[str, ...], Point] = {}
    number = 0
    while len(found) < count:
        place = (number % count) / max(1, count - 1)
        seconds = shortest_s * (longest_s / shortest_s) ** place
        turn = number + number // count  # a second round gives each length to another operator
        point = _sized(operators[turn % len(operators)], seconds, COLUMNS[turn // 6 % len(COLUMNS)])
        found.setdefault(_key(point), point)
        number += 1
    return list(found.values())


def _sized(operator: str, seconds: float, cols: int) -> Point:
    """Return the case of an operator that takes about so long."""
    elements = max(0.0, seconds - LAUNCH_S) * BYTES_PER_S / (2 * TRAFFIC[operator])
    if operator in FLAT:
        return Point(operator, {"elements": max(2048, round(elements / 2048) * 2048)})
    return Point(operator, {"rows": max(1, round(elements / cols)), "cols": cols})


def short(count: int) -> list[Point]:
    """Return `count` different short cases of every bundled operator, evenly picked from a grid."""
    grid = [point for point in _grid() if _bytes(point) <= SHORT_BYTES]
    if len(grid) < count:
        message = f"the grid holds {len(grid)} short cases, {count} are wanted"
        raise ValueError(message)
    return [grid[index * len(grid) // count] for index in range(count)]


def _grid() -> list[Point]:
    flat = [part * 2**power // 4 for power in range(12, 25) for part in (4, 5, 6, 7)]
    rows = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
    tables = [{"rows": count, "cols": cols} for cols in COLUMNS for count in rows]
    products = [{"M": 2**power, "N": n, "K": n} for n in (1024, 2560) for power in range(9)]
    return [
        *_each(FLAT, [{"elements": count} for count in flat], ("bf16", "fp16", "fp32")),
        *_each(("read", "softmax", "add_rmsnorm", "swiglu"), tables, ("bf16", "fp16")),
        *_each(("bias_gelu",), tables, ("bf16",), "form", ("erf", "tanh")),
        *_each(("matmul_add",), products, ("bf16",), "weight", ("kn", "nk")),
    ]


def _each(
    operators: Sequence[str],
    shapes: Sequence[dict[str, int]],
    dtypes: Sequence[str],
    param: str = "",
    values: Sequence[str] = ("",),
) -> Iterable[Point]:
    for operator, dtype, value, shape in product(operators, dtypes, values, shapes):
        yield Point(operator, shape, dtype, {param: value} if param else {})


def _bytes(point: Point) -> int:
    item = 4 if point.dtype == "fp32" else 2
    if point.operator == "matmul_add":
        return point.shape["N"] * point.shape["K"] * item
    return math.prod(point.shape.values()) * TRAFFIC[point.operator] * item


def _key(point: Point) -> tuple[str, ...]:
    return (point.operator, point.dtype, *map(str, point.shape.items()), str(point.params))
