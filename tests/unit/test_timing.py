"""Taking samples: what is run, what counts, on which buffers, at which clock, and what ends it."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_device import MIB, FakeDevice
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.kernel import Kernel
from solkit.declare.operator import Arg, Operator
from solkit.measure import buffers, pace, timing
from solkit.measure.buffers import BufferSets
from solkit.measure.device.base import Call, Sample, Unblockable
from solkit.measure.device.records import RecordsLost
from solkit.measure.entry import Entry
from solkit.measure.manner import Manner
from solkit.measure.pace import Conditions
from solkit.model import Bound, CacheMode, Case, Clocks, Work
from solkit.plan.jobs import Job

HIGHEST_HZ = 1.98e9
SET_BYTES = 2 * 8 * 4  # two arrays of eight fp32
MODES: tuple[CacheMode, ...] = ("cold", "clean", "zeroed", "hot")
TWICE = Operator(
    name="twice",
    args=(Arg("x", "rows"), Arg("y", "rows", "out")),
    work=lambda _case: Work(1, 1),
    reference=lambda x: 2 * x,
)
STEP = Operator(
    name="step",
    args=(Arg("x", "rows"), Arg("state", "rows", "inout")),
    work=lambda _case: Work(1, 1),
    reference=lambda x, state: state + x,
)


class Bench:
    """One kernel that notes the set of each call and whether its state was the first one."""

    def __init__(
        self,
        device: FakeDevice,
        *,
        operator: Operator = STEP,
        mode: CacheMode = "cold",
        set_count: int = 1,
    ) -> None:
        if mode == "cold":
            device._cache_bytes = set_count * SET_BYTES // 2
        self.device = device
        self.said: list[str] = []
        self.sets = self._sets(operator, mode)
        self.entry = self.add("k", operator, mode)
        self.first = {
            name: array.copy() for name, array in self.sets.buffers(0).items() if name == "state"
        }
        self.handed: list[int] = []
        self.spoiled = 0

    def _sets(self, operator: Operator, mode: CacheMode) -> BufferSets:
        case = Case(operator.name, "k", {"rows": 8}, "fp32", cache_mode=mode)
        return buffers.make(self.device, operator, case, 3)

    def add(self, name: str, operator: Operator = STEP, mode: CacheMode = "cold") -> Entry:
        """Return one more entry on the same sets."""

        def function(**arrays: Any) -> None:
            out = arrays[operator.args[1].name]
            copies = self.sets.arrays[operator.args[1].name]
            self.handed.append(
                next(
                    n
                    for n, each in enumerate(copies)
                    if each.base is out.base and each.ctypes.data == out.ctypes.data
                )
            )
            if "state" in arrays:
                self.spoiled += not (arrays["state"] == self.first["state"]).all()
                arrays["state"] += 1.0

        case = Case(operator.name, name, {"rows": 8}, "fp32", cache_mode=mode)
        bound = Bound(1e-6, {}, 1e-6, "memory", near_ridge=False)
        kernel = Kernel(name=name, operator=operator, function=function, device="cpu")
        entry = Entry(0, Job(case, Work(1, 1), (), bound, 64), operator, kernel)
        entry.program = self.device.prepare(kernel, operator, case, Path())
        entry.median_s = 1e-3  # as warming up leaves it
        return entry

    def batch(self, count: int) -> list[Sample]:
        """Take a batch."""
        return timing.batch(self.device, self.sets, self.entry, count)

    def warm(self) -> None:
        """Warm the kernel up."""
        timing.warm(self.device, self.sets, [self.entry], self.say)

    def sample(self, *entries: Entry, **manner: Any) -> Conditions:
        """Take the samples of the entries given, else of the one there is."""
        conditions = pace.begun(self.device)
        timing.sample(
            self.device,
            self.sets,
            entries or [self.entry],
            Manner(**manner),
            conditions,
            self.say,
        )
        return conditions

    def say(self, _index: int, stage: str) -> None:
        """Note what the worker would say."""
        self.said.append(stage)


class Led(FakeDevice):
    """A device whose batches need calls that lead."""

    lead_count = 1


class Graph(FakeDevice):
    """A device that repeats a batch as a whole and gives five samples of it."""

    whole_rotation = True
    kind = "cuda"

    def time(self, calls: Sequence[Call], **how: Any) -> list[Sample]:
        """Return five means."""
        self.lengths = [*getattr(self, "lengths", []), len(calls)]
        samples = super().time(calls, **how)
        return [Sample(sum(each.time_s for each in samples) / len(samples))] * 5


class Clock:
    """A monotonic clock that goes on by a millisecond whenever it is read."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Return the time."""
        self.now_s += 1e-3
        return self.now_s


@pytest.fixture
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time go on by a millisecond a look: a busy machine changes nothing."""
    monkeypatch.setattr(timing, "time", SimpleNamespace(monotonic=Clock()))


# -- one batch ----------------------------------------------------------------------------------


def test_calls_that_lead_are_run_and_are_no_samples() -> None:
    """Eight samples of nine calls; the first one would pay for what others left in the cache."""
    bench = Bench(Led(lambda _kernel, calls: 1.0 if calls == 1 else 1e-3), set_count=16)
    samples = bench.batch(8)
    assert (9, [1e-3] * 8) == (len(bench.handed), [sample.time_s for sample in samples])


def test_a_call_alone_has_none_to_lead_it() -> None:
    """A call that takes milliseconds is a batch by itself, and pays a little."""
    bench = Bench(Led(), set_count=16)
    assert (1, 1) == (len(bench.batch(1)), len(bench.handed))


def test_a_set_alone_has_no_call_to_lead_it() -> None:
    """Hot and in place: one call a batch, which is the sample."""
    bench = Bench(Led(cache_bytes=MIB), mode="hot")
    assert (1, 1) == (len(bench.batch(8)), len(bench.handed))


@pytest.mark.parametrize("mode", MODES)
@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=8), set_count=st.integers(2, 30))
def test_in_place_arguments_see_their_first_values_in_every_timed_call(
    mode: CacheMode, counts: list[int], set_count: int
) -> None:
    """In every cache mode, whatever the batches, with calls that lead and without."""
    for device in (FakeDevice(cache_bytes=MIB), Led(cache_bytes=MIB)):
        bench = Bench(device, mode=mode, set_count=set_count)
        for count in counts:
            assert 1 <= len(bench.batch(count)) <= count
        assert 0 == bench.spoiled
        assert set(device.modes) == {mode}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("_still", "_hurried")
def test_first_values_are_there_in_a_whole_measurement(mode: CacheMode) -> None:
    """From the first warming call to the last sample, at both paces."""
    for settle in ("burst", "sustained"):
        bench = Bench(Led(cache_bytes=MIB), mode=mode, set_count=6)
        bench.warm()
        bench.sample(settle=settle)
        assert (0, "precision reached") == (bench.spoiled, bench.entry.ended)


def test_hot_calls_without_changes_use_one_set_without_a_copy() -> None:
    """The same buffers again and again."""
    bench = Bench(FakeDevice(cache_bytes=MIB), operator=TWICE, mode="hot")
    bench.batch(8)
    assert ([0] * 8, 0) == (bench.handed, bench.device.copied)


def test_cold_calls_go_on_where_the_last_batch_ended() -> None:
    """Five sets, batches of three: no set comes again before the others."""
    bench = Bench(FakeDevice(), operator=TWICE, set_count=5)
    for _ in range(4):
        bench.batch(3)
    assert [1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2] == bench.handed


def test_a_call_that_waits_switches_its_own_entry_alone() -> None:
    """The batch is taken again without the block; its neighbour stays blocked."""
    bench = Bench(FakeDevice(unblockable=("waits",)), operator=TWICE, set_count=4)
    waits = bench.add("waits", TWICE)
    assert 6 == len(timing.batch(bench.device, bench.sets, waits, 6))
    assert 6 == len(bench.batch(6))
    assert (False, True) == (waits.blocked, bench.entry.blocked)
    bench.device._unblockable = ()
    timing.batch(bench.device, bench.sets, waits, 6)
    assert not waits.blocked  # it is not tried again


def test_a_batch_that_is_taken_again_begins_with_first_values() -> None:
    """The blocked calls ran before it was known that they wait: their sets are spoiled."""
    bench = Bench(FakeDevice(unblockable=("k",), cache_bytes=MIB), mode="hot")
    assert 1 == len(bench.batch(4))
    assert (2, 0) == (len(bench.handed), bench.spoiled)


def test_the_last_check_times_a_call_on_first_values_even_if_it_runs_twice() -> None:
    """Else a right kernel would be called wrong."""
    bench = Bench(FakeDevice(unblockable=("k",)), set_count=4)
    assert timing.timed(bench.device, bench.sets, bench.entry, 0) is None
    assert ([0, 0], 0) == (bench.handed, bench.spoiled)


@pytest.mark.usefixtures("_still")
def test_samples_of_two_methods_are_never_mixed() -> None:
    """A call that begins to wait while it is sampled: what was blocked before goes."""

    class Late(FakeDevice):
        def time(self, calls: Sequence[Call], *, blocked: bool = True, **how: Any) -> list[Sample]:
            if blocked and len(self.ran) > 10:
                message = "the call waits for the device itself"
                raise Unblockable(message)
            found = super().time(calls, blocked=blocked, **how)
            return [Sample(1e-3 if blocked else 2e-3)] * len(found)

    bench = Bench(Late(), operator=TWICE, set_count=4)
    bench.sample()
    assert {2e-3} == set(bench.entry.times_s)
    assert ("precision reached", False) == (bench.entry.ended, bench.entry.blocked)


# -- warming up ---------------------------------------------------------------------------------


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm up for a minute at most: a busy machine must not change the count of calls."""
    monkeypatch.setattr(timing, "WARM_MOST_S", 60.0)


@pytest.mark.usefixtures("_patient")
def test_two_batches_of_eight_that_agree_are_warm() -> None:
    """Sixteen calls of equal time at the highest clock."""
    device = FakeDevice(sm_hz=lambda _kernel, _calls: HIGHEST_HZ)
    device.max_clock_hz = HIGHEST_HZ
    bench = Bench(device, operator=TWICE, set_count=4)
    bench.warm()
    assert 16 == len(device.ran)


@pytest.mark.usefixtures("_patient")
def test_a_card_that_wakes_up_is_warmed_until_it_is_awake() -> None:
    """At 345 MHz for forty calls, all alike: batches agree, and still it goes on."""
    device = FakeDevice(sm_hz=lambda _kernel, calls: 0.345e9 if calls <= 40 else HIGHEST_HZ)
    device.max_clock_hz = HIGHEST_HZ
    bench = Bench(device, operator=TWICE, set_count=4)
    bench.warm()
    assert 56 == len(device.ran)  # two batches at the full clock agree


def test_a_card_that_never_wakes_is_measured_at_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At 0.57 of its clock, as a real card was: 0.3 s of warming up, then every sample counts."""
    monkeypatch.setattr(timing, "time", SimpleNamespace(monotonic=Clock()))
    device = FakeDevice(sm_hz=lambda _kernel, _calls: 0.57 * HIGHEST_HZ)
    device.max_clock_hz = HIGHEST_HZ
    bench = Bench(device, operator=TWICE, set_count=4)
    bench.warm()
    assert 16 < len(device.ran) < 2500
    bench.sample()
    assert [0.57 * HIGHEST_HZ] * 20 == [sample.sm_hz for sample in bench.entry.samples]


@pytest.mark.usefixtures("_patient")
def test_warming_leaves_no_samples_and_restores_what_it_changed() -> None:
    """Its calls are run, not counted; the kernel's time is known after it."""
    bench = Bench(FakeDevice(), set_count=6)
    bench.warm()
    assert ([], 1e-3) == (bench.entry.samples, bench.entry.median_s)
    assert all((bench.sets.buffers(n)["state"] == bench.first["state"]).all() for n in range(6))


# -- sampling -----------------------------------------------------------------------------------


def noisy(_kernel: str, calls: int) -> float:
    """Take 1.0 ms, or 1.1 ms every other time."""
    return 1e-3 * (1 + 0.1 * (calls % 2))


@pytest.mark.usefixtures("_still")
def test_precision_budget_and_count_each_say_that_they_ended_it() -> None:
    """Whichever comes first; the wish is the person's."""
    for ended, time_of, manner in (
        ("precision reached", lambda _kernel, _calls: 1e-3, {}),
        ("precision reached", noisy, {"precision_fraction": 0.1}),
        ("time budget of 0.004 s used", noisy, {"budget_s": 0.004}),
        ("1000 samples taken", noisy, {"budget_s": 600.0}),
    ):
        bench = Bench(FakeDevice(time_of), operator=TWICE, set_count=4)
        bench.sample(**manner)
        assert ended == bench.entry.ended


@pytest.mark.usefixtures("_still")
def test_a_batch_is_five_milliseconds_of_work_between_two_readings() -> None:
    """First few, for nobody knows the time; then five calls of a millisecond, never above 32."""
    for time_s, sizes in ((1e-3, [4, 5, 5, 5, 5]), (1e-5, [4, 32]), (0.1, [4, *[1] * 16])):
        bench = Bench(FakeDevice(lambda _kernel, _calls, told=time_s: told), operator=TWICE)
        bench.entry.median_s = None
        seen: list[int] = []
        conditions = bench.device.conditions

        def reading() -> Clocks:
            seen.append(len(bench.device.ran))  # noqa: B023  # used within the turn
            return conditions()  # noqa: B023  # used within the turn

        bench.device.conditions = reading
        bench.sample()
        assert sizes == [after - before for before, after in pairwise(seen)]


@pytest.mark.usefixtures("_still")
def test_batches_with_a_lead_stay_within_what_the_device_takes() -> None:
    """Eight calls at most: seven samples and the one that leads."""
    device = Led(lambda _kernel, _calls: 1e-6)
    device.most_calls = 8
    bench = Bench(device, operator=TWICE, set_count=4)
    lengths: list[int] = []
    plain: Callable[..., list[Sample]] = device.time

    def counted(calls: Sequence[Call], **how: Any) -> list[Sample]:
        lengths.append(len(calls))
        return plain(calls, **how)

    device.time = counted
    bench.sample()
    assert [6, 8, 8, 8] == lengths
    assert 5 + 7 + 7 + 7 == len(bench.entry.samples)


@pytest.mark.usefixtures("_still")
def test_a_graph_goes_over_all_sets_in_every_batch() -> None:
    """48 sets of one rotation; five samples a batch, 20 of them are precise."""
    bench = Bench(Graph(), operator=TWICE, set_count=32)
    assert 48 == bench.sets.count  # three caches on a card, of 16 sets each
    bench.sample()
    assert ([48] * 4, 20) == (bench.device.lengths, len(bench.entry.samples))


@pytest.mark.usefixtures("_still")
def test_a_graph_of_few_sets_takes_twenty_calls_all_the_same() -> None:
    """So that the step of its clock is shared."""
    bench = Bench(Graph(cache_bytes=MIB), operator=TWICE, mode="hot")
    bench.sample()
    assert [20] * 4 == bench.device.lengths


def test_a_graph_has_no_more_sets_than_it_takes_calls() -> None:
    """64 calls: 64 sets of the 150 that three caches would be, and the label says so."""
    bench = Bench(Graph(), operator=TWICE, set_count=100)
    assert (64, "unknown") == (bench.sets.count, bench.sets.cache)


@pytest.mark.usefixtures("_still")
def test_burst_rests_after_each_batch_and_keeps_what_it_read() -> None:
    """The conditions of the case are those of all its batches."""
    bench = Bench(FakeDevice(), operator=TWICE, set_count=4)
    conditions = bench.sample()
    assert (30.0 + 20, ["idle", "software power cap"]) == (
        conditions.temperature_c,
        list(conditions.reasons),
    )


@pytest.fixture
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let steady work settle within hundredths of a second."""
    monkeypatch.setattr(pace, "SETTLE_LEAST_S", 0.02)
    monkeypatch.setattr(pace, "SETTLE_WINDOW_S", 0.01)


@pytest.mark.usefixtures("_hurried")
def test_sustained_samples_carry_the_settled_clock() -> None:
    """A clock that falls for 400 calls: no sample above where it settles, and no rest between."""
    device = FakeDevice(
        sm_hz=lambda _kernel, calls: max(1.425e9, 1.965e9 - 4e7 * (calls // 10)),
    )
    bench = Bench(device, operator=TWICE, set_count=4)
    conditions = bench.sample(settle="sustained")
    assert {1.425e9} == {sample.sm_hz for sample in bench.entry.samples}
    assert 20 == len(bench.entry.samples)
    assert conditions.temperature_c == 30.0 + len(device.ran)


def test_steady_work_goes_ahead_of_each_sustained_batch_and_of_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenth of a second a batch: reading the last one's records was a rest."""
    monkeypatch.setattr(pace, "settle", lambda _batch: 0.0)
    for settle, worked_s in (("sustained", 0.4), ("burst", 0.0)):
        bench = Bench(FakeDevice(), operator=TWICE, set_count=4)
        bench.sample(settle=settle)
        assert (20, pytest.approx(worked_s)) == (len(bench.entry.samples), bench.device.worked_s)


def test_work_ahead_is_not_the_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second of samples, whatever was worked before each batch."""
    monkeypatch.setattr(pace, "settle", lambda _batch: 0.0)
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(timing, "time", SimpleNamespace(monotonic=lambda: now.s))

    class Works(FakeDevice):
        def time(self, calls: Sequence[Call], *, ahead_s: float = 0.0, **how: Any) -> list[Sample]:
            now.s += ahead_s + 0.05
            return super().time(calls, ahead_s=ahead_s, **how)

    bench = Bench(Works(noisy), operator=TWICE, set_count=4)
    bench.sample(settle="sustained", budget_s=0.49)
    assert ("time budget of 0.49 s used", pytest.approx(0.5)) == (
        bench.entry.ended,
        bench.entry.spent_s,
    )


@pytest.mark.usefixtures("_hurried")
def test_sustained_measures_one_kernel_after_the_other() -> None:
    """Each settles by its own work: in turn they would never be steady."""
    bench = Bench(FakeDevice(), operator=TWICE, set_count=4)
    other = bench.add("other", TWICE)
    bench.sample(bench.entry, other, settle="sustained")
    ran = bench.device.ran
    assert (["k"] * ran.count("k") + ["other"] * ran.count("other")) == ran
    assert [20, 20] == [len(each.samples) for each in (bench.entry, other)]


def test_steady_work_gives_a_word_with_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long budget is no hang: who is silent for --timeout seconds is stopped."""
    monkeypatch.setattr(pace, "settle", lambda _batch: 0.0)
    bench = Bench(FakeDevice(noisy), operator=TWICE, set_count=4)
    bench.sample(settle="sustained", budget_s=600.0)
    assert 1000 <= len(bench.entry.samples) < 1005
    assert len(bench.said) > 200


@pytest.mark.usefixtures("_still")
def test_an_entry_that_fails_while_sampled_leaves_the_others() -> None:
    """Whatever a device raises for it; a lost record is its own case's loss."""

    class Loses(FakeDevice):
        def time(self, calls: Sequence[Call], **how: Any) -> list[Sample]:
            found = super().time(calls, **how)
            if self.called == "loses":
                message = "0 of 5 stamps were recorded"
                raise RecordsLost(message, remedy="take --timer event_blocked")
            return found

    bench = Bench(Loses(), operator=TWICE, set_count=4)
    loses = bench.add("loses", TWICE)
    bench.sample(loses, bench.entry)
    assert loses.failed is not None
    assert ("time", "0 of 5 stamps were recorded") == (loses.failed.stage, loses.failed.message)
    assert 20 == len(bench.entry.samples)


def test_energy_is_taken_of_calls_on_restored_sets() -> None:
    """All of them in turn, and what they changed is mended afterwards."""

    class Counts(FakeDevice):
        def energy_per_call_j(self, calls: Sequence[Call]) -> float | None:
            for call in calls:
                call()
            return 0.25

    bench = Bench(Counts(), set_count=6)
    bench.sets.buffers(2)["state"][...] = 7.0
    timing.energies(bench.device, bench.sets, [bench.entry], bench.say)
    assert (0.25, [0, 1, 2, 3, 4, 5], 0) == (bench.entry.energy_j, bench.handed, bench.spoiled)
    assert all((bench.sets.buffers(n)["state"] == bench.first["state"]).all() for n in range(6))
