"""SwiGLU gate: y = gate * sigmoid(gate) * up, element by element."""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Work
from solkit.declare.geometry import ACCESS_BYTES, ceil_div

# Threads a block: many where a large card is full three times over, since a block's part of each
# stream is then 16 KiB side by side (half a percent on an H200); else few, for all SMs to have one.
MANY, FEW = 1024, 256
MANY_VECTORS = 3 * 132 * 2048


def _count(case: Case) -> int:
    return case.shape["rows"] * case.shape["cols"]


def work(case: Case) -> Work:
    """Two arrays are read, one is written; an element costs 4 flop, an exp and a division."""
    count = _count(case)
    return Work(
        read_bytes=2 * count * case.item_bytes,
        write_bytes=count * case.item_bytes,
        estimated_flop={"fp32": 4 * count, "sfu": 2 * count},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Silu of the gate, written and read again by the product."""
    count, nbytes = _count(case), _count(case) * case.item_bytes
    return (
        Step("silu", Work(nbytes, nbytes, estimated_flop={"fp32": 3 * count, "sfu": 2 * count})),
        Step("mul", Work(2 * nbytes, nbytes, estimated_flop={"fp32": count})),
    )


def reference(gate: Array, up: Array) -> Array:
    """Return gate / (1 + exp(-gate)) * up, with one temporary."""
    y: Array = np.negative(gate)
    with np.errstate(over="ignore"):  # exp -> inf gives the right limit, 0
        np.exp(y, out=y)
    y += 1
    np.divide(gate, y, out=y)
    y *= up
    return y


def launches(case: Case) -> tuple[Launch, ...]:
    """Rows and columns are one flat array."""
    vec = ACCESS_BYTES // case.item_bytes
    vectors, rest = divmod(_count(case), vec)  # an item a thread behind the last vector
    block = MANY if vectors >= MANY_VECTORS else FEW
    entry = f"swiglu<{case.ctype}, {block}, {vec}>"
    return (Launch(entry, grid=(ceil_div(vectors + rest, block), 1, 1), block=(block, 1, 1)),)


OPERATOR = Operator(
    name="swiglu",
    args=(Arg("gate", "rows cols"), Arg("up", "rows cols"), Arg("y", "rows cols", "out")),
    work=work,
    unfused=unfused,
    reference=reference,
    independent=("rows", "cols"),
    summary="y = gate * sigmoid(gate) * up",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="swiglu.cu",
    launches=launches,
    summary="one 16-byte load of each of two streams a thread",
)
