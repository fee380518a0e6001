"""ReGLU gate: y = max(gate, 0) * up, an operator of one's own and a CUDA kernel for it.

solkit run reglu rows=8192 cols=11008 --dtype bf16 --load examples/my_kernel/reglu.py
"""

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Work

BLOCK = 256  # threads a block; the .cu gets it as a template argument


def vec(case: Case) -> int:
    """Items in 16 bytes."""
    return 16 // case.item_bytes


def work(case: Case) -> Work:
    """Two arrays are read once, one is written once; the flop are an estimate."""
    count = case.shape["rows"] * case.shape["cols"]
    return Work(
        read_bytes=2 * count * case.item_bytes,
        write_bytes=count * case.item_bytes,
        estimated_flop={"fp32": 2 * count},
    )


def reference(gate: Array, up: Array) -> Array:
    """Return the gate where it is above 0 (or NaN), else 0, times up."""
    y: Array = np.maximum(gate, 0) * up
    return y


def launches(case: Case) -> tuple[Launch, ...]:
    """One thread for each 16 bytes of the output."""
    count = case.shape["rows"] * case.shape["cols"]
    blocks = -(-count // (BLOCK * vec(case)))  # rounded up
    entry = f"reglu<{case.ctype}, {BLOCK}, {vec(case)}>"
    return (Launch(entry, grid=(blocks, 1, 1), block=(BLOCK, 1, 1)),)


def refuse(case: Case) -> str | None:
    """Say why a case is not taken: it is then skipped, with this reason."""
    if case.shape["cols"] % vec(case):
        return f"cols must be a multiple of {vec(case)} for {case.dtype}"
    return None


OPERATOR = Operator(
    name="reglu",
    args=(Arg("gate", "rows cols"), Arg("up", "rows cols"), Arg("y", "rows cols", "out")),
    work=work,
    reference=reference,
    independent=("rows", "cols"),
    summary="y = max(gate, 0) * up",
)
KERNEL = Kernel(
    name="mine",
    operator=OPERATOR,
    source="reglu.cu",
    launches=launches,
    refuse=refuse,
    summary="one 16-byte load from each stream a thread",
)
