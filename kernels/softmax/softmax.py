"""Softmax over each row, unscaled and unmasked."""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Tolerance, Work
from solkit.declare.geometry import ceil_div, row_layout, vector_items

LOOPED_BLOCK, LOOPED_ITEMS = 1024, 4  # threads a row, 16-byte loads in flight a thread


def work(case: Case) -> Work:
    """One array is read, one is written; an element costs a max, a difference, a sum, a product."""
    count, rows = case.shape["rows"] * case.shape["cols"], case.shape["rows"]
    nbytes = count * case.item_bytes
    return Work(nbytes, nbytes, estimated_flop={"fp32": 4 * count, "sfu": count + rows})


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the classic four: max, exp of the difference, sum, quotient.

    Full arrays go through DRAM between them in the case's dtype, and so do the rows' max and sum.
    """
    count, rows = case.shape["rows"] * case.shape["cols"], case.shape["rows"]
    full, one = count * case.item_bytes, rows * case.item_bytes
    return (
        Step("max", Work(full, one, estimated_flop={"fp32": count})),
        Step("exp", Work(full + one, full, estimated_flop={"fp32": count, "sfu": count})),
        Step("sum", Work(full, one, estimated_flop={"fp32": count})),
        Step("divide", Work(full + one, full, estimated_flop={"fp32": count, "sfu": rows})),
    )


def reference(x: Array) -> Array:
    """Return exp(x - max) / sum, with one temporary."""
    y: Array = x - x.max(axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


def most_chunks(threads: int) -> int:
    """Return the 16-byte vectors a thread can hold, 4 registers each."""
    return 16 if threads <= 512 else 8  # noqa: PLR2004  # 65536 registers an SM / threads


def launches(case: Case) -> tuple[Launch, ...]:
    """Rows in registers where they fit, else in two passes."""
    rows, cols, vec = case.shape["rows"], case.shape["cols"], vector_items(case, "cols")
    layout = row_layout(cols // vec, rows, most_chunks)
    if layout is None:
        entry = f"softmax_looped<{case.ctype}, {LOOPED_BLOCK}, {vec}, {LOOPED_ITEMS}>"
        return (Launch(entry, grid=(rows, 1, 1), block=(LOOPED_BLOCK, 1, 1)),)
    shape = f"{layout.threads}, {layout.rows}, {vec}, {layout.chunks}"
    return (
        Launch(
            f"softmax<{case.ctype}, {shape}>",
            grid=(ceil_div(rows, layout.rows), 1, 1),
            block=(layout.threads * layout.rows, 1, 1),
        ),
    )


OPERATOR = Operator(
    name="softmax",
    args=(Arg("x", "rows cols"), Arg("y", "rows cols", "out")),
    work=work,
    unfused=unfused,
    reference=reference,
    # Results are about 1 / cols, so an absolute allowance of the usual size would pass anything:
    # all but the last steps of the type is relative. fp16 below 6e-5 (its normal range, which a row
    # of 16K columns is under) has fixed steps of 6e-8, so it gets one of them.
    tolerance={
        "fp64": Tolerance(1e-12, 1e-20),
        "fp32": Tolerance(1e-5, 1e-14),
        "fp16": Tolerance(2e-3, 6e-8),
        "bf16": Tolerance(1.6e-2, 1e-14),
    },
    independent=("rows",),
    summary="y = exp(x - max) / sum(exp(x - max)), row by row",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="softmax.cu",
    launches=launches,
    summary="the row stays in registers; very long rows are read twice",
)
