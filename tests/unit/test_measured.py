"""An entry's samples become its outcome: every sample counts, and what is not known is not said."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from fake_device import FakeDevice
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.arg import Arg
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.measure.buffers import BufferSets
from solkit.measure.device.base import Program, Sample
from solkit.measure.entry import Entry
from solkit.measure.measured import LIMITS, outcome, throttled_count
from solkit.measure.pace import Conditions
from solkit.model import Bound, CacheMode, Case, Check, Clocks, Failed, Measured, SlowMode, Work
from solkit.plan.jobs import Job

US = 1e-6
A100_HZ = 1.41e9
COPY = Operator(
    name="copy",
    args=(Arg("x", "rows"), Arg("y", "rows", "out")),
    work=lambda _case: Work(1, 1),
    reference=lambda x: x,
)
KERNEL = Kernel(name="k", operator=COPY, function=print, device="cpu")
CHECK = Check(0.5, 8, "whole", "1e-6 relative", 7)


def entry_of(samples: Sequence[Sample], *, mode: CacheMode = "cold", **held: Any) -> Entry:
    case = Case("copy", "k", {"rows": 8}, "fp32", cache_mode=mode)
    bound = Bound(1e-6, {}, 1e-6, "memory", near_ridge=False)
    entry = Entry(0, Job(case, Work(32, 32), (), bound, 64), COPY, KERNEL)
    entry.program, entry.check = Program(lambda _buffers: lambda: None), CHECK
    entry.samples, entry.ended = list(samples), "precision reached"
    for name, value in held.items():
        setattr(entry, name, value)
    return entry


def told(
    entry: Entry,
    *reasons: str,
    highest_hz: float | None = A100_HZ,
    cache: str = "",
    proved: bool = True,
    conditions: Conditions | None = None,
    strangers: int = 0,
) -> Measured:
    """Return the outcome of an entry that was measured, under the limits the driver named."""
    device = FakeDevice()
    device.max_clock_hz = highest_hz
    seen = conditions or Conditions()
    seen.reasons.update(dict.fromkeys(reasons))
    sets = BufferSets(COPY.args, {}, {}, 5, cache or entry.job.case.cache_mode, 64)
    found = outcome(
        entry, device, sets, seen, floor_s=0.6 * US, proved=proved, other_process_count=strangers
    )
    assert isinstance(found, Measured), found
    return found


def at(hz: float | None, *times_us: float) -> list[Sample]:
    return [Sample(time_us * US, hz) for time_us in times_us]


def test_a_card_at_57_percent_of_its_clock_keeps_every_sample() -> None:
    """All thirty are kept, counted and marked; median, reason and clock are there."""
    samples = at(0.57 * A100_HZ, *[10.0] * 30)
    found = told(entry_of(samples), "software power cap")
    assert (30, 30) == (found.sample_count, found.throttled_count)
    assert (10.0 * US,) * 3 == (found.median_s, found.low_s, found.high_s)
    assert (0.57 * A100_HZ,) * 30 == found.sample_hz
    assert ("software power cap",) == found.clocks.event_reasons
    assert pytest.approx(0.57 * A100_HZ) == found.clocks.sm_hz


@pytest.mark.parametrize(("once", "fraction"), [(True, 0.007), (False, 0.0)])
def test_buffers_larger_than_the_cache_widen_the_interval(*, once: bool, fraction: float) -> None:
    """Thirty equal samples: 0.7 % to each side for where such buffers lie, else nothing."""
    entry, sets = (
        entry_of(at(None, *[10.0] * 30)),
        BufferSets(COPY.args, {}, {}, 5, "cold", 64, once),
    )
    found = outcome(
        entry, FakeDevice(), sets, Conditions(), floor_s=US, proved=True, other_process_count=0
    )
    assert isinstance(found, Measured)
    assert fraction == found.place_fraction
    ends = (found.low_s, found.high_s)
    assert pytest.approx((10 * US * (1 - fraction), 10 * US * (1 + fraction))) == ends


@pytest.mark.parametrize("reason", LIMITS)
def test_a_low_clock_with_a_limit_is_throttled(reason: str) -> None:
    """Power, heat, or the board itself."""
    assert 2 == throttled_count([0.57e9, 0.9e9, 1.0e9], [reason], 1.0e9)


@pytest.mark.parametrize(
    "reasons",
    [
        (),
        ("idle",),
        ("application clocks",),
        ("display clock",),
        ("sync boost",),
        ("reason 0x200",),
    ],
)
def test_a_low_clock_without_a_limit_is_no_throttling(reasons: tuple[str, ...]) -> None:
    """A card that wakes up, or one that was told to run so."""
    assert 0 == throttled_count([0.17e9, 0.57e9], reasons, 1.0e9)


def test_a_limit_at_a_full_clock_is_no_throttling() -> None:
    """The driver named one at some moment; these samples did not feel it."""
    assert 0 == throttled_count([0.95e9, 0.96e9, 1.0e9], ["software power cap"], 1.0e9)


def test_idle_beside_a_limit_does_not_hide_it() -> None:
    """Reasons are gathered over the whole case, its rests too."""
    assert 1 == throttled_count([0.8e9, 1.0e9], ["idle", "software power cap"], 1.0e9)


def test_without_a_highest_clock_nothing_is_low() -> None:
    """A host, or a card that does not tell."""
    assert 0 == throttled_count([0.1e9], ["hardware thermal"], None)


@given(
    hz=st.lists(st.floats(1e8, 4e9)),
    reasons=st.lists(st.sampled_from([*LIMITS, "idle", "application clocks"])),
    highest_hz=st.none() | st.floats(1e8, 4e9),
)
def test_only_samples_below_the_highest_clock_are_ever_marked(
    hz: list[float], reasons: list[str], highest_hz: float | None
) -> None:
    """And never one more for a reason less."""
    count = throttled_count(hz, reasons, highest_hz)
    assert 0 <= count <= sum(each < (highest_hz or 0.0) for each in hz)
    assert throttled_count(hz, reasons[1:], highest_hz) <= count


def test_no_sample_is_dropped_whatever_its_time() -> None:
    """An outlier of a hundred times stays in the count, the extremes and the list."""
    found = told(entry_of(at(None, *[1.0] * 9, 100.0)))
    assert 10 == found.sample_count == len(found.times_s)
    assert (pytest.approx(1.0 * US), pytest.approx(100.0 * US)) == (
        found.quantiles_s["0"],
        found.quantiles_s["1"],
    )
    assert pytest.approx(1.0 * US) == found.median_s


def test_a_second_slower_group_is_named() -> None:
    """Eighty samples at 1.0 and twenty at 1.6 us: a fifth of them, none thrown away."""
    found = told(entry_of(at(None, *[1.0, 1.0, 1.6, 1.0, 1.0] * 20)))
    assert SlowMode(pytest.approx(1.6 * US), 0.2) == found.slow_mode
    assert 100 == found.sample_count


def test_times_and_clocks_of_many_samples_are_thinned_alike() -> None:
    """A thousand samples, a hundred of each kept: the n-th clock is the n-th time's."""
    samples = [Sample(number * US, 1e9 + number) for number in range(1, 1001)]
    found = told(entry_of(samples))
    assert (1000, 100, 100) == (found.sample_count, len(found.times_s), len(found.sample_hz))
    assert all(
        pytest.approx((hz - 1e9) * US) == time_s
        for time_s, hz in zip(found.times_s, found.sample_hz, strict=True)
    )


def test_clocks_are_read_from_the_samples_that_have_one() -> None:
    """Median and extremes; the driver's own reading stands beside them."""
    samples = [*at(1.2e9, 1.0), *at(None, 1.0), *at(1.4e9, 1.0), *at(1.3e9, 1.0)]
    conditions = Conditions()
    conditions.add(Clocks(1.1e9, None, None, 3.2e9, 60.0, 650.0, ("idle",)))
    found = told(entry_of(samples), conditions=conditions)
    assert Clocks(1.3e9, 1.2e9, 1.4e9, 3.2e9, 60.0, 650.0, ("idle",), 1.1e9) == found.clocks
    assert (1.2e9, None, 1.4e9, 1.3e9) == found.sample_hz


def test_without_any_clock_none_is_invented() -> None:
    """No median, no extremes, no list of Nones, and nobody is throttled."""
    found = told(entry_of(at(None, 1.0, 1.0)), "software power cap", highest_hz=None)
    assert (None, None, None) == (
        found.clocks.sm_hz,
        found.clocks.sm_low_hz,
        found.clocks.sm_high_hz,
    )
    assert ((), 0) == (found.sample_hz, found.throttled_count)


def test_busy_time_is_that_of_calls_with_several_kernels() -> None:
    """Its median; a call of one kernel has none."""
    several = [Sample(9 * US, None, busy_us * US) for busy_us in (5.0, 7.0, 6.0)]
    assert pytest.approx(6.0 * US) == told(entry_of(several)).busy_s
    assert told(entry_of(at(None, 9.0, 9.0))).busy_s is None


def test_a_proved_label_stands_without_a_note() -> None:
    """The mode is what was asked for, and what the footprint shows."""
    for mode in ("cold", "clean", "zeroed", "hot"):
        found = told(entry_of(at(None, 1.0), mode=mode))
        assert (mode, ()) == (found.cache, found.notes)


@pytest.mark.parametrize("mode", ["cold", "clean", "zeroed", "hot"])
def test_a_mode_that_this_card_did_not_show_is_unknown_and_says_so(mode: CacheMode) -> None:
    """Whatever the footprint says; the note names the mode."""
    found = told(entry_of(at(None, 1.0), mode=mode), proved=False)
    assert "unknown" == found.cache
    (note,) = found.notes
    assert f"this card did not show the times that {mode!r} should make" in note


@pytest.mark.parametrize(
    ("note", "mode"),
    [
        ("not cold for certain: 5 buffer sets are all that memory or a graph holds", "cold"),
        ("hot only in part: its buffers are larger than half the L2", "hot"),
    ],
)
def test_a_footprint_that_does_not_prove_its_label_is_explained(note: str, mode: CacheMode) -> None:
    """Too few sets, or too large a set."""
    found = told(entry_of(at(None, 1.0), mode=mode), cache="unknown")
    assert ("unknown", (note,)) == (found.cache, found.notes)


@pytest.mark.parametrize("mode", ["cold", "hot"])
def test_a_mode_that_nothing_proves_has_one_note(mode: CacheMode) -> None:
    """That the card did not show it says more than that the footprint would not do, either."""
    (note,) = told(entry_of(at(None, 1.0), mode=mode), cache="unknown", proved=False).notes
    assert f"this card did not show the times that {mode!r} should make" in note


def test_a_call_that_was_not_blocked_names_its_method_and_what_it_costs() -> None:
    """Its samples may hold host time."""
    found = told(entry_of(at(None, 1.0), blocked=False))
    assert "formula_unblocked" == found.method
    assert "they may hold host time" in found.notes[0]
    assert "formula" == told(entry_of(at(None, 1.0))).method


def test_the_notes_of_a_program_come_first() -> None:
    """What its preparation had to say is the author's own."""
    entry = entry_of(at(None, 1.0), blocked=False)
    entry.program = replace(entry.ready, notes=("the compiler spilled registers",))
    notes = told(entry, proved=False).notes
    assert "the compiler spilled registers" == notes[0]
    assert 3 == len(notes)


def test_what_else_was_found_is_handed_on() -> None:
    """The rule that ended it, its check, sets, launches, energy, floor, strangers."""
    entry = entry_of(at(None, 1.0), energy_j=0.25, ended="1000 samples taken")
    entry.program = replace(entry.ready, launch_count=3)
    found = told(entry, strangers=2)
    assert ("1000 samples taken", CHECK, 5, 3) == (
        found.ended,
        found.check,
        found.set_count,
        found.launch_count,
    )
    assert (0.25, 0.6 * US, 2) == (found.energy_j, found.floor_s, found.other_process_count)


def outcome_of(entry: Entry) -> Failed:
    sets = BufferSets(COPY.args, {}, {}, 5, "cold", 64)
    found = outcome(
        entry, FakeDevice(), sets, Conditions(), floor_s=0.0, proved=True, other_process_count=0
    )
    assert isinstance(found, Failed), found
    return found


def test_a_failure_stays_the_failure_that_it_was() -> None:
    """Samples taken before it are no result."""
    entry = entry_of(at(None, *[1.0] * 30))
    entry.failed = Failed(entry.job.case, "time", "it broke", "mend it")
    assert entry.failed == outcome_of(entry)


def test_an_entry_that_nobody_checked_is_no_measurement() -> None:
    """Times of a kernel that may be wrong are not published."""
    found = outcome_of(entry_of(at(None, *[1.0] * 30), check=None))
    assert ("check", "it was never checked") == (found.stage, found.message)
    assert found.remedy
