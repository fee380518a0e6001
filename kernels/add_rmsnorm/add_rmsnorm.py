"""Residual add + RMSNorm: h = x + residual (rounded), y = h / rms(h) * weight; both are results."""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Uniform, Work
from solkit.declare.geometry import RowLimits
from solkit.declare.row_launch import row_launch

EPSILON = 1e-6


def work(case: Case) -> Work:
    """X, residual and the weight are read, y and h are written; about 5 flop an element."""
    rows, cols, item = case.shape["rows"], case.shape["cols"], case.item_bytes
    return Work(
        read_bytes=(2 * rows * cols + cols) * item,
        write_bytes=2 * rows * cols * item,
        estimated_flop={"fp32": 5 * rows * cols, "sfu": rows},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the sum, written, and read again by the norm."""
    rows, cols, item = case.shape["rows"], case.shape["cols"], case.item_bytes
    count = rows * cols
    norm = {"fp32": 4 * count, "sfu": rows}
    return (
        Step("add", Work(2 * count * item, count * item, estimated_flop={"fp32": count})),
        Step("rmsnorm", Work((count + cols) * item, count * item, estimated_flop=norm)),
    )


def reference(x: Array, residual: Array, weight: Array) -> tuple[Array, Array]:
    """Return y and h."""
    h = x + residual
    mean_square = np.einsum("...c,...c->...", h, h) / h.shape[-1]
    y = h * (1 / np.sqrt(mean_square + EPSILON))[..., None]
    y *= weight
    return y, h


def registers(chunks: int) -> int:
    """Return what a thread needs for x and residual, and for the weight where it comes early."""
    return 40 if chunks <= 2 else 64  # noqa: PLR2004  # as the compiler counts them


LIMITS = RowLimits(chunks=2, most_chunks=4, registers=registers, most_threads=512, one_wave=True)


def launches(case: Case) -> tuple[Launch, ...]:
    """Rows in registers where they fit, else in two passes."""
    args = ("x", "residual", "weight", "y", "h", "rows", "cols", EPSILON)
    return (row_launch(case, "add_rmsnorm", LIMITS, args=args),)


OPERATOR = Operator(
    name="add_rmsnorm",
    args=(
        Arg("x", "rows cols"),
        Arg("residual", "rows cols"),
        Arg("weight", "cols", init=Uniform(0.5, 1.5)),
        Arg("y", "rows cols", "out"),
        Arg("h", "rows cols", "out"),
    ),
    work=work,
    unfused=unfused,
    reference=reference,
    independent=("rows",),
    summary="h = x + residual, y = h / rms(h) * weight",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="add_rmsnorm.cu",
    launches=launches,
    summary="the row stays in registers: several rows a warp, one warp or one block a row",
)
