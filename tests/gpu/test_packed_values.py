"""Packed weights against activations that random numbers don't make: NaN, infinity."""

from typing import Any

import numpy as np
import pytest

from solkit.declare.registry import bundled
from solkit.measure import buffers
from solkit.model import Case
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy

pytestmark = pytest.mark.gpu
TOKENS = 4
# A block's columns, and many rows with the columns for which x stays in registers.
SHAPES = [(48, 1024), (17024, 8192)]


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    """Return the first CUDA device."""
    return CudaDevice(0)


def product(
    device: CudaDevice, weight_dtype: str, rows: int, x: Any, dtype: str
) -> tuple[Any, Any, Any]:
    """Run the kernel on x, with random weights; return y, the weights and scales as held."""
    registry = bundled()
    operator = registry.operators["dequant_gemv"]
    kernel = registry.kernels["dequant_gemv", "solkit"]
    shape = {"tokens": len(x), "rows": rows, "cols": x.shape[1]}
    case = Case("dequant_gemv", "solkit", shape, dtype, {"weight_dtype": weight_dtype})
    program = device.prepare(kernel, operator, case, folder("kernels") / "include")
    arrays = buffers.make(device, operator, case, 0).buffers(0)
    wide = x.astype(np.float32)
    if dtype == "bf16":
        arrays["x"][...] = cupy.asarray((wide.view(np.uint32) >> 16).astype(np.uint16))
    else:
        arrays["x"][...] = cupy.asarray(wide).astype(arrays["x"].dtype)
    program.bind(arrays)()
    device.synchronize()
    every = [None, None]
    return (
        device.fetch(arrays["y"], dtype, every),
        cupy.asnumpy(arrays["weight"]),
        device.fetch(arrays["scale"], dtype, every[: arrays["scale"].ndim]),
    )


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize(("rows", "cols"), SHAPES)
@pytest.mark.parametrize("weight_dtype", ["int4", "int8"])
@pytest.mark.parametrize("column", [0, 517, -1])
def test_nan_reaches_its_token_alone(
    device: CudaDevice, weight_dtype: str, rows: int, cols: int, column: int, dtype: str
) -> None:
    """One NaN in a token's x: all of its y are NaN, and no other token's."""
    x = np.ones((TOKENS, cols))
    x[2, column] = np.nan
    y, _, _ = product(device, weight_dtype, rows, x, dtype)
    assert [False, False, True, False] == np.isnan(y).all(axis=1).tolist()
    assert np.isfinite(y[[0, 1, 3]]).all()


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize(("rows", "cols"), SHAPES)
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinity_is_nan_on_int4(
    device: CudaDevice, rows: int, cols: int, infinity: float, dtype: str
) -> None:
    """The weights' offset is a product of its own, of the other sign."""
    x = np.ones((TOKENS, cols))
    x[1, 130] = infinity
    y, _, _ = product(device, "int4", rows, x, dtype)
    assert [False, True, False, False] == np.isnan(y).all(axis=1).tolist()
    assert np.isfinite(y[[0, 2, 3]]).all()


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize(("rows", "cols"), SHAPES)
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinity_has_its_sign_on_int8(
    device: CudaDevice, rows: int, cols: int, infinity: float, dtype: str
) -> None:
    """Infinity times a weight and its scale: the sign is theirs, and 0 makes NaN."""
    x = np.ones((TOKENS, cols))
    x[1, 130] = infinity
    y, weight, scale = product(device, "int8", rows, x, dtype)
    with np.errstate(invalid="ignore"):
        expected = infinity * weight[:, 130].astype(np.float64) * scale
    np.testing.assert_array_equal(y[1], expected)
    assert np.isfinite(y[[0, 2, 3]]).all()
