"""The CUDA device: its clock tells the truth, and a broken kernel costs its own case only."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solkit.bound import Roof, bound
from solkit.declare import fp8
from solkit.declare.arg import Arg, Bits, Indices, Init, Normal, Role
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.declare.registry import bundled
from solkit.measure.bench import Bench, Settings
from solkit.measure.indexed import shuffled
from solkit.measure.manner import Manner
from solkit.measure.probe import cuda_devices
from solkit.measure.verdict import CheckFailed
from solkit.model import Case, Clocks, Failed, Measured, Outcome, Work
from solkit.plan.jobs import Job
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy
from solkit.measure.device.cuda.watch import Watch  # noqa: E402  # as above

pytestmark = pytest.mark.gpu

BROKEN = '''
"""Kernels that break, each in its own way, beside one that works."""
import numpy as np
from solkit import Arg, Kernel, Launch, Operator, Work

def work(case):
    count = case.shape["elements"]
    return Work(read_bytes=4 * count, write_bytes=4 * count)

OPERATOR = Operator(
    name="twice", work=work, reference=lambda x: 2 * x, independent=("elements",),
    args=(Arg("x", "elements"), Arg("y", "elements", "out")), dtypes=("fp32",))

def kernel(name, entry, args=None, blocks=None):
    def launches(case):
        count = case.shape["elements"]
        grid = (blocks or -(-count // 256), 1, 1)
        return (Launch(entry, grid=grid, block=(256, 1, 1), args=args),)
    return Kernel(
        name=name, operator=OPERATOR, source="broken.cu", launches=launches, dtypes=("fp32",))

KERNELS = (
    kernel("good", "twice"),
    kernel("half", "twice", blocks=1),
    kernel("wild", "wild"),
    kernel("wrong", "wrong"),
    kernel("arguments", "twice", args=("x", "y")),
    kernel("missing", "no_such_function"),
    kernel("good_again", "twice"),
)
'''
SOURCE = """
extern "C" __global__ void twice(const float* x, float* y, long long count) {
  long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < count) y[i] = 2 * x[i];
}
extern "C" __global__ void wrong(const float* x, float* y, long long count) {
  long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < count) y[i] = 2.01f * x[i];
}
extern "C" __global__ void wild(const float* x, float* y, long long count) {
  y[(1ll << 44) + threadIdx.x] = x[0];
}
"""


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    """Return the first CUDA device."""
    return CudaDevice(0)


def test_the_clock_of_a_sample_lies_within_the_cards_range(device: CudaDevice) -> None:
    """The SM clock read off a pair of stamps is a clock this card has."""
    clocks = [sample.sm_hz for sample in device.time([device.spin(200_000)] * 20)]
    facts = cuda_devices().devices[0]
    assert all(
        clock is not None and 3e8 < clock <= (facts.max_clock_hz or 4e9) * 1.02 for clock in clocks
    )


def test_the_device_is_the_card_that_nvml_names(device: CudaDevice) -> None:
    """Conditions are read of this very card, by a UUID of 16 whole bytes (some hold zeros)."""
    assert cuda_devices().devices[0].uuid == device._uuid
    assert () == device.notes
    assert 5 < (device.conditions().temperature_c or 0) < 120


def test_a_card_that_nvml_does_not_know_is_measured_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unknown conditions are said in a note; they fail no case."""
    other = CudaDevice(0)
    monkeypatch.setattr(other, "_watch", Watch("GPU-00000000-0000-0000-0000-000000000000"))
    assert Clocks() == other.conditions()
    assert "not read" in other.notes[0]


def test_inputs_are_the_distribution_that_was_declared(device: CudaDevice) -> None:
    """A million normal values have the mean, the spread and the tails of normal values."""
    arg, case = Arg("x", "elements"), Case("any", "any", {"elements": 1_000_000}, "fp32")
    values = device.fetch(device.allocate(arg, case, 1, seed=3)[0], "fp32", [None])
    assert abs(values.mean()) < 0.005
    assert pytest.approx(1.0, abs=0.005) == values.std()
    assert 0.0455 == pytest.approx((np.abs(values) > 2).mean(), abs=0.002)
    other = device.fetch(device.allocate(arg, case, 1, seed=4)[0], "fp32", [None])
    assert abs(np.corrcoef(values, other)[0, 1]) < 0.01


def test_a_broken_kernel_costs_its_own_case_only(tmp_path: Path) -> None:
    """A group with every kind of broken kernel ends with each named and the good ones measured."""
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "broken.cu").write_text(SOURCE)
    roof = Roof("spec", 1e12, {})
    with Bench(
        Settings(device="cuda", loads=(tmp_path / "broken.py",), manner=Manner(budget_s=0.1))
    ) as bench:
        names = [kernel.name for kernel in bench.catalog.kernels if kernel.operator == "twice"]
        chosen = [
            Case("twice", name, {"elements": 1_000_003}, "fp32")
            for name in names
            if name != "numpy"
        ]
        jobs = [
            Job(case, facts.work, (), bound(facts.work, roof), facts.buffer_bytes)
            for case, facts in zip(chosen, bench.catalog.describe(chosen), strict=True)
        ]
        (outcomes,) = bench.measure([jobs], lambda _case, _stage: None)
    seen: dict[str, Outcome] = {outcome.case.kernel: outcome for outcome in outcomes}
    assert {"good", "good_again"} == {
        name for name, outcome in seen.items() if isinstance(outcome, Measured)
    }
    stages = {name: seen[name].stage for name in seen if isinstance(seen[name], Failed)}
    assert stages == {
        "half": "check",
        "wild": "launch",
        "wrong": "check",
        "arguments": "compile",
        "missing": "compile",
    }
    assert "700" in seen["wild"].message or "illegal" in seen["wild"].message.lower()
    assert "takes 3 parameters" in seen["arguments"].message


SCRATCH = '''
"""A kernel that goes through scratch memory, by name, in two launches."""
from solkit import Arg, Kernel, Launch, Operator, Work

def work(case):
    count = case.shape["elements"]
    return Work(read_bytes=4 * count, write_bytes=4 * count)

def launches(case):
    grid = (-(-case.shape["elements"] // 256), 1, 1)
    return (
        Launch("halve", grid=grid, block=(256, 1, 1), args=("x", "half", "elements")),
        Launch("scale", grid=grid, block=(256, 1, 1), args=("half", "y", "elements", 6.0)),
    )

OPERATOR = Operator(
    name="triple", work=work, reference=lambda x: 3 * x, independent=("elements",),
    args=(Arg("x", "elements"), Arg("y", "elements", "out")), dtypes=("fp32",))
KERNEL = Kernel(
    name="scratch", operator=OPERATOR, source="scratch.cu", launches=launches, dtypes=("fp32",),
    workspace=lambda case: {"half": 4 * case.shape["elements"]})
'''
SCRATCH_SOURCE = """
extern "C" __global__ void halve(const float* x, float* half, long long count) {
  long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < count) half[i] = 0.5f * x[i];
}
extern "C" __global__ void scale(const float* half, float* y, long long count, float by) {
  long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < count) y[i] = by * half[i];
}
"""


def test_a_call_of_two_launches_and_a_workspace_is_one_sample(tmp_path: Path) -> None:
    """The span holds both launches; by CUPTI the time in which they ran stands beside it."""
    (tmp_path / "scratch.py").write_text(SCRATCH)
    (tmp_path / "scratch.cu").write_text(SCRATCH_SOURCE)
    settings = Settings(device="cuda", loads=(tmp_path / "scratch.py",))
    with Bench(settings) as bench:
        case = Case("triple", "scratch", {"elements": 1_000_003}, "fp32")
        (facts,) = bench.catalog.describe([case])
        job = Job(case, facts.work, (), bound(facts.work, Roof("spec", 1e12, {})), 1)
        ((outcome,),) = bench.measure([[job]], lambda _case, _stage: None)
    assert isinstance(outcome, Measured), outcome
    assert (2, "cold") == (outcome.launch_count, outcome.cache)
    if outcome.method == "cupti":
        assert outcome.busy_s is not None
        assert outcome.busy_s < outcome.median_s < outcome.busy_s + 3e-6


NUMBERS = Case("any", "any", {"elements": 100_003}, "fp32")


def argument(dtype: str, init: Init | None = None, role: Role = "in") -> Arg:
    return Arg("x", "elements", role, dtype=dtype, init=init or Normal())


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int32", -(2**31), 2**31), ("int8", -128, 128), ("uint8", 0, 256)],
)
def test_random_bits_fill_the_whole_range(
    device: CudaDevice, dtype: str, low: int, high: int
) -> None:
    """Every eighth of it is met about equally often (12,500 times), to the last element."""
    first, second = device.allocate(argument(dtype, Bits()), NUMBERS, 2, seed=3)
    values = device.fetch(first, dtype, [None])
    eighths = np.histogram(values, bins=8, range=(low, high))[0]
    assert 12_000 < eighths.min() < eighths.max() < 13_000
    assert len(np.unique(values[-64:])) > 32
    assert (values == device.fetch(second, dtype, [None])).all()
    other = device.allocate(argument(dtype, Bits()), NUMBERS, 1, seed=4)[0]
    assert (values != device.fetch(other, dtype, [None])).any()


def test_indices_are_the_hosts_shuffle_in_every_set(device: CudaDevice) -> None:
    """Made once, uploaded once, repeated on the card."""
    init = Indices(of="1000", hole=-100, hole_every=16)
    arg = argument("int32", init)
    wanted = shuffled(arg, init, NUMBERS, 3)
    for copy in device.allocate(arg, NUMBERS, 3, seed=3):
        assert (wanted == cupy.asnumpy(copy)).all()


@pytest.mark.parametrize(
    ("dtype", "unwritten", "not_finite", "value"),
    [
        ("fp64", 100_003, 100_003, np.nan),
        ("fp32", 100_003, 100_003, np.nan),
        ("fp16", 100_003, 100_003, np.nan),
        ("bf16", 100_003, 100_003, np.nan),
        ("fp8_e4m3", 100_003, 100_003, np.nan),
        ("int32", 100_003, 0, -1.0),
        ("int8", 0, 0, -1.0),
        ("uint8", 0, 0, 255.0),
    ],
)
def test_poison_is_told_from_values_where_there_is_one_to_spare(
    device: CudaDevice, dtype: str, unwritten: int, not_finite: int, value: float
) -> None:
    """NaN of floats, -1 of int32; 8-bit integers need all they have."""
    (array,) = device.allocate(argument(dtype, role="out"), NUMBERS, 1, seed=0)
    assert unwritten == device.unwritten_count(array, dtype)
    assert not_finite == device.non_finite_count(array, dtype)
    assert np.array_equal([value], device.fetch(array, dtype, [np.array([7])]), equal_nan=True)
    array.data.memset_async(0, array.nbytes)
    assert (0, 0) == (
        device.unwritten_count(array, dtype),
        device.non_finite_count(array, dtype),
    )


def test_marks_of_codes_and_integers_are_counted_where_they_are(device: CudaDevice) -> None:
    """Both NaN codes are no numbers, one of them is the poison; -1 among integers is missing."""
    codes = cupy.zeros(5000, dtype=cupy.uint8)
    codes[[4000, 4321]] = cupy.array([0x7F, 0xFF], dtype=cupy.uint8)
    codes[17] = 0x7E
    assert (1, 2, 4000) == (
        device.unwritten_count(codes, "fp8_e4m3"),
        device.non_finite_count(codes, "fp8_e4m3"),
        device.first_non_finite(codes, "fp8_e4m3"),
    )
    counts = cupy.arange(5000, dtype=cupy.int32)
    counts[4999] = -1
    assert (1, 0) == (
        device.unwritten_count(counts, "int32"),
        device.non_finite_count(counts, "int32"),
    )


def test_every_code_is_fetched_as_its_value(device: CudaDevice) -> None:
    """And every integer exactly."""
    codes = cupy.arange(256, dtype=cupy.uint8)
    seen = device.fetch(codes, "fp8_e4m3", [None])
    assert np.array_equal(fp8.values(), seen, equal_nan=True)
    ends = cupy.array([2**31 - 1, -(2**31)], dtype=cupy.int32)
    assert [2147483647.0, -2147483648.0] == device.fetch(ends, "int32", [None]).tolist()


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "float16", "float64"])
def test_a_change_of_one_bit_or_place_changes_the_checksum(device: CudaDevice, kind: str) -> None:
    """Whatever the width of an entry."""
    array = cupy.arange(10_007).astype(kind)
    before = device.checksum(array)
    array[[5, 6]] = array[[6, 5]]
    moved = device.checksum(array)
    array[[5, 6]] = array[[6, 5]]
    again = device.checksum(array)
    array[-1] = 0
    assert (before, True, True) == (again, before != moved, before != device.checksum(array))


def test_an_array_that_begins_between_two_vectors_is_refused_before_the_launch(
    device: CudaDevice,
) -> None:
    """A slice by one element: the context lives, and the next call on a whole array is right."""
    registry = bundled()
    operator, kernel = registry.operators["copy"], registry.kernels["copy", "solkit"]
    case = Case("copy", "solkit", {"elements": 4096}, "fp32")
    program = device.prepare(kernel, operator, case, folder("kernels") / "include")
    held = cupy.arange(4100, dtype=cupy.float32)
    names = [arg.name for arg in operator.args]
    target = cupy.zeros(4096, dtype=cupy.float32)
    with pytest.raises(CheckFailed, match="begins 4 bytes behind a multiple of 16") as caught:
        program.bind({names[0]: held[1:4097], names[1]: target})
    assert ("unaligned", True) == (caught.value.verdict, f"{names[0]!r}" in caught.value.message)
    program.bind({names[0]: held[4:], names[1]: target})()
    assert 4.0 == target[0].item()


CODES = Operator(
    name="codes",
    args=(Arg("x", "n"), Arg("y", "n", "out", dtype="fp8_e4m3")),
    work=lambda _case: Work(1, 1),
    reference=lambda x: x,
)


@pytest.mark.parametrize("form", ["uint8", "int8", "torch.float8_e4m3fn", "torch.uint8"])
def test_a_python_kernel_may_return_codes_in_any_of_their_forms(
    device: CudaDevice, form: str
) -> None:
    """They are taken over bit for bit; a wider integer is another dtype."""
    case = Case("codes", "k", {"n": 256}, "fp32")

    def returned(x: Any, y: Any) -> Any:
        del x, y
        codes = cupy.arange(256, dtype=cupy.uint8)
        if not form.startswith("torch."):
            return codes.view(form)
        torch = pytest.importorskip("torch")
        return torch.from_dlpack(codes).view(getattr(torch, form.removeprefix("torch.")))

    kernel = Kernel(name="k", operator=CODES, function=returned)
    program = device.prepare(kernel, CODES, case, folder("kernels"))
    buffers = {arg.name: device.allocate(arg, case, 1, seed=0)[0] for arg in CODES.args}
    program.adopt(program.bind(buffers)(), buffers)
    assert list(range(256)) == buffers["y"].tolist()
    with pytest.raises(CheckFailed, match="returned 'y' as int32, declared is uint8"):
        program.adopt(cupy.arange(256, dtype=cupy.int32), buffers)


def test_the_launch_cost_is_the_hosts_and_holds_none_of_the_devices_time(
    device: CudaDevice,
) -> None:
    """Of calls that keep the device busy for a millisecond each: microseconds."""
    for call in (device.empty(), device.spin(1_000_000)):
        assert 2e-7 < (device.launch_s([call] * 33) or 0.0) < 1e-4
    times_s = [sample.time_s for sample in device.time([device.spin(1_000_000)] * 5)]
    assert min(times_s) > 9e-4
