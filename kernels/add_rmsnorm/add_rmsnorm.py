"""Residual add + RMSNorm: h = x + residual (rounded), y = h / rms(h) * weight; both are results."""

from dataclasses import replace

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


def fewest_registers(chunks: int) -> int:
    """Return what it needs where one chunk of residual is under way at a time."""
    return 40 if chunks <= 2 else 48  # noqa: PLR2004  # as the compiler counts them


# In clusters of 4 blocks, 512 x 16384 bf16 took 17.8 us on an H200 and 2048 x 16384 66.3; by blocks
# of 512 threads 18.8 and 68.0. 8192 x 16384 took 254.2 by clusters and 259.6 by such blocks.
LIMITS = RowLimits(
    chunks=2,
    most_chunks=4,
    registers=registers,
    most_threads=512,
    one_wave=True,
    at_once=4,
    cluster_rows=8192,
)
# Many rows of 8 or 16 KB: each chunk is asked for when the last has come, so that reads and writes
# mix evenly. On an H200 it took 32768 x 4096 bf16 from 258.9 us to 254.0, 8192 x 8192 from 131.8 to
# 130.0; but 8192 x 2560 from 41.3 to 41.5, and 2048 x 4096 from 17.9 to 18.1.
ONE_BY_ONE = replace(LIMITS, registers=fewest_registers, most_threads=256, at_once=1)
ONE_BY_ONE_ROWS, ONE_BY_ONE_ROW_BYTES = 4096, (8192, 16384)


def launches(case: Case) -> tuple[Launch, ...]:
    """Rows in registers where they fit, else in two passes."""
    args = ("x", "residual", "weight", "y", "h", "rows", "cols", EPSILON)
    rows, row_bytes = case.shape["rows"], case.shape["cols"] * case.item_bytes
    one_by_one = rows > ONE_BY_ONE_ROWS and row_bytes in ONE_BY_ONE_ROW_BYTES
    return (row_launch(case, "add_rmsnorm", ONE_BY_ONE if one_by_one else LIMITS, args=args),)


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
    summary="the row stays in registers: several rows a warp; a warp, a block or a cluster a row",
)
