"""Device memory of one argument, many times over, for calls that rotate over buffer sets."""

from collections.abc import Sequence
from typing import Any

import cupy as cp
import numpy as np

from solkit.declare.arg import Arg, Array
from solkit.model import Case

# bf16 and 8-bit floats travel as their bits: NumPy has no such types, and nothing here computes
# with them.
NUMPY_TYPES: dict[str, Any] = {
    "fp64": np.float64,
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": np.uint16,
    "fp8_e4m3": np.uint8,
    "int32": np.int32,
    "int8": np.int8,
    "uint8": np.uint8,
}
_ALIGN_BYTES = 512  # more than any vector access or tensor map asks for


class Copies(Sequence[Array]):
    """One argument, many times over in one arena; a copy is a view that is made when asked for."""

    def __init__(self, arg: Arg, case: Case, set_count: int) -> None:
        self._shape = arg.stored_shape(case)
        self._dtype = NUMPY_TYPES[arg.dtype_of(case)]
        self._count = set_count
        self._bytes = arg.nbytes(case)
        self.stride_bytes = -(-self._bytes // _ALIGN_BYTES) * _ALIGN_BYTES
        self.arena = cp.empty(set_count * self.stride_bytes, dtype=cp.uint8)

    @property
    def whole(self) -> Array:
        """The arena as one flat array of the argument's dtype."""
        return self.arena.view(self._dtype)

    def repeat(self) -> None:
        """Copy the first to all others: by doubling, since a copy each takes longer than a case."""
        words, stride, done = self.arena.view(cp.uint64), self.stride_bytes // 8, 1
        while done < self._count:
            more = min(done, self._count - done)
            words[done * stride : (done + more) * stride] = words[: more * stride]
            done += more

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: Any) -> Any:  # noqa: ANN401  # an index, as Sequence has it
        if not 0 <= number < self._count:
            raise IndexError(number)
        start = number * self.stride_bytes
        part = self.arena[start : start + self._bytes]
        return part.view(self._dtype).reshape(self._shape)
