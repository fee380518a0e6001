"""Calls of quack's forward operations, which write into the outputs they are given."""

import torch
from peers.parts.formulas import IGNORED, LAYER_EPSILON, RMS_EPSILON
from quack.cross_entropy import cross_entropy_fwd_out
from quack.rmsnorm import _rmsnorm_fwd
from quack.rotary import _rotary_fwd_out
from quack.softmax import _softmax_fwd
from quack.topk import topk_fwd
from torch import Tensor


def rmsnorm(x: Tensor, weight: Tensor, y: Tensor) -> None:
    """Write the norm."""
    _rmsnorm_fwd(x, weight, y, eps=RMS_EPSILON)


def add_rmsnorm(x: Tensor, residual: Tensor, weight: Tensor, y: Tensor, h: Tensor) -> None:
    """Write the norm of the sum, and the sum."""
    _rmsnorm_fwd(x, weight, y, residual=residual, residual_out=h, eps=RMS_EPSILON)


def add_layernorm(  # as many as the operator has arguments
    x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor, y: Tensor, h: Tensor
) -> None:
    """Write the layer norm of the sum, and the sum: the operation takes a residual here, too."""
    _rmsnorm_fwd(
        x,
        weight,
        y,
        bias=bias,
        residual=residual,
        residual_out=h,
        eps=LAYER_EPSILON,
        is_layernorm=True,
    )


def softmax(x: Tensor, y: Tensor, **_params: object) -> None:
    """Write the softmax."""
    _softmax_fwd(x, y)


def cross_entropy(logits: Tensor, label: Tensor, loss: Tensor, lse: Tensor) -> None:
    """Write the loss and the log-sum-exp."""
    cross_entropy_fwd_out(logits, label, None, loss, lse, None, None, IGNORED)


def rope(  # as many as the operator has arguments
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, q_out: Tensor, k_out: Tensor, style: str
) -> None:
    """Write q, then k, turned: a launch each."""
    for source, target in ((q, q_out), (k, k_out)):
        _rotary_fwd_out(
            source[None],
            cos,
            sin,
            None,
            None,
            target[None],
            source.shape[0],
            style == "interleaved",
            False,  # noqa: FBT003  # its positional-only `conjugate`
        )


def moe_topk(logits: Tensor, weight: Tensor, expert: Tensor) -> tuple[Tensor, Tensor]:
    """Choose experts by quack, and weigh them by torch: quack's weights have the logits' dtype."""
    values, chosen = topk_fwd(logits, expert.shape[-1])
    torch.softmax(values, dim=-1, dtype=torch.float32, out=weight)
    return weight, chosen
