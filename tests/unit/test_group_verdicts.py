"""A group gives each wrong kernel its verdict, by stage and word, and measures the others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checking import DEVICE, ROWS, case_of, operator, right

from solkit.declare.arg import Arg
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.declare.registry import Registry, load
from solkit.measure import group
from solkit.measure.device.base import NothingRan
from solkit.measure.device.cpu import CpuDevice
from solkit.measure.manner import Manner
from solkit.model import Bound, Failed, Measured, Outcome, Work
from solkit.plan.jobs import Job

FAULTS = Path(__file__).parent.parent / "faults"
BOUND = Bound(1e-6, {}, 1e-6, "memory", near_ridge=False)
STEP = operator(
    lambda x, state: state + x,
    name="step",
    args=(Arg("x", "rows cols"), Arg("state", "rows cols", "inout")),
)


class SmallCache(CpuDevice):
    """The CPU, with a cache that two small buffer sets overflow."""

    @property
    def cache_bytes(self) -> int:
        """Nothing."""
        return 0


def measure(functions: dict[str, Any], declared: Operator) -> dict[str, Outcome]:
    """Measure kernels as one group on the CPU, and return their outcomes by name."""
    registry = Registry()
    registry.add([declared], where="here")
    for name, function in functions.items():
        kernel = Kernel(name=name, operator=declared, function=function, device="cpu")
        registry.kernels[declared.name, name] = kernel
    case = case_of()
    jobs = [
        Job(
            type(case)(declared.name, name, case.shape, case.dtype),
            Work(512, 512),
            (),
            BOUND,
            1024,
        )
        for name in functions
    ]
    settings = group.Settings(
        manner=Manner(budget_s=0.001),
        floor_s=1e-7,
        include=Path(),
        proved=frozenset(),
    )
    outcomes = group.measure(SmallCache(), registry, jobs, settings, lambda *_: None)
    return {outcome.case.kernel: outcome for outcome in outcomes}


def verdict(function: Any, declared: Operator | None = None) -> tuple[str, str]:
    """Return the stage and verdict of a kernel, whose neighbour must be measured."""
    declared = declared or operator()
    good = right if declared.name == "twice" else adds
    found = measure({"it": function, "good": good}, declared)
    assert isinstance(found["good"], Measured), found["good"]
    wrong = found["it"]
    assert isinstance(wrong, Failed), wrong
    assert wrong.remedy
    return wrong.stage, wrong.verdict


def adds(x: Any, state: Any) -> None:
    state += x


def in_place_undeclared(x: Any, y: Any) -> None:
    y[...] = 2 * x
    x[...] = 1.0  # not x *= 2: a hundred timed calls on one set would overflow


class OnlyAtFirst:
    """Right once, then something else."""

    def __init__(self, then: Any) -> None:
        self.then, self.called = then, False

    def __call__(self, **arrays: Any) -> Any:
        """Be right the first time."""
        now, self.called = (self.then if self.called else right), True
        return now(**arrays)


KERNELS = {
    item.name: item for item in load(FAULTS / "wrong_results.py") if isinstance(item, Kernel)
}


@pytest.mark.parametrize(
    ("word", "kernel"),
    [
        ("unwritten", "writes_nothing"),
        ("unwritten", "writes_half"),
        ("wrong_values", "repeats_its_last_result"),
        ("changed_input", "writes_to_its_input"),
        ("wrong_shape", "returns_a_row_less"),
        ("wrong_dtype", "returns_another_dtype"),
        ("wrong_shape", "returns_a_list"),
        ("non_finite", "makes_infinity"),
    ],
)
def test_a_wrong_result_fails_the_check_with_its_verdict(word: str, kernel: str) -> None:
    """Whatever is wrong with it, the kernel beside it is measured."""
    assert ("check", word) == verdict(KERNELS[kernel].function)


def test_a_kernel_that_goes_wrong_while_timed_is_found_after_it() -> None:
    """By the second check, with the same words."""
    nothing: Any = lambda **_: None  # noqa: E731  # a kernel in one line
    assert ("check", "unwritten") == verdict(OnlyAtFirst(nothing))
    assert ("check", "changed_input") == verdict(OnlyAtFirst(in_place_undeclared))
    assert ("check", "wrong_shape") == verdict(OnlyAtFirst(lambda x, **_: x[0]))


def test_returned_outputs_are_measured() -> None:
    """Nothing is written in place; the result is compared and the function timed as it is."""
    found = measure({"fresh": lambda x, **_: 2 * x, "tuple": lambda x, **_: (2 * x,)}, operator())
    for outcome in found.values():
        assert isinstance(outcome, Measured), outcome
        assert (30, 0.0) == (outcome.check.compared_count, outcome.check.error_fraction)
        assert "x normal(0, 1)" == outcome.check.inputs


def test_a_declared_in_place_argument_passes_in_place_or_returned() -> None:
    """It is restored before each call, and after the timing it is right."""
    found = measure({"in_place": adds, "returned": lambda x, state: state + x}, STEP)
    assert ["Measured"] * 2 == [type(outcome).__name__ for outcome in found.values()]
    assert ("check", "wrong_values") == verdict(lambda **_: None, STEP)


def test_an_undeclared_one_fails_and_is_mended_for_the_next_kernel() -> None:
    """`verdict` measures the good neighbour behind it on the same inputs."""
    assert ("check", "changed_input") == verdict(in_place_undeclared)


def test_a_timed_call_without_a_kernel_has_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer tells of it, at its own stage."""

    def idle(*_calls: Any, **_how: Any) -> Any:
        message = "no kernel ran"
        raise NothingRan(message, remedy="launch one")

    monkeypatch.setattr(SmallCache, "time", idle)
    found = measure({"k": right}, operator())["k"]
    assert isinstance(found, Failed)
    assert ("time", "no_kernel") == (found.stage, found.verdict)


def test_poison_is_no_nan_that_numpy_computes() -> None:
    """In both of NumPy's dtypes, for every usual way to a NaN."""
    for dtype in (np.float32, np.float64):
        zero, inf = np.zeros(ROWS, dtype), np.full(ROWS, np.inf, dtype)
        with np.errstate(all="ignore"):
            made = [zero / zero, inf - inf, -(inf - inf), zero * inf, np.sqrt(zero - 1)]
        made += [np.full(ROWS, np.nan, dtype), np.full(ROWS, -np.nan, dtype)]
        for array in made:
            assert 0 == DEVICE.unwritten_count(array, "fp32")
            assert ROWS == DEVICE.non_finite_count(array, "fp32")
            DEVICE.poison(array)
            assert ROWS == DEVICE.unwritten_count(array, "fp32")
