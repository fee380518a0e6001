"""Routing of a mixture of experts: softmax over a token's logits, the top-k, scaled to sum 1."""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Work
from solkit.declare.geometry import ACCESS_BYTES, WARP, ceil_div

WARPS = 4  # tokens a block
MOST_EXPERTS = 512
MOST_TOP_K = 32  # a lane holds one of the chosen


def work(case: Case) -> Work:
    """Logits are read; a weight and an index are written for each of the chosen."""
    count = case.shape["tokens"] * case.shape["experts"]
    chosen = case.shape["tokens"] * case.shape["top_k"]
    return Work(
        read_bytes=count * case.item_bytes,
        write_bytes=chosen * (4 + 4),
        estimated_flop={"fp32": count * case.shape["top_k"], "sfu": chosen},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return softmax, its selection, and the scaling of what was chosen; fp32 between them."""
    count = case.shape["tokens"] * case.shape["experts"]
    chosen = case.shape["tokens"] * case.shape["top_k"]
    return (
        Step("softmax", Work(count * case.item_bytes, count * 4)),
        Step("topk", Work(count * 4, chosen * (4 + 4))),
        Step("normalise", Work(chosen * 4, chosen * 4)),
    )


def reference(logits: Array, top_k: Array) -> tuple[Array, Array]:
    """Return weights and indices; softmax keeps the order of the logits, with NaN first."""
    nan = np.isnan(logits)
    order = np.lexsort((np.where(nan, 0, -logits), ~nan), axis=-1)  # stable: lowest index first
    expert = order[..., : len(top_k)]
    most = np.take_along_axis(logits, order[..., :1], axis=-1)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, as the formula says
        weight = np.exp(np.take_along_axis(logits, expert, axis=-1) - most)
        weight /= weight.sum(axis=-1, keepdims=True)
    return weight, expert.astype(logits.dtype)


def refuse_shape(case: Case) -> str | None:
    """Refuse to choose more experts than there are."""
    experts, top_k = case.shape["experts"], case.shape["top_k"]
    return f"top_k is {top_k}, but there are {experts} experts" if top_k > experts else None


def refuse(case: Case) -> str | None:
    """Refuse what a warp can't hold."""
    experts, top_k = case.shape["experts"], case.shape["top_k"]
    if experts > MOST_EXPERTS:
        return f"experts is {experts}; a warp holds {MOST_EXPERTS} at most"
    return f"top_k is {top_k}; a warp chooses {MOST_TOP_K} at most" if top_k > MOST_TOP_K else None


def launches(case: Case) -> tuple[Launch, ...]:
    """One warp a token; the widest loads that still give every lane something."""
    experts, top_k = case.shape["experts"], case.shape["top_k"]
    vec = ACCESS_BYTES // case.item_bytes
    while experts % vec or (vec > 1 and experts < WARP * vec):
        vec //= 2
    values = ceil_div(experts, WARP * vec) * vec  # neighbouring experts of a lane
    full = str(values * WARP == experts).lower()
    entry = f"moe_topk<{case.ctype}, {vec}, {values}, {full}, {top_k}, {WARPS}>"
    return (
        Launch(
            entry,
            grid=(ceil_div(case.shape["tokens"], WARPS), 1, 1),
            block=(WARPS * WARP, 1, 1),
            args=("logits", "weight", "expert", "tokens", "experts"),
        ),
    )


OPERATOR = Operator(
    name="moe_topk",
    args=(
        Arg("logits", "tokens experts"),
        Arg("weight", "tokens top_k", "out", dtype="fp32"),
        Arg("expert", "tokens top_k", "out", dtype="int32"),
    ),
    work=work,
    unfused=unfused,
    reference=reference,
    refuse=refuse_shape,
    independent=("tokens",),
    summary="softmax over experts, the top_k largest, weights scaled to sum 1",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="moe_topk.cu",
    launches=launches,
    refuse=refuse,
    summary="one warp a token; a round for each of the chosen, one warp-wide maximum a round",
)
