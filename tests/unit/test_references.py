"""Each reference against another formulation, on values."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.registry import bundled, load

REFERENCE = {name: operator.reference for name, operator in bundled().operators.items()}
ROWS, COLS = 5, 7


def normal(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def table(function: Any) -> Any:
    """Write out a ROWS x COLS result, element by element."""
    return np.array([[function(row, col) for col in range(COLS)] for row in range(ROWS)])


def same(expected: Any, seen: Any, tolerance: float = 1e-14) -> None:
    np.testing.assert_allclose(seen, expected, rtol=tolerance, atol=tolerance)


def test_copy_returns_what_it_gets() -> None:
    """Y = x."""
    same(np.arange(9.0), REFERENCE["copy"](x=np.arange(9.0)))


def test_read_adds_up_each_row() -> None:
    """Rows of 0 .. 99, 100 .. 199, 200 .. 299: a sum each, and no axis but theirs."""
    sums = REFERENCE["read"](x=np.arange(300.0).reshape(3, 100))
    assert (3,) == np.shape(sums)
    same([4950.0, 14_950.0, 24_950.0], sums)


@pytest.mark.parametrize("count", [1, 2047, 2048, 5000])
def test_write_repeats_2048_items(count: int) -> None:
    """Y[i] = pattern[i mod 2048]; what stands behind them is never looked at."""
    pattern = np.arange(float(count))
    pattern[2048:] = np.nan
    same([float(i % 2048) for i in range(count)], REFERENCE["write"](pattern=pattern))


def test_triad_adds_three_times_c() -> None:
    """A = b + 3 c."""
    same([10.0, 14.0], REFERENCE["triad"](b=np.array([1.0, 2.0]), c=np.array([3.0, 4.0])))


def test_matmul_add_is_a_sum_of_products_and_the_residual() -> None:
    """Against three loops."""
    x, weight, residual = normal(ROWS, 6), normal(6, COLS), normal(ROWS, COLS)
    expected = table(lambda m, n: residual[m, n] + sum(x[m, k] * weight[k, n] for k in range(6)))
    same(expected, REFERENCE["matmul_add"](x=x, w=weight, residual=residual))


def test_add_rmsnorm_returns_the_norm_and_the_sum() -> None:
    """Each row of the sum divided by its root mean square, times the weight."""
    x, residual, weight = normal(ROWS, COLS), normal(ROWS, COLS, seed=2), normal(COLS)
    y, h = REFERENCE["add_rmsnorm"](x=x, residual=residual, weight=weight)
    same(table(lambda r, c: x[r, c] + residual[r, c]), h)
    rms = [
        math.sqrt(sum((x[r, c] + residual[r, c]) ** 2 for c in range(COLS)) / COLS + 1e-6)
        for r in range(ROWS)
    ]
    same(table(lambda r, c: (x[r, c] + residual[r, c]) / rms[r] * weight[c]), y)


def test_add_rmsnorm_of_zeros_is_zero() -> None:
    """Epsilon keeps a row of zeros finite."""
    zeros = np.zeros((2, 4))
    y, h = REFERENCE["add_rmsnorm"](x=zeros, residual=zeros, weight=np.ones(4))
    assert not y.any()
    assert not h.any()


def test_swiglu_is_gate_times_its_sigmoid_times_up() -> None:
    """Against math.exp, and at the ends: silu(-1000) is 0, silu(1000) is 1000."""
    gate, up = normal(ROWS, COLS), normal(ROWS, COLS, seed=2)
    expected = table(lambda r, c: gate[r, c] / (1 + math.exp(-gate[r, c])) * up[r, c])
    same(expected, REFERENCE["swiglu"](gate=gate, up=up))
    ends = REFERENCE["swiglu"](gate=np.array([[-1000.0, 1000.0]]), up=np.ones((1, 2)))
    same([[0.0, 1000.0]], ends)


def test_bias_gelu_in_its_exact_form() -> None:
    """Against math.erf."""
    x, bias = 3 * normal(ROWS, COLS), normal(COLS)
    expected = table(lambda r, c: 0.5 * (s := x[r, c] + bias[c]) * (1 + math.erf(s / math.sqrt(2))))
    same(expected, REFERENCE["bias_gelu"](x=x, bias=bias, form="erf"), 1e-13)


def test_bias_gelu_in_its_tanh_form() -> None:
    """Against math.tanh; it differs from the exact form by up to 5e-4."""
    x, bias = 3 * normal(ROWS, COLS), normal(COLS)
    expected = table(
        lambda r, c: (
            0.5
            * (s := x[r, c] + bias[c])
            * (1 + math.tanh(math.sqrt(2 / math.pi) * (s + 0.044715 * s**3)))
        )
    )
    same(expected, REFERENCE["bias_gelu"](x=x, bias=bias, form="tanh"), 1e-13)
    exact = REFERENCE["bias_gelu"](x=x, bias=bias, form="erf")
    assert 1e-6 < np.abs(expected - exact).max() < 5e-4


@given(x=st.floats(-40, 40))
def test_the_error_function_is_the_standard_librarys(x: float) -> None:
    """Within a few roundings, in float64 and in float32."""
    erf = REFERENCE["bias_gelu"].__globals__["erf"]
    assert abs(math.erf(x) - erf(np.array([x]))[0]) < 1e-14
    narrow = np.array([x], dtype=np.float32)
    assert np.float32 == erf(narrow).dtype
    assert abs(math.erf(float(narrow[0])) - float(erf(narrow)[0])) < 5e-7


def test_softmax_of_a_row() -> None:
    """Against the plain quotient; adding a constant to a row changes nothing, 1000 included."""
    x = normal(ROWS, COLS)
    sums = [sum(math.exp(x[r, c]) for c in range(COLS)) for r in range(ROWS)]
    expected = table(lambda r, c: math.exp(x[r, c]) / sums[r])
    same(expected, REFERENCE["softmax"](x=x))
    same(expected, REFERENCE["softmax"](x=x + 1000), 1e-12)


def test_the_examples_geglu() -> None:
    """The kernel of docs/write-a-kernel.md is right: gelu(1) = 0.8412 in the tanh form."""
    operator = load(Path(__file__).parents[2] / "examples" / "my_kernel" / "geglu.py")[0]
    seen = operator.reference(gate=np.array([[1.0, 0.0]]), up=np.array([[2.0, 5.0]]))  # type: ignore[union-attr]
    same([[2 * 0.8411919906082768, 0.0]], seen)


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_a_reference_leaves_its_inputs_alone_and_keeps_their_precision(name: str) -> None:
    """Float32 in, float32 out: the CPU device times that arithmetic."""
    operator = bundled().operators[name]
    extents = dict(zip(operator.axes, (6, 8, 4), strict=False))
    inputs = {
        arg.name: normal(*(extents[axis] for axis in arg.axis_names)).astype(np.float32)
        for arg in operator.inputs
    }
    before = {key: value.copy() for key, value in inputs.items()}
    params = {key: operator.params[key][0] for key in operator.reference_params}
    results = operator.reference(**inputs, **params)
    for result in results if isinstance(results, tuple) else (results,):
        assert np.float32 == result.dtype
    for key, value in inputs.items():
        assert np.array_equal(before[key], value)
