"""The timers tell the truth: kernels of known length, cache states, calls that misbehave."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from solkit.declare.registry import bundled
from solkit.errors import BadInput, NoDevice
from solkit.measure import buffers
from solkit.measure.device.base import NothingRan, Unblockable
from solkit.measure.proof import modes_proved
from solkit.model import CacheMode, Case
from solkit.resources import folder
from solkit.stats import median

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy

pytestmark = pytest.mark.gpu
METHODS = ("cupti", "event_blocked", "event_unblocked", "graph")
# What may be left of a known length after the method's own floor is taken off, in seconds: CUPTI
# and events as docs/accuracy.md publishes them; a graph's gap between long kernels is longer.
ERROR_S = {"cupti": 1e-7, "event_blocked": 3e-7, "event_unblocked": 3e-7, "graph": 5e-7}


@pytest.fixture(params=METHODS)
def device(request: pytest.FixtureRequest) -> Iterator[CudaDevice]:
    """Return the first CUDA device with one method; without cupti-python that one is skipped."""
    try:
        made = CudaDevice(0, timer=request.param)
    except NoDevice as error:
        pytest.skip(error.message)
    yield made
    made._timing.timer.stop()


@pytest.fixture(scope="module")
def best() -> CudaDevice:
    """Return the first CUDA device as a run takes it."""
    return CudaDevice(0)


@pytest.mark.parametrize("span_us", [2, 5, 10, 100])
def test_a_spin_of_known_length_reads_its_length_plus_the_floor(
    device: CudaDevice, span_us: int
) -> None:
    """Within 0.1 us or 1 % by CUPTI, 0.3 us or 1 % by events."""
    floor_s, times_s = device.floor_s(), []
    for _ in range(6):
        samples = device.time([device.spin(span_us * 1000)] * 33, mode="hot")
        times_s += [sample.time_s for sample in samples[device.lead_count :]]
    allowed_s = max(ERROR_S[device.method], span_us * 1e-8)
    assert span_us * 1e-6 == pytest.approx(median(times_s) - floor_s, abs=allowed_s)


def test_the_clock_of_a_long_sample_is_the_cards(device: CudaDevice) -> None:
    """A spin of 200 us holds the clock between the stamps to within 2 % of the card's highest."""
    samples = device.time([device.spin(200_000)] * 20, mode="hot")
    assert all(sample.sm_hz is not None for sample in samples)
    highest_hz = device.max_clock_hz
    assert highest_hz is not None
    assert (
        0.5 * highest_hz < median([sample.sm_hz or 0.0 for sample in samples]) < 1.02 * highest_hz
    )


def test_a_call_of_two_kernels_is_timed_from_the_first_to_the_last(best: CudaDevice) -> None:
    """2 us and 3 us: the span holds the gap between them, the busy time does not."""
    first, second = best.spin(2_000), best.spin(3_000)

    def both() -> None:
        first()
        second()

    for sample in best.time([both] * 8):
        if best.method == "cupti":
            assert sample.busy_s is not None
            assert 5e-6 < sample.busy_s < 7e-6
            assert sample.busy_s <= sample.time_s
        assert 5e-6 < sample.time_s < 12e-6


def test_the_same_kernel_twice_in_a_call_counts_twice(best: CudaDevice) -> None:
    """A repeated kernel can't vanish into a set of names."""
    spin = best.spin(50_000)

    def twice() -> None:
        spin()
        spin()

    assert all(100e-6 < sample.time_s < 106e-6 for sample in best.time([twice] * 8))


def test_a_call_that_waits_for_the_device_cannot_be_blocked(device: CudaDevice) -> None:
    """It ends after a second with an error, and is timed without the block."""
    if device.method in ("graph", "event_unblocked"):
        pytest.skip("nothing is blocked by this method")
    spin = device.spin(2_000)

    def waits() -> None:
        spin()
        cupy.cuda.runtime.deviceSynchronize()

    with pytest.raises(Unblockable):
        device.time([waits] * 4)
    samples = device.time([waits] * 4, blocked=False)
    assert all(2e-6 < sample.time_s < 1e-3 for sample in samples)


def test_a_call_that_launches_nothing_is_said(device: CudaDevice) -> None:
    """No kernel ran: CUPTI and graphs see it; an event pair can't."""
    if device.method.startswith("event"):
        pytest.skip("an event pair round nothing reads as a short kernel")
    with pytest.raises(NothingRan, match="no kernel ran"):
        device.time([lambda: None] * 4)


def test_an_exception_in_a_call_leaves_the_device_usable(device: CudaDevice) -> None:
    """The blocked stream is let go whatever happens."""

    def breaks() -> None:
        message = "not today"
        raise ArithmeticError(message)

    with pytest.raises((ArithmeticError, BadInput), match="not today"):
        device.time([device.spin(1000), breaks])
    assert math.isfinite(device.floor_s())


def test_a_graph_refuses_a_flush_between_its_calls() -> None:
    """The flush would be inside the time."""
    with pytest.raises(BadInput, match="can't flush"):
        CudaDevice(0, timer="graph").time([lambda: None], mode="clean")


def test_the_cache_states_are_what_their_names_say(best: CudaDevice) -> None:
    """A read of half the L2: memory is slower than the L2, and a flush brings memory back."""
    modes: tuple[CacheMode, ...] = ("cold", "clean", "zeroed", "hot")
    times_s, proved = modes_proved(best, modes, floor_s=best.floor_s())
    assert set(modes) == proved
    assert times_s["hot"] < times_s["cold"] / 1.2
    assert times_s["clean"] == pytest.approx(times_s["cold"], rel=0.15)
    assert times_s["zeroed"] > 1.05 * times_s["cold"]


def test_a_pinned_input_is_cold_all_the_same(best: CudaDevice) -> None:
    """A carve-out of the L2 that a kernel asked for is gone before the next batch."""
    runtime = cupy.cuda.runtime
    times_s = []
    for pinned in (False, True):
        if pinned:
            runtime.deviceSetLimit(6, best.cache_bytes // 2)
        times_s.append(_copy_s(best, 4 << 20))
    assert times_s[0] == pytest.approx(times_s[1], rel=0.05)
    assert 0 == runtime.deviceGetLimit(6)


def test_cold_alone_is_cold_after_hot(best: CudaDevice) -> None:
    """Batches of another kind in between do not unsettle the median."""
    before_s = _copy_s(best, 4 << 20)
    for _ in range(4):
        best.time([best.spin(20_000)] * 32, mode="hot")
    assert before_s == pytest.approx(_copy_s(best, 4 << 20), rel=0.03)


def test_every_method_reads_an_empty_kernel(best: CudaDevice) -> None:
    """CUPTI's floor is the GPU's own start and end; the others' hold the instrument as well."""
    floors_s = best.floors_s()
    assert {"event_blocked", "event_unblocked", "graph"} <= set(floors_s)
    assert all(3e-7 < floor_s < 8e-6 for floor_s in floors_s.values())
    if "cupti" in floors_s:
        assert floors_s["cupti"] < 1e-6 < floors_s["event_blocked"]


def test_energy_of_a_spin_is_idle_power_times_its_length(best: CudaDevice) -> None:
    """One busy thread of 100 us costs little more than the resting card: 50 to 350 W."""
    energy_j = best.energy_per_call_j([best.spin(100_000)])
    if energy_j is None:
        pytest.skip("this card counts no energy")
    assert 5e-3 < energy_j < 35e-3


def test_no_stranger_is_seen_where_there_is_none(best: CudaDevice) -> None:
    """A context of this very process is not somebody else's."""
    assert 0 == best.other_process_count()


@pytest.mark.parametrize("timer", ["cupti", "event_blocked"])
def test_work_on_another_stream_is_found(timer: str) -> None:
    """What starts early, what is left over; work that is joined again is fine."""
    try:
        device = CudaDevice(0, timer=timer)  # type: ignore[arg-type]  # both are timers
    except NoDevice as error:
        pytest.skip(error.message)
    x = cupy.zeros(1 << 20, dtype=cupy.float32)
    y = cupy.zeros(1 << 20, dtype=cupy.float32)
    side, mark = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()

    def plain() -> None:
        cupy.multiply(x, 2, out=y)

    def early() -> None:
        with side:
            cupy.multiply(x, 2, out=y)

    def left() -> None:
        mark.record()
        side.wait_event(mark)
        with side:
            device.spin(500_000)()
            cupy.multiply(x, 2, out=y)

    def joined() -> None:
        left()
        cupy.cuda.get_current_stream().wait_event(side.record())

    found = {}
    for call in (plain, early, left, joined):
        device.poison(y)
        found[call.__name__] = device.stray_work(call, [(y, "fp32")])
        device.synchronize()
    device._timing.timer.stop()
    assert ("", "") == (found["plain"], found["joined"])
    assert "before its stream" in found["early"]
    assert "leaves work on another stream" in found["left"]


def _copy_s(device: CudaDevice, nbytes: int) -> float:
    """Return the cold median of the bundled copy of so many bytes."""
    registry = bundled()
    operator, kernel = registry.operators["copy"], registry.kernels["copy", "solkit"]
    case = Case("copy", "solkit", {"elements": nbytes // 4}, "fp32")
    program = device.prepare(kernel, operator, case, Path(folder("kernels")) / "include")
    sets = buffers.make(device, operator, case, 0)
    times_s: list[float] = []
    for _ in range(6):
        numbers = sets.next(device, 16 + device.lead_count)
        samples = device.time([program.bind(sets.buffers(number)) for number in numbers])
        times_s += [sample.time_s for sample in samples[device.lead_count :]]
    return float(np.median(times_s[16:]))
