"""quack: CuTe DSL kernels for Hopper and newer, through the operations behind its functions."""

import math
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a declaration is loaded by path, not as a package

from peers.parts.peer import later, peer

from solkit import Case
from solkit.declare.geometry import ceil_div

NEEDS = ("torch", "quack")
MOST_EXPERTS, MOST_CHOSEN = 4096, 128
VECTOR = 8  # 16-bit items of an access
# How its softmax and its cross entropy cut rows: the longest that 1, 2, 4 and 8 blocks share.
THREADS = 256
SHORT = tuple(kib * 1024 for kib in (16, 32, 64, 128))
COLS = {"bf16": SHORT, "fp16": SHORT, "fp32": tuple(kib * 1024 for kib in (32, 64, 128, 256))}
VOCAB = COLS | {"fp32": tuple(kib * 1024 for kib in (16, 64, 128, 256))}


def _plain(case: Case) -> str | None:
    if case.params["scale"] != 1 or case.params["masking"] != "none":
        return "quack's softmax has no scale and no mask"
    return None


def _no_empty_block(axis: str, splits: dict[str, tuple[int, ...]]) -> Callable[[Case], str | None]:
    """Refuse a row of which the last of a cluster's blocks would get nothing: it gives NaN.

    splits: the longest row that 1, 2, 4, 8 blocks share, by the item's bytes; 16 share the rest.
    """

    def refuse(case: Case) -> str | None:
        cols, vector = case.shape[axis], 16 // case.item_bytes
        blocks = 2 ** sum(cols > longest for longest in splits[case.dtype])
        width = vector * THREADS * ceil_div(cols, vector * THREADS * blocks)
        if blocks > 1 and width * (blocks - 1) >= cols:
            return f"{axis} is {cols}: quack gives NaN where the last of {blocks} blocks is empty"
        return None

    return refuse


def _softmax(case: Case) -> str | None:
    return _plain(case) or _no_empty_block("cols", COLS)(case)


def _powers_of_two(case: Case) -> str | None:
    if case.dtype == "fp32":
        return "quack's top-k drops the last bits of fp32 logits, which it keeps the index in"
    experts, chosen = case.shape["experts"], case.shape["top_k"]
    if experts & (experts - 1) or chosen & (chosen - 1):
        return f"quack's top-k takes powers of two, not {chosen} of {experts}"
    if chosen % math.gcd(VECTOR, experts):
        return f"quack's top-k writes {VECTOR} at a time, not {chosen}"
    if experts > MOST_EXPERTS or chosen > MOST_CHOSEN:
        return f"quack's top-k chooses up to {MOST_CHOSEN} of up to {MOST_EXPERTS}"
    return None


REFUSALS = {
    "rmsnorm": None,
    "add_rmsnorm": None,
    "add_layernorm": None,
    "softmax": _softmax,
    "cross_entropy": _no_empty_block("vocab", VOCAB),
    "rope": None,
    "moe_topk": _powers_of_two,
}
PRODUCTS = {
    "quack": ("matmul_add", "gemm_add by the configuration that is the card's default"),
    "quack_tuned": ("matmul_add_tuned", "gemm_add by the fastest of its configurations"),
}
KERNELS = (
    *(
        peer("quack", operator, later("quack_calls", operator), needs=NEEDS, refuse=refuse)
        for operator, refuse in REFUSALS.items()
    ),
    *(
        peer(
            name,
            "matmul_add",
            later("quack_products", function),
            needs=NEEDS,
            dtypes=("bf16", "fp16"),
            summary=summary,
            by_name_only=name == "quack_tuned",  # it compiles 44 for each dtype and layout
        )
        for name, (function, summary) in PRODUCTS.items()
    ),
)
