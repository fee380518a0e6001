"""A group is measured round-robin on shared inputs; a kernel that fails costs its own case only."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_device import MIB, FakeDevice

from solkit.declare.arg import Arg
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.declare.registry import Registry
from solkit.errors import BadInput
from solkit.measure import checking, group, timing
from solkit.measure.device.base import Call, DeviceLost
from solkit.measure.group import Lost, Settings
from solkit.measure.manner import Manner
from solkit.model import Bound, CacheMode, Case, Clocks, Failed, Measured, Outcome, Stage, Work
from solkit.plan.jobs import Job

SHAPE = {"rows": 16, "cols": 8}
MANNER = Manner()
# One call is checked, twice eight warm it up, twenty are samples, and one more is checked.
LAST_CALL = 1 + 16 + 20 + 1
BOUND = Bound(1e-6, {}, 1e-6, "memory", near_ridge=False)
Function = Callable[..., None]
Heard = list[tuple[int, Stage]]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm up as long as it takes: a busy machine must not change the count of calls."""
    monkeypatch.setattr(timing, "WARM_MOST_S", 60.0)


def doubled(x: Any, y: Any) -> None:
    y[...] = 2 * x


def nothing(x: Any, y: Any) -> None:
    """Write nothing."""


def half(x: Any, y: Any) -> None:
    y[: len(y) // 2] = 2 * x[: len(y) // 2]


def wrong(x: Any, y: Any) -> None:
    y[...] = 2.1 * x


def boom(**_arrays: Any) -> None:
    message = "no such thing"
    raise ValueError(message)


def refused(**_arrays: Any) -> None:
    message = "cols must be a multiple of 16"
    raise BadInput(message, remedy="take another shape")


def lose(**_arrays: Any) -> None:
    message = "an illegal memory access was encountered"
    raise DeviceLost(message)


def scribble(x: Any, y: Any) -> None:
    y[...] = 2 * x
    x[...] = 0


def advance(x: Any, state: Any) -> None:
    state += x


class Repeats:
    """Right on the first call; the same result ever after, whatever the inputs."""

    def __init__(self) -> None:
        self.kept: Any = None

    def __call__(self, x: Any, y: Any) -> None:
        """Keep the first result."""
        if self.kept is None:
            self.kept = 2 * x
        y[...] = self.kept


class BreaksAt:
    """Right until its n-th call."""

    def __init__(self, call: int, breaks: Function) -> None:
        self.left, self.breaks = call, breaks

    def __call__(self, x: Any, y: Any) -> None:
        """Count down, break once, be right again."""
        self.left -= 1
        (self.breaks if self.left == 0 else doubled)(x=x, y=y)


TWICE = Operator(
    name="twice",
    args=(Arg("x", "rows cols"), Arg("y", "rows cols", "out")),
    work=lambda _case: Work(1, 1),
    reference=lambda x: 2 * x,
)
STEP = Operator(
    name="step",
    args=(Arg("x", "rows cols"), Arg("state", "rows cols", "inout")),
    work=lambda _case: Work(1, 1),
    reference=lambda x, state: state + x,
)


def measure(  # noqa: PLR0913  # each test names the few that it is about
    kernels: dict[str, Function],
    device: FakeDevice | None = None,
    *,
    operator: Operator = TWICE,
    budget_s: float = 10.0,
    heard: Heard | None = None,
    shape: dict[str, int] = SHAPE,
    manner: Manner = MANNER,
    mode: CacheMode = "cold",
    proved: frozenset[CacheMode] = frozenset({"cold", "hot", "clean", "zeroed"}),
) -> dict[str, Outcome]:
    """Measure a group of kernels; return each one's outcome by name, in order."""
    registry = Registry()
    registry.add([operator], where="here")
    for name, function in kernels.items():
        kernel = Kernel(name=name, operator=operator, function=function, device="cpu")
        registry.kernels[operator.name, name] = kernel
    jobs = [
        Job(
            Case(operator.name, name, shape, "fp32", cache_mode=mode),
            Work(512, 512),
            (),
            BOUND,
            1024,
        )
        for name in kernels
    ]
    said = [] if heard is None else heard
    outcomes = group.measure(
        device or FakeDevice(),
        registry,
        jobs,
        Settings(
            manner=replace(manner, seed=5, budget_s=budget_s),
            floor_s=2e-6,
            include=Path(),
            proved=proved,
        ),
        lambda index, stage: said.append((index, stage)),
    )
    assert [job.case for job in jobs] == [outcome.case for outcome in outcomes]
    return {outcome.case.kernel: outcome for outcome in outcomes}


def measured(outcome: Outcome) -> Measured:
    assert isinstance(outcome, Measured), outcome
    return outcome


def failure(outcome: Outcome) -> tuple[Stage, str]:
    assert isinstance(outcome, Failed), outcome
    assert outcome.remedy
    return outcome.stage, outcome.message


def test_times_are_those_of_the_device() -> None:
    """A kernel that takes 1 ms in every call: twenty samples, and no interval around them."""
    found = measured(measure({"k": doubled})["k"])
    assert (1e-3,) * 20 == found.times_s
    assert (1e-3, 1e-3, 1e-3) == (found.median_s, found.low_s, found.high_s)
    assert 20 == found.sample_count
    assert {"0", "0.05", "0.25", "0.5", "0.75", "0.95", "1"} == set(found.quantiles_s)
    assert ("formula", "cold", 2e-6) == (found.method, found.cache, found.floor_s)
    assert ("precision reached", 2, ()) == (found.ended, found.set_count, found.notes)
    assert (128, "whole", 5) == (
        found.check.compared_count,
        found.check.way,
        found.check.seed,
    )


def test_samples_keep_their_order_and_quantiles_sort_them() -> None:
    """The n-th timed call takes n microseconds: a trend stays visible in times_s."""
    device = FakeDevice(lambda _kernel, calls: calls * 1e-6)
    found = measured(measure({"k": doubled}, device, budget_s=1e-9)["k"])
    first = found.times_s[0]
    count = found.sample_count
    assert count >= 7
    assert pytest.approx([first + place * 1e-6 for place in range(count)]) == found.times_s
    assert pytest.approx(first) == found.quantiles_s["0"]
    middle_s = first + (count - 1) / 2 * 1e-6
    assert pytest.approx(middle_s) == found.median_s == found.quantiles_s["0.5"]
    assert "time budget of 1e-09 s used" == found.ended


def test_kernels_are_sampled_round_robin() -> None:
    """A batch of each a round (five calls of 1 ms), so that clocks and heat are shared."""
    device = FakeDevice()
    measure({"a": doubled, "b": doubled, "c": doubled}, device)
    sampled = device.ran[-(3 * 20 + 3) : -3]
    assert (["a"] * 5 + ["b"] * 5 + ["c"] * 5) * 4 == sampled
    assert ["a", "b", "c"] == device.ran[-3:]  # the second check times one call of each


def test_a_kernel_that_is_done_leaves_the_round() -> None:
    """The steady one stops at 20 samples, the noisy one goes on to a thousand."""
    device = FakeDevice(
        lambda kernel, calls: 1e-3 if kernel == "steady" else 1e-3 * (1 + 1e-1 * (calls % 2))
    )
    found = measure({"steady": doubled, "noisy": doubled}, device, budget_s=600.0)
    assert 20 == measured(found["steady"]).sample_count
    assert 1000 == measured(found["noisy"]).sample_count
    assert 100 == len(measured(found["noisy"]).times_s)
    assert (["steady"] * 5 + ["noisy"] * 4) * 4 == device.ran[-1022:-986]
    assert {"noisy"} == set(device.ran[-986:-2])


def test_a_kernel_is_warm_before_it_is_sampled() -> None:
    """Its first twenty calls get faster: batches of eight are run until two agree."""
    device = FakeDevice(lambda _kernel, calls: max(1, 21 - calls) * 1e-3)
    found = measured(measure({"k": doubled}, device)["k"])
    assert {1e-3} == set(found.times_s)


def test_a_kernel_that_never_settles_is_measured_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Warming up has a time limit."""
    monkeypatch.setattr(timing, "WARM_MOST_S", 0.01)
    device = FakeDevice(lambda _kernel, calls: calls * 1e-3)
    assert 7 <= measured(measure({"k": doubled}, device, budget_s=1e-9)["k"]).sample_count


def test_clocks_must_settle_too() -> None:
    """Equal times at a clock that still climbs are not yet warm."""
    ramp = FakeDevice(sm_hz=lambda _kernel, calls: min(1.8e9, 1.0e9 + calls * 2e7))
    found = measured(measure({"k": doubled}, ramp)["k"])
    assert (
        Clocks(1.8e9, 1.8e9, 1.8e9, 1e9, found.clocks.temperature_c, 99.0, ("software power cap",))
        == found.clocks
    )


def test_clocks_are_the_median_and_the_extremes_of_the_samples() -> None:
    """Conditions are read before and after; what held back the clocks is joined."""
    device = FakeDevice(sm_hz=lambda _kernel, calls: 1.5e9 + 1e6 * (calls % 3))
    clocks = measured(measure({"k": doubled}, device)["k"]).clocks
    assert (1.501e9, 1.5e9, 1.502e9) == (clocks.sm_hz, clocks.sm_low_hz, clocks.sm_high_hz)
    assert clocks.temperature_c is not None
    assert clocks.temperature_c >= 30 + 36  # two batches and twenty samples at least


def test_a_clock_that_nobody_reads_is_unknown() -> None:
    """None, not zero."""
    assert measured(measure({"k": doubled})["k"]).clocks.sm_hz is None


def test_a_call_that_waits_for_the_device_is_timed_another_way_and_says_so() -> None:
    """Its neighbour, which can be queued ahead, keeps the run's own method."""
    found = measure({"waits": doubled, "queued": doubled}, FakeDevice(unblockable=("waits",)))
    waits, queued = measured(found["waits"]), measured(found["queued"])
    assert ("formula_unblocked", "formula") == (waits.method, queued.method)
    assert "they may hold host time" in waits.notes[0]
    assert () == queued.notes


def test_sets_rotate_so_that_reads_are_cold() -> None:
    """Two caches of 4 KiB in sets of 1 KiB: eight, each used in turn."""
    seen: list[int] = []

    def spy(x: Any, y: Any) -> None:
        seen.append(x.__array_interface__["data"][0])
        doubled(x, y)

    found = measured(measure({"k": spy}, FakeDevice(cache_bytes=4096))["k"])
    assert 8 == found.set_count
    sampled = seen[-21:-1]
    assert 8 == len(set(sampled))
    assert sampled[:12] == sampled[8:20]


def test_in_place_arguments_are_restored_before_a_set_comes_again() -> None:
    """A kernel that adds x to its state sees the first state in every sample."""
    starts: list[float] = []

    def spy(x: Any, state: Any) -> None:
        starts.append(float(state[0, 0]))
        advance(x, state)

    device = FakeDevice(cache_bytes=2048)
    found = measure({"k": spy, "other": advance}, device, operator=STEP)
    assert 4 == measured(found["k"]).set_count
    assert 128 == measured(found["other"]).check.compared_count
    sampled = starts[-21:-1]
    assert {starts[0]} == set(sampled)
    assert device.copied > 20


@pytest.mark.parametrize(
    ("stage", "words", "broken"),
    [
        ("check", "128 of 128 elements of 'y' were not written", nothing),
        ("check", "64 of 128 elements of 'y' were not written", half),
        ("check", "the reference says", wrong),
        ("launch", "ValueError: no such thing", boom),
        ("launch", "cols must be a multiple of 16", refused),
        ("check", "it wrote to its input 'x'", scribble),
        ("check", "the reference says", Repeats()),
        ("time", "ValueError: no such thing", BreaksAt(2, boom)),
        ("time", "ValueError: no such thing", BreaksAt(30, boom)),
    ],
)
def test_a_broken_kernel_costs_its_own_case(stage: str, words: str, broken: Function) -> None:
    """Whatever it does, and wherever it stands: its neighbours are measured."""
    found = measure({"before": doubled, "broken": broken, "after": doubled})
    said_stage, message = failure(found["broken"])
    assert words in message
    assert stage == said_stage
    assert [20, 20] == [measured(found[name]).sample_count for name in ("before", "after")]


def test_a_kernel_that_starts_to_write_to_inputs_while_timed_is_found() -> None:
    """The second check looks again, and mends what it shares with the next kernel."""
    found = measure({"broken": BreaksAt(LAST_CALL, scribble), "after": doubled})
    assert "20" in str(measured(found["after"]).sample_count)
    assert ("check", "it wrote to its input 'x'") == failure(found["broken"])


def test_a_kernel_that_was_right_once_and_wrong_later_is_found() -> None:
    """The second check follows the timing."""
    found = measure({"k": BreaksAt(LAST_CALL, wrong)})
    stage, message = failure(found["k"])
    assert ("check", True) == (stage, "the reference says" in message)


def test_the_second_check_runs_on_inputs_of_another_seed() -> None:
    """Where there is memory for one more set; else the old inputs must do."""
    device = FakeDevice()
    measure({"k": doubled}, device)
    assert [("x", 2, 5), ("y", 2, 5), ("x", 1, 6), ("y", 1, 6)] == device.allocated

    class Full(FakeDevice):
        def allocate(self, arg: Any, case: Case, set_count: int, seed: int) -> list[Any]:
            self._free_bytes -= set_count * arg.nbytes(case)
            return super().allocate(arg, case, set_count, seed)

    full = Full(free_bytes=1500)
    found = measured(measure({"k": doubled}, full)["k"])
    assert [("x", 1, 5), ("y", 1, 5)] == full.allocated
    assert 1 == found.set_count


def test_an_error_that_grows_with_the_timing_is_the_one_reported() -> None:
    """The worse of both checks."""

    def slightly_off(x: Any, y: Any) -> None:
        y[...] = 2 * x + np.float32(4e-6)

    found = measure({"k": BreaksAt(LAST_CALL, slightly_off), "exact": doubled})
    assert 0.05 < measured(found["k"]).check.error_fraction < 1
    assert 0.0 == measured(found["exact"]).check.error_fraction


def test_a_kernel_that_does_not_compile_costs_its_own_case() -> None:
    """The stage is named; what it would have shared is allocated for the others."""

    class Picky(FakeDevice):
        def prepare(self, kernel: Kernel, *rest: Any) -> Any:
            if kernel.name == "broken":
                message = "k.cu(3): error: expected a ';'"
                raise BadInput(message, remedy="mend k.cu")
            return super().prepare(kernel, *rest)

    found = measure({"broken": doubled, "right": doubled}, Picky())
    assert ("compile", "k.cu(3): error: expected a ';'") == failure(found["broken"])
    assert 20 == measured(found["right"]).sample_count
    only = measure({"broken": doubled}, Picky())
    assert "compile" == failure(only["broken"])[0]


def test_a_case_that_does_not_fit_fails_for_every_kernel() -> None:
    """Before anything runs."""
    device = FakeDevice(free_bytes=1000)
    found = measure({"a": doubled, "b": doubled}, device)
    for outcome in found.values():
        stage, message = failure(outcome)
        assert ("allocate", True) == (stage, "need 1.00 KiB, and 1000 B are free" in message)
    assert [] == device.ran


def test_a_reference_that_breaks_fails_every_kernel_at_the_check() -> None:
    """Without it nobody knows what is right."""
    bad = Operator(
        name="twice",
        args=TWICE.args,
        work=TWICE.work,
        reference=lambda x: x[:3],
    )
    found = measure({"a": doubled, "b": doubled}, operator=bad)
    for outcome in found.values():
        stage, message = failure(outcome)
        assert ("check", True) == (stage, "of shape (3, 8), declared is (16, 8)" in message)


@pytest.mark.parametrize(
    ("stage", "function"),
    [("launch", lose), ("time", BreaksAt(2, lose)), ("check", BreaksAt(LAST_CALL, lose))],
)
def test_a_lost_device_ends_the_group_and_names_the_guilty(stage: str, function: Function) -> None:
    """The worker has to end; whoever started it goes on with a new one."""
    with pytest.raises(Lost) as caught:
        measure({"before": doubled, "guilty": function, "after": doubled})
    assert (1, stage) == (caught.value.index, caught.value.stage)
    assert "illegal memory access" in caught.value.message


def test_a_device_lost_between_two_kernels_is_lost_as_well() -> None:
    """Copying finds it gone: the last one that ran is named."""
    device = FakeDevice()
    device.lost_after = 3
    with pytest.raises(Lost) as caught:
        measure({"k": advance}, device, operator=STEP)
    assert 0 == caught.value.index


def test_exiting_is_no_failure_of_a_case_but_the_end_of_the_worker() -> None:
    """sys.exit in a kernel goes up: the parent hears of it as a worker that ended."""

    def leave(**_arrays: Any) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        measure({"k": leave})


def test_every_stage_is_announced_before_it_begins() -> None:
    """So that a crash can be laid at its door."""
    heard: Heard = []
    measure({"a": doubled, "b": doubled}, heard=heard)
    order = list(dict.fromkeys(heard))
    assert [
        (0, "compile"),
        (1, "compile"),
        (0, "allocate"),
        (0, "check"),
        (0, "launch"),
        (1, "launch"),
        (1, "check"),
        (0, "time"),
        (1, "time"),
    ] == order


def test_the_memory_of_these_tests_is_large_enough() -> None:
    """64 MiB against sets of one KiB."""
    assert 64 * MIB == FakeDevice().free_bytes()


@pytest.mark.parametrize("mode", ["cold", "clean", "zeroed", "hot"])
def test_a_mode_is_claimed_only_where_it_was_proved(mode: CacheMode) -> None:
    """Else it is `unknown`, with a note; the times are published all the same."""
    device = FakeDevice(cache_bytes=4096)
    proved = measured(measure({"k": doubled}, device, mode=mode)["k"])
    assert (mode, ()) == (proved.cache, proved.notes)
    others = frozenset({"cold", "clean", "zeroed", "hot"}) - {mode}
    device = FakeDevice(cache_bytes=4096)
    found = measured(measure({"k": doubled}, device, mode=mode, proved=others)["k"])
    assert ("unknown", 20) == (found.cache, found.sample_count)
    assert f"did not show the times that {mode!r} should make" in found.notes[0]
    assert {mode} == set(device.modes)


def test_processes_that_come_or_go_while_a_group_is_measured_are_counted() -> None:
    """The most that were seen, before and after, in every outcome of the group."""

    class Visited(FakeDevice):
        def __init__(self, *counts: int) -> None:
            super().__init__()
            self.counts = list(counts)

        def other_process_count(self) -> int:
            return self.counts.pop(0)

    for counts in ((0, 2), (2, 0)):
        found = measure({"a": doubled, "b": doubled}, Visited(*counts))
        assert [2, 2] == [measured(each).other_process_count for each in found.values()]


@pytest.mark.parametrize(("energy_j", "asked"), [(0.25, True), (None, False)])
def test_energy_is_measured_where_it_is_asked_for(*, energy_j: float | None, asked: bool) -> None:
    """It takes a second of steady work a case."""

    class Counts(FakeDevice):
        def energy_per_call_j(self, calls: Sequence[Call]) -> float | None:
            return 0.25 if calls else None

    found = measure({"k": doubled}, Counts(), manner=Manner(energy=asked))
    assert energy_j == measured(found["k"]).energy_j


def test_a_throttled_card_keeps_and_marks_every_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 0.57 of its highest clock for all of them, while the driver names the power cap."""
    monkeypatch.setattr(timing, "WARM_MOST_S", 0.01)
    device = FakeDevice(sm_hz=lambda _kernel, _calls: 0.57 * 1.41e9)
    device.max_clock_hz = 1.41e9
    found = measured(measure({"k": doubled}, device)["k"])
    assert (20, 20, 1e-3) == (found.sample_count, found.throttled_count, found.median_s)
    assert (0.57 * 1.41e9,) * 20 == found.sample_hz
    assert "software power cap" in found.clocks.event_reasons


@pytest.mark.parametrize("call", [1, LAST_CALL])
def test_what_another_kernel_wrote_is_not_taken_for_what_this_one_did(
    call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs are poisoned before each checked call, the first and the last."""
    # It is for Python kernels alone, and poisons as well.
    monkeypatch.setattr(checking, "_stays_on_its_stream", lambda *_: None)
    found = measure({"right": doubled, "lazy": BreaksAt(call, nothing)})
    assert 20 == measured(found["right"]).sample_count
    stage, message = failure(found["lazy"])
    assert ("check", True) == (stage, "128 of 128 elements of 'y' were not written" in message)


def test_a_call_that_can_not_be_blocked_finds_first_values_in_its_checks() -> None:
    """Changed in place and run twice where the device has to try again: still called right."""
    found = measure({"waits": advance}, FakeDevice(unblockable=("waits",)), operator=STEP)
    assert "formula_unblocked" == measured(found["waits"]).method


def test_work_that_escapes_its_stream_fails_the_case_with_a_verdict_of_its_own() -> None:
    """Its times would miss it; the neighbour is measured."""

    class Watches(FakeDevice):
        def stray_work(self, call: Call, outputs: Sequence[tuple[Any, str]]) -> str:
            assert all(np.isnan(array).all() for array, _ in outputs)  # poisoned before
            call()
            return "it leaves work on another stream" if self.called == "strays" else ""

    found = measure({"strays": doubled, "stays": doubled}, Watches())
    assert ("check", "it leaves work on another stream") == failure(found["strays"])
    assert isinstance(found["strays"], Failed)
    assert "other_stream" == found["strays"].verdict
    assert 20 == measured(found["stays"]).sample_count


class Launches(FakeDevice):
    """Tells what the host takes to enqueue a call, and notes how many it was asked about."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.asked: list[int] = []

    def launch_s(self, calls: Sequence[Call]) -> float:
        """Run the calls."""
        for call in calls:
            call()
        self.asked.append(len(calls))
        return 4.2000000004e-6


def test_what_a_launch_costs_the_host_stands_beside_the_time() -> None:
    """In whole nanoseconds, of five calls of a millisecond; never part of the time."""
    device = Launches()
    found = measured(measure({"k": doubled}, device)["k"])
    assert (4.2e-6, 1e-3, [5]) == (found.launch_s, found.median_s, device.asked)


@pytest.mark.parametrize(("time_s", "count"), [(1e-6, 33), (1e-4, 20), (4e-4, 5), (1.0, 5)])
def test_launches_are_timed_over_two_milliseconds_of_work(time_s: float, count: int) -> None:
    """33 at most, which any launch queue holds; five at least, whatever they take."""
    device = Launches(time_of=lambda _kernel, _calls: time_s)
    measure({"k": doubled}, device)
    assert [count] == device.asked


def test_a_call_that_waits_for_the_device_has_no_launch_cost() -> None:
    """The host's time in it would hold the device's work."""
    device = Launches(unblockable=("waits",))
    found = measured(measure({"waits": doubled}, device)["waits"])
    assert (None, []) == (found.launch_s, device.asked)


def test_in_place_arguments_have_their_first_values_after_launches_were_timed() -> None:
    """Its last check would fail otherwise."""
    device = Launches()
    assert 4.2e-6 == measured(measure({"k": advance}, device, operator=STEP)["k"]).launch_s


def test_where_a_call_is_the_work_itself_no_launch_cost_is_told() -> None:
    """NumPy enqueues nothing."""
    assert measured(measure({"k": doubled})["k"]).launch_s is None
