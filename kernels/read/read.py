"""Read: the sum of each row. Hardly anything is written: the ceiling for kernels that only read."""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Tolerance, Uniform, Work
from solkit.declare.geometry import WARP, ceil_div, vector_items

ITEMS = 4  # 16-byte loads in flight a thread
WARPS = 8  # a block, one row each, where rows are many
SPREAD_BLOCKS = 132  # SMs of an H200: until each has a block, blocks of fewer warps are better
# Rows that get a block each: on an H200 32 and 256 rows of 2 KB took 1.34 and 1.66 us so, 512 took
# less by a warp each.
FEW_ROWS = 264
DEEP_LOADS = 8  # in flight a thread, over several rows where one row has fewer
DEEP_BLOCKS = 528  # four of 256 threads an SM, all there at once: 60 registers each in fp32
ROW_THREADS = 512  # at most, where a block has a row to itself


def work(case: Case) -> Work:
    """Every element is read once; one float a row is written."""
    rows, count = case.shape["rows"], case.shape["rows"] * case.shape["cols"]
    return Work(count * case.item_bytes, 4 * rows, estimated_flop={"fp32": count})


def reference(x: Array) -> Array:
    """Return the sum of each row (NumPy adds pairwise)."""
    return np.sum(x, axis=-1)


def launches(case: Case) -> tuple[Launch, ...]:
    """Give each row a warp, all of them at once; a block each where rows are few."""
    if case.shape["rows"] <= FEW_ROWS:
        return launches_block(case)
    items = min(ITEMS, _lane_vectors(case))
    return (_row_per_warp(case, items, at_once=1, most_blocks=case.shape["rows"]),)


def launches_in_flight(case: Case) -> tuple[Launch, ...]:
    """Give each warp so many rows that ITEMS loads are in flight, all warps at once."""
    items = min(ITEMS, _lane_vectors(case))
    at_once = ITEMS // items
    return (_row_per_warp(case, items, at_once=at_once, most_blocks=case.shape["rows"]),)


def launches_deep(case: Case) -> tuple[Launch, ...]:
    """Walk the rows with a grid of fixed size, a warp takes several at once."""
    items = min(DEEP_LOADS, _lane_vectors(case))
    return (_row_per_warp(case, items, at_once=DEEP_LOADS // items, most_blocks=DEEP_BLOCKS),)


def launches_block(case: Case) -> tuple[Launch, ...]:
    """Give each row a block: a thread for each 16 bytes, until there are ROW_THREADS."""
    vec = vector_items(case, "cols")
    vectors = case.shape["cols"] // vec
    threads = min(ROW_THREADS, WARP * ceil_div(vectors, WARP))
    items = min(ITEMS, ceil_div(vectors, threads))
    entry = f"read_per_block<{case.ctype}, {threads}, {vec}, {items}>"
    return (Launch(entry, grid=(case.shape["rows"], 1, 1), block=(threads, 1, 1)),)


def _row_per_warp(case: Case, items: int, *, at_once: int, most_blocks: int) -> Launch:
    warps = ceil_div(case.shape["rows"], at_once)
    block_warps = max(1, min(WARPS, warps // SPREAD_BLOCKS))
    blocks = min(most_blocks, ceil_div(warps, block_warps))
    shape = f"{WARPS * WARP}, {vector_items(case, 'cols')}, {items}, {at_once}"
    return Launch(
        f"read<{case.ctype}, {shape}>",
        grid=(blocks, 1, 1),
        block=(block_warps * WARP, 1, 1),
    )


def _lane_vectors(case: Case) -> int:
    """Return the accesses that a lane needs for a row."""
    return ceil_div(case.shape["cols"] // vector_items(case, "cols"), WARP)


# Values in [0, 1): a sum grows with every element, so a part that was not read shows in it. y is
# fp32 whatever x is, so one tolerance serves all. The longest chains are a warp's: a lane adds up
# 1/32 of the row one by one, then a tree of five steps joins the lanes. k roundings of u = 2^-24 in
# a chain leave u sqrt(k) / 3 of its sum, and the chains' errors cancel to 1/sqrt(32) of that: 2e-7
# for 128 K columns, 2e-6 for 10 M (in NumPy: 1.3e-7 and 1.6e-6 rms, 2.6e-6 the worst). 1e-5 is five
# times what those 10 M need, and still shows one middling element left out of 100 K.
ALL_ALIKE = Tolerance(relative_fraction=1e-5, absolute_fraction=1e-6)

OPERATOR = Operator(
    name="read",
    args=(Arg("x", "rows cols", init=Uniform(0.0, 1.0)), Arg("y", "rows", "out", dtype="fp32")),
    work=work,
    reference=reference,
    tolerance=dict.fromkeys(("fp64", "fp32", "fp16", "bf16"), ALL_ALIKE),
    independent=("rows",),
    summary="y = the sum of each row: the ceiling for kernels that only read",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="read.cu",
    launches=launches,
    summary="a warp a row, a block where they are few, up to four 16-byte loads in flight a thread",
)
IN_FLIGHT = Kernel(
    name="in_flight",
    operator=OPERATOR,
    source="read.cu",
    launches=launches_in_flight,
    summary="four 16-byte loads in flight a thread, over several rows where they are short",
    by_name_only=True,
)
DEEP = Kernel(
    name="deep",
    operator=OPERATOR,
    source="read.cu",
    launches=launches_deep,
    summary="a fixed grid of warps, eight 16-byte loads in flight a thread over several rows",
    by_name_only=True,
)
BLOCK = Kernel(
    name="block",
    operator=OPERATOR,
    source="read.cu",
    launches=launches_block,
    summary="a block a row, one 16-byte load a thread, up to four in long rows",
    by_name_only=True,
)
