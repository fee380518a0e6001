"""Matrix-vector product with packed weights, int4 or int8: y = x @ (weight * scale).T."""

import math

import numpy as np

from solkit import Arg, Array, Bits, Case, Kernel, Launch, Normal, Operator, Step, Tolerance, Work
from solkit.declare.geometry import WARP, ceil_div
from solkit.dtypes import DTYPES

GROUP = 128  # columns that share a scale (int4)
ZERO = 8  # what is taken off a nibble
MOST_TOKENS = 8  # columns of the tensor core's product
TILE_ROWS = 16  # rows of it
INT8_COLS = 16  # columns of a 16-byte copy
MOST_COLS = 2**28  # columns, and the bytes of 8 rows, are counted in 32 bits on the device
RING_BYTES = 64 * 1024  # of a block: the most that the oldest cards have
MOST_TILES = {"int4": 4, "int8": 7}  # of 16 rows, that a warp has registers for
SM_WARPS = 16  # resident on an SM, with 128 registers a thread
SM_COUNT = 132  # of the card that the cut of the rows is made for
# The walk: x stays in the registers of a block's warps, 4 x 128 columns each. With 4 tiles a block
# it lost 8 to 17 % to the other way (8192 rows), with 14 it won 15 % (28672 rows).
WALK_WARPS, WALK_STEPS, WALK_TILES = 16, 4, 8  # WALK_TILES: of 16 rows, a block has at least
WALK_COLS = WALK_WARPS * WALK_STEPS * GROUP
# Copies under way, of 1 KiB a warp. The oldest cards have 64 KiB a block, but don't multiply bf16.
WALK_SLOTS = {"fp16": 3, "bf16": 4}
SUM_BYTES = 2 * TILE_ROWS * MOST_TOKENS * 4  # a warp's sums of two tiles
WORDS = {"int4": "Int4", "int8": "Int8"}  # the param's values and the types of the .cu


def work(case: Case) -> Work:
    """Weights and scales are read, so is x; y is written."""
    tokens, rows, cols = (case.shape[axis] for axis in ("tokens", "rows", "cols"))
    weight = rows * cols if case.params["weight_dtype"] == "int8" else rows * ceil_div(cols, 2)
    return Work(
        read_bytes=weight + (_scales(case) + tokens * cols) * case.item_bytes,
        write_bytes=tokens * rows * case.item_bytes,
        flop={DTYPES[case.dtype].matmul_pipe: 2 * tokens * rows * cols},
        estimated_flop={"fp32": rows * cols},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the weights written in the case's dtype, and a product that reads them."""
    tokens, rows, cols = (case.shape[axis] for axis in ("tokens", "rows", "cols"))
    weight, item = rows * cols, case.item_bytes
    packed = weight if case.params["weight_dtype"] == "int8" else rows * ceil_div(cols, 2)
    flop = {DTYPES[case.dtype].matmul_pipe: 2 * tokens * weight}
    return (
        Step(
            "dequantise",
            Work(packed + _scales(case) * item, weight * item, estimated_flop={"fp32": weight}),
        ),
        Step("matmul", Work((weight + tokens * cols) * item, tokens * rows * item, flop=flop)),
    )


def _scales(case: Case) -> int:
    rows, cols = case.shape["rows"], case.shape["cols"]
    return rows if case.params["weight_dtype"] == "int8" else rows * ceil_div(cols, GROUP)


def reference(x: Array, weight: Array, scale: Array, weight_dtype: str) -> Array:
    """Return x times the weights as numbers: int4, two in a byte, have a scale for 128 columns."""
    if weight_dtype == "int8":
        return x @ (weight * scale[:, None]).T
    packed = weight.astype(np.uint8)
    values = np.stack((packed & 15, packed >> 4), axis=-1).reshape(len(packed), -1)
    factors = np.repeat(scale, GROUP, axis=-1)[:, : values.shape[-1]]
    return x @ ((values.astype(x.dtype) - ZERO) * factors).T


def refuse_shape(case: Case) -> str | None:
    """Refuse int4 rows that end within a group."""
    cols = case.shape["cols"]
    if case.params["weight_dtype"] == "int4" and cols % GROUP:
        return f"cols is {cols}; int4 weights have a scale for every {GROUP} columns"
    return None


def refuse(case: Case) -> str | None:
    """Refuse more tokens than one product takes, and rows that copies or counts do not fit."""
    tokens, cols = case.shape["tokens"], case.shape["cols"]
    if tokens > MOST_TOKENS:
        return f"tokens is {tokens}; one product takes {MOST_TOKENS} (more are a matrix product)"
    if cols % INT8_COLS:
        return f"cols is {cols}; rows are copied in pieces of {INT8_COLS}"
    if cols > MOST_COLS:
        return f"a row has {MOST_COLS} columns at most"
    return None


def launches(case: Case) -> tuple[Launch, ...]:
    """Walk down many rows, or cut them so that the blocks of a large card end together."""
    rows, cols = case.shape["rows"], case.shape["cols"]
    if walks(case):
        return walk_layout(case)
    most = MOST_TILES[str(case.params["weight_dtype"])]
    tiles, warps = min(
        ((tiles, warps) for tiles in range(most, 0, -1) for warps in (8, 16)),
        key=lambda sizes: cost(rows, cols, *sizes),
    )
    return layout(case, tiles=tiles, warps=warps)


def walks(case: Case) -> bool:
    """Whether x fits into the registers of a block, and enough rows pass to make up for it."""
    many = case.shape["rows"] >= SM_COUNT * WALK_TILES * TILE_ROWS
    return case.params["weight_dtype"] == "int4" and case.shape["cols"] == WALK_COLS and many


def walk_layout(case: Case) -> tuple[Launch, ...]:
    """Give each SM of a large card a block, which takes every 132nd tile."""
    slots = WALK_SLOTS[case.dtype]
    return (
        Launch(
            f"dequant_gemv_walk<{case.ctype}, Int4ByFma, {WALK_STEPS}, {WALK_WARPS}, {slots}>",
            grid=(SM_COUNT, 1, 1),
            block=(WALK_WARPS * WARP, 1, 1),
            shared_bytes=WALK_WARPS * (slots * TILE_ROWS * GROUP // 2 + SUM_BYTES),
            args=("x", "weight", "scale", "y", "tokens", "rows", "cols"),
        ),
    )


def cost(rows: int, cols: int, tiles: int, warps: int) -> float:
    """Return what the busiest SM has to do, in tiles of 16 rows and 128 columns.

    A step of a warp, 128 columns of its rows, costs about as much as one more tile. Where blocks
    follow one another, two share an SM: one computes while the other begins or ends.
    """
    blocks_per_sm = SM_WARPS // warps
    waves = ceil_div(ceil_div(rows, TILE_ROWS * tiles), SM_COUNT * blocks_per_sm)
    if (tiles > 1 and TILE_ROWS * tiles > rows) or (blocks_per_sm == 1 and waves > 1):
        return math.inf
    steps = ceil_div(ceil_div(cols, GROUP), warps) * warps
    return waves * blocks_per_sm * steps * (tiles + 1)


def layout(
    case: Case, *, tiles: int, warps: int, ring_bytes: int = RING_BYTES
) -> tuple[Launch, ...]:
    """Give 16 x `tiles` rows to a block; its warps share the columns, and the ring's bytes."""
    weights = WORDS[str(case.params["weight_dtype"])]
    kib = ring_bytes // warps // 1024
    return (
        Launch(
            f"dequant_gemv<{case.ctype}, {weights}, {tiles}, {warps}, {kib}>",
            grid=(ceil_div(case.shape["rows"], TILE_ROWS * tiles), 1, 1),
            block=(warps * WARP, 1, 1),
            shared_bytes=ring_bytes,
            args=("x", "weight", "scale", "y", "tokens", "rows", "cols"),
        ),
    )


OPERATOR = Operator(
    name="dequant_gemv",
    args=(
        Arg("x", "tokens cols"),
        Arg("weight", "rows cols/2", dtype="uint8", init=Bits(), when={"weight_dtype": ("int4",)}),
        Arg("weight", "rows cols", dtype="int8", init=Bits(), when={"weight_dtype": ("int8",)}),
        # A weight has a std of 4.6 (int4) or 74 (int8): these make y about 1.
        Arg("scale", "rows cols/128", init=Normal(0.2, "cols"), when={"weight_dtype": ("int4",)}),
        Arg("scale", "rows", init=Normal(0.0135, "cols"), when={"weight_dtype": ("int8",)}),
        Arg("y", "tokens rows", "out"),
    ),
    params={"weight_dtype": tuple(WORDS)},
    work=work,
    unfused=unfused,
    reference=reference,
    refuse=refuse_shape,
    dtypes=("fp16", "bf16"),
    # y is about 1; a product in parts whose sums are handed on in bf16, as cuBLAS makes it, was off
    # by 0.006 where parts of about 1 cancel.
    tolerance={"bf16": Tolerance(1.6e-2, 1e-2)},
    independent=("rows",),
    summary="y = x @ (weight * scale).T, weights int4 (groups of 128) or int8 (per row)",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="dequant_gemv.cu",
    launches=launches,
    refuse=refuse,
    dtypes=("fp16", "bf16"),
    summary="tensor cores on weights unpacked in registers, streamed through shared memory",
)
