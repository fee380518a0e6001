"""cublasLt called directly: out = alpha x @ w + beta residual in one product, with C apart from D.

Row-major matrices are the transposes of what the library, which is column-major, takes: it computes
out^T = w^T x^T.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from peers.parts.fastest import fastest
from torch import Tensor

from solkit.measure.device.cuda import cublaslt

MOST = 8  # algorithms that the library is asked for
KINDS = {torch.float16: cublaslt.R_16F, torch.bfloat16: cublaslt.R_16BF}


class Proposed(NamedTuple):
    """A product, and how many algorithms the library proposes for it, its own choice first."""

    product: cublaslt.Product
    count: int


_best: dict[cublaslt.Form, int] = {}


def first(**values: Any) -> None:  # noqa: ANN401  # tensors and params by name
    """Take the algorithm that the library would choose itself."""
    form, operands = _asked(**values)
    _call(_proposed(form).product, 0, *operands)


def best(**values: Any) -> None:  # noqa: ANN401  # tensors and params by name
    """Take the fastest of those that it proposes: they are timed when a case is first called."""
    form, operands = _asked(**values)
    product, count = _proposed(form)
    if form not in _best:
        _best[form] = fastest([partial(_call, product, place) for place in range(count)], operands)
    _call(product, _best[form], *operands)


def _asked(
    x: Tensor,
    w: Tensor,
    out: Tensor,
    weight: str,
    residual: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> tuple[cublaslt.Form, Sequence[Tensor]]:
    """Return what a case asks for, and its operands: w, x, out and, where there is one, C."""
    (rows, depth), cols = x.shape, out.shape[-1]
    kind = KINDS[x.dtype]
    form = cublaslt.Form(
        rows=cols,
        cols=rows,
        depth=depth,
        kind=kind,
        out_kind=kind,
        left_transposed=weight == "nk",
        alpha=alpha,
        beta=0.0 if residual is None else beta,
    )
    return form, (w, x, out) if residual is None else (w, x, out, residual)


@cache
def _proposed(form: cublaslt.Form) -> Proposed:
    product = cublaslt.Product(_library(), form)
    return Proposed(product, product.choose(MOST))


@cache
def _library() -> Any:  # noqa: ANN401  # ctypes
    return cublaslt.load()


@cache
def _workspace(device: torch.device) -> Tensor:
    return torch.empty(cublaslt.WORKSPACE_BYTES, dtype=torch.uint8, device=device)


def _call(
    product: cublaslt.Product,
    place: int,
    w: Tensor,
    x: Tensor,
    out: Tensor,
    residual: Tensor | None = None,
) -> None:
    operands = cublaslt.Operands(
        left=w.data_ptr(),
        right=x.data_ptr(),
        out=out.data_ptr(),
        workspace=_workspace(out.device).data_ptr(),
        source=None if residual is None else residual.data_ptr(),
    )
    product.bind(operands, _stream, place)()


def _stream() -> int:
    return int(torch.cuda.current_stream().cuda_stream)
