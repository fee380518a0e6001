"""Triad: a = b + 3 c, STREAM's kernel: the ceiling for kernels that read two streams, write one."""

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Work
from solkit.declare.geometry import ACCESS_BYTES, ceil_div

BLOCK, ITEMS = 256, 2  # threads a block, 16-byte loads in flight a thread from each stream
SCALAR = 3.0


def work(case: Case) -> Work:
    """Two arrays are read, one is written; one fused multiply-add an element."""
    count = case.shape["elements"]
    return Work(
        read_bytes=2 * count * case.item_bytes,
        write_bytes=count * case.item_bytes,
        estimated_flop={"fp32": 2 * count},
    )


def reference(b: Array, c: Array) -> Array:
    """Return b + 3 c."""
    a: Array = c * SCALAR
    a += b
    return a


def launches(case: Case) -> tuple[Launch, ...]:
    """Blocks on contiguous parts of the arrays."""
    vec = ACCESS_BYTES // case.item_bytes
    blocks = ceil_div(case.shape["elements"], BLOCK * vec * ITEMS)
    return (
        Launch(
            f"triad<{case.ctype}, {BLOCK}, {vec}, {ITEMS}>",
            grid=(blocks, 1, 1),
            block=(BLOCK, 1, 1),
            args=("b", "c", "a", "elements", SCALAR),
        ),
    )


OPERATOR = Operator(
    name="triad",
    args=(Arg("b", "elements"), Arg("c", "elements"), Arg("a", "elements", "out")),
    work=work,
    reference=reference,
    independent=("elements",),
    summary="a = b + 3 c: the ceiling for two reads and a write",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="triad.cu",
    launches=launches,
    summary="two 16-byte loads in flight a thread from each stream",
)
