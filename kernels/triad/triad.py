"""Triad: a = b + 3 c, STREAM's kernel: the ceiling for kernels that read two streams, write one."""

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Work
from solkit.declare.geometry import ACCESS_BYTES, ceil_div

BLOCK, ITEMS = 256, 2  # threads a block; a thread's 16-byte loads from each stream, if several
MOST_BLOCKS = 1056  # of the fixed grid: eight blocks an SM, as many as 2048 threads are, on 132 SMs
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
    """One thread for each 16 bytes of a stream."""
    return (_launch("triad", case, _blocks(case, 1), 1),)


def launches_in_flight(case: Case) -> tuple[Launch, ...]:
    """Take half of the threads, each with two loads of each stream under way."""
    return (_launch("triad", case, _blocks(case, ITEMS), ITEMS),)


def launches_strided(case: Case) -> tuple[Launch, ...]:
    """Walk the arrays with a grid of fixed size."""
    return (_launch("triad_strided", case, min(MOST_BLOCKS, _blocks(case, ITEMS)), ITEMS),)


def _blocks(case: Case, items: int) -> int:
    return ceil_div(case.shape["elements"], BLOCK * (ACCESS_BYTES // case.item_bytes) * items)


def _launch(name: str, case: Case, blocks: int, items: int) -> Launch:
    vec = ACCESS_BYTES // case.item_bytes
    return Launch(
        f"{name}<{case.ctype}, {BLOCK}, {vec}, {items}>",
        grid=(blocks, 1, 1),
        block=(BLOCK, 1, 1),
        args=("b", "c", "a", "elements", SCALAR),
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
    summary="one 16-byte load a thread from each stream",
)
IN_FLIGHT = Kernel(
    name="in_flight",
    operator=OPERATOR,
    source="triad.cu",
    launches=launches_in_flight,
    summary="two 16-byte loads in flight a thread from each stream",
    by_name_only=True,
)
STRIDED = Kernel(
    name="strided",
    operator=OPERATOR,
    source="triad.cu",
    launches=launches_strided,
    summary="a fixed grid, two 16-byte loads in flight a thread from each stream",
    by_name_only=True,
)
