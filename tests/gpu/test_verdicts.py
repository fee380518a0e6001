"""What is wrong with a kernel on a real card has its own verdict; what is right passes."""

import importlib.util
from typing import Any

import pytest

from solkit.declare.arg import Arg
from solkit.measure.bench import Bench, Settings
from solkit.measure.manner import Manner
from solkit.measure.probe import cuda_devices
from solkit.model import Bound, Case, Failed, Measured, Outcome, Work
from solkit.plan.jobs import Job

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy

pytestmark = pytest.mark.gpu
if not cuda_devices().devices:
    pytest.skip(cuda_devices().reason, allow_module_level=True)

HAS_TORCH = importlib.util.find_spec("torch") is not None
COUNT = 1_000_003
BOUND = Bound(1e-6, {}, 1e-6, "memory", near_ridge=False)
DTYPES = ("fp64", "fp32", "fp16", "bf16")

FUNCTIONS = '''
"""Python kernels on CuPy and torch arrays, right and wrong."""
import cupy
from solkit import Arg, Kernel, Operator, Work

def work(case):
    count = case.shape["n"] * case.item_bytes
    return Work(read_bytes=count, write_bytes=count)

TWICE = Operator(name="twice", work=work, reference=lambda x: 2 * x, independent=("n",),
    args=(Arg("x", "n"), Arg("y", "n", "out")))
STEP = Operator(name="step", work=work, reference=lambda x, state: state + x, independent=("n",),
    args=(Arg("x", "n"), Arg("state", "n", "inout")))
SAME = Operator(name="same", work=work, reference=lambda x: x, independent=("n",),
    args=(Arg("x", "n"), Arg("y", "n", "out")))

def right(x, y):
    cupy.multiply(x, 2, out=y)

def returns_fresh(x, y):
    return 2 * x

def returns_a_tuple(x, y):
    return (2 * x,)

def returns_its_output(x, y):
    return cupy.multiply(x, 2, out=y)

def writes_nothing(x, y):
    pass

def writes_half(x, y):
    cupy.multiply(x[: len(x) // 2], 2, out=y[: len(x) // 2])

def makes_nan(x, y):
    right(x, y)
    y[5:6] = cupy.log(-1 - cupy.abs(x[5:6]))

def makes_nan_beyond_the_sample(x, y):
    right(x, y)
    y[20:400] = cupy.log(-1 - cupy.abs(x[20:400]))

def makes_infinity(x, y):
    right(x, y)
    y[-1:] = cupy.abs(x[-1:]) / cupy.zeros(1, x.dtype)

def returns_a_shorter_one(x, y):
    return 2 * x[1:]

def returns_another_order(x, y):
    return (2 * x).reshape(1, -1)

def returns_fp64(x, y):
    return (2 * x).astype("float64")

def returns_to_the_host(x, y):
    return cupy.asnumpy(2 * x)

def returns_a_list(x, y):
    return [2 * x]

def changes_its_input(x, y):
    x *= 2
    y[...] = x

SIDE = cupy.cuda.Stream(non_blocking=True)

def on_another_stream(x, y):
    with SIDE:
        for _ in range(50):
            cupy.multiply(x, 2, out=y)

SEEN = []

def launches_nothing_once_checked(x, y):
    if len(SEEN) < 2:
        right(x, y)
    SEEN.append(1)

def adds_in_place(x, state):
    state += x

def returns_the_new_state(x, state):
    return state + x

def forgets_the_state(x, state):
    cupy.add(state, x)

def copies(x, y):
    return x.copy()

def doubled_by_torch(x, y):
    import torch
    return torch.from_dlpack(x) * 2

def doubled_by_torch_with_a_graph(x, y):
    import torch
    return torch.from_dlpack(x).requires_grad_() * 2

def doubled_by_torch_elsewhere(x, y):
    import torch
    return (torch.from_dlpack(x) * 2).cpu()

def doubled_by_torch_in_place(x, y):
    import torch
    torch.mul(torch.from_dlpack(x), 2, out=torch.from_dlpack(y))

KERNELS = [
    Kernel(name=function.__name__, operator=operator, function=function)
    for operator, functions in (
        (TWICE, (right, returns_fresh, returns_a_tuple, returns_its_output, writes_nothing,
            writes_half, makes_nan, makes_nan_beyond_the_sample, makes_infinity,
            returns_a_shorter_one, returns_another_order, returns_fp64, returns_to_the_host,
            returns_a_list, changes_its_input, on_another_stream, launches_nothing_once_checked,
            doubled_by_torch, doubled_by_torch_with_a_graph, doubled_by_torch_elsewhere,
            doubled_by_torch_in_place)),
        (STEP, (adds_in_place, returns_the_new_state, forgets_the_state)),
        (SAME, (copies,)),
    )
    for function in functions
]
'''


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    """Return the first CUDA device."""
    return CudaDevice(0)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a bench on the first card that knows these kernels."""
    path = tmp_path_factory.mktemp("kernels") / "functions.py"
    path.write_text(FUNCTIONS)
    with Bench(Settings(device="cuda", loads=(path,), manner=Manner(budget_s=0.05))) as opened:
        yield opened


def outcome(bench: Bench, kernel: str, operator: str = "twice", dtype: str = "fp32") -> Outcome:
    """Measure one kernel beside none."""
    case = Case(operator, kernel, {"n": COUNT}, dtype)
    job = Job(case, Work(4 * COUNT, 4 * COUNT), (), BOUND, 8 * COUNT)
    ((found,),) = bench.measure([[job]], lambda _case, _stage: None)
    return found


@pytest.mark.parametrize(
    ("verdict", "words", "kernel"),
    [
        ("unwritten", "1000003 of 1000003 elements of 'y'", "writes_nothing"),
        ("unwritten", "500002 of 1000003 elements of 'y'", "writes_half"),
        ("non_finite", "y[n 5] is nan, the reference says", "makes_nan"),
        ("non_finite", "NaN or infinite", "makes_nan_beyond_the_sample"),
        ("non_finite", "y[n 1000002] is inf, the reference says", "makes_infinity"),
        ("wrong_shape", "of shape (1000002,), declared is (1000003,)", "returns_a_shorter_one"),
        ("wrong_shape", "of shape (1, 1000003), declared is", "returns_another_order"),
        ("wrong_dtype", "'y' as float64, declared is float32", "returns_fp64"),
        ("wrong_dtype", "a numpy array that does not lie on the GPU", "returns_to_the_host"),
        ("wrong_shape", "it returned a list", "returns_a_list"),
        ("changed_input", "it wrote to its input 'x'", "changes_its_input"),
        ("other_stream", "stream", "on_another_stream"),
    ],
)
def test_a_wrong_kernel_has_its_own_verdict(
    bench: Bench, verdict: str, words: str, kernel: str
) -> None:
    """With the place, the numbers and the names that are at stake."""
    found = outcome(bench, kernel)
    assert isinstance(found, Failed)
    assert ("check", verdict) == (found.stage, found.verdict), found.message
    assert words in found.message
    assert found.remedy


def test_a_callable_that_launches_nothing_when_timed_is_no_fast_kernel(bench: Bench) -> None:
    """Right while it was checked: its records are missing then, or its second check fails."""
    found = outcome(bench, "launches_nothing_once_checked")
    assert isinstance(found, Failed)
    assert found.verdict in ("no_kernel", "unwritten"), found.message


@pytest.mark.parametrize(
    "kernel", ["right", "returns_fresh", "returns_a_tuple", "returns_its_output"]
)
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_outputs_may_be_written_or_returned(bench: Bench, kernel: str, dtype: str) -> None:
    """In either way the kernel is checked on values, and timed as it is."""
    found = outcome(bench, kernel, dtype=dtype)
    assert isinstance(found, Measured), found
    assert 100_000 == found.check.compared_count
    assert "x normal(0, 1)" == found.check.inputs


def test_a_bf16_array_may_be_returned(bench: Bench) -> None:
    """Its 16 bits arrive as they are."""
    found = outcome(bench, "copies", operator="same", dtype="bf16")
    assert isinstance(found, Measured), found
    assert 0.0 == found.check.error_fraction


@pytest.mark.parametrize("kernel", ["adds_in_place", "returns_the_new_state"])
def test_a_declared_in_place_argument_may_change(bench: Bench, kernel: str) -> None:
    """It is restored between calls, so that the last timed one is right as well."""
    assert isinstance(outcome(bench, kernel, operator="step"), Measured)


def test_an_in_place_argument_that_is_left_alone_is_wrong(bench: Bench) -> None:
    """It holds its first values, no poison."""
    found = outcome(bench, "forgets_the_state", operator="step")
    assert isinstance(found, Failed)
    assert "wrong_values" == found.verdict


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
@pytest.mark.parametrize(
    "kernel",
    ["doubled_by_torch", "doubled_by_torch_with_a_graph", "doubled_by_torch_in_place"],
)
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_a_tensor_of_torch_may_be_written_or_returned(
    bench: Bench, kernel: str, dtype: str
) -> None:
    """It travels by DLPack, with its gradient or without."""
    assert isinstance(outcome(bench, kernel, dtype=dtype), Measured)


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_a_tensor_on_the_host_is_no_output(bench: Bench) -> None:
    """Copying it would not be timed."""
    found = outcome(bench, "doubled_by_torch_elsewhere")
    assert isinstance(found, Failed)
    assert ("wrong_dtype", True) == (found.verdict, "does not lie on the GPU" in found.message)


@pytest.mark.parametrize("count", [1, 7, 1000, COUNT])
@pytest.mark.parametrize("dtype", DTYPES)
def test_poison_is_counted_exactly_and_no_other_nan_is(
    device: CudaDevice, dtype: str, count: int
) -> None:
    """A card's own NaN has other bits; infinity and NaN are both not finite."""
    arg, case = Arg("y", "n", "out"), Case("any", "any", {"n": count}, dtype)
    array = device.allocate(arg, case, 1, 0)[0]
    assert count == device.unwritten_count(array, dtype) == device.non_finite_count(array, dtype)
    device.copy(device.allocate(Arg("x", "n"), case, 1, 0)[0], array)
    assert 0 == device.unwritten_count(array, dtype) == device.non_finite_count(array, dtype)
    if dtype == "bf16":
        array[-1:] = 0x7FFF  # what a conversion gives for NaN
    else:
        array[-1:] = cupy.zeros(1, array.dtype) / cupy.zeros(1, array.dtype)
    assert (0, 1) == (device.unwritten_count(array, dtype), device.non_finite_count(array, dtype))
    assert count - 1 == device.first_non_finite(array, dtype)
    array[:1] = 0xFF80 if dtype == "bf16" else -cupy.inf
    wanted = 1 if count == 1 else 2
    assert 0 == device.first_non_finite(array, dtype)
    assert wanted == device.non_finite_count(array, dtype)
    device.poison(array)
    assert count == device.unwritten_count(array, dtype)


@pytest.mark.parametrize("count", [2, 7, 1000, COUNT])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_checksum_sees_one_bit_and_two_that_change_places(
    device: CudaDevice, dtype: str, count: int
) -> None:
    """And comes back with the values."""
    arg, case = Arg("x", "n"), Case("any", "any", {"n": count}, dtype)
    array = device.allocate(arg, case, 1, 0)[0]
    first = device.checksum(array)
    assert first == device.checksum(array.copy())
    array.view(cupy.uint8)[-1:] ^= 1
    assert first != device.checksum(array)
    array.view(cupy.uint8)[-1:] ^= 1
    assert first == device.checksum(array)
    array[...] = array[::-1].copy()
    assert first != device.checksum(array)
