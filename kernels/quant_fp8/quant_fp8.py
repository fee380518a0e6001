"""Quantisation to fp8 e4m3, with a scale for each row (token) or each 128 columns of it (block)."""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Work
from solkit.declare.geometry import RowLimits, ceil_div, vector_items
from solkit.declare.row_launch import row_launch

E4M3_MAX = 448.0
BLOCK_COLS = 128  # columns that share a scale when scaling=block
BLOCK, BLOCKS = 64, 2  # scaling=block: threads a block; blocks of 128 under way a group of lanes


def _scale_count(case: Case) -> int:
    rows, cols = case.shape["rows"], case.shape["cols"]
    return rows * (ceil_div(cols, BLOCK_COLS) if case.params["scaling"] == "block" else 1)


def work(case: Case) -> Work:
    """X is read, a byte an element and the fp32 scales are written; about 3 flop an element."""
    count, scales = case.shape["rows"] * case.shape["cols"], _scale_count(case)
    return Work(
        read_bytes=count * case.item_bytes,
        write_bytes=count + 4 * scales,
        estimated_flop={"fp32": 3 * count, "sfu": scales},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the scales, and the quotients that read x again."""
    count, scales = case.shape["rows"] * case.shape["cols"], _scale_count(case)
    nbytes = count * case.item_bytes
    return (
        Step("absmax", Work(nbytes, 4 * scales, estimated_flop={"fp32": 2 * count})),
        Step("divide", Work(nbytes + 4 * scales, count, estimated_flop={"fp32": count})),
    )


def reference(x: Array, scaling: str) -> tuple[Array, Array]:
    """Return x / scale, not rounded, and the scales."""
    group = BLOCK_COLS if scaling == "block" else x.shape[-1]
    starts = np.arange(0, x.shape[-1], group)
    most = np.maximum.reduceat(np.abs(x), starts, axis=-1)
    scale: Array = most / x.dtype.type(E4M3_MAX)
    scale[most == 0] = 1
    with np.errstate(invalid="ignore"):  # infinity / infinity is NaN, as it should be
        y = x / np.repeat(scale, np.diff(starts, append=x.shape[-1]), axis=-1)
    return y, scale if scaling == "block" else scale[..., 0]


def registers(chunks: int) -> int:
    """Return what a thread needs for x and its codes."""
    return 48 if chunks <= 4 else 64  # noqa: PLR2004  # as the compiler counts them


LIMITS = RowLimits(chunks=4, most_chunks=8, registers=registers, most_threads=320)


def _launches(case: Case, conversion: str) -> tuple[Launch, ...]:
    if case.params["scaling"] == "block":
        return (_block_launch(case, conversion),)
    return (row_launch(case, "quant_fp8_token", LIMITS, more=conversion),)


def _block_launch(case: Case, conversion: str) -> Launch:
    """Blocks of all rows in one line where they are whole; else no CUDA block leaves its row."""
    rows, cols, vec = case.shape["rows"], case.shape["cols"], vector_items(case, "cols")
    lanes = min(32, BLOCK_COLS // vec)
    step, row_blocks = BLOCKS * BLOCK // lanes, ceil_div(cols, BLOCK_COLS)
    whole = cols % BLOCK_COLS == 0
    ctas = ceil_div(rows * row_blocks, step) if whole else rows * ceil_div(row_blocks, step)
    shape = f"{BLOCK}, {vec}, {BLOCKS}, {str(whole).lower()}"
    entry = f"quant_fp8_block<{case.ctype}, {shape}, {conversion}>"
    return Launch(entry, grid=(ctas, 1, 1), block=(BLOCK, 1, 1))


def launches(case: Case) -> tuple[Launch, ...]:
    """Rows in registers where they fit, else in two passes; blocks of 128 by a few lanes each."""
    return _launches(case, "true")


def launches_software(case: Case) -> tuple[Launch, ...]:
    """Convert as a card below CC 8.9 does, on any card."""
    return _launches(case, "false")


OPERATOR = Operator(
    name="quant_fp8",
    args=(
        Arg("x", "rows cols"),
        Arg("y", "rows cols", "out", "fp8_e4m3"),
        Arg("scale", "rows", "out", "fp32", when={"scaling": ("token",)}),
        Arg("scale", "rows cols/128", "out", "fp32", when={"scaling": ("block",)}),
    ),
    work=work,
    unfused=unfused,
    reference=reference,
    params={"scaling": ("token", "block")},
    independent=("rows",),
    summary="scale = max |x| / 448 a row or 128 columns, y = x / scale as e4m3",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="quant_fp8.cu",
    launches=launches,
    summary="the row stays in registers; the maximum over bits, as integers",
)
SOFTWARE = Kernel(
    name="software_conversion",
    operator=OPERATOR,
    source="quant_fp8.cu",
    launches=launches_software,
    summary="the same with the conversion of cards below CC 8.9",
    by_name_only=True,
)
