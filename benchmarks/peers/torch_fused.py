"""PyTorch's own function for an operator, where it has one."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a declaration is loaded by path, not as a package

from peers.parts.peer import later, peer

from solkit import Case


def _fp32_alone(case: Case) -> str | None:
    if case.dtype != "fp32":
        return f"torch's fused AdamW keeps its moments in the parameters' dtype, {case.dtype}"
    return None


def _int8_alone(case: Case) -> str | None:
    if case.params["weight_dtype"] != "int8":
        return "torch's int4 product takes weights in a packed order of its own"
    return None


SUMMARIES = {
    "rmsnorm": "F.rms_norm",
    "add_rmsnorm": "the sum, then F.rms_norm",
    "cross_entropy": "F.cross_entropy, and torch.logsumexp",
    "embedding": "F.embedding",
    "adamw": "torch._fused_adamw_",
    "dequant_gemv": "torch._weight_int8pack_mm",
    "matmul": "torch.mm",
    "matmul_bias": "torch.addmm, as F.linear calls it",
    "matmul_bias_gelu": "torch.addmm, then F.gelu",
    "matmul_add": "torch.addmm",
    "matmul_add_bias": "torch.addmm with the bias, then Tensor.add_",
    "copy": "Tensor.copy_",
    "read": "torch.sum",
    "write": "Tensor.copy_ of the pattern, broadcast",
    "triad": "torch.add with alpha",
}
REFUSALS = {"adamw": _fp32_alone, "dequant_gemv": _int8_alone}
KERNELS = tuple(
    peer(
        "torch",
        operator,
        later("library", operator),
        refuse=REFUSALS.get(operator),
        summary=summary,
    )
    for operator, summary in SUMMARIES.items()
)
