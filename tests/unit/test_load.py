"""How a device is loaded while a rate is taken: rested, or until its clock has settled."""

from collections.abc import Callable, Sequence

import pytest

from solkit.measure import load
from solkit.measure.device.base import Call, Sample
from solkit.measure.device.cpu import CpuDevice
from solkit.measure.pace import AHEAD_S
from solkit.model import CacheMode, Clocks


class Heated(CpuDevice):
    """A chip whose calls take `time_s`, and whose clock falls as work goes on without a rest."""

    most_calls = 64

    def __init__(self, time_s: float, power_w: float | None = None) -> None:
        super().__init__()
        self.time_s, self.power_w = time_s, power_w
        self.sm_hz = 1.98e9
        self.batches: list[int] = []
        self.now_s = self.worked_s = 0.0

    def time(
        self,
        calls: Sequence[Call],
        *,
        mode: CacheMode = "cold",
        blocked: bool = True,  # noqa: ARG002  # the protocol's
        ahead: Sequence[Call] = (),
    ) -> list[Sample]:
        """Let the work pass, and lower the clock for it."""
        assert mode == "hot"
        ahead_s = AHEAD_S if ahead else 0.0
        self.now_s += ahead_s
        self.worked_s += ahead_s
        self.batches.append(len(calls))
        self.now_s += self.time_s * len(calls)
        self.worked_s += self.time_s * len(calls)
        hz = max(1.98e9 - 1.2e9 * self.worked_s, 1.425e9)
        return [Sample(self.time_s, hz)] * len(calls)

    def conditions(self) -> Clocks:
        """Return the clock and the power that the test gave it."""
        return Clocks(sm_hz=self.sm_hz, power_w=self.power_w)

    @property
    def power_limit_w(self) -> float | None:
        """An H200's."""
        return 700.0


def nothing() -> None:
    pass


@pytest.mark.parametrize(
    ("time_s", "count"), [(1e-4, 3), (1.4e-3, 3), (3e-3, 2), (0.012, 1), (0.5, 1)]
)
def test_a_burst_is_a_few_calls_after_each_rest(time_s: float, count: int) -> None:
    """Three calls, fewer where they would be over 8 ms together; two calls before all warm up."""
    device, heard = Heated(time_s), list[int]()
    samples = load.burst(device, nothing, rest=lambda: heard.append(len(device.batches)))
    assert [2, count, count, count, count] == device.batches
    assert [1, 2, 3, 4] == heard
    assert 4 * count == len(samples)


def test_sustained_samples_are_of_a_settled_clock() -> None:
    """It falls from 1980 MHz for half a second; every one of the 20 samples is at 1425 MHz."""
    device = Heated(1.6e-3)
    samples = load.sustained(device, nothing, now=lambda: device.now_s)
    assert [1.425e9] * 20 == [sample.sm_hz for sample in samples]
    assert 1.425e9 == load.clock_hz(samples)
    assert {2, 5} == set(device.batches)  # 8 ms a batch, each behind a tenth of a second of work
    assert device.worked_s > 0.9 * device.now_s


def test_a_sustained_batch_holds_no_more_calls_than_are_wanted() -> None:
    """A call of 100 us would fit 80 times."""
    device = Heated(1e-4)
    load.sustained(device, nothing, now=lambda: device.now_s)
    assert 20 == max(device.batches)


def test_clocks_that_nobody_tells_are_unknown() -> None:
    """No reading is no clock, never zero."""
    assert load.clock_hz([Sample(1e-6), Sample(1e-6)]) is None
    assert 1.5e9 == load.clock_hz([Sample(1e-6, 1.4e9), Sample(1e-6), Sample(1e-6, 1.6e9)])


def slept() -> tuple[list[float], Callable[[float], None]]:
    times: list[float] = []
    return times, times.append


def test_a_rest_is_at_least_thirty_milliseconds() -> None:
    """Where the driver says that all is back, or says nothing, that is all the rest there is."""
    times, sleep = slept()
    rest = load.Rests(Heated(1e-3), sleep=sleep)
    rest()
    assert [0.03] == times


@pytest.mark.parametrize(("sm_hz", "power_w"), [(1.98e9, 690.0), (1.2e9, 100.0)])
def test_a_card_that_never_comes_back_is_waited_for_once(sm_hz: float, power_w: float) -> None:
    """Power that stays up, or a clock that stays low: half a second, not after every batch."""
    times, sleep = slept()
    device = Heated(1e-3, power_w=100.0)
    rest = load.Rests(device, sleep=sleep)
    device.sm_hz, device.power_w = sm_hz, power_w
    for _ in range(100):
        rest()
    assert 0.5 == pytest.approx(rest.waited_s)
    assert 100 * 0.03 + 0.5 == pytest.approx(sum(times))


def test_rests_end_where_a_card_falls_again_and_again() -> None:
    """A clock two percent lower each time: half a second a rest, twenty seconds in all."""
    times, sleep = slept()
    device = Heated(1e-3)
    rest = load.Rests(device, sleep=sleep)
    waits: list[float] = []
    for _ in range(100):
        device.sm_hz *= 0.98
        before_s = rest.waited_s
        rest()
        waits.append(rest.waited_s - before_s)
    assert 20.0 <= rest.waited_s < 20.6
    assert [pytest.approx(0.5)] * 40 == waits[:40]
    assert {0.0} == set(waits[41:])
    assert 100 * 0.03 + rest.waited_s == pytest.approx(sum(times))
