"""The operators as one would write them in PyTorch: run as they are, and compiled.

Each takes the operator's inputs and params by name and returns its outputs in order, rounded where
the operator says so and in fp32 between; `adamw` writes its arguments in place.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

RMS_EPSILON, LAYER_EPSILON = 1e-6, 1e-5
IGNORED = -100
FP8_MAX, BLOCK = 448.0, 128
PERIOD = 2048  # of the pattern of `write`
GELU = {"erf": "none", "tanh": "tanh"}
LR, BETA1, BETA2, EPSILON, DECAY, STEP = 1e-3, 0.9, 0.95, 1e-8, 0.1, 10


def rmsnorm(x: Tensor, weight: Tensor) -> Tensor:
    """Return x / rms(x) * weight."""
    wide = x.float()
    inverse = torch.rsqrt(wide.square().mean(-1, keepdim=True) + RMS_EPSILON)
    return (wide * inverse * weight).to(x.dtype)


def add_rmsnorm(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the norm of the rounded sum, and the sum."""
    h = x + residual
    return rmsnorm(h, weight), h


def add_layernorm(
    x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the layer norm of the rounded sum, and the sum."""
    h = x + residual
    return functional.layer_norm(h, weight.shape, weight, bias, LAYER_EPSILON), h


def softmax(x: Tensor, scale: float, masking: str, mask: Tensor | None = None) -> Tensor:
    """Return the softmax of x scale + mask; a causal mask shows row i columns 0 to i mod cols.

    The sum with a mask is fp32: in bf16 one of 4 or more has steps of 1/32, and its exp is off by
    up to 1.6 %.
    """
    scaled = x if scale == 1 else x * scale
    if masking == "additive":
        return torch.softmax(scaled.float() + mask, dim=-1).to(x.dtype)
    if masking == "causal":
        rows, cols = x.shape
        column = torch.arange(cols, device=x.device)
        last = torch.arange(rows, device=x.device) % cols
        scaled = scaled.masked_fill(column > last[:, None], -math.inf)
    return torch.softmax(scaled, dim=-1)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """Return silu(gate) * up."""
    return functional.silu(gate) * up


def geglu(gate: Tensor, up: Tensor, form: str) -> Tensor:
    """Return gelu(gate) * up."""
    return functional.gelu(gate, approximate=GELU[form]) * up


def bias_gelu(x: Tensor, bias: Tensor, form: str) -> Tensor:
    """Return gelu(x + bias)."""
    return functional.gelu(x + bias, approximate=GELU[form])


def cross_entropy(logits: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss of each token and the log-sum-exp, both fp32."""
    lse = torch.logsumexp(logits.float(), dim=-1)
    ignored = label == IGNORED
    place = torch.where(ignored, 0, label).long()
    loss = lse - logits.gather(1, place[:, None])[:, 0]
    return torch.where(ignored, 0.0, loss), lse


def rope(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, style: str) -> tuple[Tensor, Tensor]:
    """Return q and k turned by each token's angles."""
    return _turned(q, cos, sin, style), _turned(k, cos, sin, style)


def _turned(x: Tensor, cos: Tensor, sin: Tensor, style: str) -> Tensor:
    cos, sin = cos[:, None], sin[:, None]
    if style == "half":
        first, second = x.chunk(2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    else:
        first, second = x[..., 0::2], x[..., 1::2]
        pairs = (first * cos - second * sin, second * cos + first * sin)
        turned = torch.stack(pairs, dim=-1).flatten(-2)
    return turned.to(x.dtype)


def quant_fp8(x: Tensor, scaling: str) -> tuple[Tensor, Tensor]:
    """Return x in e4m3, and the scales: of each row, or of each 128 columns of it."""
    parts = x if scaling == "token" else x.unflatten(-1, (-1, BLOCK))
    largest = parts.abs().amax(-1).float()
    scale = torch.where(largest == 0, 1.0, largest / FP8_MAX)
    y = (parts / scale[..., None]).to(torch.float8_e4m3fn)
    return y.view(x.shape), scale


def embedding(token: Tensor, table: Tensor) -> Tensor:
    """Return the table's rows that the tokens name."""
    return functional.embedding(token, table)


def moe_topk(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """Return weights and experts: the softmax over the chosen is the renormalised one over all."""
    values, expert = torch.topk(logits, top_k, dim=-1)
    return torch.softmax(values, dim=-1, dtype=torch.float32), expert.int()


def attention_decode(
    q: Tensor, k: Tensor, v: Tensor, cache: str, page_table: Tensor | None = None
) -> Tensor:
    """Return softmax(q k^T / sqrt(head_dim)) v for one query a head; fp32 as in SDPA's math."""
    if cache == "paged":
        k, v = paged(k, page_table), paged(v, page_table)
    scores = torch.matmul(q.float(), k.float().permute(0, 2, 3, 1)) / math.sqrt(q.shape[-1])
    y = torch.matmul(torch.softmax(scores, dim=-1), v.float().transpose(1, 2))
    return y.to(q.dtype)


def paged(cache: Tensor, page_table: Tensor | None) -> Tensor:
    """Gather a cache's pages into [batch, kv_len, kv_heads, head_dim]."""
    assert page_table is not None  # noqa: S101  # a paged case has one
    found = cache.index_select(0, page_table.flatten())
    return found.view(page_table.shape[0], -1, *cache.shape[2:])


def adamw(param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor) -> None:
    """Take one step in place; state and arithmetic are fp32, param may be bf16."""
    grad, wide = grad.float(), param.float()  # fp32 tensors come back themselves
    exp_avg.lerp_(grad, 1 - BETA1)
    exp_avg_sq.mul_(BETA2).addcmul_(grad, grad, value=1 - BETA2)
    root = exp_avg_sq.sqrt().div_(math.sqrt(1 - BETA2**STEP)).add_(EPSILON)
    wide.mul_(1 - LR * DECAY).addcdiv_(exp_avg, root, value=-LR / (1 - BETA1**STEP))
    if param.dtype != torch.float32:
        param.copy_(wide)


def dequant_gemv(x: Tensor, weight: Tensor, scale: Tensor, weight_dtype: str) -> Tensor:
    """Return x @ weight^T with the weights of int4 (low nibble first, minus 8) or int8."""
    if weight_dtype == "int8":
        return functional.linear(x, weight.to(x.dtype)) * scale
    nibbles = torch.stack((weight & 15, weight >> 4), dim=-1).view(*scale.shape, -1)
    wide = (nibbles.to(x.dtype) - 8) * scale[..., None]
    return functional.linear(x, wide.view(weight.shape[0], -1))


def dequant_sum(x: Tensor, weight: Tensor, scale: Tensor, weight_dtype: str) -> Tensor:
    """Return the same as a sum in fp32, which a compiler fuses with the dequantisation."""
    wide = x.float()
    if weight_dtype == "int8":
        return ((wide[:, None] * weight.float()).sum(-1) * scale).to(x.dtype)
    rows, groups = scale.shape
    pairs, packed = wide.view(-1, 1, groups, BLOCK // 2, 2), weight.view(rows, groups, -1)
    low, high = (packed & 15).float() - 8, (packed >> 4).float() - 8
    part = (pairs[..., 0] * low + pairs[..., 1] * high) * scale.float()[..., None]
    return part.sum((-1, -2)).to(x.dtype)


def matmul(x: Tensor, w: Tensor, weight: str, alpha: float = 1.0) -> Tensor:
    """Return alpha x @ w."""
    product = x @ stored(w, weight)
    return product if alpha == 1 else alpha * product


def matmul_bias(x: Tensor, w: Tensor, bias: Tensor, weight: str, alpha: float = 1.0) -> Tensor:
    """Return alpha x @ w + bias."""
    return matmul(x, w, weight, alpha) + bias


def matmul_bias_gelu(  # as many as the operator has arguments
    x: Tensor, w: Tensor, bias: Tensor, weight: str, form: str, alpha: float = 1.0
) -> Tensor:
    """Return gelu(alpha x @ w + bias)."""
    return functional.gelu(matmul_bias(x, w, bias, weight, alpha), approximate=GELU[form])


def matmul_add(  # as many as the operator has arguments
    x: Tensor, w: Tensor, residual: Tensor, weight: str, alpha: float = 1.0, beta: float = 1.0
) -> Tensor:
    """Return alpha x @ w + beta residual."""
    return matmul(x, w, weight, alpha) + (residual if beta == 1 else beta * residual)


def matmul_add_bias(  # as many as the operator has arguments
    x: Tensor,
    w: Tensor,
    bias: Tensor,
    residual: Tensor,
    weight: str,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> Tensor:
    """Return alpha x @ w + beta residual + bias."""
    return matmul_add(x, w, residual, weight, alpha, beta) + bias


def stored(w: Tensor, weight: str) -> Tensor:
    """Return a weight as [K, N], whichever way it is stored: a view."""
    return w if weight == "kn" else w.t()


def copy(x: Tensor) -> Tensor:
    """Return x: whoever writes it makes the copy."""
    return x


def read(x: Tensor) -> Tensor:
    """Return the sum of each row in fp32."""
    return torch.sum(x, dim=-1, dtype=torch.float32)


def write(pattern: Tensor) -> Tensor:
    """Return the first PERIOD elements again and again."""
    count = pattern.shape[0]
    return pattern[:PERIOD].repeat(-(-count // PERIOD))[:count]


def triad(b: Tensor, c: Tensor) -> Tensor:
    """Return b + 3 c."""
    return torch.add(b, c, alpha=3)
