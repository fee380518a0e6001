"""Outcomes become scores: how near the speed of light, under which roof (docs/numbers.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from solkit.bound import Roof, bound, clock_roof, hard_roof, measured_roof, spec_roof
from solkit.gpu import Gpu
from solkit.judge.regime import Regime, regime
from solkit.model import Bound, CaseKey, Failed, Measured, Run, Skipped, Work
from solkit.stats import Spread, spread, widened

RoofName = Literal["spec", "clock", "measured"]
# On an H200 a ceiling and the same kernel, measured again as a case, agreed within 1 %; an empty
# kernel read 2.66 to 2.85 us by events, so the shortest times have a step of that size.
CEILING_ERROR_FRACTION, CEILING_ERROR_S = 0.02, 0.25e-6
FROM_DRAM = ("cold", "clean", "zeroed")  # cache states in which all that is read comes from DRAM
HOT_REASON = "hot: data may come from the L2, so DRAM is no bound for it"
# What a cache state means for a score that is taken in it.
CACHE_NOTES = {
    "unknown": "the cache state isn't proved: data may come from the L2",
    "clean": "writes up to the size of the L2 may stay there when the time ends",
    "zeroed": "overcharged: the flush's own writes leave the L2 inside the time",
}


@dataclass(frozen=True, slots=True)
class Scored:
    """A measured case with every judgement on it; a ratio that can't be had is None.

    sol_score: sol_s / median_s under `roof` (spec; measured on a device without a spec file); empty
    when the outcome is invalid, or hot and DRAM its bound, with the reason in no_score_reason;
    raw_fraction keeps the ratio that was seen. cache_note: what the cache state means for a score.
    """

    outcome: Measured
    status: Literal["measured", "invalid"]
    roof: RoofName
    bound: Bound
    median_s: float
    low_s: float
    high_s: float
    raw_fraction: float
    sol_score: float | None
    sol_clock: float | None
    sol_measured: float | None
    above_published: bool
    above_measured: bool
    invalid_reason: str
    no_score_reason: str
    cache_note: str
    fusion_gain: float | None
    unfused_sol_s: float | None
    regime: Regime
    gap_score: float | None
    gap_reason: str

    @property
    def hot(self) -> bool:
        """Whether its data was left in the L2 on purpose, proved or not."""
        return self.outcome.cache == "hot" or self.outcome.case.cache_mode == "hot"


Judged = Scored | Failed | Skipped


def score(run: Run, *, gpu: Gpu | None = None, baseline: str | None = None) -> tuple[Judged, ...]:
    """Judge every outcome of a run, in its order.

    gpu: another spec than the one recorded (a re-score). baseline: the kernel that gap scores are
    taken against, where it was measured on the same operator, shape, dtype, params and cache mode.
    """
    card = gpu or run.gpu
    measured = measured_roof(run.ceilings, settle=run.settle) if run.ceilings else None
    bases = {
        outcome.case.group_key: seen(outcome).median_s
        for outcome in run.outcomes
        if isinstance(outcome, Measured) and outcome.case.kernel == baseline
    }
    return tuple(
        _scored(outcome, card, measured, bases, baseline)
        if isinstance(outcome, Measured)
        else outcome
        for outcome in run.outcomes
    )


def _scored(
    outcome: Measured,
    gpu: Gpu | None,
    measured: Roof | None,
    bases: dict[CaseKey, float],
    baseline: str | None,
) -> Scored:
    times = seen(outcome)
    median_s = times.median_s
    roof = spec_roof(gpu) if gpu else measured
    limit = bound(outcome.work, roof) if roof else outcome.bound
    raw = limit.sol_s / median_s
    invalid = _faster_than_light(outcome, median_s, hard_roof(gpu), gpu) if gpu else ""
    held_hz = outcome.clocks.sm_hz
    at_clock = bound(outcome.work, clock_roof(gpu, held_hz)) if gpu and held_hz else None
    reached = _measured_bound(outcome.work, measured)
    sol_score, sol_clock, sol_measured = (
        None if invalid else _fraction(outcome, each, median_s)
        for each in (limit, at_clock, reached)
    )
    hot = HOT_REASON if sol_score is None and not invalid else ""
    unfused_s = _unfused_s(outcome, roof)
    gap, gap_reason = _gap(outcome, limit.sol_s, median_s, bases, baseline)
    if hot:
        gap, gap_reason = None, hot
    return Scored(
        outcome=outcome,
        status="invalid" if invalid else "measured",
        roof="spec" if gpu else "measured",
        bound=limit,
        median_s=median_s,
        low_s=times.low_s,
        high_s=times.high_s,
        raw_fraction=raw,
        sol_score=sol_score,
        sol_clock=sol_clock,
        sol_measured=sol_measured,
        above_published=gpu is not None and sol_score is not None and sol_score > 1,
        above_measured=_beats(sol_measured, median_s=median_s, high_s=times.high_s),
        invalid_reason=invalid,
        no_score_reason=invalid or hot,
        cache_note=CACHE_NOTES.get(outcome.cache, ""),
        fusion_gain=unfused_s / limit.sol_s if unfused_s and limit.sol_s else None,
        unfused_sol_s=unfused_s,
        regime=regime(median_s=median_s, floor_s=outcome.floor_s),
        gap_score=gap,
        gap_reason=gap_reason,
    )


def seen(outcome: Measured) -> Spread:
    """Read the interval off the samples; a file with thinned samples keeps that of all of them."""
    if len(outcome.times_s) == outcome.sample_count:
        return widened(spread(outcome.times_s), outcome.place_fraction)
    return Spread(outcome.median_s, outcome.low_s, outcome.high_s)


def _fraction(outcome: Measured, limit: Bound | None, median_s: float) -> float | None:
    """Return a bound over the time; None where DRAM would bound data that need not come from it."""
    hot = outcome.cache == "hot" or outcome.case.cache_mode == "hot"
    if limit is None or (hot and limit.limiter == "memory"):
        return None
    return limit.sol_s / median_s


def _faster_than_light(outcome: Measured, median_s: float, hard: Roof, gpu: Gpu) -> str:
    """Return why a time is beyond the hard limit, or nothing. Exact counts only."""
    work = outcome.work
    certain_bytes = work.read_bytes + max(0, work.write_bytes - gpu.l2_bytes)
    memory_s = certain_bytes / hard.dram_bytes_per_s
    if outcome.cache in FROM_DRAM and memory_s > median_s:
        return (
            f"moved bytes at {memory_s / median_s:.2f} x the pin rate: data still in L2, a work "
            "model that counts too much, or skipped work"
        )
    for pipe, compute_s in bound(Work(0, 0, work.flop), hard).compute_s.items():
        if compute_s > median_s:
            return (
                f"{compute_s / median_s:.2f} x the {pipe} pipe at its highest clock: the roof of "
                "another dtype, a work model that counts too much, or skipped work"
            )
    return ""


def _measured_bound(work: Work, measured: Roof | None) -> Bound | None:
    """Return the bound under the measured roof; None while a pipe it needs was never measured."""
    if measured is None or any(pipe not in measured.pipes_flop_per_s for pipe in work.flop):
        return None
    return bound(work, measured)


def _beats(sol_measured: float | None, *, median_s: float, high_s: float) -> bool:
    """Say whether even the slow end of the interval lies above the ceilings' own error."""
    if sol_measured is None:
        return False
    ceiling_s = sol_measured * median_s
    return ceiling_s - high_s > max(CEILING_ERROR_FRACTION * high_s, CEILING_ERROR_S)


def _unfused_s(outcome: Measured, roof: Roof | None) -> float | None:
    if not outcome.unfused or roof is None:
        return None
    return sum(bound(step.work, roof).sol_s for step in outcome.unfused)


def _gap(
    outcome: Measured,
    sol_s: float,
    median_s: float,
    bases: dict[CaseKey, float],
    baseline: str | None,
) -> tuple[float | None, str]:
    """Return S = 1 / (1 + (T_k - T_sol) / (T_b - T_sol)), or why there is none.

    The definition is SOL-ExecBench's (T_k: the kernel, T_b: the baseline, T_sol: the bound).
    """
    if baseline is None:
        return None, "no baseline kernel was named"
    base_s = bases.get(outcome.case.group_key)
    if base_s is None:
        return None, f"the baseline {baseline!r} was not measured here"
    if base_s <= sol_s:
        return None, "the baseline is at or above the speed of light"
    if median_s < sol_s:
        return None, "the kernel is above the speed of light"
    return 1 / (1 + (median_s - sol_s) / (base_s - sol_s)), ""


def valid(judged: Sequence[Judged]) -> list[Scored]:
    """Return the cases that count: measured, not beyond the hard limit, and not hot.

    What came from the L2 answers another question; it would only blur the medians of the others.
    """
    return [
        item
        for item in judged
        if isinstance(item, Scored) and item.status == "measured" and not item.hot
    ]
