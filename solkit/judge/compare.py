"""Did a case get faster or slower? Two measurements of one case become a verdict (docs/numbers.md).

A verdict of change needs all of: intervals of the medians that don't touch, a step that matters
(a share of the time, and more than the clock can blur), and the same step in cycles, so that a chip
that was merely clocked lower is not called slower code.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from solkit.errors import BadInput
from solkit.judge.score import seen
from solkit.model import Measured, Run
from solkit.stats import TICKS_ALIKE, Spread, spread

MIN_EFFECT_FRACTION = 0.02
TICK_S = 32e-9  # the grid of GPU time stamps: two readings of one time differ by a step or two
STEP_S = max(TICKS_ALIKE * TICK_S, 0.1e-6)
FEWEST = 6  # samples: below, the interval of the median is less than 95 % sure

ChangeWord = Literal["SAME", "FASTER", "SLOWER", "UNSURE"]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a case from base to head, with the numbers that say so.

    ratio_fraction: head's median over base's; its 95 % interval is low to high. cycles_fraction:
    the same ratio in SM cycles; None without clocks. reason: why it is UNSURE, else empty.
    """

    word: ChangeWord
    base: Spread
    head: Spread
    ratio_fraction: float
    ratio_low_fraction: float
    ratio_high_fraction: float
    cycles_fraction: float | None
    reason: str = ""


def compare(
    base: Measured, head: Measured, *, min_effect_fraction: float = MIN_EFFECT_FRACTION
) -> Change:
    """Compare two measurements of one case. The kernel may differ; what decides a time may not.

    min_effect_fraction: the least change that matters, as a share of the faster of the two. Seconds
    throughout. Raises BadInput, with the reason, where case, method or cache state differ;
    whether inputs do is the runs' to say, see `refuse_other_runs` (a check's own seed tells which
    of a case's checks was the worse one, and nothing of its inputs).
    """
    if not (math.isfinite(min_effect_fraction) and 0 < min_effect_fraction < 1):
        raise BadInput(
            f"{min_effect_fraction:g} is no least effect",
            remedy="give a fraction above 0 and below 1, e.g. 0.02 for 2 %",
        )
    _refuse_other_conditions(base, head)
    before, after = seen(base), seen(head)
    low, high = _ratio_interval(before, after)
    cycles = _Cycles.of(base, head)
    word, reason = _judge(base, head, min_effect_fraction, (low, high), cycles)
    return Change(
        word=word,
        base=before,
        head=after,
        ratio_fraction=after.median_s / before.median_s,
        ratio_low_fraction=low,
        ratio_high_fraction=high,
        cycles_fraction=cycles.ratio if cycles else None,
        reason=reason,
    )


def refuse_other_runs(base: Run, head: Run) -> None:
    """Refuse two runs no case of which can be compared; what differs per case, `compare` refuses.

    Raises BadInput where one ran in bursts and the other at settled clocks, or inputs differ.
    """
    for what, one, other in (
        ("settle", base.settle, head.settle),
        ("seed", str(base.seed), str(head.seed)),
    ):
        if one != other:
            raise _refusal("the runs", what, one, other)


def false_alarm_interval(changed: int, pairs: int) -> tuple[float, float]:
    """Return the exact 95 % interval (Clopper-Pearson) of a rate seen as `changed` of `pairs`.

    Each end is the rate at which so many or more (low), so few or less (high) have a chance of
    2.5 %. Raises BadInput on counts that can't be.
    """
    if not 0 <= changed <= pairs or pairs < 1:
        raise BadInput(
            f"{changed} of {pairs} is no rate",
            remedy="count at least one pair, and no more changes",
        )
    low = _root(lambda rate: 1 - _at_most(changed - 1, pairs, rate), 0.025) if changed else 0.0
    high = (
        1 - _root(lambda rate: _at_most(changed, pairs, 1 - rate), 0.025)
        if changed < pairs
        else 1.0
    )
    return low, high


def _refuse_other_conditions(base: Measured, head: Measured) -> None:
    one, other = base.case, head.case
    for what, before, after in (
        ("case", _named(base), _named(head)) if one.group_key != other.group_key else ("", "", ""),
        ("method", base.method, head.method),
        ("cache state", base.cache, head.cache),
    ):
        if before != after:
            raise _refusal(str(head.case), what, before, after)


def _named(outcome: Measured) -> str:
    case = outcome.case
    return f"{case.operator} {case.shape_text.replace(';', ' ')} {case.dtype} ({case.cache_mode})"


def _refusal(where: str, what: str, before: str, after: str) -> BadInput:
    return BadInput(
        f"{where} can't be compared: the {what} was {before} and is {after}",
        remedy=f"measure both with the same {what}",
    )


def _judge(
    base: Measured,
    head: Measured,
    effect: float,
    interval: tuple[float, float],
    cycles: "_Cycles | None",
) -> tuple[ChangeWord, str]:
    before, after = seen(base), seen(head)
    if min(base.sample_count, head.sample_count) < FEWEST:
        return "UNSURE", f"fewer than {FEWEST} samples"
    step = abs(after.median_s - before.median_s)
    alike = _within(interval, effect) or (
        max(after.high_s - before.low_s, before.high_s - after.low_s) <= STEP_S
    )
    if alike:
        if cycles and cycles.moved(effect) and _compute_limited(base, head):
            return "UNSURE", f"the same time, but {cycles.ratio:.3f} times the cycles"
        return "SAME", ""
    apart = after.low_s > before.high_s or before.low_s > after.high_s
    ratio = after.median_s / before.median_s
    if not apart or step <= STEP_S or _within((ratio, ratio), effect):
        return "UNSURE", "the noise is as large as the change that would matter"
    slower = ratio > 1
    if cycles and not cycles.moved(effect, slower=slower):
        return "UNSURE", f"the time moved with the SM clock: {cycles.ratio:.3f} times the cycles"
    return ("SLOWER" if slower else "FASTER"), ""


def _within(interval: tuple[float, float], effect: float) -> bool:
    """Say whether a ratio is within the least effect, in either direction: 1/1.02 to 1.02."""
    return interval[0] >= 1 / (1 + effect) and interval[1] <= 1 + effect


def _ratio_interval(before: Spread, after: Spread) -> tuple[float, float]:
    """Return the 95 % interval of head over base: the two relative widths add as squares."""
    ratio = after.median_s / before.median_s
    down = math.hypot(
        math.log(after.median_s / after.low_s), math.log(before.high_s / before.median_s)
    )
    up = math.hypot(
        math.log(after.high_s / after.median_s), math.log(before.median_s / before.low_s)
    )
    return ratio * math.exp(-down), ratio * math.exp(up)


def _compute_limited(base: Measured, head: Measured) -> bool:
    """DRAM has its own clock: where it limits, cycles follow the SM clock and prove nothing."""
    return base.bound.limiter != "memory" and head.bound.limiter != "memory"


@dataclass(frozen=True, slots=True)
class _Cycles:
    """Both sides in SM cycles: the spreads, and the ratio of their medians."""

    before: Spread
    after: Spread

    @staticmethod
    def of(base: Measured, head: Measured) -> "_Cycles | None":
        before, after = _cycles(base), _cycles(head)
        return _Cycles(spread(before), spread(after)) if before and after else None

    @property
    def ratio(self) -> float:
        return self.after.median_s / self.before.median_s

    def moved(self, effect: float, *, slower: bool | None = None) -> bool:
        """Say whether cycles stand apart by more than the effect (in the direction asked for)."""
        up = self.after.low_s > self.before.high_s and self.ratio > 1 + effect
        down = self.before.low_s > self.after.high_s and self.ratio < 1 / (1 + effect)
        return (up or down) if slower is None else up if slower else down


def _cycles(outcome: Measured) -> list[float]:
    """Return each sample's time times its clock; nothing where fewer than half have a clock."""
    pairs = zip(outcome.times_s, outcome.sample_hz, strict=False)
    found = [time_s * sm_hz for time_s, sm_hz in pairs if sm_hz]
    enough = len(found) >= max(FEWEST, len(outcome.times_s) / 2)
    return found if enough else []


def _at_most(count: int, trials: int, rate: float) -> float:
    """Return the chance of `count` or fewer in `trials`, each with a chance of `rate` in (0, 1)."""
    chances = (
        math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(hits + 1)
            - math.lgamma(trials - hits + 1)
            + hits * math.log(rate)
            + (trials - hits) * math.log1p(-rate)
        )
        for hits in range(count + 1)
    )
    return min(1.0, math.fsum(chances))


def _root(rising: Callable[[float], float], target: float) -> float:
    """Return where a rising function on (0, 1) meets the target, by halving."""
    low, high = 0.0, 1.0
    for _ in range(60):  # 2^-60: beyond what a float between 0 and 1 resolves
        middle = (low + high) / 2
        if rising(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2
