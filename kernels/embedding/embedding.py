"""Embedding: y = table[token], a row for each token."""

import numpy as np

from solkit import Arg, Array, Case, Indices, Kernel, Launch, Operator, Work
from solkit.declare.geometry import ceil_div, vector_items

THREADS, ITEMS = 128, 2  # a block at most, vectors a thread
# Fewer threads with more in flight: 3 % faster at 34 MB, 2 to 5 % slower at 1, 84 and 537 MB.
MIDDLING_BYTES, MIDDLING = range(8_000_000, 64_000_000), (64, 8)


def work(case: Case) -> Work:
    """Each row that occurs is read once, and so are the tokens; y is written."""
    tokens, row_bytes = case.shape["tokens"], case.shape["cols"] * case.item_bytes
    rows = min(tokens, case.shape["vocab"])  # the tokens are a shuffle of the vocabulary
    return Work(read_bytes=rows * row_bytes + tokens * 4, write_bytes=tokens * row_bytes)


def reference(token: Array, table: Array) -> Array:
    """Return the rows."""
    rows: Array = table[token.astype(np.int64)]
    return rows


def launches(case: Case) -> tuple[Launch, ...]:
    """Cut each row into equal pieces of a block at most; short rows stand side by side."""
    middling = work(case).traffic_bytes in MIDDLING_BYTES
    threads, items = MIDDLING if middling else (THREADS, ITEMS)
    return layout(case, threads=threads, items=items)


def layout(case: Case, *, threads: int, items: int) -> tuple[Launch, ...]:
    """Give `items` vectors to each thread, a piece of a row to a block of `threads`."""
    vec = vector_items(case, "cols")
    vectors = case.shape["cols"] // vec
    pieces = ceil_div(vectors, threads * items)
    tx = ceil_div(vectors, pieces * items)
    ty = threads // tx
    return (
        Launch(
            f"embedding<{case.ctype}, {tx}, {ty}, {vec}, {items}>",
            grid=(pieces * ceil_div(case.shape["tokens"], ty), 1, 1),
            block=(tx, ty, 1),
            args=("token", "table", "y", "tokens", "cols"),
        ),
    )


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
    summary="a copy with the source row looked up, equal pieces of rows in small blocks",
)
