"""Ceilings of a real card: each within what the card can be, the products right, in a minute."""

from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from solkit.measure import ceilings, ceilings_file
from solkit.measure.bench import Bench, Settings
from solkit.measure.probe import cuda_devices
from solkit.model import Ceilings
from solkit.plan.match import match
from solkit.plan.specs import load_specs
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from solkit.measure.device.cuda import cublaslt, gemm, rate_forms, rates  # noqa: E402  # needs CuPy
from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402

pytestmark = pytest.mark.gpu
FOUND = cuda_devices()
if not FOUND.devices:
    pytest.skip(FOUND.reason, allow_module_level=True)
FACTS = FOUND.devices[0]
IS_H200 = match(FACTS, load_specs()).gpu.id == "h200_sxm"
MOST_S = 60.0


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice(0)


@pytest.fixture(scope="module")
def kernels(device: CudaDevice) -> rates.Rates:
    del device  # the context is what the kernels are loaded into
    return rates.load_rates()


@pytest.fixture(scope="module")
def measured() -> tuple[Ceilings, float, str]:
    """Measure once, as the command does; with the seconds it took and the method."""
    with Bench(Settings("cuda", 0, facts=FACTS)) as bench:
        bench.method  # noqa: B018  # opens the worker: starting it is not measuring
        started_s = monotonic()
        found = bench.ceilings()
        return found, monotonic() - started_s, bench.method


def burst_tflop_per_s(found: Ceilings, pipe: str, settle: str = "burst") -> float:
    return max(
        ceiling.flop / ceiling.median_s * 1e-12
        for ceiling in found.pipes
        if (ceiling.pipe, ceiling.settle) == (pipe, settle)
    )


def test_it_takes_less_than_a_minute(measured: tuple[Ceilings, float, str]) -> None:
    """Streams, rests and settling together."""
    assert measured[1] < MOST_S


def test_no_rate_is_above_what_the_card_can_do(measured: tuple[Ceilings, float, str]) -> None:
    """The hard limit of each pipe holds for ceilings as for cases; 2 % are the clock's error."""
    gpu = match(FACTS, load_specs()).gpu
    for ceiling in measured[0].pipes:
        pipe = gpu.pipes[ceiling.pipe]
        hard = gpu.sm_count * pipe.flop_per_clock_per_sm * gpu.max_clock_hz
        assert ceiling.flop / ceiling.median_s < 1.02 * max(hard, pipe.flop_per_s), ceiling.how


@pytest.mark.skipif(not IS_H200, reason="the limits are an H200's")
@pytest.mark.parametrize(
    ("pipe", "settle", "low", "high"),
    [
        ("bf16_tensor", "burst", 650, 1071),
        ("bf16_tensor", "sustained", 550, 800),
        ("fp16_tensor", "burst", 620, 1071),
        ("tf32_tensor", "burst", 300, 536),
        ("fp8_tensor", "burst", 1000, 2142),
        ("int8_tensor", "burst", 700, 2142),
        ("fp64_tensor", "burst", 45, 67),
        ("fp32", "burst", 55, 67),
    ],
)
def test_a_pipe_of_an_h200(
    measured: tuple[Ceilings, float, str], pipe: str, settle: str, low: float, high: float
) -> None:
    """TFLOP/s within the limits of the card."""
    assert low < burst_tflop_per_s(measured[0], pipe, settle) < high


@pytest.mark.skipif(not IS_H200, reason="the limits are an H200's")
def test_sustained_is_slower_than_burst(measured: tuple[Ceilings, float, str]) -> None:
    """The power cap: the settled clock lies below that of a rested chip, and so does the rate."""
    found = measured[0]
    rested = burst_tflop_per_s(found, "bf16_tensor")
    assert burst_tflop_per_s(found, "bf16_tensor", "sustained") < 0.97 * rested


@pytest.mark.skipif(not IS_H200, reason="the limits are an H200's")
@pytest.mark.parametrize(
    ("stream", "low", "high"),
    [("read", 4.1, 4.8), ("triad", 4.0, 4.8), ("copy", 4.0, 4.8), ("write", 3.9, 5.0)],
)
def test_a_stream_of_an_h200(
    measured: tuple[Ceilings, float, str], stream: str, low: float, high: float
) -> None:
    """The asymptote in TB/s; the last written lines may still be in L2."""
    points = [point for point in measured[0].dram if point.kernel == stream]
    assert len(ceilings.TRAFFIC_BYTES) == len(points)
    assert low < max(point.traffic_bytes / point.median_s for point in points) * 1e-12 < high
    assert all(len(point.times_s) >= 41 or measured[2] == "graph" for point in points)
    assert {point.variant for point in points} <= {
        "solkit",
        "in_flight",
        "strided",
        "four_stores",
        "block",
        "deep",
    }


@pytest.mark.skipif(not IS_H200, reason="the limits are an H200's")
def test_the_l2_reads_faster_than_memory(measured: tuple[Ceilings, float, str]) -> None:
    """5 TB/s at least, 132 SMs x 64 bytes a clock at most."""
    (point,) = measured[0].l2
    assert 5e12 < point.read_bytes / point.median_s < 132 * 64 * 1.98e9 * 1.02


def test_every_method_has_a_floor(measured: tuple[Ceilings, float, str]) -> None:
    """What an empty kernel reads: between 0.3 and 6 us, whichever way it is read."""
    found, _, method = measured
    assert method in found.floors_s
    assert {"event_blocked", "graph"} <= set(found.floors_s)
    assert all(3e-7 < floor_s < 6e-6 for floor_s in found.floors_s.values()), found.floors_s


def test_they_are_found_again(
    measured: tuple[Ceilings, float, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored with all samples, and read as they were."""
    monkeypatch.setenv("SOLKIT_CACHE_DIR", str(tmp_path))
    found, _, method = measured
    found = ceilings_file.stamped(found, FACTS, datetime.now(UTC))
    path = ceilings_file.save(found, FACTS, method)
    assert path.stat().st_size < ceilings_file.MOST_BYTES
    told: list[str] = []
    assert found == ceilings_file.load(FACTS, method, say=told.append)
    assert [] == told


def test_multiply_adds_reach_the_fixed_point(kernels: rates.Rates) -> None:
    """Repeated, 0.999 x + 0.001 tends to 1: 32,768 steps later every one of 8 chains is there."""
    out = cupy.zeros(rate_forms.FMA_BLOCK, dtype=cupy.float32)
    numbers = (rate_forms.FMA_ROUNDS, rate_forms.FMA_SCALE, rate_forms.FMA_SHIFT)
    arguments = (out, np.int64(numbers[0]), *map(np.float32, numbers[1:]))
    kernels.functions[rate_forms.FMA_ENTRY]((1, 1, 1), (rate_forms.FMA_BLOCK, 1, 1), arguments)
    assert cupy.asnumpy(out) == pytest.approx(8.0, rel=1e-3)


@pytest.mark.parametrize("form", rate_forms.L2_FORMS)
def test_l2_loads_walk_the_whole_buffer(kernels: rates.Rates, form: tuple[int, int, int]) -> None:
    """Two blocks over 3 x 5 x 1024 words: each thread's words, xored, are what NumPy finds."""
    _, block, items = form
    threads, vectors, loads = 2 * block, 15 * 1024 + 7, 4 * items
    words = np.random.default_rng(0).integers(0, 2**32, (vectors, 4), dtype=np.uint32)
    out = cupy.zeros(threads, dtype=cupy.uint32)
    numbers = tuple(np.int64(number) for number in (vectors, threads % vectors, loads))
    kernels.functions[rate_forms.L2_ENTRIES[form]](
        (2, 1, 1), (block, 1, 1), (cupy.asarray(words), out, *numbers)
    )
    folded = np.bitwise_xor.reduce(words, axis=1)
    places = (np.arange(threads)[:, None] + threads * np.arange(loads)) % vectors
    expected = np.bitwise_xor.reduce(folded[places], axis=1)
    assert expected.tolist() == cupy.asnumpy(out).tolist()


def e4m3_values(codes: np.ndarray) -> np.ndarray:
    """Return the values of e4m3 codes, from the format's definition."""
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent, mantissa = (codes >> 3 & 0xF).astype(int), (codes & 7).astype(float)
    normal = (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return sign * np.where(exponent == 0, mantissa / 8 * 2.0**-6, normal)


def test_fp8_operands_are_normal(kernels: rates.Rates) -> None:
    """Mean 0, deviation 1, no NaN code, both signs: a product of zeros would draw less power."""
    codes = cupy.empty(2**20, dtype=cupy.uint8)
    kernels.fill("e4m3", codes, 1)
    found = cupy.asnumpy(codes)
    assert not np.any(found & 0x7F == 0x7F)
    values = e4m3_values(found)
    assert 0.0 == pytest.approx(values.mean(), abs=0.01)
    assert 1.0 == pytest.approx(values.std(), rel=0.01)


@pytest.mark.parametrize("fast", [True, False])
def test_an_fp8_product_is_the_product(
    device: CudaDevice, kernels: rates.Rates, *, fast: bool
) -> None:
    """out[j, i] = sum over k of left[i, k] right[j, k]: a rate of anything else would be none."""
    if device.compute_capability < 89:
        pytest.skip("no fp8 pipe")
    left, right, out, workspace = gemm.fp8_operands(1024, kernels)
    product = cublaslt.fp8_product(cublaslt.load(), 1024, fast=fast)
    gemm.bound_fp8(product, (left, right, out, workspace))()
    device.synchronize()
    product.close()
    expected = e4m3_values(cupy.asnumpy(right)) @ e4m3_values(cupy.asnumpy(left)).T
    found = (cupy.asnumpy(out).astype(np.uint32) << 16).view(np.float32)
    assert expected == pytest.approx(found, rel=0.01, abs=0.5 if fast else 0.15)


@pytest.mark.parametrize("product", gemm.PRODUCTS, ids=lambda product: product.dtype)
def test_a_cublas_product_is_the_product(
    device: CudaDevice, kernels: rates.Rates, product: gemm.Product
) -> None:
    """Every kind against NumPy, at 512^3, within its own rounding."""
    from cupy_backends.cuda.libs import cublas  # noqa: PLC0415

    if device.compute_capability < product.least:
        pytest.skip(f"no {product.pipe}")
    call = gemm._bound(device, cublas, product, 512, kernels)
    call()
    device.synchronize()
    left, right, out = (_values(array, product.dtype) for array in call.args[2:])
    expected = right @ left.T if product.is_int8 else left @ right
    if product.is_int8:
        assert np.array_equal(expected, out)
        return
    error = {"bf16": 0.3, "fp16": 0.05, "fp32": 0.1, "fp64": 1e-10}[product.dtype]
    assert error > np.abs(expected - out).max()


def _values(array: object, dtype: str) -> np.ndarray:
    host = cupy.asnumpy(array)
    if dtype == "bf16":
        host = (host.astype(np.uint32) << 16).view(np.float32)
    return host.astype(np.float64)


def test_each_stream_of_each_size_is_measured_alone(device: CudaDevice) -> None:
    """One point by itself: the same as in the whole set, within what two runs differ."""
    workshop = ceilings.Workshop(ceilings.bundled(), folder("kernels") / "include")
    first = ceilings.best_stream(device, workshop, "copy", 2**26)
    second = ceilings.best_stream(device, workshop, "copy", 2**26)
    assert first is not None
    assert second is not None
    assert first.median_s == pytest.approx(second.median_s, rel=0.03)
