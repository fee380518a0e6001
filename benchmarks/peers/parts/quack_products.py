"""Calls of quack's products, which take seconds to import."""

from typing import Any

from peers.parts.formulas import stored
from quack.gemm_interface import gemm_add
from torch import Tensor


def matmul_add(  # as many as the operator has arguments
    x: Tensor,
    w: Tensor,
    residual: Tensor,
    out: Tensor,
    weight: str,
    alpha: float = 1.0,
    beta: float = 1.0,
    *,
    tuned: bool = False,
) -> None:
    """Write the product and the residual by the configuration that is the card's default."""
    gemm_add(x, stored(w, weight), residual, out, alpha=alpha, beta=beta, tuned=tuned)


def matmul_add_tuned(**values: Any) -> None:  # noqa: ANN401  # tensors and params by name
    """Write the same by the fastest of its configurations, which are timed in the first call."""
    matmul_add(**values, tuned=True)
