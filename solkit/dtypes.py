"""The number formats solkit knows: width, CUDA type, and the pipe that multiplies them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """One number format.

    `matmul_pipe` is the pipe that multiplies matrices of it with fp32 (fp64 for fp64) accumulation;
    `epsilon_fraction` is half a unit in the last place at 1.0, the error of one rounding.
    """

    name: str
    item_bytes: int
    ctype: str
    matmul_pipe: str
    epsilon_fraction: float


DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType("fp64", 8, "double", "fp64", 2.0**-53),
        DType("fp32", 4, "float", "fp32", 2.0**-24),
        DType("fp16", 2, "__half", "fp16_tensor", 2.0**-11),
        DType("bf16", 2, "__nv_bfloat16", "bf16_tensor", 2.0**-8),
    )
}
