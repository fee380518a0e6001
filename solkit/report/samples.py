"""What the samples of a case say beside their median: clocks, throttling, modes, energy."""

from collections.abc import Sequence

from solkit import units
from solkit.judge.score import Scored
from solkit.model import Measured
from solkit.report.manner import UNBLOCKED
from solkit.report.plain import DASH, counted, line, listed
from solkit.stats import median

SPARK_POINTS, SPARK_WIDTH, SPARK_HEIGHT = 24, 46, 10
_LEAST_SPARK = 8  # fewer samples make no line
# The clock of one sample is read to 1.3 % over 5 us: what swings less is drawn as nothing.
_LEAST_SWING_FRACTION, _LEAST_RANGE_FRACTION = 0.03, 0.1


def clock_text(outcome: Measured) -> tuple[str, str]:
    """Write the median SM clock of the samples, and their range: '1725 MHz', '1410-1980'."""
    clocks = outcome.clocks
    if clocks.sm_hz is None:
        return "", ""
    ends = [
        units.frequency(each).removesuffix(" MHz")
        for each in (clocks.sm_low_hz, clocks.sm_high_hz)
        if each is not None
    ]
    return units.frequency(clocks.sm_hz), DASH.join(dict.fromkeys(ends))


def clock_spark(outcome: Measured) -> str:
    """Return the samples' clocks in their order as the path of a small line; empty where flat.

    Up is faster; at least a tenth of the median clock fits the height, so that noise stays small.
    """
    known = [each for each in outcome.sample_hz if each]
    if len(known) < _LEAST_SPARK:
        return ""
    points = _shortened(known)
    low, high, middle = min(points), max(points), median(points)
    if high - low < _LEAST_SWING_FRACTION * middle:
        return ""
    span = max(high - low, _LEAST_RANGE_FRACTION * middle)
    top = (high + low + span) / 2
    places = (
        f"{round(place * SPARK_WIDTH / (len(points) - 1))} "
        f"{round((top - each) / span * SPARK_HEIGHT)}"
        for place, each in enumerate(points)
    )
    return f"M{' '.join(places)}"


def _shortened(values: Sequence[float]) -> list[float]:
    """Return at most so many medians of neighbours as a line has points."""
    count = min(SPARK_POINTS, len(values))
    edges = [place * len(values) // count for place in range(count + 1)]
    return [median(values[edges[at] : edges[at + 1]]) for at in range(count)]


def energy_text(scored: Scored) -> tuple[str, str]:
    """Write the energy of a call, and what a joule of it does: FLOP where exact, else bytes."""
    energy_j, work = scored.outcome.energy_j, scored.outcome.work
    if not energy_j:
        return "", ""
    flop = sum(work.flop.values())
    done = (
        units.flop_per_joule(flop / energy_j)
        if flop and scored.bound.limiter != "memory"
        else units.bytes_per_joule(work.traffic_bytes / energy_j)
    )
    return units.energy(energy_j), done


def throttled_text(outcome: Measured) -> str:
    """Say how many samples ran at a lowered clock, and the reasons that the driver named."""
    if not outcome.throttled_count:
        return ""
    reasons = listed([line(name) for name in outcome.clocks.event_reasons])
    return (
        f"{outcome.throttled_count:,} of {counted(outcome.sample_count, 'sample')} at a lowered "
        f"clock{f': {reasons}' if reasons else ''}"
    )


def slow_mode_text(outcome: Measured) -> str:
    """Name a second, slower group of samples: '20 % of samples near 1.60 us'."""
    mode = outcome.slow_mode
    if mode is None:
        return ""
    return f"{mode.share_fraction * 100:.0f} % of samples near {units.seconds(mode.median_s)}"


def doubted(scored: Scored) -> bool:
    """Say whether something stood beside the kernel while it was timed, or may have."""
    outcome = scored.outcome
    return bool(
        outcome.method in UNBLOCKED
        or outcome.cache == "unknown"
        or outcome.other_process_count
        or outcome.throttled_count
        or outcome.slow_mode
    )


def remarks(scored: Scored) -> tuple[str, ...]:
    """Return what a reader must know of this case's samples, what doubts the time first."""
    outcome = scored.outcome
    said = (
        "host time may be in it" if outcome.method in UNBLOCKED else "",
        _unproved(outcome) if outcome.cache == "unknown" else "",
        f"{counted(outcome.other_process_count, 'other process', 'other processes')} on the device"
        if outcome.other_process_count
        else "",
        throttled_text(outcome),
        slow_mode_text(outcome),
        f"kernels ran for {units.seconds(outcome.busy_s)} of it" if outcome.busy_s else "",
    )
    return tuple(filter(None, said))


def _unproved(outcome: Measured) -> str:
    """Say which cache state is not proved, and why, as far as the case's notes say."""
    return ": ".join(
        filter(
            None,
            (
                f"cache not proved {outcome.case.cache_mode}",
                line("; ".join(outcome.notes), 200),
            ),
        )
    )
