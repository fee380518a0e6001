"""The number formats solkit knows: width, CUDA type, and the pipe that multiplies them."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class DType:
    """One number format.

    `matmul_pipe` is the pipe that multiplies matrices of it with fp32 (fp64 for fp64, integer for
    int8) accumulation, empty where there is none; `largest` is where rounding to nearest goes over
    to infinity.
    number: `float` formats that cases come in, `code` a float format that only arguments have,
    `int` integers.
    """

    name: str
    item_bytes: int
    ctype: str
    matmul_pipe: str
    largest: float
    number: Literal["float", "code", "int"] = "float"


DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType("fp64", 8, "double", "fp64", math.inf),
        DType("fp32", 4, "float", "fp32", 2.0**128 * (1 - 2.0**-25)),
        DType("fp16", 2, "__half", "fp16_tensor", 65520.0),
        DType("bf16", 2, "__nv_bfloat16", "bf16_tensor", 2.0**128 * (1 - 2.0**-9)),
        # e4m3 has no infinity: conversions saturate at 448.
        DType("fp8_e4m3", 1, "__nv_fp8_e4m3", "fp8_tensor", math.inf, "code"),
        DType("int32", 4, "int", "", math.inf, "int"),
        DType("int8", 1, "signed char", "int8_tensor", math.inf, "int"),
        DType("uint8", 1, "unsigned char", "", math.inf, "int"),
    )
}
CASE_DTYPES = tuple(name for name, dtype in DTYPES.items() if dtype.number == "float")
