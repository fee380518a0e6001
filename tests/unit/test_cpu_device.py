"""The CPU device: NumPy on this host, timed as it is."""

import functools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from solkit.declare.arg import Arg, Bits, Indices, Init, Normal, Role
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.errors import NoDevice
from solkit.measure.device import cpu
from solkit.measure.device.base import TIMERS, Call, Sample
from solkit.measure.device.cpu import LEAST_CACHE_BYTES, CpuDevice
from solkit.model import CacheMode, Case, Clocks, Work

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


def test_steady_work_goes_ahead_on_calls_of_its_own_and_is_no_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenth of a second over all of them in turn; then each timed call, once."""
    device, now = CpuDevice(), SimpleNamespace(s=5.0)
    clock = SimpleNamespace(monotonic=lambda: now.s, perf_counter_ns=time.perf_counter_ns)
    monkeypatch.setattr(cpu, "time", clock)
    ran: list[str] = []

    def call(name: str, takes_s: float) -> Call:
        def work() -> None:
            ran.append(name)
            now.s += takes_s

        return work

    ahead = [call("first", 0.02), call("second", 0.02)]
    timed = [call(name, 0.0) for name in "abc"]
    assert 3 == len(device.time(timed, ahead=ahead))
    assert [*["first", "second"] * 3, "a", "b", "c"] == ran  # 0.04 s a round: 0.12 s are enough


def test_without_steady_work_the_calls_are_all_that_is_run() -> None:
    """Nothing ahead: no wait, either."""
    ran: list[int] = []
    CpuDevice().time([lambda: ran.append(1)], ahead=())
    assert [1] == ran


def test_copies_of_an_argument_get_its_values_one_after_the_other() -> None:
    """The source stays; so does what is no copy of it, though it lies in the same arena."""
    arena = np.zeros((4, 2, 3), dtype=np.float32)
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    CpuDevice().copy_all(source, [arena[1], arena[3]])
    assert [0.0, 15.0, 0.0, 15.0] == arena.sum(axis=(1, 2)).tolist()
    assert (source == arena[1]).all()
    assert (source == arena[3]).all()
    assert list(range(6)) == source.reshape(-1).tolist()


def test_a_copy_to_all_of_no_copies_is_nothing() -> None:
    """And a copy on itself changes nothing."""
    source = np.ones(3)
    CpuDevice().copy_all(source, [])
    CpuDevice().copy_all(source, [source])
    assert [1.0, 1.0, 1.0] == source.tolist()


def test_a_kernel_gets_what_it_takes_its_arrays_as_and_not_once_a_call() -> None:
    """`take` sees each array when a call is bound; the function sees what it made of them."""
    taken: list[float] = []

    def doubled(array: Any) -> Any:
        taken.append(float(array[0]))
        return array * 2

    operator = Operator(
        name="copy",
        args=(Arg("x", "elements"), Arg("y", "elements", "out")),
        work=lambda _case: Work(4, 4),
        reference=lambda x: x,
    )
    kernel = Kernel(
        name="double", operator=operator, function=lambda x, y: x + y, take=doubled, device="cpu"
    )
    case = Case("copy", "double", {"elements": 1}, "fp32")
    program = CpuDevice().prepare(kernel, operator, case, Path())
    call: Callable[[], Any] = program.bind({"x": np.array([1.0]), "y": np.array([10.0])})
    assert ([22.0], [22.0]) == (list(call()), list(call()))
    assert [1.0, 10.0] == taken


def test_a_host_does_not_clean_its_cache() -> None:
    """Sets that are larger than it rotate as others do, and settling runs none of the calls."""
    device, ran = CpuDevice(), list[int]()
    device.settle_cache([lambda: ran.append(1)])
    assert (False, []) == (device.cleans, ran)


class Reads(CpuDevice):
    """Notes the array of each call that is timed; the first call takes longest."""

    def __init__(self, cache_bytes: int) -> None:
        super().__init__()
        self._cache_bytes = cache_bytes
        self.read: list[tuple[int, int]] = []
        self.modes: list[CacheMode] = []

    def time(
        self,
        calls: Sequence[Call],
        *,
        mode: CacheMode = "cold",
        blocked: bool = True,  # noqa: ARG002  # the protocol's
        ahead: Sequence[Call] = (),
    ) -> list[Sample]:
        """Take 9 s for the first call, then 1, 2, 3, ... s."""
        assert () == ahead
        for call in calls:
            assert isinstance(call, functools.partial)
            array = call.func.__self__
            assert call() == array.size  # ones: pages of their own, unlike zeros
            self.read.append((array.ctypes.data, array.nbytes))
        self.modes.append(mode)
        return [Sample(9.0), *(Sample(float(place)) for place in range(1, len(calls)))]


@pytest.mark.parametrize(
    ("mode", "arrays", "nbytes"),
    [
        ("cold", 6, 512 * 1024),  # three caches of 1 MiB
        ("cold", 3, MIB),
        ("cold", 2, 2 * MIB),
        ("cold", 1, 4 * MIB),  # each read displaces itself
        ("cold", 8, 1024),  # of 3072: none comes again
        ("hot", 1, 512 * 1024),
        ("clean", 1, 512 * 1024),  # the flush is the timing's
        ("zeroed", 1, 512 * 1024),
    ],
)
def test_a_read_is_of_so_many_bytes_and_cold_of_three_caches(
    mode: CacheMode, arrays: int, nbytes: int
) -> None:
    """Seven samples of eight calls: the median of 1 to 7 s, without the first call's."""
    device = Reads(MIB)
    assert 4.0 == device.read_s(mode, nbytes)
    addresses = [address for address, _ in device.read]
    assert ({nbytes}, [mode]) == ({size for _, size in device.read}, device.modes)
    assert (8, arrays) == (len(addresses), len(set(addresses)))
    assert [addresses[place % arrays] for place in range(8)] == addresses


def test_a_large_read_is_not_faster_cold_than_hot() -> None:
    """Of 16 MiB, the best of three each in turn; a fifth is what a shared host may wander by."""
    device = small_device(32 * MIB)
    found = [(device.read_s("cold", 16 * MIB), device.read_s("hot", 16 * MIB)) for _ in range(3)]
    cold_s, hot_s = (min(times_s) for times_s in zip(*found, strict=True))
    assert 16 * MIB / 1e12 < hot_s < 1.0  # no host sums a terabyte a second on one core
    assert hot_s / 1.2 < cold_s < 1.0


@pytest.mark.parametrize("mode", ["clean", "zeroed"])
def test_a_read_behind_a_flush_is_finite(mode: CacheMode) -> None:
    """The flush is no part of it."""
    assert 0 < small_device().read_s(mode, MIB) < 0.1


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


def argument(dtype: str, init: Init | None = None, role: Role = "in") -> Arg:
    return Arg("x", "n", role, dtype=dtype, init=init or Normal())


CASE = Case("any", "k", {"n": 4096}, "fp32")


@pytest.mark.parametrize(
    ("dtype", "kind", "low", "high"),
    [
        ("int32", np.int32, -(2**31), 2**31),
        ("int8", np.int8, -128, 128),
        ("uint8", np.uint8, 0, 256),
    ],
)
def test_random_bits_fill_the_whole_range(dtype: str, kind: Any, low: int, high: int) -> None:
    """Every eighth of it is met about equally often, the same for the same seed."""
    device = CpuDevice()
    first, second = device.allocate(argument(dtype, Bits()), CASE, 2, 5)
    assert kind == first.dtype
    assert (first == second).all()
    eighths = np.histogram(first.astype(np.float64), bins=8, range=(low, high))[0]
    assert 400 < eighths.min() < eighths.max() < 630  # of 512
    assert (device.allocate(argument(dtype, Bits()), CASE, 1, 6)[0] != first).any()


def test_indices_are_a_shuffle_in_every_set() -> None:
    """4096 entries of 1000 indices: each is named, in both sets alike."""
    arg = argument("int32", Indices(of="1000"))
    first, second = CpuDevice().allocate(arg, CASE, 2, 5)
    assert (np.int32, 1000) == (first.dtype, len(np.unique(first)))
    assert (0, 999) == (first.min(), first.max())
    assert (first == second).all()


@pytest.mark.parametrize(
    ("dtype", "unwritten", "not_finite", "value"),
    [
        ("fp32", 4096, 4096, np.nan),
        ("fp8_e4m3", 4096, 4096, np.nan),
        ("int32", 4096, 0, -1.0),
        ("int8", 0, 0, -1.0),
        ("uint8", 0, 0, 255.0),
    ],
)
def test_poison_is_told_from_values_where_there_is_one_to_spare(
    dtype: str, unwritten: int, not_finite: int, value: float
) -> None:
    """NaN of floats, -1 of int32; 8-bit integers need all they have."""
    device = CpuDevice()
    (array,) = device.allocate(argument(dtype, role="out"), CASE, 1, 0)
    assert unwritten == device.unwritten_count(array, dtype)
    assert not_finite == device.non_finite_count(array, dtype)
    assert np.array_equal([value], device.fetch(array, dtype, [np.array([7])]), equal_nan=True)


def test_codes_are_fetched_as_their_values_and_integers_exactly() -> None:
    """In float64, at the indices chosen."""
    device = CpuDevice()
    codes = np.array([0x38, 0xB8, 0x7E, 0x7F], dtype=np.uint8)
    assert [1.0, 448.0] == device.fetch(codes, "fp8_e4m3", [np.array([0, 2])]).tolist()
    large = np.array([2**31 - 1, -(2**31)], dtype=np.int32)
    assert [2147483647.0, -2147483648.0] == device.fetch(large, "int32", [None]).tolist()
    assert (1, 3) == (
        device.non_finite_count(codes, "fp8_e4m3"),
        device.first_non_finite(codes, "fp8_e4m3"),
    )


def test_a_change_of_one_bit_of_any_integer_changes_the_checksum() -> None:
    """Whatever its width."""
    for kind in (np.int8, np.uint8, np.int32):
        array = np.zeros(5000, dtype=kind)
        before = CpuDevice().checksum(array)
        array[4321] = 1
        assert before != CpuDevice().checksum(array)
