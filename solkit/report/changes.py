"""A comparison in words: the verdict, both sides' conditions, and a row for every case."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from solkit import units
from solkit.judge.changes import WORDS, CaseChange, Comparison, Word
from solkit.judge.score import Judged, Scored
from solkit.model import Failed, Run
from solkit.report.change_words import amount, bytes_words, clock_words, explained, signed, span
from solkit.report.fact import UNKNOWN, between, present
from solkit.report.plain import counted, line
from solkit.report.table import NONE, shape_text, spread_text
from solkit.report.verdicts import failure_word

REASON_MOST = 400
_NOTES_MOST = 20
MEANS: dict[Word, str] = {
    "SLOWER": "takes longer, by more than noise and clock explain",
    "MISSING": "measured in BASE, and has no time in HEAD",
    "INVALID": "no result on one of the sides",
    "UNSURE": "may have changed: the samples don't decide it",
    "FASTER": "takes less time, by more than noise and clock explain",
    "NEW": "not in BASE",
    "SAME": "no change that matters",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on both sides; `mark` says in a word that they differ, else it is empty."""

    label: str
    base: str
    head: str
    mark: str


@dataclass(frozen=True, slots=True)
class WordCount:
    """How many cases came out with a word, and what the word means."""

    word: str
    count: str
    means: str


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One case in words; what a side does not have is a dash.

    anchor: `c12` for the comparison's case 12. name: the whole case. base, head: median times, or
    what became of the case there. change: head's time against base's, with its 95 % interval in
    span. traffic, clock: bytes and SM clock of head against base. sol, sol_clock: before and after.
    explanation: one sentence on where a change comes from. reason: why the word is not a time's.
    """

    anchor: str
    word: str
    operator: str
    kernel: str
    dtype: str
    shape: str
    name: str
    base: str
    base_spread: str
    head: str
    head_spread: str
    change: str
    span: str
    traffic: str
    clock: str
    sol_base: str
    sol_head: str
    sol_clock_base: str
    sol_clock_head: str
    explanation: str
    reason: str

    @property
    def said(self) -> str:
        """The explanation and the reason, as far as there are any."""
        return "; ".join(filter(None, (self.explanation, self.reason)))


@dataclass(frozen=True, slots=True)
class ChangesView:
    """The whole comparison. changed: all but SAME, worst first; same: the others, largest first.

    missed: what HEAD misses besides, a floor of a gate; empty where it misses none.
    """

    title: str
    overall: str
    verdict: str
    summary: str
    conditions: tuple[Condition, ...]
    counts: tuple[WordCount, ...]
    changed: tuple[ChangeRow, ...]
    same: tuple[ChangeRow, ...]
    notes: tuple[str, ...]
    missed: str


def view(comparison: Comparison, *, missed: str = "") -> ChangesView:
    """Turn a comparison into words; rows with the same word come by their effect.

    missed: the sentence that says which floors HEAD misses; it is the first of the notes.
    """
    rows = [(item, change_row(index, item)) for index, item in enumerate(comparison.changes)]
    rows.sort(key=lambda pair: (WORDS.index(pair[0].word), -effect(pair[0])))
    counts = Counter(item.word for item in comparison.changes)
    differences = tuple(f"allowed to differ: {line(each, 300)}" for each in comparison.differences)
    said = (line(missed, REASON_MOST),) if missed else ()
    return ChangesView(
        title=f"{comparison.overall}: {line(comparison.base.id)} and {line(comparison.head.id)}",
        overall=comparison.overall,
        verdict=verdict(comparison),
        summary=_summary(comparison),
        conditions=conditions(comparison),
        counts=tuple(
            WordCount(word, units.count(counts[word]), MEANS[word])
            for word in WORDS
            if counts[word]
        ),
        changed=tuple(row for item, row in rows if item.word != "SAME"),
        same=tuple(row for item, row in rows if item.word == "SAME"),
        notes=(*said, *differences, *_notes(comparison.notes)),
        missed="".join(said),
    )


def effect(item: CaseChange) -> float:
    """Return how far the time moved, in either direction alike: |log ratio|; 0 without numbers."""
    return abs(math.log(item.change.ratio_fraction)) if item.change else 0.0


def verdict(comparison: Comparison) -> str:
    """Say the overall verdict in one sentence: 'SLOWER: 3 of 70 cases are slower, ...'."""
    count = len(comparison.changes)
    found = {
        word: [item for item in comparison.changes if item.word == word and item.change]
        for word in ("SLOWER", "FASTER")
    }
    counts = Counter(item.word for item in comparison.changes)

    def of(word: Word, says: str, says_many: str) -> str:
        verb = says if counts[word] == 1 else says_many
        return f"{units.count(counts[word])} of {counted(count, 'case')} {verb}"

    def most(word: Word, label: str) -> str:
        if not found[word]:
            return ""
        worst = max(found[word], key=effect)
        assert worst.change is not None  # noqa: S101  # chosen so
        label = f"the {label} by " if len(found[word]) > 1 else "by "
        return f", {label}{amount(worst.change.ratio_fraction)}"

    said = {
        "SLOWER": of("SLOWER", "is slower", "are slower") + most("SLOWER", "worst"),
        "MISSING": of("MISSING", "has no time in HEAD", "have no time in HEAD"),
        "INVALID": of("INVALID", "is no result", "are no results"),
        "UNSURE": of("UNSURE", "can't be told", "can't be told") + "; none is slower",
        "FASTER": of("FASTER", "is faster", "are faster")
        + most("FASTER", "best")
        + "; none is slower",
        "SAME": f"no change that matters in {counted(count, 'case')}",
        "NOTHING": _nothing(comparison),
    }[comparison.overall]
    return f"{comparison.overall}: {said}"


def _nothing(comparison: Comparison) -> str:
    counts = Counter(item.word for item in comparison.changes)
    if len(comparison.changes) == counts["MISSING"] + counts["NEW"]:
        return "BASE and HEAD have no case in common"
    if any(item.change for item in comparison.changes):
        return "no two times can be compared"
    return "no case was measured on both sides"


def _summary(comparison: Comparison) -> str:
    """Say how many cases were compared, what counts as a change, and how all moved together."""
    own = comparison.operators_min_effect_fraction
    least = units.percent(comparison.min_effect_fraction) + (
        f" ({', '.join(f'{line(name)}: {units.percent(own[name])}' for name in sorted(own))})"
        if own
        else ""
    )
    pairs = [item.change for item in comparison.changes if item.change and item.word != "INVALID"]
    said = f"{counted(len(pairs), 'case')} measured on both sides; a change counts from {least} on."
    if len(pairs) > 1:
        mean = math.exp(math.fsum(math.log(each.ratio_fraction) for each in pairs) / len(pairs))
        said += f" All their times together: {signed(mean)} (geometric mean)."
    return said


def _notes(notes: Sequence[str]) -> tuple[str, ...]:
    shown = tuple(line(each, REASON_MOST) for each in notes[:_NOTES_MOST])
    more = len(notes) - len(shown)
    return (*shown, f"and {counted(more, 'more note')}") if more else shown


def conditions(comparison: Comparison) -> tuple[Condition, ...]:
    """Return both sides' conditions, one label each; a condition nobody recorded is left out."""
    base, head = comparison.base, comparison.head
    columns = (
        _side(base, comparison.base_count, [item.base for item in comparison.changes]),
        _side(head, comparison.head_count, [item.head for item in comparison.changes]),
    )
    return tuple(
        Condition(label, before, after, _mark(label, before, after))
        for (label, before), (_, after) in zip(*columns, strict=True)
        if (before, after) != (NONE, NONE)
    )


# What two sides of a comparison need not share to be compared; clocks differ by nature.
_FREE = ("Run", "Created", "Runs", "Cases", "SM clock held")


def _mark(label: str, before: str, after: str) -> str:
    return "differs" if before != after and label not in _FREE else ""


def _side(run: Run, count: int, judged: Sequence[Judged | None]) -> tuple[tuple[str, str], ...]:
    scored = [item for item in judged if isinstance(item, Scored)]
    held = present(item.outcome.clocks.sm_hz for item in scored)
    limit_w = run.facts.power_limit_w
    outcomes = sum(item is not None for item in judged)
    return (
        ("Run", line(run.id)),
        ("Created", line(run.created)),
        ("Runs", units.count(count)),
        ("Cases", f"{units.count(outcomes)}, {units.count(len(scored))} with a time"),
        ("Card" if run.device == "cuda" else "Processor", line(run.facts.name)),
        ("Driver", line(run.facts.driver) or NONE),
        ("Power limit", units.power(limit_w) if limit_w else NONE),
        ("SM clock held", between(held, units.frequency) if held else NONE),
        ("Method", _of_all([item.outcome.method for item in scored]) or line(run.method)),
        ("Cache", _of_all([item.outcome.cache for item in scored]) or line(run.cache)),
        ("Settle", line(run.settle)),
        ("Seed", str(run.seed)),
        ("Spec", line(run.gpu.id) if run.gpu else NONE),
        ("solkit", line(run.versions.get("solkit", "")) or UNKNOWN),
    )


def _of_all(names: Sequence[str]) -> str:
    """Name what the cases were timed with, the most frequent first."""
    return ", ".join(line(name) for name, _ in Counter(names).most_common(4))


def change_row(index: int, item: CaseChange) -> ChangeRow:
    """Write one case of a comparison, and its place in it."""
    case, change = item.case, item.change
    base, head = item.base, item.head
    names = (line(case.operator), line(case.kernel), shape_text(case), line(case.dtype))
    return ChangeRow(
        anchor=f"c{index}",
        word=item.word,
        operator=names[0],
        kernel=names[1],
        dtype=names[3],
        shape=names[2],
        name=f"{names[0]}/{names[1]} {names[2]} {names[3]}",
        base=_time(base),
        base_spread=_spread(base),
        head=_time(head),
        head_spread=_spread(head),
        change=signed(change.ratio_fraction) if change else NONE,
        span=span(change) if change else "",
        traffic=bytes_words(change) if change else "",
        clock=clock_words(change) if change else "",
        sol_base=_score(base, "sol_score"),
        sol_head=_score(head, "sol_score"),
        sol_clock_base=_score(base, "sol_clock"),
        sol_clock_head=_score(head, "sol_clock"),
        explanation=explained(item, item.effect_fraction),
        reason=line(item.reason, REASON_MOST),
    )


def _time(side: Judged | None) -> str:
    """Write a side's median, or what became of the case there in a word or two."""
    if side is None:
        return NONE
    if isinstance(side, Scored):
        return units.seconds(side.median_s)
    if not isinstance(side, Failed):
        return "skipped"
    word = failure_word(side)
    return f"failed {word}" if word.startswith("at ") else f"failed: {word}"


def _spread(side: Judged | None) -> str:
    return spread_text(side) if isinstance(side, Scored) else ""


def _score(side: Judged | None, name: str) -> str:
    value = getattr(side, name) if isinstance(side, Scored) else None
    return NONE if value is None else units.percent(value)
