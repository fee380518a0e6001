"""The CPU device: NumPy on this host, timed as it is."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from solkit.errors import NoDevice
from solkit.measure.device.base import TIMERS, Call
from solkit.measure.device.cpu import LEAST_CACHE_BYTES, CpuDevice
from solkit.model import CacheMode, Clocks

MIB = 2**20
STATM = Path("/proc/self/statm")


def small_device(cache_bytes: int = 8 * MIB) -> CpuDevice:
    device = CpuDevice()
    device._cache_bytes = cache_bytes  # this host's own is 128 MiB at least
    return device


def resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("timer", [name for name in TIMERS if name != "auto"])
def test_a_timer_of_cuda_is_refused_with_both_remedies(timer: str) -> None:
    """A machine that lacks what was asked for: exit code 4, never another timer in silence."""
    with pytest.raises(NoDevice) as caught:
        CpuDevice(timer)
    assert f"the timer {timer} needs a CUDA device" in caught.value.message
    assert ("leave --timer out, or take --device cuda", 4) == (
        caught.value.remedy,
        caught.value.exit_code,
    )


def test_it_has_one_way_of_taking_times() -> None:
    """Nothing is queued, so nothing can be blocked; no call leads, no batch is a graph."""
    device = CpuDevice("auto")
    assert ("perf_counter", "perf_counter") == (device.method, device.unblocked_method)
    assert (0, False) == (device.lead_count, device.whole_rotation)
    assert ["perf_counter"] == list(device.floors_s())


def test_what_a_host_does_not_tell_is_unknown() -> None:
    """No clock, no power, no energy, no other process: None, and no number in its place."""
    device = CpuDevice()
    assert (None, None) == (device.max_clock_hz, device.power_limit_w)
    assert Clocks() == device.conditions()
    assert device.energy_per_call_j([lambda: None]) is None
    assert 0 == device.other_process_count()
    assert "" == device.stray_work(lambda: None, [])


def test_the_floor_is_what_an_empty_call_reads() -> None:
    """Above nothing and far below a microsecond times ten."""
    assert 0 < CpuDevice().floor_s() < 1e-5


def test_its_tick_is_that_of_the_performance_counter() -> None:
    """A nanosecond at the finest, since that is what it is read in."""
    wanted = max(time.get_clock_info("perf_counter").resolution, 1e-9)
    assert wanted == CpuDevice().tick_s


def test_rotation_reckons_with_a_cache_of_128_mib_at_least() -> None:
    """Virtual machines are told less than the host's cache holds."""
    assert CpuDevice().cache_bytes >= LEAST_CACHE_BYTES == 128 * MIB


@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.parametrize("mode", ["cold", "clean", "zeroed", "hot"])
def test_every_call_is_a_sample_in_order(*, mode: CacheMode, blocked: bool) -> None:
    """None leads, none is left out, and a sample has neither clock nor busy time."""
    ran: list[int] = []
    calls: list[Call] = [lambda number=number: ran.append(number) for number in range(5)]
    samples = small_device().time(calls, mode=mode, blocked=blocked)
    assert [0, 1, 2, 3, 4] == ran
    assert 5 == len(samples)
    assert all(sample.time_s > 0 for sample in samples)
    assert {(None, None)} == {(sample.sm_hz, sample.busy_s) for sample in samples}


def test_a_sample_is_the_time_of_its_call() -> None:
    """Naps of 5 and of 15 ms read that much at least."""
    short, long = CpuDevice().time([lambda: time.sleep(0.005), lambda: time.sleep(0.015)])
    assert 0.005 <= short.time_s
    assert 0.015 <= long.time_s


def test_steady_work_ahead_is_of_the_same_calls_and_is_no_sample() -> None:
    """For the time asked for, over all calls in turn; then each call's one sample."""
    ran: list[int] = []
    calls: list[Call] = [lambda number=number: ran.append(number) for number in range(3)]
    started_s = time.monotonic()
    assert 3 == len(CpuDevice().time(calls, ahead_s=0.01))
    assert 0.01 <= time.monotonic() - started_s
    assert [0, 1, 2] * (len(ran) // 3) == ran
    assert len(ran) >= 6


@pytest.mark.parametrize("mode", ["clean", "zeroed"])
def test_the_flush_is_outside_the_sample(mode: CacheMode) -> None:
    """It takes milliseconds, an empty call some hundred nanoseconds."""
    device = small_device(64 * MIB)
    device.time([lambda: None], mode=mode)
    started_s = time.perf_counter()
    samples = device.time([lambda: None] * 9, mode=mode)
    flushed_s = (time.perf_counter() - started_s) / 9
    assert sorted(sample.time_s for sample in samples)[4] < flushed_s / 10


@pytest.mark.parametrize(("mode", "value"), [("clean", 1.0), ("zeroed", 0.0)])
def test_a_flush_reads_or_writes_twice_the_cache(mode: CacheMode, value: float) -> None:
    """`clean` leaves what it read as it was, `zeroed` leaves zeros behind, dirty."""
    device = small_device()
    device.time([lambda: None], mode=mode)
    flushed = device._flushed  # nothing else shows it
    assert flushed is not None
    assert 16 * MIB == flushed.nbytes
    assert {value} == set(np.unique(flushed))


@pytest.mark.parametrize("mode", ["cold", "hot"])
def test_the_modes_without_a_flush_take_no_memory(mode: CacheMode) -> None:
    """The caller's choice of buffers is all there is to them."""
    device = small_device()
    device.time([lambda: None], mode=mode)
    assert device._flushed is None  # nothing else shows it


@pytest.mark.skipif(not STATM.exists(), reason="counts pages as Linux does")
def test_a_clean_flush_reads_pages_of_its_own() -> None:
    """Memory that nobody wrote is one page of zeros: reading it again and again is no flush."""
    device = small_device(64 * MIB)
    before = resident_bytes()
    device.time([lambda: None], mode="clean")
    assert resident_bytes() - before > 100 * MIB


def test_a_call_that_raises_ends_the_batch() -> None:
    """Its error goes up as it is; calls behind it do not run."""
    ran: list[str] = []

    def broken() -> None:
        message = "no such thing"
        raise ValueError(message)

    calls: list[Callable[[], None]] = [
        lambda: ran.append("first"),
        broken,
        lambda: ran.append("last"),
    ]
    with pytest.raises(ValueError, match="no such thing"):
        CpuDevice().time(calls)
    assert ["first"] == ran
