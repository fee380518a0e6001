"""The pace: a rest lets clock and power come back, steady work goes on until the clock settles."""

from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest
from fake_device import FakeDevice
from hypothesis import given
from hypothesis import strategies as st

from solkit.measure.device.base import Sample
from solkit.measure.pace import Conditions, begun, rest, settle
from solkit.model import Clocks

FULL = Clocks(sm_hz=1.98e9, memory_hz=3.2e9, temperature_c=35.0, power_w=100.0)
readings = st.lists(
    st.builds(
        Clocks,
        sm_hz=st.none() | st.floats(1e8, 3e9),
        power_w=st.none() | st.floats(1, 1000),
        temperature_c=st.none() | st.floats(1, 110),
        event_reasons=st.lists(st.sampled_from(["idle", "software power cap"])).map(tuple),
    ),
    min_size=1,
)


class Read(FakeDevice):
    """A device whose driver answers with the readings given; the last one for ever."""

    def __init__(self, *answers: Clocks, limit_w: float | None = None) -> None:
        super().__init__()
        self.power_limit_w = limit_w
        self.answers = chain(answers, repeat(answers[-1]))

    def conditions(self) -> Clocks:
        """Return the next reading."""
        return next(self.answers)


def clock(hz: float, power_w: float | None = None) -> Clocks:
    return Clocks(sm_hz=hz, power_w=power_w)


def rested(*answers: Clocks, limit_w: float | None = None) -> tuple[float, list[float]]:
    """Begin with the first reading, rest over the others: what rest says, and the naps it took."""
    device, naps = Read(*answers, limit_w=limit_w), []
    return rest(device, begun(device), sleep=naps.append), naps


def test_a_card_that_kept_its_clock_needs_no_rest() -> None:
    """One reading, no sleep."""
    assert (0.0, []) == rested(FULL, FULL)


def test_a_rest_ends_when_the_clock_is_back_within_one_percent() -> None:
    """Two readings below 99 % of the highest: two naps of 5 ms."""
    spent_s, naps = rested(clock(2e9), clock(1.5e9), clock(1.97e9), clock(1.99e9))
    assert ([0.005, 0.005], pytest.approx(0.01)) == (naps, spent_s)


def test_the_highest_clock_is_the_highest_ever_read() -> None:
    """It rose after the beginning: back means back there."""
    device, naps = Read(clock(1e9), clock(2e9), clock(1e9), clock(2e9)), []
    conditions = begun(device)
    assert 0.0 == rest(device, conditions, sleep=naps.append)
    assert 0.005 == rest(device, conditions, sleep=naps.append)


@pytest.mark.parametrize(("naps", "power_w"), [(0, 400.0), (1, 401.0)])
def test_power_is_back_when_it_is_nearer_to_rest_than_to_the_limit(
    naps: int, power_w: float
) -> None:
    """Between 100 W before and a limit of 700 W: up to 400 W."""
    before, after = clock(2e9, 100.0), clock(2e9, power_w)
    assert naps == len(rested(before, after, before, limit_w=700.0)[1])


def test_power_that_nobody_can_judge_delays_nothing() -> None:
    """No limit, no reading before, or none now: the clock alone decides."""
    low, high, unknown = clock(2e9, 100.0), clock(2e9, 690.0), clock(2e9)
    assert 0.0 == rested(low, high)[0]
    assert 0.0 == rested(unknown, high, limit_w=700.0)[0]
    assert 0.0 == rested(low, unknown, limit_w=700.0)[0]
    assert 0.0 == rested(Clocks(), Clocks(), limit_w=700.0)[0]


def test_a_card_at_its_limit_from_the_start_is_not_waited_for() -> None:
    """More power before than the limit, which was lowered: half of nothing is nothing."""
    assert 0.0 == rested(clock(2e9, 300.0), clock(2e9, 300.0), limit_w=250.0)[0]


def test_a_rest_takes_half_a_second_at_most() -> None:
    """A card that does not come back has a reason, and the conditions hold it."""
    device, naps = Read(clock(2e9), Clocks(sm_hz=1e9, event_reasons=("hardware thermal",))), []
    conditions = begun(device)
    assert pytest.approx(0.5, abs=0.005) == rest(device, conditions, sleep=naps.append)
    assert pytest.approx(0.5, abs=0.005) == sum(naps)
    assert ["hardware thermal"] == list(conditions.reasons)


@pytest.mark.parametrize("low", [clock(1e9, 100.0), clock(2e9, 690.0), clock(1e9, 690.0)])
def test_what_a_card_has_after_a_vain_rest_is_what_it_comes_back_to(low: Clocks) -> None:
    """Clock, power or both stay where they are: half a second once, then no rest."""
    device, naps = Read(clock(2e9, 100.0), low, limit_w=700.0), list[float]()
    conditions = begun(device)
    rests_s = [rest(device, conditions, sleep=naps.append) for _ in range(3)]
    assert [pytest.approx(0.5, abs=0.005), 0.0, 0.0] == rests_s
    assert (low, low.sm_hz) == (conditions.first, conditions.highest_hz)


def test_a_rest_that_ends_in_time_changes_nothing_of_what_to_come_back_to() -> None:
    """The first reading stays the first; the highest clock stays the highest."""
    first = clock(2e9, 100.0)
    device = Read(first, clock(1e9, 690.0), clock(1.99e9, 150.0), limit_w=700.0)
    conditions = begun(device)
    assert 0.005 == rest(device, conditions, sleep=lambda _s: None)
    assert (first, 2e9) == (conditions.first, conditions.highest_hz)


def test_a_card_that_falls_further_is_waited_for_again() -> None:
    """By one percent of what it had last; one that rises is taken at its word."""
    device = Read(clock(2e9))
    conditions = begun(device)

    def rested_s(hz: float) -> float:
        device.answers = repeat(clock(hz))
        return rest(device, conditions, sleep=lambda _s: None)

    half = pytest.approx(0.5, abs=0.005)
    waits = [(1.5e9, half), (1.49e9, 0.0), (1.48e9, half), (1.9e9, 0.0), (1.8e9, half)]
    assert [wanted for _, wanted in waits] == [rested_s(hz) for hz, _ in waits]


def test_a_clock_that_falls_silent_in_a_vain_rest_is_not_waited_for() -> None:
    """Power alone is left to come back to, at what it was."""
    device = Read(clock(2e9, 100.0), Clocks(power_w=690.0), limit_w=700.0)
    conditions = begun(device)
    assert pytest.approx(0.5, abs=0.005) == rest(device, conditions, sleep=lambda _s: None)
    assert (690.0, 0.0) == (conditions.first.power_w, conditions.highest_hz)
    device.answers = repeat(clock(1e9, 690.0))
    assert 0.0 == rest(device, conditions, sleep=lambda _s: None)


@given(seen=readings, limit_w=st.none() | st.floats(1, 1000))
def test_whatever_the_driver_says_a_rest_ends(seen: list[Clocks], limit_w: float | None) -> None:
    """And it says how long it slept."""
    spent_s, naps = rested(*seen, limit_w=limit_w)
    assert 0 <= spent_s <= 0.506
    assert pytest.approx(sum(naps)) == spent_s


def test_conditions_hold_extremes_and_every_reason_once() -> None:
    """Highest power and temperature, both ends of the clock, reasons as they came."""
    conditions = Conditions()
    conditions.add(Clocks(1.9e9, None, None, 3.2e9, 40.0, 300.0, ("software power cap",)))
    conditions.add(Clocks(1.2e9, None, None, 3.2e9, 55.0, 690.0, ("idle", "software power cap")))
    conditions.add(Clocks(1.5e9, None, None, 3.2e9, 50.0, None))
    assert (1.9e9, 1.2e9, 3.2e9) == (
        conditions.highest_hz,
        conditions.lowest_hz,
        conditions.memory_hz,
    )
    assert (55.0, 690.0) == (conditions.temperature_c, conditions.power_w)
    assert ["software power cap", "idle"] == list(conditions.reasons)


@given(seen=readings)
def test_what_was_never_read_stays_unknown(seen: list[Clocks]) -> None:
    """None, not zero, and not an older value's shadow."""
    conditions = Conditions()
    for each in seen:
        assert conditions.add(each) is each
    clocks = [each.sm_hz for each in seen if each.sm_hz is not None]
    powers = [each.power_w for each in seen if each.power_w is not None]
    assert (min(clocks, default=None), max(clocks, default=0.0)) == (
        conditions.lowest_hz,
        conditions.highest_hz,
    )
    assert max(powers, default=None) == conditions.power_w


class Work:
    """Batches of a tenth of a second each, on a clock of their own."""

    def __init__(self, hz_at: Callable[[float], float | None], batch_s: float = 0.1) -> None:
        self.hz_at, self.batch_s = hz_at, batch_s
        self.now_s, self.batch_count = 100.0, 0

    def batch(self) -> list[Sample]:
        """Work for a while."""
        hz = self.hz_at(self.now_s - 100.0)
        self.now_s += self.batch_s
        self.batch_count += 1
        return [Sample(1e-3, hz)] * 3

    def now(self) -> float:
        """Return the time of this test."""
        return self.now_s


def settled_s(hz_at: Callable[[float], float | None], batch_s: float = 0.1) -> float:
    work = Work(hz_at, batch_s)
    return settle(work.batch, now=work.now)


def test_a_clock_that_never_moves_is_settled_after_a_second() -> None:
    """At least a second of work, whatever the clock says; the last batch ends after it."""
    assert 1.0 <= settled_s(lambda _at_s: 1.98e9) <= 1.2


def test_work_goes_on_until_two_half_seconds_agree() -> None:
    """A clock that falls for three seconds, as an H200 does under its power cap."""
    falling = lambda at_s: max(1.425e9, 1.965e9 - 0.18e9 * at_s)  # noqa: E731  # a line is its shape
    assert 3.0 <= settled_s(falling) <= 4.0


@pytest.mark.parametrize(("settled", "step"), [(True, 0.009), (False, 0.011)])
def test_windows_agree_within_one_percent(*, settled: bool, step: float) -> None:
    """A clock that falls by that much every half second, for ever."""
    spent_s = settled_s(lambda at_s: 2e9 * (1 - step) ** int(at_s / 0.5 + 1e-6))
    assert settled is (spent_s < 2.0)


def test_a_clock_that_never_settles_costs_six_seconds() -> None:
    """And the batch that was under way."""
    swinging = lambda at_s: 1e9 if int(at_s / 0.5 + 1e-6) % 2 else 2e9  # noqa: E731  # a line
    assert 6.0 <= settled_s(swinging) <= 6.1 + 1e-6


def test_without_clocks_the_least_time_is_worked() -> None:
    """There is nothing to wait for."""
    assert 1.0 <= settled_s(lambda _at_s: None) <= 1.2


def test_one_long_call_is_a_window() -> None:
    """Calls of 0.7 s: each is compared with the one before."""
    assert settled_s(lambda _at_s: 1.5e9, batch_s=0.7) <= 2.2


def test_calls_too_long_for_two_windows_are_worked_for_six_seconds() -> None:
    """Of 1.2 s each: no half second has a neighbour to agree with."""
    assert 6.0 <= settled_s(lambda _at_s: 1.5e9, batch_s=1.2) <= 7.2


@given(hz=st.lists(st.none() | st.floats(2e8, 4e9), min_size=1), batch_s=st.floats(0.01, 1.0))
def test_steady_work_takes_one_to_six_seconds(hz: list[float | None], batch_s: float) -> None:
    """Whatever the clock does, and one batch more at most."""
    told: Iterator[float | None] = chain(hz, repeat(hz[-1]))
    assert 1.0 - 1e-6 <= settled_s(lambda _at_s: next(told), batch_s) <= 6.0 + batch_s + 1e-6
