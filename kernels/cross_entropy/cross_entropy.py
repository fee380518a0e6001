"""Cross entropy of each token, forward: lse = log sum exp(logits), loss = lse - logits[label]."""

import numpy as np

from solkit import Arg, Array, Case, Indices, Kernel, Launch, Operator, Step, Work
from solkit.declare.geometry import ACCESS_BYTES, WARP, ceil_div, power_of_two

IGNORED = -100  # the label of a token that counts for nothing
HOLE_EVERY = 16  # each so many-th token has it
MOST_VOCAB = 2**30  # columns and vectors are counted in 32 bits on the device
MOST_RANKS = 8  # blocks of a cluster
MANY_TOKENS = 1056  # eight blocks for each SM of an H200
BLOCKS = 128  # that fewer tokens are shared among, about one for each SM
LONG_VECTORS = 8192  # of 16 bytes: rows that keep many threads busy
TOKENS_PER_BLOCK = 8  # where a warp has a token to itself


def work(case: Case) -> Work:
    """Logits and labels are read once, loss and lse written; an item costs 4 flop and one exp."""
    tokens, vocab = case.shape["tokens"], case.shape["vocab"]
    count = tokens * vocab
    return Work(
        read_bytes=count * case.item_bytes + 4 * tokens,
        write_bytes=8 * tokens,
        estimated_flop={"fp32": 4 * count + 2 * tokens, "sfu": count + tokens},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the two classic steps: log-softmax, written in the case's dtype, and the choice.

    The choice reads a label and one item of the log-softmax a token, and writes the loss.
    """
    tokens, count = case.shape["tokens"], case.shape["tokens"] * case.shape["vocab"]
    full, item = count * case.item_bytes, case.item_bytes
    flop = {"fp32": 5 * count, "sfu": count + tokens}
    return (
        Step("log_softmax", Work(full, full + 4 * tokens, estimated_flop=flop)),
        Step("choose", Work((4 + item) * tokens, 4 * tokens, estimated_flop={"fp32": tokens})),
    )


def reference(logits: Array, label: Array) -> tuple[Array, Array]:
    """Return loss and log-sum-exp; an ignored label gives the loss 0."""
    most = logits.max(axis=-1, keepdims=True)
    shift = np.where(np.isneginf(most), 0, most)  # rows of -inf: their log-sum-exp is -inf
    shifted = logits - shift
    np.exp(shifted, out=shifted)
    lse: Array = np.log(shifted.sum(axis=-1)) + shift[:, 0]
    ignored = label == IGNORED
    at = np.where(ignored, 0, label).astype(np.int64)
    labelled = np.take_along_axis(logits, at[:, None], axis=-1)[:, 0]
    return np.where(ignored, 0, lse - labelled).astype(lse.dtype), lse


def launches(case: Case) -> tuple[Launch, ...]:
    """Share a token among more threads and blocks, the fewer there are."""
    tokens, vectors = case.shape["tokens"], _vectors(case)
    if tokens >= MANY_TOKENS:
        threads = min(256, max(64, power_of_two(ceil_div(vectors, 16))))
        items = 8 if threads == 64 or vectors > LONG_VECTORS else 4  # noqa: PLR2004  # all of a row at once
        return (launch(case, 1, threads, items),)
    wanted = 4 * BLOCKS if vectors > LONG_VECTORS else BLOCKS
    ranks = 1
    while ranks < MOST_RANKS and tokens * ranks < wanted and vectors > 512 * ranks:
        ranks *= 2
    threads = WARP * ceil_div(vectors, WARP * ranks * min(ranks, 2))
    return (launch(case, ranks, min(threads, 512 if tokens * ranks <= BLOCKS else 256), 4),)


def launch(case: Case, ranks: int, threads: int, items: int) -> Launch:
    """Return the launch with so many blocks and threads a token, and loads in flight a thread."""
    tokens = case.shape["tokens"]
    edges = case.shape["vocab"] * case.item_bytes % ACCESS_BYTES != 0
    kind = f"{case.ctype}, {str(edges).lower()}"
    items = min(items, ceil_div(_vectors(case), ranks * threads))
    if ranks > 1:
        return Launch(
            f"cross_entropy_cluster<{kind}, {ranks}, {threads}, {items}>",
            grid=(tokens * ranks, 1, 1),
            block=(threads, 1, 1),
        )
    in_block = TOKENS_PER_BLOCK if threads == WARP else 1
    return Launch(
        f"cross_entropy<{kind}, {threads}, {in_block}, {items}>",
        grid=(ceil_div(tokens, in_block), 1, 1),
        block=(threads * in_block, 1, 1),
    )


def _vectors(case: Case) -> int:
    """Return the whole 16-byte vectors in a row, at least one."""
    return max(1, case.shape["vocab"] * case.item_bytes // ACCESS_BYTES)


def refuse(case: Case) -> str | None:
    """Name rows that are too long, and too many of them."""
    if case.shape["vocab"] > MOST_VOCAB:
        return f"a row has {MOST_VOCAB} logits at most"
    return "a grid has 2^31 blocks at most" if case.shape["tokens"] >= 2**31 else None


OPERATOR = Operator(
    name="cross_entropy",
    args=(
        Arg("logits", "tokens vocab"),
        Arg(
            "label",
            "tokens",
            dtype="int32",
            init=Indices(of="vocab", hole=IGNORED, hole_every=HOLE_EVERY),
        ),
        Arg("loss", "tokens", "out", dtype="fp32"),
        Arg("lse", "tokens", "out", dtype="fp32"),
    ),
    work=work,
    unfused=unfused,
    reference=reference,
    independent=("tokens",),
    summary="lse = log sum exp(logits), loss = lse - logits[label], 0 where the label is -100",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="cross_entropy.cu",
    launches=launches,
    refuse=refuse,
    summary="one pass with a running maximum and sum; a cluster of blocks where tokens are few",
)
