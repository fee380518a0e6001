"""Taking samples: what is run, what counts, on which buffers, at which clock, and what ends it."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_device import MIB, CleaningDevice, FakeDevice
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.arg import Arg
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
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
    """One kernel that notes the set of each call and whether its state was the first one.

    Calls of steady work, which is no sample, are noted apart: `worked`, not `handed`.
    """

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
        self.worked: list[int] = []
        self.spoiled = 0

    def _sets(self, operator: Operator, mode: CacheMode) -> BufferSets:
        case = Case(operator.name, "k", {"rows": 8}, "fp32", cache_mode=mode)
        return buffers.make(self.device, operator, case, 3)

    def add(self, name: str, operator: Operator = STEP, mode: CacheMode = "cold") -> Entry:
        """Return one more entry on the same sets."""

        def function(**arrays: Any) -> None:
            out = arrays[operator.args[1].name]
            copies = self.sets.arrays[operator.args[1].name]
            working = self.device.working
            (self.worked if working else self.handed).append(
                next(
                    n
                    for n, each in enumerate(copies)
                    if each.base is out.base and each.ctypes.data == out.ctypes.data
                )
            )
            if "state" in arrays:
                same = (arrays["state"] == self.first["state"]).all()
                self.spoiled += not working and not same
                arrays["state"] += 1.0

        case = Case(operator.name, name, {"rows": 8}, "fp32", cache_mode=mode)
        bound = Bound(1e-6, {}, 1e-6, "memory", near_ridge=False)
        kernel = Kernel(name=name, operator=operator, function=function, device="cpu")
        entry = Entry(0, Job(case, Work(1, 1), (), bound, 64), operator, kernel)
        entry.program = self.device.prepare(kernel, operator, case, Path())
        entry.median_s = 1e-3  # as warming up leaves it
        return entry

    def batch(self, count: int, *, steadily: bool = False) -> list[Sample]:
        """Take a batch."""
        return timing.batch(self.device, self.sets, self.entry, count, steadily=steadily)

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


class Cleans(CleaningDevice):
    """A card: it cleans its cache, and its batches need calls that lead."""

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


@pytest.mark.parametrize(
    ("settle", "mode"),
    [*[("burst", mode) for mode in MODES], ("sustained", "cold")],
)
@pytest.mark.parametrize("set_count", [2, 3, 6, 7, 40])
@pytest.mark.usefixtures("_still", "_hurried")
def test_first_values_are_there_in_a_whole_measurement(
    settle: str, mode: CacheMode, set_count: int
) -> None:
    """From the first warming call to the last sample, however few the sets are."""
    for device in (FakeDevice(cache_bytes=MIB), Led(cache_bytes=MIB), Cleans(cache_bytes=MIB)):
        bench = Bench(device, mode=mode, set_count=set_count)
        bench.warm()
        bench.sample(settle=settle)
        assert (0, "precision reached") == (bench.spoiled, bench.entry.ended)


@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=8), set_count=st.integers(2, 60))
def test_in_place_arguments_see_their_first_values_behind_steady_work(
    counts: list[int], set_count: int
) -> None:
    """The work before a batch changes its own sets again and again, and never the batch's."""
    for device in (FakeDevice(), Led()):
        bench = Bench(device, set_count=set_count)
        for count in counts:
            bench.worked.clear()
            bench.handed.clear()
            assert 1 <= len(bench.batch(count, steadily=True)) <= count
            assert bench.worked
            assert set() == set(bench.worked) & set(bench.handed)
        assert 0 == bench.spoiled


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


class Loses(FakeDevice):
    """A device that loses the records of some batches, by their number, after their calls ran."""

    def __init__(self, *batches: int, **named: Any) -> None:
        super().__init__(**named)
        self.lost, self.count = batches, 0

    def time(self, calls: Sequence[Call], **how: Any) -> list[Sample]:
        """Run the calls; raise where their records are lost."""
        found = super().time(calls, **how)
        self.count += 1
        if self.count in self.lost:
            message = "0 of 5 stamps were recorded"
            raise RecordsLost(message, remedy="take --timer event_blocked")
        return found


@pytest.mark.parametrize("steadily", [False, True])
@pytest.mark.parametrize("set_count", [2, 3, 12])
def test_a_batch_whose_records_were_lost_is_taken_once_more_on_first_values(
    set_count: int, *, steadily: bool
) -> None:
    """Its sets are drawn anew, those of the work ahead too; the method stays."""
    device = Loses(1, 3)
    bench = Bench(device, set_count=set_count)
    for taken in (2, 4):
        assert 1 <= len(bench.batch(5, steadily=steadily)) <= 5
        assert (taken, 0, True) == (device.count, bench.spoiled, bench.entry.blocked)


def test_cold_calls_go_on_behind_a_batch_whose_records_were_lost() -> None:
    """Its sets were read: the next ones are the coldest."""
    bench = Bench(Loses(1), operator=TWICE, set_count=7)
    assert 3 == len(bench.batch(3))
    assert [1, 2, 3, 4, 5, 6] == bench.handed


def test_records_that_are_lost_twice_are_the_cases_failure() -> None:
    """Batch after batch would be lost: it says so instead."""
    device = Loses(1, 2)
    bench = Bench(device, operator=TWICE, set_count=4)
    bench.sample()
    assert bench.entry.failed is not None
    assert "0 of 5 stamps were recorded" == bench.entry.failed.message
    assert (2, []) == (device.count, bench.entry.samples)


@pytest.mark.usefixtures("_still")
def test_lost_records_cost_no_sample_that_was_taken() -> None:
    """Batches of five: the third is lost and taken again, twenty samples are there all the same."""
    device = Loses(3)
    bench = Bench(device, operator=TWICE, set_count=4)
    bench.sample()
    assert (5, 20, 25) == (device.count, len(bench.entry.samples), len(bench.handed))


def test_a_call_that_waits_whatever_is_done_fails_its_case() -> None:
    """Blocked, two calls of it, then not blocked; there is no other way."""
    tried: list[bool] = []

    class Never(FakeDevice):
        def time(self, calls: Sequence[Call], *, blocked: bool = True, **how: Any) -> list[Sample]:
            tried.append(blocked)
            message = f"{len(calls)} calls wait, {sorted(how)}"
            raise Unblockable(message)

    bench = Bench(Never(), operator=TWICE, set_count=4)
    bench.sample()
    assert bench.entry.failed is not None
    said = ("5 calls wait, ['ahead', 'mode']", [True, True, False])
    assert said == (bench.entry.failed.message, tried)
    with pytest.raises(Unblockable, match="2 calls wait"):
        bench.batch(2)  # not blocked any more: the same would be the same
    assert [True, True, False, False] == tried


def test_a_call_that_waits_behind_steady_work_is_taken_again_on_first_values() -> None:
    """The sets of the work ahead are drawn anew as well."""
    for set_count in (2, 3, 12):
        bench = Bench(FakeDevice(unblockable=("k",)), set_count=set_count)
        assert 1 <= len(bench.batch(5, steadily=True)) <= 5
        assert (False, 0) == (bench.entry.blocked, bench.spoiled)


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


@pytest.mark.parametrize(("calls", "mode"), [(33, "cold"), (0, "hot"), (0, "clean"), (0, "zeroed")])
@pytest.mark.usefixtures("_patient")
def test_the_cache_settles_before_cold_calls_warm_up(calls: int, mode: CacheMode) -> None:
    """Each kernel's own, by a whole rotation; the other modes make their own state."""
    bench = Bench(Cleans(cache_bytes=MIB), operator=TWICE, mode=mode, set_count=10)
    other = bench.add("other", TWICE, mode)
    timing.warm(bench.device, bench.sets, [bench.entry, other], bench.say)
    assert ([calls] * 2 if calls else []) == bench.device.settled
    assert 2 * (20 + calls) == len(bench.handed)  # twice eight warm up, in batches of 5 and 3, led


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
        def time(
            self, calls: Sequence[Call], *, ahead: Sequence[Call] = (), **how: Any
        ) -> list[Sample]:
            now.s += (0.1 if ahead else 0.0) + 0.05
            return super().time(calls, ahead=ahead, **how)

    bench = Bench(Works(noisy), operator=TWICE, set_count=4)
    bench.sample(settle="sustained", budget_s=0.49)
    assert ("time budget of 0.49 s used", pytest.approx(0.5)) == (
        bench.entry.ended,
        bench.entry.spent_s,
    )


@pytest.mark.parametrize(
    ("worked", "handed", "set_count", "count"),
    [
        ([1, 2, 3], [4, 5, 6, 0], 7, 3),  # three samples and the call that leads them
        ([1], [2, 3, 4, 5, 6, 0, 1, 2], 7, 7),  # the batch goes over all sets by itself
        ([1], [0, 1, 0], 2, 2),
        ([*range(1, 513)], [513, 514, 515], 600, 2),  # 512 are enough
    ],
)
def test_steady_work_goes_over_other_sets_than_the_batch(
    worked: list[int], handed: list[int], set_count: int, count: int
) -> None:
    """Where there are any, 512 at most, in the order of the rotation."""
    bench = Bench(Led(), operator=TWICE, set_count=set_count)
    samples = bench.batch(count, steadily=True)
    assert (worked * 2, len(handed) - 1) == (bench.worked, len(samples))
    assert handed == bench.handed


def test_hot_steady_work_is_on_the_one_set_there_is() -> None:
    """The same buffers, which nothing changes."""
    bench = Bench(Led(cache_bytes=MIB), operator=TWICE, mode="hot")
    assert 3 == len(bench.batch(3, steadily=True))
    assert ([0, 0], [0] * 4) == (bench.worked, bench.handed)


def test_steady_work_shares_the_only_set_that_memory_has_room_for() -> None:
    """Cold, and as large as the cache: there is nothing else to work on."""
    bench = Bench(Cleans(free_bytes=3 * SET_BYTES), operator=TWICE, set_count=2)
    assert (1, True) == (bench.sets.count, bench.sets.once)
    assert [1, 1] == [len(bench.batch(5, steadily=True)) for _ in range(2)]
    assert ([0] * 4, [0, 0], [0]) == (bench.worked, bench.handed, bench.device.settled)


@pytest.mark.parametrize("mode", ["clean", "zeroed", "hot"])
def test_an_operator_in_place_is_not_sustained_on_one_set(mode: CacheMode) -> None:
    """The work before a batch would change what the batch begins with: refused before it runs."""
    bench = Bench(FakeDevice(cache_bytes=MIB), mode=mode)
    bench.sample(settle="sustained")
    failed = bench.entry.failed
    assert failed is not None
    assert (
        "time",
        "steady work on one buffer set changes the in-place argument 'state' again and again",
        "take --cache cold or --settle burst for such operators",
    ) == (failed.stage, failed.message, failed.remedy)
    assert ([], [], []) == (bench.entry.samples, bench.handed, bench.worked)


@pytest.mark.parametrize("mode", ["clean", "zeroed", "hot"])
@pytest.mark.usefixtures("_hurried")
def test_an_operator_that_changes_nothing_is_sustained_in_every_mode(mode: CacheMode) -> None:
    """On its one set."""
    bench = Bench(FakeDevice(cache_bytes=MIB), operator=TWICE, mode=mode)
    bench.sample(settle="sustained")
    assert (None, 20) == (bench.entry.failed, len(bench.entry.samples))


@pytest.mark.parametrize("mode", ["cold", "hot"])
def test_an_operator_in_place_is_not_put_into_a_graph(mode: CacheMode) -> None:
    """It is replayed as a whole, with no restore between: refused before it runs."""
    bench = Bench(Graph(), mode=mode)
    bench.warm()
    failed = bench.entry.failed
    assert failed is not None
    assert (
        "time",
        "a graph that is replayed changes the in-place argument 'state' again and again",
        "take --timer cupti or event_blocked for such operators",
    ) == (failed.stage, failed.message, failed.remedy)
    assert [] == bench.handed


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


def test_energy_is_taken_of_calls_on_all_sets() -> None:
    """In turn; steady work that would change its arguments again and again is not measured."""

    class Counts(FakeDevice):
        def energy_per_call_j(self, calls: Sequence[Call]) -> float | None:
            for call in calls:
                call()
            return 0.25

    bench = Bench(Counts(), operator=TWICE, set_count=6)
    timing.energies(bench.device, bench.sets, [bench.entry], bench.say)
    assert (0.25, [0, 1, 2, 3, 4, 5]) == (bench.entry.energy_j, bench.handed)
    in_place = Bench(Counts(), set_count=6)
    timing.energies(in_place.device, in_place.sets, [in_place.entry], in_place.say)
    assert (None, []) == (in_place.entry.energy_j, in_place.handed)
    assert "in-place arguments again and again" in in_place.entry.notes[0]


@pytest.mark.parametrize("mode", ["clean", "zeroed"])
def test_energy_with_a_flush_between_calls_is_not_measured(mode: CacheMode) -> None:
    """It would be the flush's; a device that counts none says so as well."""
    bench = Bench(FakeDevice(), operator=TWICE, mode=mode, set_count=1)
    timing.energies(bench.device, bench.sets, [bench.entry], bench.say)
    assert "a flush between the calls" in bench.entry.notes[0]
    uncounted = Bench(FakeDevice(), operator=TWICE, set_count=4)
    timing.energies(uncounted.device, uncounted.sets, [uncounted.entry], uncounted.say)
    assert "this device does not count it" in uncounted.entry.notes[0]


def test_a_batch_too_long_for_the_queue_is_taken_in_two_calls() -> None:
    """Many kernels a call: the host is held up by a full queue, not by the call."""

    class Short(FakeDevice):
        def time(self, calls: Sequence[Call], **how: Any) -> list[Sample]:
            if len(calls) > 2:
                message = "the queue is full"
                raise Unblockable(message)
            return super().time(calls, **how)

    bench = Bench(Short(), operator=TWICE, set_count=4)
    bench.sample()
    assert (True, 2, 20) == (bench.entry.blocked, bench.entry.most_count, len(bench.entry.samples))


def test_sets_used_once_are_timed_once_between_two_cleanings() -> None:
    """Larger than the cache, 33 of them: the work ahead and the lead take theirs of the turn."""
    device = Cleans()
    bench = Bench(device, operator=TWICE, set_count=1)
    assert (33, True) == (bench.sets.count, bench.sets.once)
    turns: list[list[int]] = [[]]
    for steadily in (False, True, True, False, False):
        cleaned = len(device.settled)
        bench.handed.clear()
        bench.worked.clear()
        bench.batch(8, steadily=steadily)
        turns += [[] for _ in device.settled[cleaned:]]
        turns[-1] += [*bench.worked[: len(bench.worked) // 2], *bench.handed]
    assert [[*range(33)], [*range(33)], [*range(18)]] == turns
    assert [0, 0] == device.settled
