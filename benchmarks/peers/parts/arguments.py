"""What of a call's arguments a formula takes, and which it leaves to be written."""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from torch import Tensor


class Parted(NamedTuple):
    """A call's arguments: the tensors that a formula takes, its params, the tensors left over."""

    inputs: dict[str, Tensor]
    params: dict[str, Any]
    outputs: tuple[Tensor, ...]


def parted(formula: Callable[..., Any], values: Mapping[str, Any]) -> Parted:
    """Part a call's arguments, which are in the operator's order, by the formula's signature."""
    taken = _names(formula)
    inputs, params, outputs = {}, {}, []
    for name, value in values.items():
        if not isinstance(value, Tensor):
            if name in taken:
                params[name] = value
        elif name in taken:
            inputs[name] = value
        else:
            outputs.append(value)
    if "top_k" in taken:  # an axis: the outputs tell it
        params["top_k"] = outputs[0].shape[-1]
    return Parted(inputs, params, tuple(outputs))


@cache
def _names(formula: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(formula).parameters)
