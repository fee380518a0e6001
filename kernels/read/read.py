"""Read: total = sum(x). Hardly anything is written: the ceiling for kernels that only read."""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Tolerance, Uniform, Work
from solkit.declare.geometry import ACCESS_BYTES, ceil_div

BLOCK, ITEMS = 512, 4  # threads a block, 16-byte loads in flight a thread
MOST_BLOCKS = 2112  # 132 SMs x 16: within this and a quarter of it an H200 reads 4.35-4.38 TB/s
WIDE_BLOCK, WIDE_BLOCKS = 1024, 132  # few blocks: the last to arrive waits for few others
DEEP_ITEMS, DEEP_BLOCKS = 8, 528  # four blocks an SM: no block starts after the first have ended


def work(case: Case) -> Work:
    """Every element is read once; one float is written."""
    count = case.shape["elements"]
    return Work(read_bytes=count * case.item_bytes, write_bytes=4, estimated_flop={"fp32": count})


def reference(x: Array) -> Array:
    """Return the sum as an array without axes (NumPy adds pairwise)."""
    return np.sum(x)


def blocks(case: Case, block: int = BLOCK, items: int = ITEMS, most: int = MOST_BLOCKS) -> int:
    """Return the size of the grid, which walks the array in strides."""
    vec = ACCESS_BYTES // case.item_bytes
    return min(most, ceil_div(case.shape["elements"], block * vec * items))


def workspace(case: Case) -> dict[str, int]:
    """One float for each block; the other forms have no more blocks than this one can have."""
    return {"partials": 4 * max(blocks(case), blocks(case, WIDE_BLOCK, 1, WIDE_BLOCKS))}


def launches(case: Case) -> tuple[Launch, ...]:
    """One launch: the last block to arrive adds the partial sums."""
    return (_launch(case, blocks(case), BLOCK, ITEMS),)


def launches_wide(case: Case) -> tuple[Launch, ...]:
    """Blocks as wide as they can be, one an SM."""
    return (_launch(case, blocks(case, WIDE_BLOCK, 1, WIDE_BLOCKS), WIDE_BLOCK, ITEMS),)


def launches_deep(case: Case) -> tuple[Launch, ...]:
    """Four blocks an SM, twice as many loads in flight."""
    return (_launch(case, blocks(case, BLOCK, DEEP_ITEMS, DEEP_BLOCKS), BLOCK, DEEP_ITEMS),)


def _launch(case: Case, grid: int, block: int, items: int) -> Launch:
    vec = ACCESS_BYTES // case.item_bytes
    return Launch(
        f"read<{case.ctype}, {block}, {vec}, {items}>",
        grid=(grid, 1, 1),
        block=(block, 1, 1),
        args=("x", "total", "partials", "elements"),
    )


# Values in [0, 1): the sum grows with every element, so a part that was not read shows in it. The
# total is fp32 whatever x is; a thread adds a few hundred values in a row, which costs 1e-6.
ALL_ALIKE = Tolerance(relative_fraction=2e-5, absolute_fraction=1e-6)

OPERATOR = Operator(
    name="read",
    args=(Arg("x", "elements", init=Uniform(0.0, 1.0)), Arg("total", "", "out", dtype="fp32")),
    work=work,
    reference=reference,
    tolerance=dict.fromkeys(("fp64", "fp32", "fp16", "bf16"), ALL_ALIKE),
    summary="total = sum(x): the ceiling for kernels that only read",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="read.cu",
    launches=launches,
    workspace=workspace,
    summary="four 16-byte loads in flight a thread, a fixed grid",
)
WIDE = Kernel(
    name="wide",
    operator=OPERATOR,
    source="read.cu",
    launches=launches_wide,
    workspace=workspace,
    summary="one block of 1024 threads an SM, four 16-byte loads in flight a thread",
    by_name_only=True,
)
DEEP = Kernel(
    name="deep",
    operator=OPERATOR,
    source="read.cu",
    launches=launches_deep,
    workspace=workspace,
    summary="eight 16-byte loads in flight a thread, four blocks an SM",
    by_name_only=True,
)
