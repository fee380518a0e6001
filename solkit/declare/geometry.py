"""How a shape becomes vectors, threads and blocks: small arithmetic for the authors of kernels."""

from collections.abc import Callable
from dataclasses import dataclass

from solkit.model import Case

ACCESS_BYTES = 16  # the widest memory access of a thread
WARP = 32
MOST_THREADS = 1024
# Threads that keep a large card busy: 132 SMs x 512. With fewer rows than that takes, more threads
# share a row instead.
WANTED_THREADS = 65536
# A layout may leave this share of its thread slots idle before a tighter one is preferred.
IDLE_FRACTION = 0.05


def ceil_div(count: int, size: int) -> int:
    """Return how many pieces of `size` cover `count`."""
    return -(-count // size)


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
    """`threads` share a row, each holds `chunks` vectors of it; `rows` rows stand in a block."""

    threads: int
    chunks: int
    rows: int


def row_layout(vectors: int, rows: int, most_chunks: Callable[[int], int]) -> RowLayout | None:
    """Return how threads hold rows of `vectors` vectors in registers, or None when they can't.

    most_chunks(threads): how many vectors a thread may hold in a block of so many threads.
    The fewest threads a row are best (one warp needs no barrier), as long as few of their slots
    stay idle and there are rows enough to fill the card.
    """
    fitting = [
        (threads, chunks)
        for chunks in range(1, most_chunks(WARP) + 1)
        if (threads := WARP * ceil_div(vectors, WARP * chunks)) <= MOST_THREADS
        and chunks <= most_chunks(threads)
    ]
    if not fitting:
        return None
    slots = min(threads * chunks for threads, chunks in fitting) * (1 + IDLE_FRACTION)
    tight = sorted(pair for pair in fitting if pair[0] * pair[1] <= slots)
    filling = [pair for pair in tight if pair[0] * rows >= WANTED_THREADS]
    threads, chunks = filling[0] if filling else tight[-1]
    return RowLayout(threads, chunks, rows=4 if threads == WARP else 1)
