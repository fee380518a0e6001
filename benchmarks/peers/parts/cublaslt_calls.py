"""cublasLt called directly: out = gelu(alpha x @ w + beta residual + bias) in one call, or parts.

Row-major matrices are the transposes of what the library, which is column-major, takes: it computes
out^T = w^T x^T, with a bias for each of its rows. C lies apart from D.
"""

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


class Call(NamedTuple):
    """What a case asks for, and the tensors that it is computed of; the last two may be absent."""

    form: cublaslt.Form
    w: Tensor
    x: Tensor
    out: Tensor
    residual: Tensor | None
    bias: Tensor | None

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The tensors that there are, in order."""
        return tuple(each for each in self[1:] if each is not None)


_proposals: dict[cublaslt.Form, Proposed] = {}
_best: dict[cublaslt.Form, int] = {}


def first(**values: Any) -> None:  # noqa: ANN401  # tensors and params by name
    """Take the algorithm that the library would choose itself."""
    call = _asked(**values)
    _run(_proposed(call).product, 0, call)


def best(**values: Any) -> None:  # noqa: ANN401  # tensors and params by name
    """Take the fastest of those that it proposes: they are timed when a case is first called."""
    call = _asked(**values)
    product, count = _proposed(call)
    if call.form not in _best:
        ways = [partial(_run_on, product, place, call) for place in range(count)]
        _best[call.form] = fastest(ways, call.operands)
    _run(product, _best[call.form], call)


def _asked(
    x: Tensor,
    w: Tensor,
    out: Tensor,
    weight: str,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    form: str | None = None,
    **factors: float,
) -> Call:
    """Return what a case asks for; form: of its GELU, where it has one. Factors left out are 1."""
    (rows, depth), cols = x.shape, out.shape[-1]
    kind = KINDS[x.dtype]
    epilogue = None
    if bias is not None:
        epilogue = cublaslt.BIAS if form is None else cublaslt.GELU_BIAS
    asked = cublaslt.Form(
        rows=cols,
        cols=rows,
        depth=depth,
        kind=kind,
        out_kind=kind,
        left_transposed=weight == "nk",
        alpha=factors.get("alpha", 1.0),
        beta=0.0 if residual is None else factors.get("beta", 1.0),
        epilogue=epilogue,
    )
    return Call(asked, w, x, out, residual, bias)


def _proposed(call: Call) -> Proposed:
    if call.form not in _proposals:
        product = cublaslt.Product(_library(), call.form)
        bias = None if call.bias is None else call.bias.data_ptr()
        _proposals[call.form] = Proposed(product, product.choose(MOST, bias))
    return _proposals[call.form]


@cache
def _library() -> Any:  # noqa: ANN401  # ctypes
    return cublaslt.load()


@cache
def _workspace(device: torch.device) -> Tensor:
    return torch.empty(cublaslt.WORKSPACE_BYTES, dtype=torch.uint8, device=device)


def _run_on(product: cublaslt.Product, place: int, call: Call, *operands: Tensor) -> None:
    """Run a call on other tensors of the same forms, in the order of its operands."""
    given = iter(operands)
    others = (None if each is None else next(given) for each in call[1:])
    _run(product, place, Call(call.form, *others))


def _run(product: cublaslt.Product, place: int, call: Call) -> None:
    operands = cublaslt.Operands(
        left=call.w.data_ptr(),
        right=call.x.data_ptr(),
        out=call.out.data_ptr(),
        workspace=_workspace(call.out.device).data_ptr(),
        source=None if call.residual is None else call.residual.data_ptr(),
        bias=None if call.bias is None else call.bias.data_ptr(),
    )
    product.bind(operands, _stream, place)()


def _stream() -> int:
    return int(torch.cuda.current_stream().cuda_stream)
