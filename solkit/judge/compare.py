"""Did a case get faster or slower? Two measurements of one case become a verdict (docs/numbers.md).

A verdict of change needs all of: a step that matters (a share of the time, and more than the clock
can blur), evidence (intervals of the medians that don't touch, and a step that the noise between
two runs hardly makes), and the same step in cycles, so that a chip that was merely clocked lower is
not called slower code. Logarithms of ratios throughout: then base and head can be exchanged.
"""

import math
from dataclasses import dataclass
from typing import Literal

from solkit.errors import BadInput
from solkit.judge.evidence import FAMILY_ERROR_FRACTION, rate_interval, two_sided_p
from solkit.judge.score import seen
from solkit.model import Measured
from solkit.stats import NORMAL_975, TICKS_ALIKE, Spread, spread

MIN_EFFECT_FRACTION = 0.02
TICK_S = 32e-9  # the grid of GPU time stamps: two readings of one time differ by a step or two
STEP_S = max(TICKS_ALIKE * TICK_S, 0.1e-6)
FEWEST = 6  # samples: below, the interval of the median is less than 95 % sure
# Why a clock fell that says the machine is unwell. A power cap is what heavy products meet daily.
GRAVE_REASONS = frozenset(
    ("hardware slowdown", "software thermal", "hardware thermal", "power brake")
)
HALF = 0.5  # of a step, on a scale of logarithms
NOISY = "the noise is as large as the change that would matter"

ChangeWord = Literal["SAME", "FASTER", "SLOWER", "UNSURE"]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a case from base to head, with the numbers that say so.

    All ratios are head over base. ratio_fraction: of the medians; its 95 % interval is low to high
    and holds the noise between runs. cycles_fraction: the same in SM cycles; clock_ratio_fraction:
    of the SM clocks held; both None without clocks. bytes_ratio_fraction: of the least traffic.
    p_value: the chance that noise alone moves the medians as far apart, of this case by itself.
    reason: why it is UNSURE, else empty.
    """

    word: ChangeWord
    base: Spread
    head: Spread
    ratio_fraction: float
    ratio_low_fraction: float
    ratio_high_fraction: float
    cycles_fraction: float | None
    bytes_ratio_fraction: float
    clock_ratio_fraction: float | None
    p_value: float
    reason: str = ""


def compare(
    base: Measured,
    head: Measured,
    *,
    min_effect_fraction: float = MIN_EFFECT_FRACTION,
    noise_fraction: float = 0.0,
) -> Change:
    """Compare two measurements of one case. The kernel may differ; what decides a time may not.

    min_effect_fraction: the least change that matters, as a share of the faster of the two.
    noise_fraction: one standard deviation of the ratio between two runs of the same code (see
    judge/noise.py); 0 for two kernels of one run, which share their buffers. Seconds throughout.
    Raises BadInput, with the reason, where case, method or cache state differ; whether inputs do is
    the runs' to say (a check's own seed tells which of a case's checks was the worse one, and
    nothing of its inputs).
    """
    check_effect(min_effect_fraction)
    if base.case.group_key != head.case.group_key:
        raise _refusal(str(head.case), "case", _named(base), _named(head))
    for what, before, after in other_conditions(base, head):
        raise _refusal(str(head.case), what, before, after)
    return weigh(base, head, effect_fraction=min_effect_fraction, noise_fraction=noise_fraction)


def check_effect(min_effect_fraction: float) -> None:
    """Raise BadInput where a least effect is no fraction between 0 and 1."""
    if not (math.isfinite(min_effect_fraction) and 0 < min_effect_fraction < 1):
        raise BadInput(
            f"{min_effect_fraction:g} is no least effect",
            remedy="give a fraction above 0 and below 1, e.g. 0.02 for 2 %",
        )


def other_conditions(base: Measured, head: Measured) -> tuple[tuple[str, str, str], ...]:
    """Return what forbids comparing two times of a case: its name, and the value on each side."""
    both = (("method", base.method, head.method), ("cache state", base.cache, head.cache))
    return tuple(each for each in both if each[1] != each[2])


def weigh(
    base: Measured, head: Measured, *, effect_fraction: float, noise_fraction: float
) -> Change:
    """Compare two measurements whatever their method and cache state: `compare` without refusals.

    A small step (within the least effect, or 0.1 us) is SAME unless twice as much can't be
    excluded; a larger one is a change if evidence and cycles agree. Else UNSURE, and why.
    """
    before, after = seen(base), seen(head)
    ratio = after.median_s / before.median_s
    step = math.log(ratio)
    error = math.hypot(
        sampling_error(base, before, between_runs=noise_fraction > 0),
        sampling_error(head, after, between_runs=noise_fraction > 0),
        noise_fraction,
    )
    low, high = _interval(before, after, noise_fraction)
    p_value = two_sided_p(step / error if error else math.inf if step else 0.0)
    cycles = _Cycles.of(base, head)
    word: ChangeWord
    if min(base.sample_count, head.sample_count) < FEWEST:
        word, reason = "UNSURE", f"fewer than {FEWEST} samples"
    elif abs(step) <= least_step(before, after, effect_fraction):
        twice = math.log1p(2 * math.expm1(least_step(before, after, effect_fraction)))
        reason = ""
        if max(-low, high) > twice:
            reason = f"too noisy to tell: {math.exp(low):.3f} to {math.exp(high):.3f} x the time"
        elif (
            cycles
            and cycles.apart
            and cycles.beyond(effect_fraction)
            and (compute_limited(base, head))
        ):
            reason = f"the same time, but {cycles.ratio_fraction:.3f} times the cycles"
        word = "UNSURE" if reason else "SAME"
    else:
        apart = after.low_s > before.high_s or before.low_s > after.high_s
        reason = "" if apart and p_value <= FAMILY_ERROR_FRACTION else NOISY
        reason = reason or _machine(base, head, cycles, effect_fraction, slower=step > 0)
        word = "UNSURE" if reason else "SLOWER" if step > 0 else "FASTER"
    held = base.clocks.sm_hz, head.clocks.sm_hz
    return Change(
        word=word,
        base=before,
        head=after,
        ratio_fraction=ratio,
        ratio_low_fraction=math.exp(low),
        ratio_high_fraction=math.exp(high),
        cycles_fraction=cycles.ratio_fraction if cycles else None,
        # a work model may count nothing at all
        bytes_ratio_fraction=max(1, head.work.traffic_bytes) / max(1, base.work.traffic_bytes),
        clock_ratio_fraction=held[1] / held[0] if held[0] and held[1] else None,
        p_value=p_value,
        reason=reason,
    )


def sampling_error(outcome: Measured, times: Spread, *, between_runs: bool) -> float:
    """Return the standard error of a median's logarithm, from its order-statistic interval.

    times: what `seen` reads off the outcome. Between runs the place in memory is part of the noise,
    so the interval is that of the samples alone, not widened for it.
    """
    if between_runs and outcome.place_fraction:
        times = spread(outcome.times_s)
    return math.log(times.high_s / times.low_s) / (2 * NORMAL_975)


def compute_limited(base: Measured, head: Measured) -> bool:
    """DRAM has its own clock: where it limits, cycles follow the SM clock and prove nothing."""
    return base.bound.limiter != "memory" and head.bound.limiter != "memory"


def false_alarm_interval(changed: int, pairs: int) -> tuple[float, float]:
    """Return the exact 95 % interval (Clopper-Pearson) of a rate seen as `changed` of `pairs`.

    Raises BadInput on counts that can't be.
    """
    if not 0 <= changed <= pairs or pairs < 1:
        raise BadInput(
            f"{changed} of {pairs} is no rate",
            remedy="count at least one pair, and no more changes",
        )
    return rate_interval(changed, pairs)


def _named(outcome: Measured) -> str:
    case = outcome.case
    return f"{case.operator} {case.shape_text.replace(';', ' ')} {case.dtype} ({case.cache_mode})"


def _refusal(where: str, what: str, before: str, after: str) -> BadInput:
    return BadInput(
        f"{where} can't be compared: the {what} was {before} and is {after}",
        remedy=f"measure both with the same {what}",
    )


def least_step(before: Spread, after: Spread, effect_fraction: float) -> float:
    """Return the least step that matters, as the logarithm of a ratio: effect, or clock step."""
    return math.log1p(max(effect_fraction, STEP_S / min(before.median_s, after.median_s)))


def _interval(before: Spread, after: Spread, noise: float) -> tuple[float, float]:
    """Return the 95 % interval of the ratio's logarithm: relative widths add as squares."""
    step = math.log(after.median_s / before.median_s)
    down = math.hypot(
        math.log(after.median_s / after.low_s),
        math.log(before.high_s / before.median_s),
        NORMAL_975 * noise,
    )
    up = math.hypot(
        math.log(after.high_s / after.median_s),
        math.log(before.median_s / before.low_s),
        NORMAL_975 * noise,
    )
    return step - down, step + up


def clock_explains(ratio_fraction: float, cycles_fraction: float) -> bool:
    """Say whether at least half of a step in time is the SM clock's: what is left in cycles."""
    step, left = math.log(ratio_fraction), math.log(cycles_fraction)
    return left / step <= HALF if step else False


def _machine(
    base: Measured, head: Measured, cycles: "_Cycles | None", effect: float, *, slower: bool
) -> str:
    """Return why a change in time may be the machine's own doing, or nothing."""
    if cycles and not cycles.beyond(effect, slower=slower):
        told = f"{cycles.ratio_fraction:.3f} times the cycles"
        ratio = seen(head).median_s / seen(base).median_s
        if clock_explains(ratio, cycles.ratio_fraction):
            return f"the time moved with the SM clock: {told}"
        return f"in SM cycles the step is no larger than the least effect: {told}"
    grave = [GRAVE_REASONS.intersection(side.clocks.event_reasons) for side in (base, head)]
    if bool(grave[0]) != bool(grave[1]):
        where = "BASE" if grave[0] else "HEAD"
        return f"{where} alone was slowed down: {', '.join(sorted(grave[0] | grave[1]))}"
    return ""


@dataclass(frozen=True, slots=True)
class _Cycles:
    """Both sides in SM cycles: the ratio of the medians, and whether the clocks differ for sure."""

    ratio_fraction: float
    apart: bool

    @staticmethod
    def of(base: Measured, head: Measured) -> "_Cycles | None":
        """Take the ratio of the times by that of the clocks held; None without clocks.

        Not the median of each sample's own cycles: where times lie in two groups it can fall into
        the other group (recorded calls of 11 us at one clock: 5.4 % more time, 0.3 % more cycles).
        """
        one, other = _held_hz(base), _held_hz(head)
        if one is None or other is None:
            return None
        times = seen(head).median_s / seen(base).median_s
        apart = other.low_s > one.high_s or one.low_s > other.high_s
        return _Cycles(times * other.median_s / one.median_s, apart)

    def beyond(self, effect: float, *, slower: bool | None = None) -> bool:
        """Say whether the step in cycles is larger than the effect, in the direction asked for.

        Evidence is the time's to give: a sample's clock is read within a few per cent on calls of
        some microseconds, so intervals of cycles meet where those of the times are far apart.
        """
        up, down = self.ratio_fraction > 1 + effect, self.ratio_fraction < 1 / (1 + effect)
        return (up or down) if slower is None else up if slower else down


def _held_hz(outcome: Measured) -> Spread | None:
    """Return the SM clock of a case's samples with its interval (in Hz); of few, the one held."""
    found = [hz for hz in outcome.sample_hz if hz]
    if len(found) >= max(FEWEST, len(outcome.times_s) / 2):
        return spread(found)
    held = outcome.clocks.sm_hz
    return Spread(held, held, held) if held else None
