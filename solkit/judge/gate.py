"""Is every case near enough to light? Scores against floors; a floor needs no baseline."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from solkit.judge.score import Judged, RoofName, Scored, valid
from solkit.model import Failed, Skipped


@dataclass(frozen=True, slots=True)
class Floors:
    """The least score that passes: of every operator, and of single operators in its place.

    roof: what scores are taken against; None: the run's own roof.
    """

    default_fraction: float | None = None
    operators_fraction: Mapping[str, float] = field(default_factory=dict)
    roof: RoofName | None = None

    def of(self, operator: str) -> float | None:
        """Return the floor of an operator; None where it has none."""
        return self.operators_fraction.get(operator, self.default_fraction)

    def __bool__(self) -> bool:
        """Say whether there is any floor."""
        return self.default_fraction is not None or bool(self.operators_fraction)


@dataclass(frozen=True, slots=True)
class Gate:
    """What a gate.toml asks for: floors, and how two runs are compared.

    min_effect_fraction: the least change that matters, for all operators and for single ones; None
    where the file leaves it to the command. allow: the conditions that may differ.
    """

    floors: Floors = field(default_factory=Floors)
    min_effect_fraction: float | None = None
    operators_min_effect_fraction: Mapping[str, float] = field(default_factory=dict)
    allow: tuple[str, ...] = ()

    @property
    def compares(self) -> bool:
        """Whether it says anything of how runs are compared."""
        own = bool(self.operators_min_effect_fraction or self.allow)
        return own or self.min_effect_fraction is not None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A case below its floor, with the upper end of its interval, too.

    score_fraction: its score at the median. floor_fraction: the floor it missed.
    """

    item: Scored
    score_fraction: float
    floor_fraction: float


@dataclass(frozen=True, slots=True)
class Unheld:
    """A floor that could not be held against what it is for, so that nothing passes by accident.

    operator: whose floor; empty: everyone's. reason: why, in one clause. items: the measured cases
    without a score, where that is why.
    """

    operator: str
    floor_fraction: float
    reason: str
    items: tuple[Scored, ...] = ()


def score_of(item: Scored, roof: RoofName) -> float | None:
    """Return the score under a roof; None where there is none (see the report for the reason)."""
    if roof == item.roof:
        return item.sol_score
    return {"spec": None, "clock": item.sol_clock, "measured": item.sol_measured}[roof]


def shortfalls(judged: Sequence[Judged], floors: Floors, roof: RoofName) -> tuple[Shortfall, ...]:
    """Return the cases below their floor, the farthest below first.

    A case is below only where the upper end of its score's interval is: sol_s / low_s.
    """
    found = []
    for item in valid(judged):
        floor, score = floors.of(item.outcome.case.operator), score_of(item, roof)
        if floor is None or score is None:
            continue
        if score * item.median_s / item.low_s < floor:
            found.append(Shortfall(item, score, floor))
    return tuple(sorted(found, key=lambda each: each.score_fraction / each.floor_fraction))


def held_count(judged: Sequence[Judged], floors: Floors, roof: RoofName) -> int:
    """Count the cases that a floor was held against."""
    return sum(
        1
        for item in valid(judged)
        if floors.of(item.outcome.case.operator) is not None and score_of(item, roof) is not None
    )


def unheld(judged: Sequence[Judged], floors: Floors, roof: RoofName) -> tuple[Unheld, ...]:
    """Return the floors that nothing, or not everything they are for, was held against.

    Failed and invalid cases end a run by themselves; hot ones have no bound to be near, on purpose.
    """
    found = []
    measured = valid(judged)
    for operator, floor in sorted(floors.operators_fraction.items()):
        if not any(item.outcome.case.operator == operator for item in measured):
            found.append(Unheld(operator, floor, _why_none(judged, operator)))
    if floors.default_fraction is not None and not measured:
        found.append(Unheld("", floors.default_fraction, _why_none(judged)))
    blind: dict[tuple[str, float], list[Scored]] = {}
    for item in measured:
        operator = item.outcome.case.operator
        own = floors.of(operator)
        if own is not None and score_of(item, roof) is None:
            group = operator if operator in floors.operators_fraction else ""
            blind.setdefault((group, own), []).append(item)
    found += [
        Unheld(operator, floor, f"no score under the {roof} roof", tuple(items))
        for (operator, floor), items in blind.items()
    ]
    return tuple(found)


def _why_none(judged: Sequence[Judged], operator: str = "") -> str:
    """Say what became of the cases none of which was measured."""
    kinds = Counter(
        _kind(item) for item in judged if not operator or _case_operator(item) == operator
    )
    if not kinds:
        return "the run has no case of it" if operator else "the run has no case"
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"no case was measured cold ({told})"


def _kind(item: Judged) -> str:
    if isinstance(item, Scored):
        return "invalid" if item.status == "invalid" else "hot"
    return "skipped" if isinstance(item, Skipped) else "failed"


def _case_operator(item: Judged) -> str:
    return (item.case if isinstance(item, (Failed, Skipped)) else item.outcome.case).operator
