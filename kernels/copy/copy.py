"""Copy: y = x. The plainest stream there is, and the ceiling for kernels that read and write."""

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Work
from solkit.declare.geometry import ACCESS_BYTES, ceil_div

BLOCK = 256


def work(case: Case) -> Work:
    """Every element is read once and written once."""
    nbytes = case.shape["elements"] * case.item_bytes
    return Work(read_bytes=nbytes, write_bytes=nbytes)


def reference(x: Array) -> Array:
    """Return x itself: whoever needs a copy makes it."""
    return x


def launches(case: Case) -> tuple[Launch, ...]:
    """One thread for each 16 bytes."""
    vec = ACCESS_BYTES // case.item_bytes
    blocks = ceil_div(case.shape["elements"], BLOCK * vec)
    return (
        Launch(f"copy<{case.ctype}, {BLOCK}, {vec}>", grid=(blocks, 1, 1), block=(BLOCK, 1, 1)),
    )


OPERATOR = Operator(
    name="copy",
    args=(Arg("x", "elements"), Arg("y", "elements", "out")),
    work=work,
    reference=reference,
    independent=("elements",),
    summary="y = x: the ceiling for kernels that read and write",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="copy.cu",
    launches=launches,
    summary="one 16-byte load and store a thread",
)
