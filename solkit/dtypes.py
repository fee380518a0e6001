"""The number formats solkit knows: width, CUDA type, and the pipe that multiplies them."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """One number format.

    `matmul_pipe` is the pipe that multiplies matrices of it with fp32 (fp64 for fp64) accumulation;
    `largest` is where rounding to nearest goes over to infinity.
    """

    name: str
    item_bytes: int
    ctype: str
    matmul_pipe: str
    largest: float


DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType("fp64", 8, "double", "fp64", math.inf),
        DType("fp32", 4, "float", "fp32", 2.0**128 * (1 - 2.0**-25)),
        DType("fp16", 2, "__half", "fp16_tensor", 65520.0),
        DType("bf16", 2, "__nv_bfloat16", "bf16_tensor", 2.0**128 * (1 - 2.0**-9)),
    )
}
