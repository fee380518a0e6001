"""PyTorch, eager: each operator as its plain formula (parts/formulas.py), kernel by kernel."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a declaration is loaded by path, not as a package

from peers.parts.peer import later, peer
from peers.parts.shapes import no_ties, whole_blocks, wide_copies

REFUSALS = {"quant_fp8": whole_blocks, "moe_topk": no_ties, "attention_decode": wide_copies}
OPERATORS = (
    "rmsnorm",
    "add_rmsnorm",
    "add_layernorm",
    "softmax",
    "cross_entropy",
    "swiglu",
    "geglu",
    "bias_gelu",
    "rope",
    "quant_fp8",
    "moe_topk",
    "attention_decode",
    "adamw",
    "dequant_gemv",
    "matmul_bias",
    "matmul_bias_gelu",
    "matmul_add",
    "matmul_add_bias",
)
KERNELS = tuple(
    peer(
        "torch_eager",
        operator,
        later("plain", "run", operator),
        refuse=REFUSALS.get(operator),
        summary="PyTorch's own operations, one after the other",
    )
    for operator in OPERATORS
)
