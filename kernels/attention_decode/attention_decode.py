"""Attention of one new token over a cache of keys and values: y = softmax(q k^T / sqrt(D)) v."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from solkit import Arg, Array, Case, Indices, Kernel, Launch, Normal, Operator, Step, Work
from solkit.declare.geometry import ceil_div
from solkit.dtypes import DTYPES

PAGE = 16  # tokens of a page, and keys of a warp's tile
HEAD_DIMS = (64, 128, 256)
BLOCK_BYTES = 65536  # shared memory of a block, the rings of its warps: what it has on CC 7.5
SMS = 132  # of an H200: one block on each draws its whole bandwidth, with 48 KB on the way
MOST_RANKS = 8  # blocks of a cluster
MOST_PARTS = 64  # of a row in the workspace: one block merges them
LONG_KEYS = 2048  # a cluster leaves half the SMs idle: what more keys gain on all pays for L2
WIDE_HEADS, WIDE_KEYS = 4, 2048  # KV heads of a block, where blocks would run in two to eight goes
MOST_BATCH = 65535  # what a grid's third extent may be


class Blocks(NamedTuple):
    """How blocks share the work.

    query_tiles: of 8 query heads each. heads: KV heads beside each other; key_warps: warps that
    share the keys of each. splits: blocks that share the keys of a head, in a cluster or not.
    """

    query_tiles: int
    heads: int
    key_warps: int
    splits: int
    clustered: bool


def _group(case: Case) -> int:
    """Return the query heads of a KV head."""
    return ceil_div(case.shape["heads"], case.shape["kv_heads"])


def _heads(case: Case) -> int:
    """Return the query heads of all sequences."""
    return case.shape["batch"] * case.shape["kv_heads"] * _group(case)


def work(case: Case) -> Work:
    """4 flop a query head, key and item of the head; k and v are read once, q and y are small.

    Each key and value is counted once in a paged cache, too: every page has its own entry.
    """
    shape, item = case.shape, case.item_bytes
    out_count = _heads(case) * shape["head_dim"]
    cache_count = 2 * shape["batch"] * shape["kv_len"] * shape["kv_heads"] * shape["head_dim"]
    scores = _heads(case) * shape["kv_len"]
    table_bytes = 0
    if case.params["cache"] == "paged":
        table_bytes = 4 * shape["batch"] * ceil_div(shape["kv_len"], PAGE)
    return Work(
        read_bytes=(out_count + cache_count) * item + table_bytes,
        write_bytes=out_count * item,
        flop={DTYPES[case.dtype].matmul_pipe: 4 * scores * shape["head_dim"]},
        estimated_flop={"fp32": 4 * scores, "sfu": scores},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the scores, written; their softmax; the product with the values."""
    shape, item = case.shape, case.item_bytes
    out_bytes = _heads(case) * shape["head_dim"] * item
    scores = _heads(case) * shape["kv_len"]
    cache_bytes = (work(case).read_bytes - out_bytes) // 2
    product = {DTYPES[case.dtype].matmul_pipe: 2 * scores * shape["head_dim"]}
    softmax = Work(scores * item, scores * item, estimated_flop={"fp32": 4 * scores, "sfu": scores})
    return (
        Step("scores", Work(out_bytes + cache_bytes, scores * item, flop=product)),
        Step("softmax", softmax),
        Step("sum", Work(scores * item + cache_bytes, out_bytes, flop=product)),
    )


def reference(q: Array, k: Array, v: Array, page_table: Array | None = None) -> Array:
    """Return softmax(q k^T / sqrt(head_dim)) v for each query head; pages in the table's order."""
    if page_table is not None:
        pages = page_table.astype(np.int64)
        k, v = (held[pages].reshape(len(pages), -1, *held.shape[2:]) for held in (k, v))
    scores: Array = q @ k.transpose(0, 2, 3, 1)  # batch, kv_heads, group, kv_len
    scores /= math.sqrt(q.shape[-1])
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    y: Array = scores @ v.transpose(0, 2, 1, 3)
    return y


def undefined(case: Case) -> str | None:
    """Query heads are shared out evenly among KV heads, and pages are whole."""
    if case.shape["kv_heads"] and case.shape["heads"] % case.shape["kv_heads"]:
        return "heads must be a multiple of kv_heads"
    if case.params["cache"] == "paged" and case.shape["kv_len"] % PAGE:
        return f"kv_len must be a multiple of {PAGE} in a paged cache (whole pages)"
    return None


def blocks_for(case: Case) -> Blocks:
    """Return the blocks for a case: as many as there are SMs, where the keys can be split so.

    Measured on an H200 (bf16, 8 KV heads of 128). 16 sequences of 8,192 keys: 120.6 us with one
    block a head, 122.6 with a pair, 133 with three. One of 1,024 keys: 4.8 us in clusters of 8,
    6.1 through the workspace; of 131,072 keys: 135 and 123. 64 sequences of 16,384 keys: 943 us
    with 4 heads a block, 1001 with one, whose many blocks drift apart.
    """
    head_dim, kv_len, kv_heads = (case.shape[axis] for axis in ("head_dim", "kv_len", "kv_heads"))
    query_tiles = 2 if _group(case) > 8 and head_dim <= 128 else 1  # noqa: PLR2004  # columns, D
    narrow = query_tiles == 1 and head_dim <= 128  # noqa: PLR2004  # 8 warps have the registers
    unsplit = case.shape["batch"] * kv_heads * ceil_div(_group(case), 8 * query_tiles)
    heads, warps, most = 1, 4, MOST_RANKS
    splits, clustered = SMS // unsplit, True
    wide = narrow and kv_heads % WIDE_HEADS == 0 and kv_len >= WIDE_KEYS
    if wide and 2 * SMS < unsplit <= 2 * WIDE_HEADS * SMS:
        heads, warps = WIDE_HEADS, 8
        splits = 2 * SMS * heads // unsplit  # two blocks an SM
    elif splits > MOST_RANKS:  # a few heads
        warps = 8 if narrow else 4
        clustered = kv_len <= LONG_KEYS * unsplit
        most = MOST_RANKS if clustered else MOST_PARTS
    key_warps = warps // heads
    splits = min(splits, most, ceil_div(kv_len, PAGE) // key_warps)  # a tile for each warp
    return Blocks(query_tiles, heads, key_warps, _power_of_two(splits), clustered)


def _power_of_two(count: int) -> int:
    """Return the largest power of two up to a count, and 1 for none."""
    return 1 << max(0, count.bit_length() - 1)


def launches(case: Case) -> tuple[Launch, ...]:
    """One block for each sequence, KV heads, block of query heads and split."""
    head_dim, paged = case.shape["head_dim"], case.params["cache"] == "paged"
    query_tiles, heads, key_warps, splits, clustered = blocks_for(case)
    warps = heads * key_warps
    stages = BLOCK_BYTES // warps // (2 * PAGE * head_dim * case.item_bytes)
    sizes = f"{head_dim}, {query_tiles}, {heads}, {key_warps}, {stages}"
    name = "attention_decode"
    if clustered and splits > 1:
        name, sizes = "attention_decode_cluster", f"{sizes}, {splits}"
    head_blocks = case.shape["kv_heads"] // heads * ceil_div(_group(case), 8 * query_tiles)
    return (
        Launch(
            f"{name}<{case.ctype}, {str(paged).lower()}, {sizes}>",
            grid=(head_blocks, splits, case.shape["batch"]),
            block=(32 * warps, 1, 1),
            shared_bytes=BLOCK_BYTES,
            # A null pointer where there is no such array.
            args=(
                *("q", "k", "v", "page_table" if paged else 0, "y"),
                *(("sums", "statistics") if splits > 1 else (0, 0)),
                *("kv_heads", _group(case), "kv_len"),
            ),
        ),
    )


def workspace(case: Case) -> Mapping[str, int]:
    """Return the room for what each split leaves: rows of float sums, and two floats a row.

    Where clusters merge it stays unused, but a card may have none.
    """
    query_tiles, _, _, splits, _ = blocks_for(case)
    if splits == 1:
        return {}
    query_blocks = ceil_div(_group(case), 8 * query_tiles)
    heads = case.shape["batch"] * case.shape["kv_heads"] * query_blocks
    rows = 8 * query_tiles * heads * splits
    return {"sums": 4 * rows * case.shape["head_dim"], "statistics": 8 * rows}


def refuse(case: Case) -> str | None:
    """Whole fragments of the tensor cores, and what their accumulators have registers for."""
    if case.shape["head_dim"] not in HEAD_DIMS:
        return f"head_dim must be one of {', '.join(map(str, HEAD_DIMS))}"
    if case.shape["batch"] > MOST_BATCH:
        return f"batch must be at most {MOST_BATCH}"
    return None


_CACHE = "batch kv_len kv_heads head_dim"
_PAGES = f"batch*kv_len/{PAGE} {PAGE} kv_heads head_dim"
_CONTIGUOUS, _PAGED = {"cache": ("contiguous",)}, {"cache": ("paged",)}

OPERATOR = Operator(
    name="attention_decode",
    args=(
        # Scores then have a deviation of 3, and a few dozen keys have most of the weight: results
        # are a few tenths for any kv_len, so a split that is lost or weighed wrongly is far beyond
        # the tolerance. With a deviation of 1 they would vanish in it as 1 / sqrt(kv_len).
        Arg("q", "batch kv_heads heads/kv_heads head_dim", init=Normal(std=3.0)),
        Arg("k", _CACHE, when=_CONTIGUOUS),
        Arg("v", _CACHE, when=_CONTIGUOUS),
        Arg("k", _PAGES, when=_PAGED, gathered_by="page_table"),
        Arg("v", _PAGES, when=_PAGED, gathered_by="page_table"),
        Arg(
            "page_table",
            f"batch kv_len/{PAGE}",
            dtype="int32",
            init=Indices(of=f"batch*kv_len/{PAGE}"),
            when=_PAGED,
        ),
        Arg("y", "batch kv_heads heads/kv_heads head_dim", "out"),
    ),
    params={"cache": ("contiguous", "paged")},
    dtypes=("bf16", "fp16"),
    work=work,
    unfused=unfused,
    reference=reference,
    refuse=undefined,
    independent=("batch", "kv_heads"),
    summary="y = softmax(q k^T / sqrt(head_dim)) v, one token's query heads over a KV cache",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="attention_decode.cu",
    launches=launches,
    workspace=workspace,
    refuse=refuse,
    dtypes=OPERATOR.dtypes,
    summary="split KV, a ring of tiles a warp, transposed mma.sync; the last block merges",
)
