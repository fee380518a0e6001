"""Write: y repeats a short pattern. The ceiling for kernels that only write.

The input `pattern` is as long as y, so that its length is known, but only its first PERIOD elements
are looked at: they are all that has to be read.
"""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Work
from solkit.declare.geometry import ACCESS_BYTES, ceil_div

PERIOD = 2048  # elements of the pattern, a block's width
ITEMS = 4  # 16-byte stores a thread, where it has several
MOST_BLOCKS = 528  # of the fixed grid: four blocks of 512 threads an SM, on 132 SMs


def work(case: Case) -> Work:
    """Every element is written once; the pattern's first PERIOD elements are read."""
    count = case.shape["elements"]
    return Work(
        read_bytes=min(count, PERIOD) * case.item_bytes, write_bytes=count * case.item_bytes
    )


def reference(pattern: Array) -> Array:
    """Return y[i] = pattern[i mod PERIOD]."""
    return np.resize(pattern[:PERIOD], pattern.shape)


def launches(case: Case) -> tuple[Launch, ...]:
    """Blocks as wide as the pattern, each writes it once."""
    return (_launch("write", case, ceil_div(case.shape["elements"], PERIOD), ", 1"),)


def launches_more(case: Case) -> tuple[Launch, ...]:
    """Blocks as wide as the pattern, each writes it ITEMS times."""
    return (_launch("write", case, ceil_div(case.shape["elements"], PERIOD * ITEMS), f", {ITEMS}"),)


def launches_strided(case: Case) -> tuple[Launch, ...]:
    """Walk the array with a grid of fixed size."""
    blocks = min(MOST_BLOCKS, ceil_div(case.shape["elements"], PERIOD))
    return (_launch("write_strided", case, blocks, ""),)


def _launch(name: str, case: Case, blocks: int, items: str) -> Launch:
    vec = ACCESS_BYTES // case.item_bytes
    block = PERIOD // vec
    entry = f"{name}<{case.ctype}, {block}, {vec}{items}>"
    return Launch(entry, grid=(blocks, 1, 1), block=(block, 1, 1))


OPERATOR = Operator(
    name="write",
    args=(Arg("pattern", "elements"), Arg("y", "elements", "out")),
    work=work,
    reference=reference,
    summary="y[i] = pattern[i mod 2048]: the ceiling for kernels that only write",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="write.cu",
    launches=launches,
    summary="one 16-byte store a thread from registers",
)
MORE = Kernel(
    name="four_stores",
    operator=OPERATOR,
    source="write.cu",
    launches=launches_more,
    summary="four 16-byte stores a thread from registers",
    by_name_only=True,
)
STRIDED = Kernel(
    name="strided",
    operator=OPERATOR,
    source="write.cu",
    launches=launches_strided,
    summary="a fixed grid, 16-byte stores from registers",
    by_name_only=True,
)
