"""Residual add + LayerNorm: h = x + residual (rounded), y = standardised h * weight + bias."""

from dataclasses import replace

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Uniform, Work
from solkit.declare.geometry import RowLimits
from solkit.declare.row_launch import row_launch

EPSILON = 1e-5


def work(case: Case) -> Work:
    """X, residual, weight and bias are read, y and h are written; about 8 flop an element."""
    rows, cols, item = case.shape["rows"], case.shape["cols"], case.item_bytes
    return Work(
        read_bytes=(2 * rows * cols + 2 * cols) * item,
        write_bytes=2 * rows * cols * item,
        estimated_flop={"fp32": 8 * rows * cols, "sfu": rows},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the sum, written, and read again by the norm."""
    rows, cols, item = case.shape["rows"], case.shape["cols"], case.item_bytes
    count = rows * cols
    norm = {"fp32": 7 * count, "sfu": rows}
    return (
        Step("add", Work(2 * count * item, count * item, estimated_flop={"fp32": count})),
        Step("layernorm", Work((count + 2 * cols) * item, count * item, estimated_flop=norm)),
    )


def reference(x: Array, residual: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
    """Return y and h."""
    h = x + residual
    y: Array = h - h.mean(axis=-1, keepdims=True)
    variance = np.einsum("...c,...c->...", y, y) / h.shape[-1]
    y *= (1 / np.sqrt(variance + EPSILON))[..., None]
    y *= weight
    y += bias
    return y, h


def registers(chunks: int) -> int:
    """Return what a thread needs for x, residual, and weight and bias where they come early."""
    return 56 if chunks <= 2 else 64  # noqa: PLR2004  # as the compiler counts them


def fewest_registers(chunks: int) -> int:
    """Return what it can do with."""
    return 48 if chunks <= 2 else registers(chunks)  # noqa: PLR2004  # as the compiler counts them


# In clusters of 4 blocks, 512 x 16384 bf16 took 18.0 us on an H200 and 2048 x 16384 66.6; by blocks
# of 512 threads 19.1 and 68.1. 8192 x 16384 took 254.9 by clusters and 259.1 by such blocks.
LIMITS = RowLimits(
    chunks=2,
    most_chunks=4,
    registers=registers,
    most_threads=512,
    one_wave=True,
    at_once=4,
    cluster_rows=8192,
)
# With a few waves of blocks, more blocks at once leave less of a tail; with many they only mix more
# streams: on an H200, 8192 x 2560 bf16 took 42.3 us by 8 blocks an SM and 41.0 by 7, 32768 x 5120
# took 331 us by 4 and 318 by 3.
DENSE_LIMITS = replace(LIMITS, registers=fewest_registers)
DENSE_ROWS = 4096
# Many rows of 8 KB: each chunk is asked for when the last has come, so that reads and writes mix
# evenly. It took 32768 x 4096 bf16 from 259.5 us to 257.9.
ONE_BY_ONE = replace(DENSE_LIMITS, at_once=1)
ONE_BY_ONE_ROW_BYTES = 8192


def launches(case: Case) -> tuple[Launch, ...]:
    """Rows in registers where they fit, else in three passes."""
    args = ("x", "residual", "weight", "bias", "y", "h", "rows", "cols", EPSILON)
    limits = LIMITS
    if case.shape["rows"] <= DENSE_ROWS:
        limits = DENSE_LIMITS
    elif case.shape["cols"] * case.item_bytes == ONE_BY_ONE_ROW_BYTES:
        limits = ONE_BY_ONE
    return (row_launch(case, "add_layernorm", limits, args=args),)


OPERATOR = Operator(
    name="add_layernorm",
    args=(
        Arg("x", "rows cols"),
        Arg("residual", "rows cols"),
        Arg("weight", "cols", init=Uniform(0.5, 1.5)),
        # Small, as biases are. One as large as y would cancel it here and there, and what is left
        # then is the rounding of h, which no relative tolerance allows for.
        Arg("bias", "cols", init=Uniform(-0.5, 0.5)),
        Arg("y", "rows cols", "out"),
        Arg("h", "rows cols", "out"),
    ),
    work=work,
    unfused=unfused,
    reference=reference,
    independent=("rows",),
    summary="h = x + residual, y = (h - mean) / std * weight + bias",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="add_layernorm.cu",
    launches=launches,
    summary="the row stays in registers; variance from centred squares, one barrier",
)
