"""Rotary position embedding of queries and keys, in one launch, out of place."""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Uniform, Work
from solkit.declare.geometry import ACCESS_BYTES, MOST_THREADS, ceil_div

THREADS = 128  # a block; a head that takes more has a block of its own
MOST_HEADS = 2**31 - 1  # of all tokens: the kernel counts them in 32 bits
TABLE_BYTES = 4  # of a cosine or a sine
# What the param means in the .cu, and how many of a pair's items stand in one access.
STYLES = {"half": ("Half", 1), "interleaved": ("Interleaved", 2)}


def _heads(case: Case) -> int:
    return case.shape["heads"] + case.shape["kv_heads"]


def _work(case: Case, heads: int) -> Work:
    """Heads are read and written, cos and sin (fp32) are read."""
    tokens, head_dim = case.shape["tokens"], case.shape["head_dim"]
    nbytes = tokens * heads * head_dim * case.item_bytes
    return Work(
        read_bytes=nbytes + 2 * tokens * ceil_div(head_dim, 2) * TABLE_BYTES,
        write_bytes=nbytes,
        estimated_flop={"fp32": 3 * tokens * heads * head_dim},
    )


def work(case: Case) -> Work:
    """Q and K are read and written, cos and sin are read once for both; 6 flop a pair."""
    return _work(case, _heads(case))


def unfused(case: Case) -> tuple[Step, ...]:
    """Q, then K, each with the tables."""
    return (
        Step("q", _work(case, case.shape["heads"])),
        Step("k", _work(case, case.shape["kv_heads"])),
    )


def reference(q: Array, k: Array, cos: Array, sin: Array, style: str) -> tuple[Array, Array]:
    """Return q and k with each pair (a, b) turned into (a cos - b sin, b cos + a sin)."""
    return _rotated(q, cos, sin, style), _rotated(k, cos, sin, style)


def _rotated(x: Array, cos: Array, sin: Array, style: str) -> Array:
    half = x.shape[-1] // 2
    first, second = (
        (slice(0, half), slice(half, None))
        if style == "half"
        else (slice(0, None, 2), slice(1, None, 2))
    )
    a, b = x[..., first], x[..., second]
    c, s = cos[:, None, :], sin[:, None, :]
    y: Array = np.empty_like(x)
    y[..., first] = a * c - b * s
    y[..., second] = b * c + a * s
    return y


def refuse_operator(case: Case) -> str | None:
    """Refuse a head whose last item has no partner."""
    if case.shape["head_dim"] % 2:
        return f"head_dim is {case.shape['head_dim']}: it must be even, for items turn in pairs"
    return None


def pairs_of_a_thread(case: Case) -> int:
    """Return the pairs that fill an access of 16 bytes, or as many as divide the head."""
    pairs = ACCESS_BYTES // case.item_bytes // STYLES[str(case.params["style"])][1]
    while case.shape["head_dim"] // 2 % pairs:
        pairs //= 2
    return pairs


def refuse(case: Case) -> str | None:
    """Refuse heads that a block is too small for, and more of them than 32 bits count."""
    threads = case.shape["head_dim"] // 2 // pairs_of_a_thread(case)
    if threads > MOST_THREADS:
        return f"a head of {case.shape['head_dim']} items takes {threads} threads, over a block"
    if case.shape["tokens"] * _heads(case) > MOST_HEADS:
        return "tokens x (heads + kv_heads) is more than this kernel can count"
    return None


def launches(case: Case) -> tuple[Launch, ...]:
    """Take a thread for each vector of a head."""
    return (launch(case, THREADS),)


def launch(case: Case, threads: int) -> Launch:
    """TX threads share a head, TY heads stand in a block."""
    pairs, heads = pairs_of_a_thread(case), _heads(case)
    tx = case.shape["head_dim"] // 2 // pairs
    ty = max(1, threads // tx)
    style = STYLES[str(case.params["style"])][0]
    return Launch(
        f"rope<{case.ctype}, {style}, {tx}, {ty}, {pairs}, {heads}>",
        grid=(ceil_div(case.shape["tokens"] * heads, ty), 1, 1),
        block=(tx, ty, 1),
        args=(*(arg.name for arg in OPERATOR.args), "tokens", "heads"),
    )


OPERATOR = Operator(
    name="rope",
    args=(
        Arg("q", "tokens heads head_dim"),
        Arg("k", "tokens kv_heads head_dim"),
        Arg("cos", "tokens head_dim/2", dtype="fp32", init=Uniform()),
        Arg("sin", "tokens head_dim/2", dtype="fp32", init=Uniform()),
        Arg("q_out", "tokens heads head_dim", "out"),
        Arg("k_out", "tokens kv_heads head_dim", "out"),
    ),
    params={"style": tuple(STYLES)},
    work=work,
    unfused=unfused,
    reference=reference,
    refuse=refuse_operator,
    independent=("tokens",),
    summary="rotary position embedding of q and k",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="rope.cu",
    launches=launches,
    refuse=refuse,
    summary="q and k in one launch, 16 bytes of each half of a head a thread",
)
