"""Softmax and cross entropy on rows that random numbers don't make: ties, NaN, infinity, holes."""

from typing import Any

import numpy as np
import pytest

from solkit.declare.registry import Registry, bundled
from solkit.measure import buffers
from solkit.model import Case
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy

pytestmark = pytest.mark.gpu
LOWEST = -3.3895313892515355e38  # of bf16, with which masks are filled
COLS = (17, 264, 4097, 70_000, 600_001)  # a warp, a block, odd ends, a cluster, two passes
RELATIVE = {"fp32": 2e-5, "bf16": 1e-2}


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
) -> list[Any]:
    """Run a case on inputs of the test's own, which bf16 can hold; return its outputs as floats."""
    operator = registry.operators[case.operator]
    kernel = registry.kernels[case.operator, case.kernel]
    program = device.prepare(kernel, operator, case, folder("kernels") / "include")
    arrays = buffers.make(device, operator, case, 0).buffers(0)
    for name, values in inputs.items():
        held = values
        if values.dtype != np.int32:
            held = values.astype(np.float32)
            if case.dtype == "bf16":
                held = (held.view(np.uint32) >> 16).astype(np.uint16)
        arrays[name][...] = cupy.asarray(held)
    program.bind(arrays)()
    device.synchronize()
    seen = []
    for arg in operator.outputs_of(case):
        array = cupy.asnumpy(arrays[arg.name])
        if arg.dtype_of(case) == "bf16":
            array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        seen.append(array)
    return seen


def rows_of(cols: int) -> Any:
    """Return a row each: ordinary, lowest throughout, lowest but one, far off, and not finite."""
    x = np.tile(np.arange(cols) % 4 / 2, (8, 1))
    x[1] = LOWEST
    x[2, : cols - 1] = LOWEST
    x[3] += 64
    x[4, cols - 1] = np.inf
    x[5, cols // 2] = np.nan
    x[6] = -np.inf
    x[7, 1:] = -np.inf
    return x


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("cols", COLS)
def test_softmax_of_ties_and_infinities_is_the_formulas(
    device: CudaDevice, registry: Registry, cols: int, dtype: str
) -> None:
    """The lowest number throughout is a tie; +inf, NaN and nothing but -inf have no answer."""
    case = Case(
        "softmax", "solkit", {"rows": 8, "cols": cols}, dtype, {"scale": 1.0, "masking": "none"}
    )
    x = rows_of(cols)
    (seen,) = outputs(device, registry, case, {"x": x})
    with np.errstate(all="ignore"):
        expected = registry.operators["softmax"].reference(x=x)
    np.testing.assert_array_equal(np.isnan(expected), np.isnan(seen))
    np.testing.assert_allclose(seen[:4], expected[:4], rtol=RELATIVE[dtype])
    np.testing.assert_array_equal(expected[7], seen[7])


@pytest.mark.parametrize("masking", ["additive", "causal"])
@pytest.mark.parametrize("cols", COLS)
def test_what_a_mask_hides_is_nothing(
    device: CudaDevice, registry: Registry, cols: int, masking: str
) -> None:
    """NaN behind a causal mask is not seen, -inf added gives 0; the rest shares the whole."""
    params = {"scale": 0.125, "masking": masking}
    case = Case("softmax", "solkit", {"rows": 5, "cols": cols}, "fp32", params)
    x = np.tile(np.arange(cols) % 4 * 4.0, (5, 1))
    hidden = np.arange(cols) > np.arange(5)[:, None]
    inputs = {"x": x}
    if masking == "causal":
        x[hidden] = np.nan
    else:
        inputs["mask"] = np.where(hidden, -np.inf, 0.0)
    (seen,) = outputs(device, registry, case, inputs)
    weights = np.where(hidden, 0.0, np.exp(np.tile(np.arange(cols) % 4 / 2, (5, 1))))
    np.testing.assert_allclose(seen, weights / weights.sum(axis=-1, keepdims=True), rtol=2e-5)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("vocab", COLS)
def test_cross_entropy_of_every_kind_of_label_and_row(
    device: CudaDevice, registry: Registry, vocab: int, dtype: str
) -> None:
    """-100 costs 0, a label that names nothing is NaN; lse is that of the row in any case."""
    case = Case("cross_entropy", "solkit", {"tokens": 8, "vocab": vocab}, dtype, {})
    logits = rows_of(vocab)
    label = np.array([0, -100, vocab - 1, vocab, -1, 0, 0, 1], dtype=np.int32)
    loss, lse = outputs(device, registry, case, {"logits": logits, "label": label})
    known = np.where((label >= 0) & (label < vocab), label, -100).astype(np.float64)
    with np.errstate(all="ignore"):
        expected_loss, expected_lse = registry.operators["cross_entropy"].reference(
            logits=logits, label=known
        )
    expected_loss[[3, 4]] = np.nan
    np.testing.assert_allclose(lse, expected_lse, rtol=2e-6)
    np.testing.assert_allclose(loss, expected_loss, rtol=2e-6, atol=2e-4)
