"""A formula compiled by torch.compile, once for each case, writing into the operator's outputs.

Static shapes, one graph, no CUDA graph: what a launch costs is reported apart. The default mode,
but for products, whose tiles are tuned.
"""

from collections.abc import Callable, Mapping
from itertools import count
from types import FunctionType
from typing import Any

import torch
import torch._functorch.config
import torch._inductor.config
from peers.parts import formulas
from peers.parts.arguments import Parted, parted
from torch import Tensor

# One small kernel at a time: a pool of compilers takes longer to start than it saves.
torch._inductor.config.compile_threads = 1  # noqa: SLF001  # that is where the option lives

# A sum of products reads the weights once for each token, a matrix product has them written in full
# first. H200, 8192 x 8192, one and four tokens: int8 29 and 111 us against 92 and 93; int4 64 and
# 238 us against 119 and 120.
FUSED_TOKENS = {"int8": 3, "int4": 1}

_numbers = count()
_compiled: dict[tuple[Any, ...], Callable[..., Any]] = {}


def run(operator: str, **values: Any) -> None:  # noqa: ANN401  # tensors and params by name
    """Run the operator's compiled formula."""
    formula = _formula(operator, values)
    call = parted(formula, values)
    key = _key(operator, call)
    step = _compiled.get(key)
    if step is None:
        step = _compiled[key] = _step(formula, call)
    step(*call.inputs.values(), *map(_typed, call.outputs))


def tuned(operator: str, **values: Any) -> Tensor:  # noqa: ANN401  # tensors and params by name
    """Return the result of the operator's formula, compiled with max-autotune.

    Returned, since cuBLAS, which may be the fastest, writes where Inductor has it write: to copy it
    from there would be time of its own. What was chosen is kept in no cache, since it may have been
    while others used the card; the compiled kernels are.
    """
    formula = getattr(formulas, operator)
    call = parted(formula, values)
    key = _key(operator, call)
    inputs = tuple(call.inputs.values())
    if key in _compiled:
        result: Tensor = _compiled[key](*inputs)
        return result
    names, params = tuple(call.inputs), call.params

    def step(*tensors: Tensor) -> Tensor:
        found: Tensor = formula(**dict(zip(names, tensors, strict=True)), **params)
        return found

    _compiled[key] = torch.compile(
        _own(step), dynamic=False, fullgraph=True, mode="max-autotune-no-cudagraphs"
    )
    with (
        torch._inductor.config.patch(fx_graph_cache=False, autotune_local_cache=False),  # noqa: SLF001
        torch._functorch.config.patch(enable_autograd_cache=False),  # noqa: SLF001
    ):
        return tuned(operator, **values)


def _key(operator: str, call: Parted) -> tuple[Any, ...]:
    tensors = ((tensor.shape, tensor.dtype) for tensor in call.inputs.values())
    return (operator, *tensors, *call.params.values())


def _formula(operator: str, values: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the formula that compiles to the faster kernels."""
    if operator == "dequant_gemv" and len(values["x"]) <= FUSED_TOKENS[values["weight_dtype"]]:
        return formulas.dequant_sum
    formula: Callable[..., Any] = getattr(formulas, operator)
    return formula


def _step(formula: Callable[..., Any], call: Parted) -> Callable[..., None]:
    """Compile a function of the tensors alone: inputs in order, then outputs."""
    names, params = tuple(call.inputs), call.params

    def step(*tensors: Tensor) -> None:
        results = formula(**dict(zip(names, tensors, strict=False)), **params)
        if results is None:
            return
        results = results if isinstance(results, tuple) else (results,)
        for output, result in zip(tensors[len(names) :], results, strict=True):
            output.copy_(result)

    compiled: Callable[..., None] = torch.compile(_own(step), dynamic=False, fullgraph=True)
    return compiled


def _own(step: Any) -> FunctionType:  # noqa: ANN401  # a function of Python
    """Return a step with a code object of its own.

    Dynamo keeps what it compiled by code object, looks through all of it in every call, and gives
    up after some shapes.
    """
    code = step.__code__.replace(co_name=f"step_{next(_numbers)}")
    return FunctionType(code, step.__globals__, code.co_name, None, step.__closure__)


def _typed(output: Tensor) -> Tensor:
    """Return an output as what it holds: e4m3 travels as bytes."""
    return output.view(torch.float8_e4m3fn) if output.dtype == torch.uint8 else output
