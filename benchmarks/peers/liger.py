"""Liger-Kernel: the Triton kernels of its forward passes, called without autograd."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a declaration is loaded by path, not as a package

from peers.parts.peer import later, peer

from solkit import Case

NEEDS = ("torch", "liger_kernel")
MOST_COLS = 65536  # of its kernels that hold a row in one Triton block


def _one_block(case: Case) -> str | None:
    if case.shape["cols"] > MOST_COLS:
        return f"cols is {case.shape['cols']}: Liger's block holds a row of {MOST_COLS} at most"
    return None


def _tanh(case: Case) -> str | None:
    if case.params["form"] != "tanh":
        return "Liger's GeGLU has the tanh form alone"
    return _one_block(case)


def _plain(case: Case) -> str | None:
    if case.params["scale"] != 1 or case.params["masking"] != "none":
        return "Liger's softmax has no scale and no mask"
    return _one_block(case)


def _halves(case: Case) -> str | None:
    if case.params["style"] != "half":
        return "Liger's rotary embedding has the half-rotated style alone"
    return None


def _short_offsets(case: Case) -> str | None:
    rows, cols = max(case.shape["vocab"], case.shape["tokens"]), case.shape["cols"]
    if rows * cols >= 2**31:
        return f"Liger's embedding has 32-bit offsets: {rows} rows of {cols} are too much"
    return None


def _ignored_labels(_case: Case) -> str:
    return (
        "Liger's cross entropy clears the logits of ignored labels, which are an input here, and "
        "returns no log-sum-exp"
    )


REFUSALS = {
    "rmsnorm": _one_block,
    "add_rmsnorm": _one_block,
    "softmax": _plain,
    "cross_entropy": _ignored_labels,
    "swiglu": _one_block,
    "geglu": _tanh,
    "rope": _halves,
    "embedding": _short_offsets,
}
KERNELS = tuple(
    peer("liger", operator, later("liger_calls", operator), needs=NEEDS, refuse=refuse)
    for operator, refuse in REFUSALS.items()
)
