"""solkit's arrays as torch tensors on the same memory, and torch's results as solkit takes them."""

from collections import deque
from typing import Any

import torch

# More than twice the L2 of any card (126 MB on a B200).
KEPT_BYTES, MOST_KEPT = 256 * 2**20, 512

_held: deque[tuple[torch.Tensor, ...]] = deque()
_mapped: set[tuple[int, ...]] = set()


def tensor(array: Any) -> torch.Tensor:  # noqa: ANN401  # CuPy's, NumPy's or torch's array
    """Return an array as a tensor on the same memory.

    bf16 travels as its bits: NumPy's and CuPy's type for it is none that torch knows.
    """
    if isinstance(array, torch.Tensor):
        return array
    if array.dtype.name == "bfloat16":
        return torch.from_dlpack(array.view("int16")).view(torch.bfloat16)
    return torch.from_dlpack(array)


def kept(result: Any) -> Any:  # noqa: ANN401  # None, a tensor, a tuple of them
    """Return what a peer returned, and hold it for a while, so that the next lies elsewhere.

    PyTorch's allocator hands the block just given back out again: its lines still lie in the L2,
    where overwriting them costs no traffic, while a kernel that writes to solkit's buffer sets pays
    for every line. Held are two L2s' worth of the newest results; the blocks are all mapped on the
    first call, which is not timed.
    """
    if result is None:
        return None
    results = result if isinstance(result, tuple) else (result,)
    results = tuple(map(_as_stored, results))
    if results[0].is_cuda:
        _hold(results)
    return results if len(results) > 1 else results[0]


def _as_stored(result: torch.Tensor) -> torch.Tensor:
    return result.view(torch.uint8) if result.dtype == torch.float8_e4m3fn else result


def _hold(results: tuple[torch.Tensor, ...]) -> None:
    sizes = tuple(each.nbytes for each in results)
    count = min(MOST_KEPT, KEPT_BYTES // max(sum(sizes), 1) + 1)
    if sizes not in _mapped:
        _mapped.add(sizes)
        _held.clear()
        blocks = [[torch.empty_like(each) for each in results] for _ in range(count + 1)]
        del blocks
    _held.append(results)
    while len(_held) > count:
        _held.popleft()
