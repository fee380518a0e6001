"""Calls of Liger-Kernel's forward passes, as its autograd functions make them."""

from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction
from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.rope import LigerRopeFunction
from liger_kernel.ops.softmax import LigerSoftmaxFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction
from peers.parts.formulas import RMS_EPSILON
from torch import Tensor

CASTING = "gemma"  # of its three: all of the norm in fp32, rounded once


def rmsnorm(x: Tensor, weight: Tensor, **_outputs: Tensor) -> Tensor:
    """Return the norm."""
    return LigerRMSNormFunction.apply(x, weight, RMS_EPSILON, 0.0, CASTING)


def add_rmsnorm(
    x: Tensor, residual: Tensor, weight: Tensor, **_outputs: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the norm of the sum, and the sum."""
    return LigerFusedAddRMSNormFunction.apply(x, residual, weight, RMS_EPSILON, 0.0, CASTING)


def softmax(x: Tensor, **_rest: object) -> Tensor:
    """Return the softmax."""
    return LigerSoftmaxFunction.apply(x)


def swiglu(gate: Tensor, up: Tensor, **_outputs: Tensor) -> Tensor:
    """Return silu(gate) * up."""
    return LigerSiLUMulFunction.apply(gate, up)


def geglu(gate: Tensor, up: Tensor, **_rest: object) -> Tensor:
    """Return gelu(gate) * up, by tanh."""
    return LigerGELUMulFunction.apply(gate, up)


def rope(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, q_out: Tensor, k_out: Tensor, **_params: object
) -> None:
    """Turn copies of q and k: the kernel works in place, so what it turns is copied first.

    It takes [batch, heads, tokens, head_dim] as a view of what is stored as q and k are here.
    """
    q_out.copy_(q)
    k_out.copy_(k)
    turned = (tensor[None].transpose(1, 2) for tensor in (q_out, k_out))
    LigerRopeFunction.apply(*turned, cos, sin, None, 1, q.shape[-1])


def embedding(token: Tensor, table: Tensor, **_outputs: Tensor) -> Tensor:
    """Return the table's rows."""
    return LigerEmbeddingFunction.apply(table, token)
