"""What numbers can't be: whoever judges an outcome, a header or ceilings may trust the rest."""

from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from itertools import chain
from typing import Any, TypeGuard, get_args

from solkit.dtypes import CASE_DTYPES
from solkit.gpu import DeviceFacts, Gpu
from solkit.model import CacheMode, Ceilings, Clocks, Measured, Outcome, Run, Work

CACHE_LABELS = (*get_args(CacheMode), "unknown")
_MOST_COUNT = 2**63  # beyond it a count is no count, and floats lose it
# A millionth of any clock's tick, and thirty years. Both survive the rounding of run.jsonl.
_LEAST_S, _MOST_S = 1e-12, 1e9
# A thousandth of the least rate of any card's spec, and a million times the FLOP/s of the largest.
_LEAST_LIMIT, _MOST_LIMIT = 1e-3, 1e24
_LEAST_J, _MOST_J = 1e-12, 1e12
_LEAST_C, _MOST_C = -273.15, 1000.0
_MOST_W = 1e6
_MOST_PRECISION_FRACTION = _MOST_PLACE_FRACTION = 0.5
_ROUNDING_FRACTION = 1e-5  # run.jsonl keeps six digits of a time


def outcome_problem(outcome: Outcome) -> str:
    """Return what makes an outcome impossible, or nothing."""
    case = outcome.case
    if case.dtype not in CASE_DTYPES:
        return f"its dtype {case.dtype[:40]!r} is unknown (known: {', '.join(CASE_DTYPES)})"
    least = 1 if isinstance(outcome, Measured) else 0
    if any(not least <= extent < _MOST_COUNT for extent in case.shape.values()):
        return "an extent of its shape is no positive count"
    if not isinstance(outcome, Measured):
        return ""
    found = (_times_problem(outcome), _counts_problem(outcome), _conditions_problem(outcome))
    return next(filter(None, found), "")


def header_problem(run: Run) -> str:
    """Return what makes a header impossible, or nothing: limits that nothing is divided by."""
    if run.gpu is not None and not all(map(_sound, _limits(run.gpu))):
        return "a limit of its spec is no positive number"
    told = (
        getattr(holder, each.name) for holder in (run.facts, run.gpu) for each in _fields(holder)
    )
    if not all(0 <= number <= _MOST_LIMIT for number in told if _is_number(number)):
        return "a number of its device or spec is below zero, or beyond any"
    if not 0 < run.precision_fraction <= _MOST_PRECISION_FRACTION:
        return "its precision is not above 0 and up to 0.5"
    if not _all_times(run.cache_proof_s.values()):
        return "a time of its cache proof is not above zero"
    return ceilings_problem(run.ceilings) if run.ceilings is not None else ""


def ceilings_problem(ceilings: Ceilings) -> str:
    """Return what makes ceilings impossible, or nothing: a roof is made of them."""
    points = (*ceilings.dram, *ceilings.l2)
    times = [time_s for point in points for time_s in (point.median_s, *point.times_s)]
    times += [time_s for pipe in ceilings.pipes for time_s in (pipe.median_s, *pipe.times_s)]
    if not _all_times(times):
        return "a ceiling's time is not above zero"
    if not all(0 <= floor_s <= _MOST_S for floor_s in ceilings.floors_s.values()):
        return "the floor of a method is below zero"
    if any(pipe.sm_hz is not None and not _sound(pipe.sm_hz) for pipe in ceilings.pipes):
        return "the clock of a ceiling is not above zero"
    if not _all_counts(pipe.flop for pipe in ceilings.pipes):
        return "a ceiling's FLOP is no count"
    if any(
        min(point.read_bytes, point.write_bytes) < 0 or not 1 <= point.traffic_bytes < _MOST_COUNT
        for point in points
    ):
        return "a ceiling moved no bytes"
    return ""


def _times_problem(outcome: Measured) -> str:
    """Return what is wrong with what is in seconds."""
    median_s, bound, mode = outcome.median_s, outcome.bound, outcome.slow_mode
    ends = (median_s, outcome.low_s, outcome.high_s)
    if not outcome.times_s or not _all_times(
        (*outcome.times_s, *ends, *outcome.quantiles_s.values())
    ):
        return "its times are not all above zero (and below thirty years)"
    slack_s = _ROUNDING_FRACTION * median_s
    if not outcome.low_s - slack_s <= median_s <= outcome.high_s + slack_s:
        return "its median is outside its interval"
    if not 0 <= outcome.place_fraction <= _MOST_PLACE_FRACTION:
        return "its place fraction is not from 0 to 0.5"
    if not _all_times(each for each in (outcome.busy_s, outcome.launch_s) if each is not None):
        return "its busy time or the host's time to launch it is not above zero"
    if mode is not None and not (_all_times((mode.median_s,)) and 0 < mode.share_fraction < 1):
        return "its slow mode is no share of its samples"
    limits = (bound.memory_s, bound.sol_s, *bound.compute_s.values(), *bound.estimate_s.values())
    return "" if all(0 <= each <= _MOST_LIMIT for each in limits) else "its bound is no time"


def _counts_problem(outcome: Measured) -> str:
    """Return what is wrong with what is counted."""
    if (
        not len(outcome.times_s) <= outcome.sample_count < _MOST_COUNT
        or not 0 <= outcome.floor_s <= _MOST_S
    ):
        return "its sample count or floor does not match its times"
    if len(outcome.sample_hz) not in (0, len(outcome.times_s)):
        return "it has another number of clocks than of times"
    if not 0 <= outcome.throttled_count <= outcome.sample_count:
        return "its throttled samples are no part of its samples"
    others = (outcome.other_process_count, outcome.launch_count, outcome.check.compared_count)
    if not _all_counts(others) or not 1 <= outcome.set_count < _MOST_COUNT:
        return "its processes, launches, buffer sets or compared values are no count"
    if any(
        count is not None and not 0 <= count < _MOST_COUNT
        for each in outcome.compiled
        for count in (each.register_count, each.spill_bytes, each.shared_bytes)
    ):
        return "what its compiler counted is no count"
    works = (outcome.work, *(step.work for step in outcome.unfused))
    return "" if all(map(_countable, works)) else "its work is no count"


def _conditions_problem(outcome: Measured) -> str:
    """Return what is wrong with how it was measured and checked."""
    if outcome.cache not in CACHE_LABELS:
        return (
            f"its cache state {outcome.cache[:40]!r} is unknown (known: {', '.join(CACHE_LABELS)})"
        )
    clocks = outcome.clocks
    held = (clocks.sm_hz, clocks.sm_low_hz, clocks.sm_high_hz, *outcome.sample_hz)
    if any(clock is not None and not _sound(clock) for clock in held):
        return "a clock is not above zero"
    if outcome.energy_j is not None and not _LEAST_J <= outcome.energy_j <= _MOST_J:
        return "its energy is not above zero"
    if not 0 <= outcome.check.error_fraction <= _MOST_LIMIT:
        return "the error of its check is no share"
    return _driver_problem(clocks)


def _driver_problem(clocks: Clocks) -> str:
    """Return what the driver can't have told; 0 MHz and 0 W are told by cards that sleep."""
    for what, value, least, most in (
        ("clock", clocks.driver_sm_hz, 0.0, _MOST_LIMIT),
        ("memory clock", clocks.memory_hz, 0.0, _MOST_LIMIT),
        ("power", clocks.power_w, 0.0, _MOST_W),
        ("temperature", clocks.temperature_c, _LEAST_C, _MOST_C),
    ):
        if value is not None and not least <= value <= most:
            return f"the driver's {what} can't be {value:g}"
    return ""


def _countable(work: Work) -> bool:
    kinds: tuple[Mapping[str, int], ...] = (work.flop, work.estimated_flop)
    return _all_counts(
        (work.read_bytes, work.write_bytes, *chain.from_iterable(each.values() for each in kinds))
    )


def _limits(gpu: Gpu) -> list[float]:
    """Return every number of a spec that a score is taken against."""
    limits = [gpu.sm_count, gpu.dram_bytes, gpu.dram_published_bytes_per_s, gpu.l2_bytes]
    limits += [gpu.max_clock_hz]
    limits += [gpu.dram_pin_bytes_per_s] if gpu.dram_pin_bytes_per_s is not None else []
    for pipe in gpu.pipes.values():
        limits += [pipe.flop_per_s, pipe.flop_per_clock_per_sm, pipe.clock_hz]
    return limits


def _fields(holder: DeviceFacts | Gpu | None) -> tuple[Field[Any], ...]:
    return fields(holder) if holder is not None else ()


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float)


def _sound(limit: float) -> bool:
    return _LEAST_LIMIT <= limit <= _MOST_LIMIT


def _all_times(times_s: Iterable[float]) -> bool:
    return all(_LEAST_S <= time_s <= _MOST_S for time_s in times_s)


def _all_counts(counts: Iterable[int]) -> bool:
    return all(0 <= count < _MOST_COUNT for count in counts)
