"""The values of 8-bit floats, e4m3: 1 sign, 4 exponent (bias 7) and 3 mantissa bits.

There is no infinity: 0x7E is the largest, 448, and 0x7F and 0xFF are NaN (OCP 8-bit floating point
specification 1.0, section 5.3). NumPy has no such type, so arrays of it hold the codes as uint8.
"""

from functools import cache
from typing import Any

import numpy as np

NAME = "fp8_e4m3"
LARGEST = 448.0
_SIGN, _NAN, _LARGEST_CODE = 0x80, 0x7F, 0x7E


@cache
def values() -> Any:  # noqa: ANN401  # a NumPy array
    """Return the value of each of the 256 codes, in float64."""
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    normal = (8 + mantissa) * 2.0 ** (exponent - 10)
    found = np.where(exponent == 0, mantissa * 2.0**-9, normal)
    found[_NAN :: 1 + _NAN] = np.nan
    return np.where(codes & _SIGN, -found, found)


def decoded(codes: Any) -> Any:  # noqa: ANN401  # NumPy arrays
    """Return the float64 values of codes (uint8)."""
    return values()[codes]


def encoded(numbers: Any) -> Any:  # noqa: ANN401  # NumPy arrays
    """Return the codes (uint8) of numbers: to the nearest, ties to even, saturated at 448."""
    numbers = np.asarray(numbers, dtype=np.float64)
    codes = np.asarray(np.searchsorted(_borders(), np.abs(numbers)), dtype=np.uint8)
    codes[np.isnan(numbers)] = _NAN
    codes[np.signbit(numbers)] |= _SIGN
    return codes


def half_step(numbers: Any) -> Any:  # noqa: ANN401  # NumPy arrays
    """Return half the distance of the values around each number: what rounding may move it by."""
    exponent = np.frexp(np.abs(numbers))[1] - 1  # 2^exponent <= |number| < 2^(exponent + 1)
    return 2.0 ** (np.maximum(exponent, -6) - 4)


@cache
def _borders() -> Any:  # noqa: ANN401  # a NumPy array
    """Return the largest number that each positive code but the last stands for."""
    held = values()[: _LARGEST_CODE + 1]
    halves = (held[:-1] + held[1:]) / 2
    halves[1::2] = np.nextafter(halves[1::2], 0.0)  # a tie goes up from an odd code
    return halves
