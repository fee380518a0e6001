"""torch.compile: each operator's plain formula (parts/formulas.py), fused by Inductor."""

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
    "embedding",
    "moe_topk",
    "attention_decode",
    "adamw",
    "dequant_gemv",
    "copy",
    "read",
    "write",
    "triad",
)
# Their tiles are a matter of choice.
PRODUCTS = ("matmul", "matmul_bias", "matmul_bias_gelu", "matmul_add", "matmul_add_bias")
KERNELS = (
    *(
        peer(
            "torch_compile",
            operator,
            later("compiled", "run", operator),
            refuse=REFUSALS.get(operator),
            summary="Inductor's kernels for static shapes, the default mode",
            by_name_only=True,  # it compiles for seconds: sweeps say in which shapes
        )
        for operator in OPERATORS
    ),
    *(
        peer(
            "torch_compile",
            operator,
            later("compiled", "tuned", operator),
            summary="Inductor's max-autotune for static shapes: Triton's tiles or cuBLAS",
            by_name_only=True,
        )
        for operator in PRODUCTS
    ),
)
