"""Bias + GELU: y = gelu(x + bias), in its exact (erf) or its tanh form."""

import math
from functools import cache

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Work
from solkit.declare.geometry import WARP, ceil_div, vector_items

THREADS = 256  # a block at most
ITEMS = 4  # rows a thread walks, all loaded before the first is computed
FORMS = {"erf": "Erf", "tanh": "Tanh"}  # the param's values and the types of the .cu
# One element of GELU by its formula: fp32 flop (erf: as a rational function), exp and division.
FP32_FLOP = {"erf": 18, "tanh": 8}
SFU_FLOP = 2

ERF_LIMIT = 6.0  # erf(6) is 1 in float64
ERF_DEGREE = {"float64": 20, "float32": 10}  # 4e-15 and 3e-7 at most; the tests hold it


def work(case: Case) -> Work:
    """X and the bias are read, y is written."""
    count, item = case.shape["rows"] * case.shape["cols"], case.item_bytes
    return Work(
        read_bytes=(count + case.shape["cols"]) * item,
        write_bytes=count * item,
        estimated_flop={
            "fp32": (1 + FP32_FLOP[str(case.params["form"])]) * count,
            "sfu": SFU_FLOP * count,
        },
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the sum, written, and read again by GELU."""
    count, item = case.shape["rows"] * case.shape["cols"], case.item_bytes
    gelu = {"fp32": FP32_FLOP[str(case.params["form"])] * count, "sfu": SFU_FLOP * count}
    return (
        Step(
            "add",
            Work((count + case.shape["cols"]) * item, count * item, estimated_flop={"fp32": count}),
        ),
        Step("gelu", Work(count * item, count * item, estimated_flop=gelu)),
    )


def reference(x: Array, bias: Array, form: str) -> Array:
    """Return GELU of x + bias: 0.5 s (1 + erf(s / sqrt 2)), or with tanh in erf's place."""
    s: Array = x + bias
    if form == "erf":
        y = erf(s * math.sqrt(0.5))
    else:
        y = s * s
        y *= 0.044715
        y += 1
        y *= s
        y *= math.sqrt(2 / math.pi)
        np.tanh(y, out=y)
    y += 1
    y *= s
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


def launches(case: Case) -> tuple[Launch, ...]:
    """TX threads along the columns (whole warps, few of them idle), TY rows side by side."""
    vec = vector_items(case, "cols")
    vectors = case.shape["cols"] // vec
    if vectors <= THREADS // 2:
        tx = vectors
    else:
        tx = min(range(THREADS, THREADS // 2 - 1, -WARP), key=lambda t: ceil_div(vectors, t) * t)
    ty = THREADS // tx if tx <= THREADS // 2 else 1
    blocks = ceil_div(vectors, tx) * ceil_div(case.shape["rows"], ty * ITEMS)
    form = FORMS[str(case.params["form"])]
    entry = f"bias_gelu<{case.ctype}, {form}, {tx}, {ty}, {vec}, {ITEMS}>"
    return (Launch(entry, grid=(blocks, 1, 1), block=(tx, ty, 1)),)


OPERATOR = Operator(
    name="bias_gelu",
    args=(Arg("x", "rows cols"), Arg("bias", "cols"), Arg("y", "rows cols", "out")),
    params={"form": tuple(FORMS)},
    work=work,
    unfused=unfused,
    reference=reference,
    independent=("rows", "cols"),
    summary="y = gelu(x + bias), erf or tanh",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="bias_gelu.cu",
    launches=launches,
    summary="a thread keeps its columns' bias in registers over four rows",
)
