"""The CUDA device: its clock tells the truth, and a broken kernel costs its own case only."""

from pathlib import Path

import numpy as np
import pytest

from solkit.bound import Roof, bound
from solkit.declare.operator import Arg
from solkit.measure.bench import Bench, Settings
from solkit.measure.manner import Manner
from solkit.measure.probe import cuda_devices
from solkit.model import Case, Clocks, Failed, Measured, Outcome
from solkit.plan.jobs import Job

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
