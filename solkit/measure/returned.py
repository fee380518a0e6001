"""What a Python kernel returned, held against its declared outputs. No device library is needed."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from solkit.declare.arg import Array
from solkit.errors import words
from solkit.measure.verdict import CheckFailed

# The kinds of memory that DLPack tells of: the host; CUDA memory, and managed memory.
CPU_KIND, CUDA_KINDS = 1, (2, 13)
_REMEDY = "write the outputs in place and return None, or return one array for each, in order"


def claimed(result: object, targets: Mapping[str, Array]) -> Mapping[str, Any]:
    """Return what was returned for each output by name, nothing for None.

    targets: the arrays that stand for the outputs, in order. CheckFailed (wrong_shape) for another
    count, and for what is no array.
    """
    if result is None:
        return {}
    names = ", ".join(targets)
    if not isinstance(result, tuple) and not _is_array(result):
        raise CheckFailed(
            f"it returned a {type(result).__name__}, not the declared outputs ({names})",
            remedy=_REMEDY,
            verdict="wrong_shape",
        )
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(targets):
        raise CheckFailed(
            f"it returned {len(results)} of {len(targets)} declared outputs ({names})",
            remedy=_REMEDY,
            verdict="wrong_shape",
        )
    for name, array in zip(targets, results, strict=True):
        if not _is_array(array):
            raise CheckFailed(
                f"it returned {name!r} as a {type(array).__name__}, not as an array",
                remedy=_REMEDY,
                verdict="wrong_shape",
            )
    return dict(zip(targets, results, strict=True))


def bytes_of(array: Any) -> Any:  # noqa: ANN401  # whatever speaks DLPack
    """Return torch's 8-bit floats as their bytes, which DLPack has no other word for."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor) and array.element_size() == 1:
        return array.detach().view(torch.uint8)
    return array


def on_device(
    name: str,
    array: Any,  # noqa: ANN401  # whatever speaks DLPack
    take: Callable[[Any], Array],
    *,
    kinds: Sequence[int],
    where: str,
) -> Array:
    """Return a foreign array as the device's own, by `take`; CheckFailed where it lies elsewhere.

    kinds: the DLPack kinds of the device's memory; where: its name in words.
    """
    ask = getattr(array, "__dlpack_device__", None)  # a NumPy scalar has none
    detach = getattr(array, "detach", None)  # torch: without the graph behind it
    speaks = hasattr(array, "__dlpack__")
    try:
        here = (ask()[0] if ask else CPU_KIND) in kinds
        if here and speaks:
            return take(detach() if callable(detach) else array)
    except (AttributeError, BufferError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise CheckFailed(
            f"it returned {name!r} as a {_kind_of(array)} that can't be read: {words(error)}",
            remedy="return an array of the declared dtype, or write in place",
            verdict="wrong_dtype",
        ) from error
    if here:
        raise CheckFailed(
            f"it returned {name!r} as a {_kind_of(array)} without __dlpack__: it can't be read",
            remedy="return an array of a library that has it, or write in place",
            verdict="wrong_dtype",
        )
    raise CheckFailed(
        f"it returned {name!r} as a {_kind_of(array)} that does not lie on {where}",
        remedy="return outputs where the inputs are",
        verdict="wrong_dtype",
    )


def same_form(name: str, array: Array, target: Array) -> None:
    """Raise CheckFailed (wrong_shape, wrong_dtype) unless an array has the form of its target."""
    if tuple(array.shape) != tuple(target.shape):
        raise CheckFailed(
            f"it returned {name!r} of shape {tuple(array.shape)}, declared is "
            f"{tuple(target.shape)}",
            remedy="return the shape that is declared; no axis is broadcast",
            verdict="wrong_shape",
        )
    if array.dtype != target.dtype:
        raise CheckFailed(
            f"it returned {name!r} as {array.dtype}, declared is {target.dtype}",
            remedy="convert the result to the declared dtype",
            verdict="wrong_dtype",
        )


def _is_array(value: object) -> bool:
    return all(hasattr(value, name) for name in ("shape", "dtype", "__array__"))


def _kind_of(array: object) -> str:
    return f"{type(array).__module__.partition('.')[0]} array"
