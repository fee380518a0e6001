"""Each reference against another formulation, on values."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit import Arg, Bits, Case, Indices, Uniform
from solkit.declare.dims import dim
from solkit.declare.gelu import erf
from solkit.declare.registry import bundled, load

REFERENCE = {name: operator.reference for name, operator in bundled().operators.items()}
ROWS, COLS = 5, 7


def normal(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def table(function: Any) -> Any:
    """Write out a ROWS x COLS result, element by element."""
    return np.array([[function(row, col) for col in range(COLS)] for row in range(ROWS)])


def filled(arg: Arg, case: Case) -> Any:
    """Fill an argument as it is declared, small."""
    shape = arg.shape(case)
    if isinstance(arg.init, Indices):
        count = np.arange(np.prod(shape, dtype=int))
        return (count % dim(arg.init.of).extent(case.shape)).reshape(shape).astype(np.float32)
    if isinstance(arg.init, Bits):
        return np.random.default_rng(1).integers(0, 100, shape).astype(np.float32)
    if isinstance(arg.init, Uniform):
        low, high = arg.init.low, arg.init.high
        return np.random.default_rng(1).uniform(low, high, shape).astype(np.float32)
    return normal(*shape).astype(np.float32)


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


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 1.0), (0.5, 0.25)])
def test_products_and_what_follows_them(alpha: float, beta: float) -> None:
    """Against three loops: the product times alpha, the residual times beta, a column's bias."""
    x, w, bias, residual = normal(ROWS, 6), normal(6, COLS), normal(COLS), normal(ROWS, COLS)
    product = table(lambda m, n: alpha * sum(x[m, k] * w[k, n] for k in range(6)))
    with_bias = table(lambda m, n: product[m, n] + bias[n])
    added = table(lambda m, n: product[m, n] + beta * residual[m, n])
    taken = {"x": x, "w": w, "alpha": alpha}
    same(product, REFERENCE["matmul"](**taken))
    same(with_bias, REFERENCE["matmul_bias"](**taken, bias=bias))
    taken |= {"residual": residual, "beta": beta}
    same(added, REFERENCE["matmul_add"](**taken))
    same(added + bias, REFERENCE["matmul_add_bias"](**taken, bias=bias))


@pytest.mark.parametrize("form", ["erf", "tanh"])
def test_matmul_bias_gelu_is_bias_gelu_of_the_product(form: str) -> None:
    """The same activation, by the same forms."""
    x, w, bias = normal(ROWS, 6), normal(6, COLS), normal(COLS)
    expected = REFERENCE["bias_gelu"](x=0.5 * (x @ w), bias=bias, form=form)
    same(expected, REFERENCE["matmul_bias_gelu"](x=x, w=w, bias=bias, alpha=0.5, form=form))


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


def test_rmsnorm_divides_by_the_root_mean_square() -> None:
    """(3, 4): the root of 12.5; and element by element."""
    same(
        [[3 / math.sqrt(12.500001), 8 / math.sqrt(12.500001)]],
        REFERENCE["rmsnorm"](x=np.array([[3.0, 4.0]]), weight=np.array([1.0, 2.0])),
    )
    x, weight = normal(ROWS, COLS), normal(COLS)
    rms = [math.sqrt(sum(x[r, c] ** 2 for c in range(COLS)) / COLS + 1e-6) for r in range(ROWS)]
    expected = table(lambda r, c: x[r, c] / rms[r] * weight[c])
    same(expected, REFERENCE["rmsnorm"](x=x, weight=weight))


def test_add_layernorm_centres_the_sum_and_scales_it() -> None:
    """Each row of the sum less its mean, over its standard deviation (over n, not n - 1)."""
    x, residual = normal(ROWS, COLS), 5 + normal(ROWS, COLS, seed=2)
    weight, bias = normal(COLS), normal(COLS, seed=2)
    y, h = REFERENCE["add_layernorm"](x=x, residual=residual, weight=weight, bias=bias)
    same(table(lambda r, c: x[r, c] + residual[r, c]), h)
    mean = [sum(h[r, c] for c in range(COLS)) / COLS for r in range(ROWS)]
    std = [
        math.sqrt(sum((h[r, c] - mean[r]) ** 2 for c in range(COLS)) / COLS + 1e-5)
        for r in range(ROWS)
    ]
    same(table(lambda r, c: (h[r, c] - mean[r]) / std[r] * weight[c] + bias[c]), y, 1e-13)


def test_add_layernorm_of_equal_items_is_the_bias() -> None:
    """Epsilon keeps a row without variance finite."""
    y, _ = REFERENCE["add_layernorm"](
        x=np.full((2, 4), 2.0), residual=np.ones((2, 4)), weight=np.ones(4), bias=np.arange(4.0)
    )
    same([[0.0, 1.0, 2.0, 3.0]] * 2, y)


def test_quant_fp8_scales_a_row_to_448() -> None:
    """The largest magnitude becomes 448 or -448; a row of zeros has the scale 1."""
    x = np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]])
    y, scale = REFERENCE["quant_fp8"](x=x, scaling="token")
    same([2 / 448, 1.0], scale)
    same([[224.0, -448.0, 112.0], [0.0, 0.0, 0.0]], y)


def test_quant_fp8_scales_each_128_columns_by_themselves() -> None:
    """130 columns: a block of 128, and one of 2."""
    x = np.concatenate([np.full((1, 127), 2.0), [[4.0, 7.0, 14.0]]], axis=1)
    y, scale = REFERENCE["quant_fp8"](x=x, scaling="block")
    same([[4 / 448, 14 / 448]], scale)
    same([[224.0] * 127 + [448.0, 224.0, 448.0]], y)


def test_quant_fp8_of_nan_and_infinity() -> None:
    """NaN takes its row with it; beside infinity, finite items are 0 and it is NaN."""
    x = np.array([[1.0, np.nan], [1.0, np.inf]])
    y, scale = REFERENCE["quant_fp8"](x=x, scaling="token")
    same([np.nan, np.inf], scale)
    same([[np.nan, np.nan], [0.0, np.nan]], y)


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


def test_softmax_takes_scale_and_mask() -> None:
    """Against the quotient of exp(x / 8 + mask); where the mask is -inf, the result is 0."""
    x, mask = normal(ROWS, COLS), normal(ROWS, COLS, seed=2)
    mask[1, 2] = -math.inf
    scores = [[math.exp(x[r, c] / 8 + mask[r, c]) for c in range(COLS)] for r in range(ROWS)]
    seen = REFERENCE["softmax"](x=x, mask=mask, scale=0.125, masking="additive")
    same(table(lambda r, c: scores[r][c] / sum(scores[r])), seen)
    assert seen[1, 2] == 0


@pytest.mark.parametrize("rows", [range(5), [0, 6, 7, 12, 13]])
def test_causal_softmax_sees_the_columns_up_to_its_row(rows: list[int]) -> None:
    """Row i of 7 columns sees 0 .. i mod 7, in a sample of rows, too; NaN beyond is never met."""
    x = normal(ROWS, COLS)
    x[0, 1:] = math.nan
    sums = [sum(math.exp(x[r, c]) for c in range(row % 7 + 1)) for r, row in enumerate(rows)]
    expected = table(lambda r, c: math.exp(x[r, c]) / sums[r] if c <= rows[r] % 7 else 0.0)
    same(expected, REFERENCE["softmax"](x=x, rows=np.array(rows), masking="causal"))


@pytest.mark.parametrize("hole", [math.nan, math.inf])
def test_softmax_of_nan_or_infinity_is_nan(hole: float) -> None:
    """The formula's own answer: inf - inf; a row of -inf has no answer either."""
    x = np.array([[0.0, hole], [1.0, 1.0], [-math.inf, -math.inf]])
    with np.errstate(invalid="ignore"):
        same([[math.nan] * 2, [0.5] * 2, [math.nan] * 2], REFERENCE["softmax"](x=x))


def test_cross_entropy_is_minus_the_log_of_the_labels_share() -> None:
    """Against math.log, shifted by 1000, too; an ignored label's loss is 0, its lse is not."""
    logits, label = normal(ROWS, COLS), np.array([0.0, 6.0, -100.0, 3.0, 3.0])
    lse = [math.log(sum(math.exp(v) for v in row)) for row in logits]
    loss = [lse[r] - logits[r, int(label[r])] if label[r] >= 0 else 0.0 for r in range(ROWS)]
    for shift in (0, 1000):
        seen = REFERENCE["cross_entropy"](logits=logits + shift, label=label)
        same(loss, seen[0], 1e-12)
        same([value + shift for value in lse], seen[1], 1e-12)


def test_cross_entropy_of_infinite_logits() -> None:
    """A label of weight 0 costs inf; without any weight lse is -inf; +inf and NaN give NaN."""
    inf, nan = math.inf, math.nan
    logits = np.array([[0.0, -inf], [-inf, -inf], [inf, 0.0], [nan, 0.0]])
    with np.errstate(all="ignore"):
        loss, lse = REFERENCE["cross_entropy"](logits=logits, label=np.array([1.0, 0.0, 0.0, -100]))
    same([inf, nan, nan, 0.0], loss)
    same([0.0, -inf, nan, nan], lse)


def test_geglu_is_gelu_of_the_gate_times_up() -> None:
    """Tanh form: gelu(1) = 0.841192; exact form: 0.841345; a gate of 0 is shut."""
    gate, up = np.array([[1.0, 0.0, -1.0]]), np.array([[2.0, 5.0, -3.0]])
    tanh = [[2 * 0.8411919906082768, 0.0, -3 * -0.15880800939172324]]
    exact = [[2 * 0.8413447460685429, 0.0, -3 * -0.15865525393145707]]
    same(tanh, REFERENCE["geglu"](gate=gate, up=up, form="tanh"))
    same(exact, REFERENCE["geglu"](gate=gate, up=up, form="erf"))


def test_adamw_takes_the_tenth_step() -> None:
    """Against the formulas, one element at a time: decay, moments, corrections, update."""
    param, grad, mean = normal(ROWS), normal(ROWS, seed=2), normal(ROWS, seed=3)
    square = normal(ROWS, seed=4) ** 2
    p, m, v = REFERENCE["adamw"](param=param, grad=grad, exp_avg=mean, exp_avg_sq=square)
    for i in range(ROWS):
        first = 0.9 * mean[i] + 0.1 * grad[i]
        second = 0.95 * square[i] + 0.05 * grad[i] ** 2
        update = first / (1 - 0.9**10) / (math.sqrt(second / (1 - 0.95**10)) + 1e-8)
        same(
            [param[i] - 1e-3 * 0.1 * param[i] - 1e-3 * update, first, second],
            [p[i], m[i], v[i]],
        )


def test_adamw_of_no_gradient_and_no_past_decays_alone() -> None:
    """0 / epsilon is 0: nothing but 1 - lr x decay = 0.9999 is left."""
    none = np.zeros(1)
    p, _, _ = REFERENCE["adamw"](param=np.array([2.0]), grad=none, exp_avg=none, exp_avg_sq=none)
    same([1.9998], p)


@pytest.mark.parametrize(
    ("style", "turned"),
    [
        ("half", [-3.0, 0.8 * 2 - 0.6 * 4, 1.0, 0.8 * 4 + 0.6 * 2]),  # the pairs (1, 3), (2, 4)
        ("interleaved", [-2.0, 1.0, 0.8 * 3 - 0.6 * 4, 0.8 * 4 + 0.6 * 3]),  # (1, 2), (3, 4)
    ],
)
def test_rope_turns_pairs_by_their_angle(style: str, turned: list[float]) -> None:
    """(1, 2, 3, 4): the first pair by 90 degrees, the second by cos 0.8, sin 0.6."""
    cos, sin = np.array([[0.0, 0.8]]), np.array([[1.0, 0.6]])
    heads = np.array([[[1.0, 2.0, 3.0, 4.0]]])
    q, k = REFERENCE["rope"](q=heads, k=2 * heads, cos=cos, sin=sin, style=style)
    same([[turned]], q)
    same([[[2 * value for value in turned]]], k)


def test_the_examples_reglu() -> None:
    """The kernel of docs/write-a-kernel.md is right: a negative gate is shut, a NaN is seen."""
    operator = load(Path(__file__).parents[2] / "examples" / "my_kernel" / "reglu.py")[0]
    gate, up = np.array([[1.5, -1.5, 0.0, np.nan]]), np.array([[2.0, 2.0, 5.0, 1.0]])
    same([[3.0, 0.0, 0.0, np.nan]], operator.reference(gate=gate, up=up))  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_a_reference_leaves_its_inputs_alone_and_keeps_their_precision(name: str) -> None:
    """Float32 in, float32 out: the CPU device times that arithmetic."""
    operator = bundled().operators[name]
    params = {key: values[0] for key, values in operator.params.items()}
    shape = dict(zip(operator.axes, (6, 8, 4, 2, 2, 2), strict=False))
    case = Case(operator.name, "numpy", shape, "fp32", params)
    inputs = {arg.name: filled(arg, case) for arg in operator.inputs_of(case)}
    before = {key: value.copy() for key, value in inputs.items()}
    taken = {key: params[key] for key in operator.reference_params}
    taken |= {axis: np.arange(shape[axis]) for axis in operator.reference_axes}
    results = operator.reference(**inputs, **taken)
    for result in results if isinstance(results, tuple) else (results,):
        assert np.float32 == result.dtype
    for key, value in inputs.items():
        assert np.array_equal(before[key], value)


def attended(q: Any, k: Any, v: Any) -> Any:
    """Write out one head's attention, key by key."""
    scores = [sum(a * b for a, b in zip(q, key, strict=True)) / math.sqrt(len(q)) for key in k]
    weights = [math.exp(score) for score in scores]
    return sum(w * value for w, value in zip(weights, v, strict=True)) / sum(weights)


def test_attention_decode_attends_with_its_kv_head() -> None:
    """Query head g of KV head h weighs the values of h by its scores with the keys of h."""
    q, k, v = normal(2, 3, 2, 8), normal(2, 5, 3, 8, seed=2), normal(2, 5, 3, 8, seed=3)
    y = REFERENCE["attention_decode"](q=q, k=k, v=v)
    assert q.shape == y.shape
    for b, h, g in np.ndindex(2, 3, 2):
        same(attended(q[b, h, g], k[b, :, h], v[b, :, h]), y[b, h, g])


def test_attention_decode_walks_pages_in_the_tables_order() -> None:
    """A paged cache gives what the same keys give in a row; pages may be shared."""
    q, k, v = normal(2, 1, 4, 8), normal(3, 16, 1, 8, seed=2), normal(3, 16, 1, 8, seed=3)
    table = np.array([[2.0, 0.0], [1.0, 2.0]])
    y = REFERENCE["attention_decode"](q=q, k=k, v=v, page_table=table)
    rows = [[*range(32, 48), *range(16)], [*range(16, 48)]]
    flat_k, flat_v = k.reshape(48, 1, 8)[rows], v.reshape(48, 1, 8)[rows]
    same(REFERENCE["attention_decode"](q=q, k=flat_k, v=flat_v), y)


def test_one_key_gives_its_value() -> None:
    """The softmax of one score is 1, however large the score is."""
    v = normal(1, 1, 2, 4)
    same(
        v.reshape(1, 2, 1, 4),
        REFERENCE["attention_decode"](q=1e4 * v.reshape(1, 2, 1, 4), k=v, v=v),
    )


def test_dequant_gemv_takes_two_int4_weights_from_a_byte() -> None:
    """0x7f: 15 - 8 = 7, then 7 - 8 = -1; each group of 128 columns has its scale."""
    weight, scale = np.full((1, 128), 0x7F), np.array([[0.5, 2.0]])
    x = np.zeros((3, 256))
    x[0, 0], x[1, 1], x[2, 128:130] = 3.0, 3.0, (1.0, 10.0)
    same(
        [[3 * 7 * 0.5], [3 * -1 * 0.5], [(7 - 10) * 2.0]],
        REFERENCE["dequant_gemv"](x=x, weight=weight, scale=scale, weight_dtype="int4"),
    )


def test_dequant_gemv_scales_int8_rows() -> None:
    """Against two loops."""
    x, scale = normal(ROWS, 6), normal(COLS)
    weight = np.random.default_rng(1).integers(-128, 128, (COLS, 6)).astype(float)
    expected = table(lambda t, n: scale[n] * sum(x[t, k] * weight[n, k] for k in range(6)))
    seen = REFERENCE["dequant_gemv"](x=x, weight=weight, scale=scale, weight_dtype="int8")
    same(expected, seen, 1e-12)


def test_moe_topk_is_the_softmax_of_the_chosen() -> None:
    """The largest first, equal ones by index; shares of the softmax, scaled to the sum 1."""
    logits = np.array([[1.0, 3.0, -1.0, 3.0, 2.0]])
    weight, expert = REFERENCE["moe_topk"](logits=logits, top_k=np.arange(3))
    assert [[1, 3, 4]] == expert.tolist()
    shares = [math.exp(value) for value in (3.0, 3.0, 2.0)]
    same([[share / sum(shares) for share in shares]], weight)


def test_moe_topk_of_nan_and_infinity() -> None:
    """NaN ranks first; with it or +inf no weight is a number. -inf comes last, with weight 0."""
    nan, inf = math.nan, math.inf
    logits = np.array([[1.0, nan, inf, nan], [0.0, inf, 0.0, inf], [-inf, 1.0, -inf, -inf]])
    weight, expert = REFERENCE["moe_topk"](logits=logits, top_k=np.arange(3))
    assert [[1, 3, 2], [1, 3, 0], [1, 0, 2]] == expert.tolist()
    same([[nan] * 3, [nan] * 3, [1.0, 0.0, 0.0]], weight)


def test_embedding_returns_the_rows_of_its_tokens() -> None:
    """A row may come twice, in any order."""
    rows = np.arange(12.0).reshape(4, 3)
    seen = REFERENCE["embedding"](token=np.array([3, 0, 3]), table=rows)
    same([[9.0, 10.0, 11.0], [0.0, 1.0, 2.0], [9.0, 10.0, 11.0]], seen)
