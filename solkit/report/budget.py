"""What the time of a run is made of: bounds, launch floors and loss, by regime and operator.

The parts of a case add up to its median: the bound under the roof it is scored against (at most
the time itself, where a score is above 100 %), the floor of an empty kernel as far as it fits
beside the bound, and the loss above both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from solkit import units
from solkit.judge.score import Judged, Scored, valid
from solkit.report.plain import counted, line, named
from solkit.report.ranking import bar
from solkit.report.trouble import case_of
from solkit.stats import median

OPERATORS_MOST = 12  # lines of their own; the others share one
RegimeWord = Literal["memory", "compute", "latency"]
REGIMES: dict[RegimeWord, str] = {
    "memory": "Memory-bound",
    "compute": "Compute-bound",
    "latency": "Launch latency",
}


@dataclass(frozen=True, slots=True)
class Spent:
    """The time of some cases by what it is made of, in seconds."""

    case_count: int
    memory_s: float
    compute_s: float
    floor_s: float
    loss_s: float

    @property
    def time_s(self) -> float:
        """All of it: the sum of the cases' medians."""
        return self.memory_s + self.compute_s + self.floor_s + self.loss_s


@dataclass(frozen=True, slots=True)
class Share:
    """An operator's part of the run; `anchor` is its section's (empty where it stands for many)."""

    name: str
    anchor: str
    spent: Spent


class BudgetLine(NamedTuple):
    """One line of the table: whose time, its parts, and its share (bar: 0 to 100)."""

    name: str
    anchor: str
    cases: str
    sol: str
    time: str
    bar: str
    memory: str
    compute: str
    floor: str
    loss: str


@dataclass(frozen=True, slots=True)
class BudgetView:
    """The budget in words: a sentence, a line for each regime and for each operator."""

    sentence: str
    regimes: tuple[BudgetLine, ...]
    operators: tuple[BudgetLine, ...]


def spent(scored: Iterable[Scored]) -> Spent:
    """Add up the time of cases by what it is made of."""
    count, memory_s, compute_s, floor_s, loss_s = 0, 0.0, 0.0, 0.0, 0.0
    for item in scored:
        bound_s = min(item.bound.sol_s, item.median_s)
        fixed_s = min(item.outcome.floor_s, item.median_s - bound_s)
        count += 1
        if item.bound.limiter == "memory":
            memory_s += bound_s
        else:
            compute_s += bound_s
        floor_s += fixed_s
        loss_s += max(0.0, item.median_s - bound_s - fixed_s)
    return Spent(count, memory_s, compute_s, floor_s, loss_s)


def regime_of(item: Scored) -> RegimeWord:
    """Return what rules a case: launch latency, or else the resource that bounds it."""
    if item.regime.word == "latency":
        return "latency"
    return "memory" if item.bound.limiter == "memory" else "compute"


def by_regime(good: Sequence[Scored]) -> dict[RegimeWord, list[Scored]]:
    """Sort cases by what rules them; a regime without a case is left out."""
    groups: dict[RegimeWord, list[Scored]] = {word: [] for word in REGIMES}
    for item in good:
        groups[regime_of(item)].append(item)
    return {word: items for word, items in groups.items() if items}


def shares(judged: Sequence[Judged]) -> tuple[Share, ...]:
    """Return each operator's part of the run, the longest first; beyond a dozen, all in one.

    Only what counts is in it: measured, not INVALID, not hot. Operators that took no time are not.
    """
    anchors: dict[str, str] = {}
    groups: dict[str, list[Scored]] = {}
    for item in judged:
        name = case_of(item).operator
        anchors.setdefault(name, f"op{len(anchors)}")
        groups.setdefault(name, [])
    for item in valid(judged):
        groups[item.outcome.case.operator].append(item)
    parts = [Share(name, anchors[name], spent(items)) for name, items in groups.items() if items]
    parts.sort(key=lambda part: -part.spent.time_s)
    if len(parts) <= OPERATORS_MOST:
        return tuple(parts)
    kept, rest = parts[: OPERATORS_MOST - 1], parts[OPERATORS_MOST - 1 :]
    names = {part.name for part in rest}
    others = spent(item for item in valid(judged) if item.outcome.case.operator in names)
    return (*kept, Share(f"{len(rest):,} others", "", others))


def regime_shares(judged: Sequence[Judged]) -> tuple[Share, ...]:
    """Return each regime's part of the run, as far as it has cases."""
    groups = by_regime(valid(judged))
    return tuple(Share(REGIMES[word], "", spent(items)) for word, items in groups.items())


def budget(judged: Sequence[Judged]) -> BudgetView | None:
    """Put the budget of a run into words; None where nothing was measured."""
    good = valid(judged)
    whole = spent(good)
    if not whole.time_s:
        return None
    return BudgetView(
        sentence=_sentence(whole),
        regimes=tuple(
            _line(REGIMES[word], "", items, spent(items), whole)
            for word, items in by_regime(good).items()
        ),
        operators=tuple(
            _line(named(part.name), part.anchor, _own(part, good), part.spent, whole)
            for part in shares(judged)
        ),
    )


def budget_alt(regimes: Sequence[Share], operators: Sequence[Share]) -> str:
    """Say in words what the chart of the budget shows."""
    total_s = sum(part.spent.time_s for part in operators)
    return (
        f"The {units.seconds(total_s)} of all measured cases by regime: {_said(regimes)}. "
        f"By operator: {_said(operators)}."
    )


def _said(parts: Sequence[Share]) -> str:
    return "; ".join(
        f"{line(part.name, 40)} {units.seconds(part.spent.time_s)}, of it "
        f"{units.seconds(part.spent.loss_s)} lost"
        for part in parts
    )


def _own(part: Share, good: Sequence[Scored]) -> list[Scored]:
    return [item for item in good if part.anchor and item.outcome.case.operator == part.name]


def _sentence(whole: Spent) -> str:
    bound_s = whole.memory_s + whole.compute_s
    if whole.memory_s and whole.compute_s:
        kinds = f"{units.seconds(whole.memory_s)} memory, {units.seconds(whole.compute_s)} compute"
    else:
        kinds = "all compute" if whole.compute_s else "all memory"
    return (
        f"One call of each measured case takes {units.seconds(whole.time_s)} in all: "
        f"{units.seconds(bound_s)} is the bound ({kinds}), {units.seconds(whole.floor_s)} the "
        "floor of "
        f"{counted(whole.case_count, 'launch', 'launches')}, {units.seconds(whole.loss_s)} "
        f"({units.percent(whole.loss_s / whole.time_s)}) is lost above both."
    )


def _line(name: str, anchor: str, items: Sequence[Scored], of: Spent, whole: Spent) -> BudgetLine:
    scores = [item.raw_fraction for item in items]
    return BudgetLine(
        name=name,
        anchor=anchor,
        cases=f"{of.case_count:,}",
        sol=units.percent(median(scores)) if scores else "",
        time=f"{units.seconds(of.time_s)} ({units.percent(of.time_s / whole.time_s)})",
        bar=bar(of.time_s / whole.time_s),
        memory=_part(of.memory_s),
        compute=_part(of.compute_s),
        floor=_part(of.floor_s),
        loss=f"{units.seconds(of.loss_s)} ({units.percent(of.loss_s / of.time_s)})",
    )


def _part(value_s: float) -> str:
    return units.seconds(value_s) if value_s else "—"
