"""PyTorch's own functions for the operators, into the operators' outputs where they take one."""

from functools import cache

import torch
from peers.parts.formulas import (
    BETA1,
    BETA2,
    DECAY,
    EPSILON,
    GELU,
    IGNORED,
    LR,
    PERIOD,
    RMS_EPSILON,
    STEP,
    stored,
)
from torch import Tensor
from torch.nn import functional


def rmsnorm(x: Tensor, weight: Tensor, **_outputs: Tensor) -> Tensor:
    """Return F.rms_norm."""
    return functional.rms_norm(x, weight.shape, weight, RMS_EPSILON)


def add_rmsnorm(
    x: Tensor, residual: Tensor, weight: Tensor, h: Tensor, **_outputs: Tensor
) -> tuple[Tensor, Tensor]:
    """Write the sum, and return its norm with it."""
    torch.add(x, residual, out=h)
    return functional.rms_norm(h, weight.shape, weight, RMS_EPSILON), h


def cross_entropy(
    logits: Tensor, label: Tensor, lse: Tensor, **_outputs: Tensor
) -> tuple[Tensor, Tensor]:
    """Return F.cross_entropy in fp32, and write the log-sum-exp that it keeps to itself."""
    wide = logits.float()
    torch.logsumexp(wide, dim=-1, out=lse)
    loss = functional.cross_entropy(wide, label.long(), ignore_index=IGNORED, reduction="none")
    return loss, lse


def embedding(token: Tensor, table: Tensor, y: Tensor) -> None:
    """Gather rows, as F.embedding does, which has no out=."""
    torch.index_select(table, 0, token, out=y)


def adamw(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor) -> None:
    """Take one step with the kernel behind torch.optim.AdamW(fused=True)."""
    torch._fused_adamw_(  # the optimiser's own call
        [param],
        [grad],
        [exp_avg],
        [exp_avg_sq],
        [],
        [_step(param.device)],
        lr=LR,
        beta1=BETA1,
        beta2=BETA2,
        weight_decay=DECAY,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
    )


@cache
def _step(device: torch.device) -> Tensor:
    return torch.tensor(float(STEP), device=device)


def dequant_gemv(x: Tensor, weight: Tensor, scale: Tensor, **_rest: object) -> Tensor:
    """Return the product with int8 weights, a scale a row."""
    return torch._weight_int8pack_mm(x, weight, scale)  # noqa: SLF001  # it has no public name


def matmul(x: Tensor, w: Tensor, out: Tensor, weight: str, alpha: float = 1.0) -> None:
    """Call mm, or addmm without what it adds where there is a factor."""
    if alpha == 1:
        torch.mm(x, stored(w, weight), out=out)
    else:
        torch.addmm(out, x, stored(w, weight), alpha=alpha, beta=0, out=out)


def matmul_bias(  # as many as the operator has arguments
    x: Tensor, w: Tensor, bias: Tensor, out: Tensor, weight: str, alpha: float = 1.0
) -> None:
    """Call addmm, as F.linear does: cublasLt adds the bias in its epilogue."""
    torch.addmm(bias, x, stored(w, weight), alpha=alpha, out=out)


def matmul_bias_gelu(  # as many as the operator has arguments
    x: Tensor, w: Tensor, bias: Tensor, out: Tensor, weight: str, form: str, alpha: float = 1.0
) -> Tensor:
    """Call addmm, and F.gelu on what it wrote."""
    matmul_bias(x, w, bias, out, weight, alpha)
    return functional.gelu(out, approximate=GELU[form])


def matmul_add(  # as many as the operator has arguments
    x: Tensor,
    w: Tensor,
    residual: Tensor,
    out: Tensor,
    weight: str,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> None:
    """Call addmm: it copies the residual into out, and has cuBLAS add the product."""
    torch.addmm(residual, x, stored(w, weight), alpha=alpha, beta=beta, out=out)


def matmul_add_bias(  # as many as the operator has arguments
    x: Tensor,
    w: Tensor,
    bias: Tensor,
    residual: Tensor,
    out: Tensor,
    weight: str,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> None:
    """Call addmm with the bias, and add the residual to what it wrote."""
    torch.addmm(bias, x, stored(w, weight), alpha=alpha, out=out)
    out.add_(residual, alpha=beta)


def copy(x: Tensor, y: Tensor) -> None:
    """Copy."""
    y.copy_(x)


def read(x: Tensor, y: Tensor) -> None:
    """Sum each row in fp32."""
    torch.sum(x, dim=-1, dtype=torch.float32, out=y)


def write(pattern: Tensor, y: Tensor) -> None:
    """Copy the pattern, broadcast over the whole periods, and the part of one that is left."""
    whole = y.shape[0] // PERIOD * PERIOD
    if whole:
        y[:whole].view(-1, PERIOD).copy_(pattern[:PERIOD])
    if whole < y.shape[0]:
        y[whole:].copy_(pattern[: y.shape[0] - whole])


def triad(b: Tensor, c: Tensor, a: Tensor) -> None:
    """Add three times c to b."""
    torch.add(b, c, alpha=3, out=a)
