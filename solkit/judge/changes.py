"""Run against run: what became of every case, and of all of them together (docs/numbers.md)."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from solkit.errors import CasesFailed, GateSaysNo, SolkitError
from solkit.judge.compare import (
    MIN_EFFECT_FRACTION,
    Change,
    check_effect,
    clock_explains,
    least_step,
    weigh,
)
from solkit.judge.conditions import differences
from solkit.judge.evidence import holm
from solkit.judge.noise import (
    CARD_NOISE_FRACTION,
    Repeats,
    excess_fraction,
    prior_fraction,
    ratio_noise,
)
from solkit.judge.reasons import absent, cases_were, doubt, one_line, other_work
from solkit.judge.score import Judged, Scored
from solkit.judge.sides import Side, side
from solkit.model import Case, CaseKey, Failed, Run

Word = Literal["SAME", "FASTER", "SLOWER", "UNSURE", "MISSING", "NEW", "INVALID"]
WORDS: tuple[Word, ...] = ("SLOWER", "MISSING", "INVALID", "UNSURE", "FASTER", "NEW", "SAME")
Overall = Literal["SAME", "FASTER", "SLOWER", "UNSURE", "MISSING", "INVALID", "NOTHING"]
Cause = Literal["", "code", "machine"]
# UNSURE passes, so it doesn't hide what is sure; NEW is no change of anything.
_OVERALL: tuple[Overall, ...] = ("SLOWER", "MISSING", "INVALID", "FASTER", "UNSURE")
_NAMED = 3  # cases that an error names


@dataclass(frozen=True, slots=True)
class CaseChange:
    """What became of one case from base to head.

    reason: why UNSURE, INVALID, MISSING or NEW, and what else a reader must know (another work
    model, runs that don't agree). change: the numbers, where both sides were measured. base, head:
    each side judged; of several runs the pooled one. cause: of a difference in time; empty where
    there is none to explain.
    """

    case: Case
    word: Word
    reason: str
    change: Change | None
    base: Judged | None
    head: Judged | None
    cause: Cause
    effect_fraction: float = MIN_EFFECT_FRACTION


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, case by case.

    base, head: the first run of each side, with the outcomes of all its runs merged. base_count,
    head_count: runs on each side. changes: head's order, MISSING last; cases that were measured on
    neither side and didn't fail are left out. overall: the first that any case has of SLOWER,
    MISSING, INVALID, FASTER, UNSURE, else SAME; NOTHING where no case was measured on both sides,
    or none in a way that can be compared.
    differences: conditions that differ and were allowed. notes: what a reader must know,
    e.g. of a run that was cut.
    """

    base: Run
    head: Run
    base_count: int
    head_count: int
    changes: tuple[CaseChange, ...]
    overall: Overall
    differences: tuple[str, ...]
    notes: tuple[str, ...]
    min_effect_fraction: float
    operators_min_effect_fraction: Mapping[str, float] = field(default_factory=dict)


def compare_runs(
    base: Sequence[Run],
    head: Sequence[Run],
    *,
    min_effect_fraction: float = MIN_EFFECT_FRACTION,
    operators_min_effect_fraction: Mapping[str, float] | None = None,
    allow: Collection[str] = (),
) -> Comparison:
    """Compare two sides, each of one run or several, whose samples are pooled case by case.

    A change stands only if it stands among all cases asked at once (Holm, 5 %).
    operators_min_effect_fraction: an operator's own least effect. allow: names of conditions that
    may differ, see conditions.ALLOWED. Raises BadInput where a side has no run, an effect is no
    fraction, a name in `allow` is unknown, or card model, driver, method, settle, seed, spec or
    power limit differ and are not allowed.
    """
    effects = operators_min_effect_fraction or {}
    for effect in (min_effect_fraction, *effects.values()):
        check_effect(effect)
    allowed = differences((*base, *head), allow)
    before, after = side("BASE", base), side("HEAD", head)
    noises = _noises(before, after)
    method_allowed = bool({"method", "all"} & set(allow))
    changes = [
        _case_change(
            before,
            after,
            key,
            noise=noises.get(key, 0.0),
            effect=effects.get(key[0], min_effect_fraction),
            method_allowed=method_allowed,
        )
        for key in {**after.judged, **before.judged}  # head's order, then what is missing
    ]
    kept = _held_together([change for change in changes if change is not None])
    notes = [*before.notes, *after.notes, *_notes(before, after)]
    left_count = len(changes) - len(kept)
    if left_count:
        notes.append(f"{cases_were(left_count)} measured on neither side, and left out")
    return Comparison(
        base=before.run,
        head=after.run,
        base_count=len(before.runs),
        head_count=len(after.runs),
        changes=tuple(kept),
        overall=_overall(kept, method_allowed=method_allowed),
        differences=allowed,
        notes=tuple(notes),
        min_effect_fraction=min_effect_fraction,
        operators_min_effect_fraction=dict(effects),
    )


def exit_error(comparison: Comparison) -> SolkitError | None:
    """Return how a comparison ends a command: an error with its exit code, or nothing.

    GateSaysNo for SLOWER, MISSING and NOTHING, CasesFailed for INVALID. UNSURE passes.
    """
    if comparison.overall == "NOTHING":
        paired = any(change.change for change in comparison.changes)
        why = "no two times can be compared" if paired else "no case was measured on both sides"
        return GateSaysNo(
            f"nothing was compared: {why}",
            remedy="measure the same sweep on both sides; an empty comparison proves nothing",
        )
    counts = Counter(change.word for change in comparison.changes)
    said = ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])
    deciding = [each for each in comparison.changes if each.word == comparison.overall]
    deciding.sort(key=lambda each: -each.change.ratio_fraction if each.change else 0.0)
    worst = [str(each.case) for each in deciding]
    more = f" and {len(worst) - _NAMED} more" if len(worst) > _NAMED else ""
    names = ", ".join(one_line(name) for name in worst[:_NAMED]) + more
    if comparison.overall in ("SLOWER", "MISSING"):
        return GateSaysNo(
            f"{said}: {names}",
            remedy="look at each case's numbers; a step that is meant wants a new BASE",
        )
    if comparison.overall == "INVALID":
        return CasesFailed(f"{said}: {names}", remedy="a wrong result or time is mended first")
    return None


def _noises(before: Side, after: Side) -> dict[CaseKey, float]:
    """Return the noise of each ratio between the two sides."""
    priors: dict[CaseKey, float] = {}
    repeats: dict[CaseKey, tuple[Repeats, Repeats]] = {}
    for key, of_base in before.repeats.items():
        one, other = before.judged[key], after.judged.get(key)
        if isinstance(one, Scored) and isinstance(other, Scored):
            priors[key] = max(
                prior_fraction(each.outcome, host=before.run.device == "cpu")
                for each in (one, other)
            )
            repeats[key] = of_base, after.repeats[key]
    excess = excess_fraction((priors[key], repeats[key]) for key in priors)
    card = CARD_NOISE_FRACTION if before.cards != after.cards else 0.0
    return {
        key: math.hypot(ratio_noise(priors[key], excess, *repeats[key]), card) for key in priors
    }


def _case_change(
    before: Side, after: Side, key: CaseKey, *, noise: float, effect: float, method_allowed: bool
) -> CaseChange | None:
    """Return what became of one case; None where neither side measured it and none failed."""
    base, head = before.judged.get(key), after.judged.get(key)
    change: Change | None = None
    word: Word
    cause: Cause = ""
    match base, head:
        case (Scored(), Scored()):
            change = weigh(base.outcome, head.outcome, effect_fraction=effect, noise_fraction=noise)
            doubted = doubt(base, head, method_allowed=method_allowed)
            if doubted:
                change = replace(change, word="UNSURE", reason=doubted)
            word, reason = "INVALID" if head.status == "invalid" else change.word, change.reason
            cause = "" if doubted else _cause(change, effect)
        case (_, Failed(stage="check")):
            word, reason = "INVALID", f"HEAD fails its check: {one_line(head.message)}"
        case (Scored(), _):
            word, reason = "MISSING", absent(after, head)
        case (_, Scored()) if head.status == "invalid":
            word, reason = "INVALID", one_line(head.invalid_reason)
        case (_, Scored()):
            word, reason = "NEW", absent(before, base)
        case (_, Failed()):
            word, reason = "INVALID", f"not measured: {absent(after, head)}"
        case _:
            return None
    found = head or base
    if found is None:  # the key comes from one of both
        return None
    parts = [reason, before.remarks.get(key, ""), after.remarks.get(key, "")]
    for place, name in ((1, "BASE"), (2, "HEAD")):
        parts[place] = f"{name} {parts[place]}" if parts[place] else ""
    parts.append(other_work(base, head))
    return CaseChange(
        case=found.outcome.case if isinstance(found, Scored) else found.case,
        word=word,
        reason="; ".join(filter(None, parts)),
        change=change,
        base=base,
        head=head,
        cause=cause,
        effect_fraction=effect,
    )


def _cause(change: Change, effect: float) -> Cause:
    """Say whether code or machine moved a time; nothing where it didn't move.

    As many SM cycles as before is the machine's doing: the clock explains most of the step, and
    SOL@clock is what it was.
    """
    step = abs(math.log(change.ratio_fraction))
    moved = step > least_step(change.base, change.head, effect)
    apart = change.head.low_s > change.base.high_s or change.base.low_s > change.head.high_s
    if not moved or not apart:
        return ""
    cycles = change.cycles_fraction
    if cycles is not None and abs(math.log(cycles)) <= math.log1p(effect):
        return "machine" if clock_explains(change.ratio_fraction, cycles) else ""
    return "code" if change.word in ("SLOWER", "FASTER") else ""


def _held_together(changes: list[CaseChange]) -> list[CaseChange]:
    """Leave only those changes that stand among all cases compared."""
    asked = [
        (place, each, each.change)
        for place, each in enumerate(changes)
        if each.change and each.word != "INVALID"
    ]
    stand = holm([change.p_value for _, _, change in asked])
    for (place, each, change), stands in zip(asked, stand, strict=True):
        if each.word in ("SLOWER", "FASTER") and not stands:
            reason = (
                f"{change.ratio_fraction:.3f} x the time, which noise makes in one of "
                f"{_among(change.p_value)} cases: too often among {len(asked):,}"
            )
            kept = f"{reason}; {each.reason}" if each.reason else reason
            weaker = replace(change, word="UNSURE", reason=reason)
            changes[place] = replace(each, word="UNSURE", reason=kept, change=weaker, cause="")
    return changes


def _among(p_value: float) -> str:
    return f"{round(1 / p_value):,}" if p_value else "very many"


def _overall(changes: Sequence[CaseChange], *, method_allowed: bool) -> Overall:
    """Return the first of the words that decide, NOTHING where no two times could be compared.

    A case that was faster than light in HEAD alone is a finding, not a lack of one.
    """
    if not any(
        isinstance(each.base, Scored)
        and isinstance(each.head, Scored)
        and (
            each.word == "INVALID" or not doubt(each.base, each.head, method_allowed=method_allowed)
        )
        for each in changes
    ):
        return "NOTHING"
    found = {each.word for each in changes}
    return next((word for word in _OVERALL if word in found), "SAME")


def _notes(before: Side, after: Side) -> list[str]:
    notes = []
    if before.cards != after.cards:
        notes.append(
            "BASE and HEAD were measured on different cards of this model: such runs differ by "
            f"{CARD_NOISE_FRACTION * 100:.1f} % more"
        )
    one, other = before.run.versions, after.run.versions
    changed = [name for name in sorted({**one, **other}) if one.get(name) != other.get(name)]
    if changed:
        said = (f"{name} {one.get(name, 'none')} and {other.get(name, 'none')}" for name in changed)
        notes.append(f"BASE and HEAD have other versions: {one_line(', '.join(said))}")
    return notes
