"""Norms and quantisation on rows that random numbers don't make: ties, zeros, NaN, infinity."""

from typing import Any

import numpy as np
import pytest

from solkit.declare import fp8
from solkit.declare.registry import Registry, bundled
from solkit.measure import buffers
from solkit.model import Case
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy

pytestmark = pytest.mark.gpu
COLS = 4096  # several warps a row
CONVERSIONS = ("solkit", "software_conversion")  # of the card, and in integer arithmetic


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Return the bundled declarations."""
    return bundled()


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    """Return the first CUDA device."""
    return CudaDevice(0)


def outputs(
    device: CudaDevice, registry: Registry, case: Case, inputs: dict[str, Any]
) -> dict[str, Any]:
    """Run a case on inputs of the test's own, and return its outputs in NumPy."""
    operator = registry.operators[case.operator]
    kernel = registry.kernels[case.operator, case.kernel]
    program = device.prepare(kernel, operator, case, folder("kernels") / "include")
    arrays = buffers.make(device, operator, case, 0).buffers(0)
    for name, values in inputs.items():
        wide = values.astype(np.float32)
        if case.dtype == "bf16":  # held as its bits; the tests' values need no rounding
            arrays[name][...] = cupy.asarray((wide.view(np.uint32) >> 16).astype(np.uint16))
        else:
            arrays[name][...] = cupy.asarray(wide).astype(arrays[name].dtype)
    program.bind(arrays)()
    device.synchronize()
    return {arg.name: cupy.asnumpy(arrays[arg.name]) for arg in operator.outputs_of(case)}


@pytest.mark.parametrize("kernel", CONVERSIONS)
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize("scaling", ["token", "block"])
def test_every_code_tie_and_neighbour_is_rounded_to_even(
    device: CudaDevice, registry: Registry, kernel: str, dtype: str, scaling: str
) -> None:
    """Rows whose largest is 448 have the scale 1: all values of e4m3, all ties, and beside them."""
    held = fp8.values()[:0x7F]
    ties = (held[1:] + held[:-1]) / 2
    near = 2.0**-10 if dtype == "fp16" else 2.0**-20
    positive = np.concatenate([held, ties, ties * (1 - near), ties * (1 + near)])
    values = np.concatenate([positive, -positive])
    x = np.zeros((2, COLS))
    x[0, : values.size] = values
    x[1, COLS - values.size :] = values[::-1]
    x[:, ::128] = 448.0  # the largest of each block of 128
    case = Case("quant_fp8", kernel, {"rows": 2, "cols": COLS}, dtype, {"scaling": scaling})
    seen = outputs(device, registry, case, {"x": x})
    assert {1.0} == set(seen["scale"].ravel().tolist())
    narrow = x.astype({"fp32": np.float32, "fp16": np.float16}[dtype]).astype(np.float64)
    np.testing.assert_array_equal(seen["y"].view(np.uint8), fp8.encoded(narrow))


@pytest.mark.parametrize("kernel", CONVERSIONS)
@pytest.mark.parametrize("scaling", ["token", "block"])
def test_codes_are_those_of_the_division(
    device: CudaDevice, registry: Registry, kernel: str, scaling: str
) -> None:
    """Round(x / scale) with fp32's division, to the last code, for scales of any size."""
    rng = np.random.default_rng(7)
    sizes = 10.0 ** rng.uniform(-38, 38, (64, 1))
    x = (rng.standard_normal((64, COLS)) / 8 * sizes).astype(np.float32)
    case = Case("quant_fp8", kernel, {"rows": 64, "cols": COLS}, "fp32", {"scaling": scaling})
    seen = outputs(device, registry, case, {"x": x})
    group = COLS if scaling == "token" else 128
    most = np.abs(x).reshape(64, -1, group).max(axis=-1)
    scale = most / np.float32(448)
    np.testing.assert_array_equal(seen["scale"].reshape(scale.shape), scale)
    quotients = x / np.repeat(scale, group, axis=-1)
    np.testing.assert_array_equal(seen["y"].view(np.uint8), fp8.encoded(quotients))


@pytest.mark.parametrize("kernel", CONVERSIONS)
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("scaling", ["token", "block"])
def test_zeros_nan_and_infinity_are_quantised_as_the_formula_says(
    device: CudaDevice, registry: Registry, kernel: str, dtype: str, scaling: str
) -> None:
    """Zeros: scale 1. NaN: all of its group. Infinity: itself NaN, what is beside it 0."""
    x = np.ones((4, 256))
    x[0] = 0.0
    x[1, 200] = np.nan
    x[2, 200] = -np.inf
    case = Case("quant_fp8", kernel, {"rows": 4, "cols": 256}, dtype, {"scaling": scaling})
    seen = outputs(device, registry, case, {"x": x})
    y = fp8.decoded(seen["y"].view(np.uint8))
    group = slice(0, 256) if scaling == "token" else slice(128, 256)
    expected = np.full((4, 256), 448.0)
    expected[0] = 0.0
    expected[1, group] = np.nan
    expected[2, group] = 0.0
    expected[2, 200] = np.nan
    np.testing.assert_array_equal(y, expected)
    last = seen["scale"].reshape(4, -1)[:, -1]
    np.testing.assert_array_equal(last, np.float32([1.0, np.nan, np.inf, 1 / 448]))


@pytest.mark.parametrize("operator", ["rmsnorm", "add_rmsnorm", "add_layernorm"])
@pytest.mark.parametrize("cols", [64, 2560, COLS, 131_072])
def test_a_norm_keeps_nan_and_infinity_in_their_row(
    device: CudaDevice, registry: Registry, operator: str, cols: int
) -> None:
    """NaN makes its row NaN; beside infinity RMSNorm gives 0, LayerNorm NaN; others stay."""
    declared = registry.operators[operator]
    x = np.random.default_rng(3).standard_normal((4, cols))
    x[1, cols // 2] = np.nan
    x[2, cols - 1] = np.inf
    case = Case(operator, "solkit", {"rows": 4, "cols": cols}, "fp32")
    inputs = {"x": x, "weight": np.ones(cols)}
    inputs |= {
        arg.name: np.zeros((4, cols) if arg.name == "residual" else cols)
        for arg in declared.inputs
        if arg.name not in inputs
    }
    y = outputs(device, registry, case, inputs)["y"]
    assert np.isfinite(y[[0, 3]]).all()
    assert np.isnan(y[1]).all()
    beside = np.isnan(y[2, :-1]) if operator == "add_layernorm" else y[2, :-1] == 0
    assert beside.all()
    assert np.isnan(y[2, -1])


def test_a_layernorm_far_from_zero_keeps_its_variance(
    device: CudaDevice, registry: Registry
) -> None:
    """Mean 10,000, deviation 1: a difference of squares in fp32 would have nothing left of it."""
    x = 10_000 + np.random.default_rng(5).choice([-1.0, 1.0], (3, COLS))
    case = Case("add_layernorm", "solkit", {"rows": 3, "cols": COLS}, "fp32")
    zeros = {"residual": np.zeros((3, COLS)), "bias": np.zeros(COLS)}
    seen = outputs(device, registry, case, {"x": x, "weight": np.ones(COLS), **zeros})["y"]
    centred = x - x.mean(axis=-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(seen, expected, rtol=2e-3, atol=2e-3)
