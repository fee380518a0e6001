"""The choice of experts on logits that random numbers don't make: ties, NaN, infinity."""

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
EXPERTS, TOP_K = 256, 8


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    """Return the first CUDA device."""
    return CudaDevice(0)


def routed(
    device: CudaDevice, logits: Any, dtype: str = "fp32", top_k: int = TOP_K
) -> tuple[Any, Any]:
    """Run the kernel on logits of the test's own, and return weights and experts."""
    registry = bundled()
    operator, kernel = registry.operators["moe_topk"], registry.kernels["moe_topk", "solkit"]
    shape = {"tokens": len(logits), "experts": logits.shape[1], "top_k": top_k}
    case = Case("moe_topk", "solkit", shape, dtype)
    program = device.prepare(kernel, operator, case, folder("kernels") / "include")
    arrays = buffers.make(device, operator, case, 0).buffers(0)
    held = arrays["logits"]
    held[...] = cupy.asarray(logits.astype(np.float32)).astype(held.dtype)
    program.bind(arrays)()
    device.synchronize()
    return cupy.asnumpy(arrays["weight"]), cupy.asnumpy(arrays["expert"])


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("experts", [33, 64, EXPERTS, 509])
def test_equal_logits_choose_the_lowest_indices(
    device: CudaDevice, dtype: str, experts: int
) -> None:
    """All equal, zeros of both signs, or two values by turns: in order, with equal weights."""
    logits = np.zeros((3, experts))
    logits[1, ::2] = -0.0
    logits[2, 1::2] = 1.0
    weight, expert = routed(device, logits, dtype)
    assert [list(range(8)), list(range(8)), list(range(1, 17, 2))] == expert.tolist()
    np.testing.assert_allclose(weight, 1 / 8, rtol=1e-6)


def test_the_largest_may_stand_side_by_side(device: CudaDevice) -> None:
    """All chosen from one lane's loads, rising and falling rows: ranks follow the logits."""
    logits = np.stack([np.arange(EXPERTS), -np.arange(EXPERTS), np.zeros(EXPERTS)]) / 8
    logits[2, 4:8], logits[2, 132:136] = [1, 2, 3, 4], [5, 6, 7, 8]
    _, expert = routed(device, logits)
    assert [
        list(range(255, 247, -1)),
        list(range(8)),
        [135, 134, 133, 132, 7, 6, 5, 4],
    ] == expert.tolist()


def test_nan_ranks_first_and_infinity_next(device: CudaDevice) -> None:
    """With either, no weight is a number; -inf alone has the weight 0, and only -inf has none."""
    logits = np.random.default_rng(1).standard_normal((5, EXPERTS))
    logits[0, [200, 17]] = np.nan
    logits[1, [9, 4]] = np.inf
    logits[2, :] = np.nan
    logits[3, :] = -np.inf
    logits[3, 31] = 2.0
    logits[4, :] = -np.inf
    weight, expert = routed(device, logits)
    assert [17, 200] == expert[0, :2].tolist()
    assert [4, 9] == expert[1, :2].tolist()
    assert list(range(8)) == expert[2].tolist() == expert[4].tolist()
    assert [31, *range(7)] == expert[3].tolist()
    assert np.isnan(weight[[0, 1, 2, 4]]).all()
    assert [1.0, *[0.0] * 7] == weight[3].tolist()


def test_every_expert_may_be_chosen(device: CudaDevice) -> None:
    """As many as there are: a permutation, in falling order, with the whole softmax as weights."""
    logits = np.random.default_rng(2).standard_normal((40, 32)).astype(np.float32)
    weight, expert = routed(device, logits, top_k=32)
    assert (np.argsort(-logits, axis=-1, kind="stable") == expert).all()
    shares = np.exp(np.sort(logits, axis=-1)[:, ::-1].astype(float))
    np.testing.assert_allclose(weight, shares / shares.sum(axis=-1, keepdims=True), rtol=2e-6)
