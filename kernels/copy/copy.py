"""Copy: y = x. The plainest stream there is, and the ceiling for kernels that read and write."""

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Work
from solkit.declare.geometry import ACCESS_BYTES, ceil_div

BLOCK = 256
ITEMS = 4  # 16-byte loads in flight a thread, in the forms that have several
MOST_BLOCKS = 1056  # of the fixed grid: eight blocks an SM, as many as 2048 threads are, on 132 SMs


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


def launches_in_flight(case: Case) -> tuple[Launch, ...]:
    """Take a quarter of the threads, each with four loads under way."""
    return (_launch("copy_in_flight", case, _blocks(case)),)


def launches_strided(case: Case) -> tuple[Launch, ...]:
    """Walk the arrays with a grid of fixed size."""
    return (_launch("copy_strided", case, min(MOST_BLOCKS, _blocks(case))),)


def _blocks(case: Case) -> int:
    return ceil_div(case.shape["elements"], BLOCK * (ACCESS_BYTES // case.item_bytes) * ITEMS)


def _launch(name: str, case: Case, blocks: int) -> Launch:
    vec = ACCESS_BYTES // case.item_bytes
    entry = f"{name}<{case.ctype}, {BLOCK}, {vec}, {ITEMS}>"
    return Launch(entry, grid=(blocks, 1, 1), block=(BLOCK, 1, 1))


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
IN_FLIGHT = Kernel(
    name="in_flight",
    operator=OPERATOR,
    source="copy.cu",
    launches=launches_in_flight,
    summary="four 16-byte loads in flight a thread",
    by_name_only=True,
)
STRIDED = Kernel(
    name="strided",
    operator=OPERATOR,
    source="copy.cu",
    launches=launches_strided,
    summary="a fixed grid, four 16-byte loads in flight a thread",
    by_name_only=True,
)
