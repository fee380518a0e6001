"""GELU in NumPy, exact (erf) and as tanh: for the references of operators that hold it."""

import math
from functools import cache

import numpy as np

from solkit.declare.arg import Array

# One element by its formula: fp32 flop (erf: as a rational function), and an exp and a division.
GELU_FP32_FLOP = {"erf": 18, "tanh": 8}
GELU_SFU_FLOP = 2

ERF_LIMIT = 6.0  # erf(6) is 1 in float64
ERF_DEGREE = {"float64": 20, "float32": 10}  # 4e-15 and 3e-7 at most; the tests hold it


def gelu(x: Array, form: str) -> Array:
    """Return 0.5 x (1 + erf(x / sqrt 2)), or with form "tanh" tanh of a cubic in erf's place."""
    if form == "erf":
        y = erf(x * math.sqrt(0.5))
    else:
        y = x * x
        y *= 0.044715
        y += 1
        y *= x
        y *= math.sqrt(2 / math.pi)
        np.tanh(y, out=y)
    y += 1
    y *= x
    y *= 0.5
    return y


def erf(x: Array) -> Array:
    """Return the error function of every element, off by a few roundings of x's dtype at most.

    erf(x) = sign(x) (1 - exp(-z^2) p(t)), z = min(|x|, 6), t = 2 / (2 + z): p is exp(z^2) erfc(z)
    as a polynomial in t, fitted to the standard library's erfc.
    """
    coefficients, low = _erfcx_polynomial(ERF_DEGREE[x.dtype.name])
    z = np.abs(x)
    np.minimum(z, ERF_LIMIT, out=z)
    u = 2 / (2 + z)  # t, then t stretched from [low, 1] to [-1, 1]
    u -= (1 + low) / 2
    u *= 2 / (1 - low)
    y: Array = np.full_like(u, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        y *= u
        y += coefficient
    z *= z
    np.negative(z, out=z)
    np.exp(z, out=z)
    y *= z
    np.subtract(1, y, out=y)
    return np.copysign(y, x, out=y)


@cache
def _erfcx_polynomial(degree: int) -> tuple[tuple[float, ...], float]:
    """Fit exp(z^2) erfc(z) for z in [0, 6]: the coefficients, lowest first, and the least t."""
    low = 2 / (2 + ERF_LIMIT)

    def erfcx(u: Array) -> Array:
        z = [2 / (low + (1 - low) * (float(place) + 1) / 2) - 2 for place in u]
        return np.array([math.exp(value * value) * math.erfc(value) for value in z])

    series = np.polynomial.chebyshev.chebinterpolate(erfcx, degree)
    return tuple(float(c) for c in np.polynomial.chebyshev.cheb2poly(series)), low
