"""How a shape becomes vectors, threads and blocks: small arithmetic for the authors of kernels."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from solkit.model import Case

ACCESS_BYTES = 16  # the widest memory access of a thread
REGISTER_BYTES = 4
WARP = 32
MOST_THREADS = 1024
ROW_BLOCK = 128  # threads of a block that holds several rows
IDLE_FRACTION = 0.12  # of its slots that a layout may leave idle beyond the tightest one's
# What a large card has (H200); others have less, and layouts only get a little less fitting there.
SMS, SM_REGISTERS, SM_THREADS, SM_BLOCKS = 132, 65536, 2048, 32
RANKS = 8, 4, 2  # blocks of a cluster; 8 are as many as every card with clusters takes
# A row of fewer vectors is fetched by one block as fast: on an H200 a norm of 64 x 4096 bf16 took
# 1.95 us by one block and 2.05 by a cluster, 1 x 4096 1.55 and 1.54, 64 x 8192 2.40 and 2.35.
CLUSTER_VECTORS = 1024
MANY_ROWS_RANKS = 4  # of a cluster where rows are more than the card has SMs


def ceil_div(count: int, size: int) -> int:
    """Return how many pieces of `size` cover `count`."""
    return -(-count // size)


def power_of_two(count: int) -> int:
    """Return the least power of two that is not below `count`."""
    return 1 << (count - 1).bit_length()


def vector_items(case: Case, axis: str) -> int:
    """Return the items of the widest access (16 bytes at most) that divides the extent of `axis`.

    Rows of that extent then start on an aligned address, whatever the extent is.
    """
    items = ACCESS_BYTES // case.item_bytes
    while case.shape[axis] % items:
        items //= 2
    return items


@dataclass(frozen=True, slots=True)
class RowLayout:
    """`threads` of each of `ranks` blocks share a row, each holds `chunks` vectors of it.

    `rows` rows stand in a block, and `resident` blocks should stand on an SM at once (one where
    rows are few, or so long that no second block fits). Only the last chunk of a thread can reach
    over the row's end.
    """

    threads: int
    chunks: int
    rows: int = 1
    ranks: int = 1
    resident: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLimits:
    """What a kernel can hold of a row, in vectors of 16 bytes, and what is fastest.

    chunks: the least vectors a thread should hold, most_chunks: the most it can.
    registers: what a thread needs with so many of them.
    most_threads: of a block where rows are many (more leave an SM too few blocks at once).
    one_wave: whether threads may hold more, up to the most, where all rows then stand on the card
    at once: what is a little more than one wave of blocks takes the time of two.
    at_once: how many vectors of each stream a thread asks for at once at most, where the kernel
    takes that as a template argument; None: it takes none.
    cluster_rows: up to so many rows, one that takes two vectors of each of 1024 threads gets a
    cluster: blocks of a quarter of it fill the card more evenly.
    """

    chunks: int
    most_chunks: int
    registers: Callable[[int], int]
    most_threads: int
    one_wave: bool = False
    at_once: int | None = None
    cluster_rows: int = 0


LEAST_THREADS = 4  # of a row; short ones stand several to a warp


def row_layout(
    vectors: int, rows: int, limits: RowLimits, *, vector_bytes: int = ACCESS_BYTES
) -> RowLayout | None:
    """Return how threads hold rows of `vectors` vectors in registers, or None when they can't."""
    if vectors <= WARP // 2:
        threads = LEAST_THREADS
        while threads < vectors:
            threads *= 2
        in_block = ROW_BLOCK // threads
        return RowLayout(threads, 1, rows=in_block, resident=SM_THREADS // ROW_BLOCK)
    # Narrow vectors, of rows of odd length, need a register each at least, wide ones four.
    narrow = ACCESS_BYTES // max(vector_bytes, REGISTER_BYTES)
    shared = ceil_div(vectors, MOST_THREADS)
    ranks = _ranks(vectors, rows, limits.cluster_rows if narrow == 1 else 0)
    if ranks > 1 and shared <= limits.most_chunks * narrow:
        return RowLayout(MOST_THREADS // ranks, shared, ranks=ranks)
    found = [
        _blocks_of_one_row(vectors, chunks, limits.registers(ceil_div(chunks, narrow)))
        for chunks in range(limits.chunks * narrow, limits.most_chunks * narrow + 1)
    ]
    slots = min(layout.threads * layout.chunks for layout in found) * (1 + IDLE_FRACTION)
    possible = [
        layout
        for layout in found
        if layout.threads <= MOST_THREADS and layout.threads * layout.chunks <= slots
    ]
    small = [layout for layout in possible if layout.threads <= limits.most_threads]
    whole = [layout for layout in possible if rows <= SMS * layout.resident * layout.rows]
    if rows <= SMS and possible:
        return replace(possible[0], resident=1)
    for choice in (whole if limits.one_wave else [], small, possible):
        if choice:
            return choice[0]
    return None


def _ranks(vectors: int, rows: int, cluster_rows: int) -> int:
    """Return the blocks of a cluster for each row; 1 where a block alone is as fast.

    A block an SM, or two where each thread has two vectors or more; see RowLimits for cluster_rows.
    """
    if vectors < CLUSTER_VECTORS:
        return 1
    an_sm = 1 if vectors <= MOST_THREADS else 2
    for ranks in RANKS:
        if rows * ranks <= an_sm * SMS:
            return ranks
    fullest = 2 * MOST_THREADS  # vectors, two a thread
    long = fullest / (1 + IDLE_FRACTION) <= vectors <= fullest
    return MANY_ROWS_RANKS if long and rows <= cluster_rows else 1


def _blocks_of_one_row(vectors: int, chunks: int, registers: int) -> RowLayout:
    """Return the layout with so many vectors a thread; a block has a row, or 4 of a warp each."""
    threads = WARP * ceil_div(vectors, WARP * chunks)
    in_block = ROW_BLOCK // WARP if threads == WARP else 1
    fitting = min(SM_THREADS, SM_REGISTERS // registers) // (threads * in_block)
    resident = max(1, min(fitting, SM_BLOCKS))
    return RowLayout(threads, ceil_div(vectors, threads), rows=in_block, resident=resident)
