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


def fewest_of_wide(chunks: int) -> int:
    """Return what it can do with in blocks of 512 threads and more; a warp's row would spill."""
    return 32 if chunks <= 4 else registers(chunks)  # noqa: PLR2004  # as the compiler counts them


LIMITS = RowLimits(chunks=2, most_chunks=8, registers=registers, most_threads=512, one_wave=True)
# With a few waves of blocks, more blocks at once leave less of a tail: on an H200, 2048 x 8192 bf16
# took 18.2 us by 4 an SM and 18.7 by 3, 8192 x 8192 66.5 and 67.2; 32768 x 4096 took 130.4 us by 8
# and 129.0 by 6.
DENSE_LIMITS = replace(LIMITS, registers=fewest_registers)
DENSE_ROWS, DENSE_ROWS_OF_16_KB = 4096, 8192
# With more than a wave of blocks, many threads with two vectors each are better than one wave whose
# threads have up to eight (2048 x 4096: 9.6 and 10.3 us; of shorter rows both took 6.8), and so are
# blocks of 1024 threads where 512 would have four (8192 x 16384: 129.7 and 130.9).
FEW_ROWS, SHORT_ROW_BYTES, WIDE_ROW_BYTES = 1024, 8192, 32768
WIDE_LIMITS = replace(LIMITS, registers=fewest_of_wide)
# Between few rows and very many the weight is waited for with the row, not behind its sum: 8192 x
# 4096 took 32.5 us so and 33.1 without. Few rows lost by it (512 x 8192: 5.73 and 5.55); very many
# lost up to 1.4 % (32768 x 5120: 163.6, 161.4) or won up to 0.7 % (32768 x 8192: 255.7, 257.6).
EARLY_ROWS = range(FEW_ROWS, 16384)


def launches(case: Case) -> tuple[Launch, ...]:
    """Rows in registers where they fit, else in two passes."""
    rows, row_bytes = case.shape["rows"], case.shape["cols"] * case.item_bytes
    wide = row_bytes == WIDE_ROW_BYTES
    dense = rows <= (DENSE_ROWS_OF_16_KB if row_bytes >= WIDE_ROW_BYTES // 2 else DENSE_ROWS)
    limits = WIDE_LIMITS if wide else DENSE_LIMITS if dense else LIMITS
    if rows > FEW_ROWS and row_bytes >= SHORT_ROW_BYTES:
        threads = 1024 if wide else limits.most_threads
        limits = replace(limits, one_wave=False, most_threads=threads)
    args = ("x", "weight", "y", "rows", "cols", EPSILON)
    early = str(rows in EARLY_ROWS).lower()
    return (row_launch(case, "rmsnorm", limits, args=args, block_more=early),)


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
