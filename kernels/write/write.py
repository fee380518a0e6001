"""Write: y repeats a short pattern. The ceiling for kernels that only write.

The input `pattern` is as long as y, so that its length is known, but only its first PERIOD elements
are looked at: they are all that has to be read.
"""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Work
from solkit.declare.geometry import ACCESS_BYTES, ceil_div

PERIOD, ITEMS = 2048, 4  # elements of the pattern (one block's width), 16-byte stores a thread


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
    """Blocks as wide as the pattern, each writes it ITEMS times."""
    vec = ACCESS_BYTES // case.item_bytes
    block = PERIOD // vec
    blocks = ceil_div(case.shape["elements"], PERIOD * ITEMS)
    entry = f"write<{case.ctype}, {block}, {vec}, {ITEMS}>"
    return (Launch(entry, grid=(blocks, 1, 1), block=(block, 1, 1)),)


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
    summary="four 16-byte stores a thread from registers",
)
