"""Embedding: y = table[token], a row for each token."""

import numpy as np

from solkit import Arg, Array, Card, Case, Indices, Kernel, Launch, Operator, Work
from solkit.declare.geometry import ACCESS_BYTES, SM_THREADS, WARP, ceil_div, vector_items

MOST_TOKENS = MOST_COLS = 2**31  # counted in 32 bits on the device
THREADS, ITEMS = 128, 2  # a block at most, vectors a thread
# Few: all are soon under way; more of them a thread, and fewer blocks wait for an index each.
FEW_VECTORS, FEW_ITEMS = 2**20, 4
# With rows asked into L2 before their blocks begin, which small requests don't pay for: on an H200,
# 8192 rows of 16 KB took 80.9 us by requests of 1 KB, 67.1 of 2 KB, 66.7 of 4 KB and of 8 KB, and
# without any 67.5 (one run). Asked behind the own load: 66.7 of 4 KB, 66.4 of 8 KB (another).
BULK_PREFETCH_FROM = 90  # compute capability
PREFETCHING_THREADS = range(128, 513)  # a block, a vector each: 2 to 8 KB a request


def work(case: Case) -> Work:
    """Each row that occurs is read once, and so are the tokens; y is written."""
    tokens, row_bytes = case.shape["tokens"], case.shape["cols"] * case.item_bytes
    rows = min(tokens, case.shape["vocab"])  # the tokens are a shuffle of the vocabulary
    return Work(read_bytes=rows * row_bytes + tokens * 4, write_bytes=tokens * row_bytes)


def reference(token: Array, table: Array) -> Array:
    """Return the rows."""
    rows: Array = table[token.astype(np.int64)]
    return rows


def launches(case: Case, card: Card) -> tuple[Launch, ...]:
    """Many rows are asked into L2 a wave of blocks early; few have more vectors a thread."""
    vectors = case.shape["cols"] // vector_items(case, "cols")
    if case.shape["tokens"] * vectors <= FEW_VECTORS:
        return layout(case, threads=THREADS, items=FEW_ITEMS)
    most = PREFETCHING_THREADS[-1]
    prefetches = card.compute_capability >= BULK_PREFETCH_FROM
    if prefetches and whole_piece(case, threads=most, items=1) in PREFETCHING_THREADS:
        wave_bytes = card.sm_count * SM_THREADS * ACCESS_BYTES
        return layout(case, threads=most, items=1, ahead_bytes=wave_bytes)
    return layout(case, threads=THREADS, items=ITEMS)


def layout(case: Case, *, threads: int, items: int, ahead_bytes: int = 0) -> tuple[Launch, ...]:
    """Cut rows into equal pieces of `items` vectors a thread; short ones stand side by side.

    ahead_bytes: how far behind the row that a block copies the one lies that it asks into L2.
    """
    tokens, cols, vec = case.shape["tokens"], case.shape["cols"], vector_items(case, "cols")
    vectors = cols // vec
    whole = whole_piece(case, threads=threads, items=items)
    pieces = ceil_div(vectors, (whole or threads) * items)
    tx = whole or ceil_div(vectors, pieces * items)
    ty = threads // tx if not ahead_bytes else 1
    ahead_rows = ceil_div(ahead_bytes, cols * case.item_bytes)
    return (
        Launch(
            f"embedding<{case.ctype}, {tx}, {ty}, {vec}, {items}, {pieces},"
            f" {str(bool(whole)).lower()}, {ahead_rows}>",
            grid=(pieces * ceil_div(tokens, ty), 1, 1),
            block=(tx, ty, 1),
            args=("token", "table", "y", "tokens", "cols"),
        ),
    )


def whole_piece(case: Case, *, threads: int, items: int) -> int:
    """Return the most threads, in whole warps, whose pieces fill a row of 16-byte vectors; or 0."""
    row_bytes = case.shape["cols"] * case.item_bytes
    fit = (tx for tx in range(threads, 0, -WARP) if row_bytes % (tx * items * ACCESS_BYTES) == 0)
    return next(fit, 0)


def refuse(case: Case) -> str | None:
    """Name rows that are too long, and too many of them."""
    if case.shape["cols"] > MOST_COLS:
        return f"a row has {MOST_COLS} columns at most"
    return f"{MOST_TOKENS} tokens at most" if case.shape["tokens"] > MOST_TOKENS else None


OPERATOR = Operator(
    name="embedding",
    args=(
        Arg("token", "tokens", dtype="int32", init=Indices(of="vocab")),
        Arg("table", "vocab cols", gathered_by="token"),
        Arg("y", "tokens cols", "out"),
    ),
    work=work,
    reference=reference,
    independent=("tokens", "cols"),
    summary="y = table[token], a row for each token",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="embedding.cu",
    launches=launches,
    refuse=refuse,
    summary="a copy with the source row looked up, rows of later blocks asked into L2",
)
