"""RMSNorm: y = x / rms(x) * weight, row by row."""

from dataclasses import replace

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Uniform, Work
from solkit.declare.geometry import RowLimits
from solkit.declare.row_launch import row_launch

EPSILON = 1e-6


def work(case: Case) -> Work:
    """X and the weight are read, y is written; about 4 flop an element, a root a row."""
    rows, cols, item = case.shape["rows"], case.shape["cols"], case.item_bytes
    return Work(
        read_bytes=(rows * cols + cols) * item,
        write_bytes=rows * cols * item,
        estimated_flop={"fp32": 4 * rows * cols, "sfu": rows},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the mean squares, a number a row, and the product that reads x again."""
    rows, cols, item = case.shape["rows"], case.shape["cols"], case.item_bytes
    count = rows * cols
    return (
        Step("mean_square", Work(count * item, rows * item, estimated_flop={"fp32": 2 * count})),
        Step(
            "scale",
            Work(
                (count + cols + rows) * item,
                count * item,
                estimated_flop={"fp32": 2 * count, "sfu": rows},
            ),
        ),
    )


def reference(x: Array, weight: Array) -> Array:
    """Return x / sqrt(mean(x^2) + epsilon) * weight."""
    mean_square = np.einsum("...c,...c->...", x, x) / x.shape[-1]
    y: Array = x * (1 / np.sqrt(mean_square + EPSILON))[..., None]
    y *= weight
    return y


def registers(chunks: int) -> int:
    """Return what a thread needs for x, and for the weight where it comes early."""
    return 40 if chunks <= 4 else 64  # noqa: PLR2004  # as the compiler counts them


def fewest_registers(chunks: int) -> int:
    """Return what it can do with."""
    return 32 if chunks <= 2 else registers(chunks)  # noqa: PLR2004  # as the compiler counts them


LIMITS = RowLimits(chunks=2, most_chunks=8, registers=registers, most_threads=512, one_wave=True)
# With a few waves of blocks, more blocks at once leave less of a tail: on an H200, 2048 x 8192 bf16
# took 18.2 us by 4 an SM and 18.7 by 3, 8192 x 8192 66.5 and 67.2; 32768 x 4096 took 130.4 us by 8
# and 129.0 by 6.
DENSE_LIMITS = replace(LIMITS, registers=fewest_registers)
DENSE_ROWS, DENSE_ROWS_OF_16_KB = 4096, 8192


def launches(case: Case) -> tuple[Launch, ...]:
    """Rows in registers where they fit, else in two passes."""
    args = ("x", "weight", "y", "rows", "cols", EPSILON)
    long = case.shape["cols"] * case.item_bytes >= 16384  # noqa: PLR2004  # 16 KB
    dense = case.shape["rows"] <= (DENSE_ROWS_OF_16_KB if long else DENSE_ROWS)
    limits = DENSE_LIMITS if dense else LIMITS
    return (row_launch(case, "rmsnorm", limits, args=args),)


OPERATOR = Operator(
    name="rmsnorm",
    args=(
        Arg("x", "rows cols"),
        Arg("weight", "cols", init=Uniform(0.5, 1.5)),
        Arg("y", "rows cols", "out"),
    ),
    work=work,
    unfused=unfused,
    reference=reference,
    independent=("rows",),
    summary="y = x / rms(x) * weight",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="rmsnorm.cu",
    launches=launches,
    summary="the row stays in registers: several rows a warp; a warp, a block or a cluster a row",
)
