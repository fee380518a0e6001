"""The card's memory as a run holds it: mapped once, handed out by the pool, seldom given back.

What is given back the driver seems to overwrite while other kernels run: behind 4 GB given back, a
stream was 10 % slow for some milliseconds on an H200.
"""

import time

import cupy as cp

RESERVED_BYTES, RESERVED_FRACTION = 12 * 2**30, 0.2
KEPT_FRACTION = 0.25  # of the card's memory: more than this is not kept unused
OVERWRITE_BYTES_PER_S, OVERWRITE_MOST_S = 2e11, 1.0  # a third of what it seems to do on an H200


def reserve() -> None:
    """Map the memory that most cases need in one piece; the pool hands it out from then on.

    So a case's memory hardly depends on the cases before it: on an H200 the same places read the
    same to 0.3 %, other places up to 3 % more or less (decision 12).
    """
    free_now_bytes = int(cp.cuda.runtime.memGetInfo()[0])
    reserved_bytes = min(RESERVED_BYTES, int(RESERVED_FRACTION * free_now_bytes))
    piece = cp.zeros(reserved_bytes, dtype=cp.uint8)
    cp.cuda.runtime.deviceSynchronize()
    time.sleep(reserved_bytes / OVERWRITE_BYTES_PER_S)
    del piece


def free_bytes() -> int:
    """Return what can still be allocated, the pool's own unused memory included."""
    pool = cp.get_default_memory_pool()
    return int(cp.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())


def give_back() -> None:
    """Give the pool's unused memory back, where it is more than a quarter of the card's.

    What that disturbs is waited for.
    """
    pool = cp.get_default_memory_pool()
    unused_bytes = int(pool.free_bytes())
    if unused_bytes > KEPT_FRACTION * cp.cuda.runtime.memGetInfo()[1]:
        pool.free_all_blocks()
        time.sleep(min(unused_bytes / OVERWRITE_BYTES_PER_S, OVERWRITE_MOST_S))
