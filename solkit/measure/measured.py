"""An entry's samples become its outcome."""

from collections.abc import Iterator, Sequence

from solkit.measure.buffers import BufferSets
from solkit.measure.device.base import Device
from solkit.measure.entry import Entry
from solkit.measure.pace import Conditions
from solkit.model import Clocks, Failed, Measured, Outcome
from solkit.stats import median, quantile, slow_mode, spread, thin, widened

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
# What limits a clock; being idle, a clock that was asked for and a display do not.
LIMITS = (
    "software power cap",
    "hardware slowdown",
    "software thermal",
    "hardware thermal",
    "power brake",
)
# Where buffers larger than the L2 lie in memory moves a copy's median by so much on an H200 (one
# standard deviation, of seven allocations each: 0.5 to 0.9 %), which one place can't show.
PLACE_FRACTION = 0.007
LOWERED_FRACTION = 0.95  # of the highest clock: a sample below it ran at a lowered one


def outcome(
    entry: Entry,
    device: Device,
    sets: BufferSets,
    conditions: Conditions,
    *,
    floor_s: float,
    proved: bool,
    other_process_count: int,
) -> Outcome:
    """Return what became of an entry.

    proved: the device was seen to do what the case's cache mode says.
    """
    if entry.failed is not None:
        return entry.failed
    if entry.check is None or entry.program is None:
        return Failed(entry.job.case, "check", "it was never checked", "run the case alone")
    ordered = sorted(entry.times_s)
    place_fraction = PLACE_FRACTION if sets.once else 0.0
    seen = widened(spread(ordered), place_fraction)
    clocks = [sample.sm_hz for sample in entry.samples]
    held = [hz for hz in clocks if hz]
    reasons = tuple(conditions.reasons)
    busy = [sample.busy_s for sample in entry.samples if sample.busy_s is not None]
    return Measured(
        case=entry.job.case,
        work=entry.job.work,
        unfused=entry.job.unfused,
        bound=entry.job.bound,
        times_s=thin(entry.times_s),
        sample_count=len(ordered),
        quantiles_s={f"{fraction:g}": quantile(ordered, fraction) for fraction in QUANTILES},
        median_s=seen.median_s,
        low_s=seen.low_s,
        high_s=seen.high_s,
        floor_s=floor_s,
        method=device.method if entry.blocked else device.unblocked_method,
        cache=sets.cache if proved else "unknown",
        clocks=Clocks(
            sm_hz=median(held) if held else None,
            sm_low_hz=min(held, default=None),
            sm_high_hz=max(held, default=None),
            memory_hz=conditions.memory_hz,
            temperature_c=conditions.temperature_c,
            power_w=conditions.power_w,
            event_reasons=reasons,
            driver_sm_hz=conditions.lowest_hz,
        ),
        check=entry.check,
        compiled=entry.program.compiled,
        launch_count=entry.program.launch_count,
        ended=entry.ended,
        set_count=sets.count,
        notes=tuple(_notes(entry, sets, proved=proved)),
        sample_hz=thin(clocks) if held else (),
        throttled_count=throttled_count(held, reasons, device.max_clock_hz),
        slow_mode=slow_mode(ordered, tick_s=device.tick_s),
        busy_s=median(busy) if busy else None,
        energy_j=entry.energy_j,
        other_process_count=other_process_count,
        place_fraction=place_fraction,
        launch_s=entry.launch_s,
    )


def throttled_count(
    clocks_hz: Sequence[float], reasons: Sequence[str], highest_hz: float | None
) -> int:
    """Return how many samples ran at a lowered clock while the driver named a limit.

    A low clock without a reason is a card that was told to run so, or one that is waking up.
    """
    if highest_hz is None or not any(reason in LIMITS for reason in reasons):
        return 0
    return sum(hz < LOWERED_FRACTION * highest_hz for hz in clocks_hz)


def _notes(entry: Entry, sets: BufferSets, *, proved: bool) -> Iterator[str]:
    yield from (*entry.ready.notes, *entry.notes)
    if not entry.blocked:
        yield (
            "the call waits for the device itself, so its samples were not queued ahead: "
            "they may hold host time"
        )
    if not proved:
        yield (
            f"the cache state is not known: this card did not show the times that "
            f"{entry.job.case.cache_mode!r} should make"
        )
    elif sets.cache == "unknown" and entry.job.case.cache_mode == "cold":
        yield f"not cold for certain: {sets.count} buffer sets are all that memory or a graph holds"
    elif sets.cache == "unknown":
        yield "hot only in part: its buffers are larger than half the L2"
