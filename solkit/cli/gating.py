"""What a run is held to: floors of its scores, and the runs before it.

All of it is read before anything is measured: a gate that can't be held is told at once.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from solkit.cli.sides import runs_of
from solkit.cli.summary import check_floor, verdict
from solkit.declare.registry import bundled
from solkit.errors import CasesFailed, GateSaysNo, SolkitError
from solkit.judge.changes import Comparison, compare_runs, exit_error
from solkit.judge.compare import MIN_EFFECT_FRACTION, check_effect
from solkit.judge.conditions import differences
from solkit.judge.gate import Floors, Gate, shortfalls
from solkit.judge.gate_file import read_gate
from solkit.judge.score import Judged, RoofName, Scored
from solkit.model import Case, CaseKey, Run
from solkit.report.changes import change_row
from solkit.units import percent

FAILS = ("SLOWER", "MISSING")


@dataclass(frozen=True, slots=True)
class Gating:
    """What a person asked for.

    fail_under: the floor of every score. gate: a gate.toml. against: runs that this one is compared
    with. min_effect_fraction: the least change that counts; None for the gate's, or 2 %. allow:
    conditions in which the runs may differ.
    """

    fail_under: float | None = None
    gate: Path | None = None
    against: tuple[Path, ...] = ()
    min_effect_fraction: float | None = None
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """The same, read: floors (the command line's before the file's), and the runs of BASE."""

    gate: Gate = field(default_factory=Gate)
    base: tuple[Run, ...] = ()
    min_effect_fraction: float = MIN_EFFECT_FRACTION
    allow: frozenset[str] = frozenset()

    @property
    def asks(self) -> bool:
        """Whether there is anything to be held to."""
        return bool(self.base or self.gate.floors)

    def of(self, cases: Collection[Case]) -> "Held":
        """Return the same for a part of the sweep: BASE holds these cases alone."""
        keys = {case.key for case in cases}
        base = tuple(
            replace(run, outcomes=tuple(each for each in run.outcomes if each.case.key in keys))
            for run in self.base
        )
        return replace(self, base=base)

    def idle_options(self, asked: "Gating") -> str:
        """Say that nothing is held to what was asked of a comparison, where there is no BASE."""
        options = {
            "--min-effect": asked.min_effect_fraction is not None,
            "--allow": bool(asked.allow),
            "the gate's min_effect and allow": self.gate.compares,
        }
        idle = [name for name, is_given in options.items() if is_given]
        if self.base or not idle:
            return ""
        floors = "its floors are all that is held" if self.gate.floors else "nothing is held"
        return f"{', '.join(idle)} without --against: {floors}"

    def refuse_other(self, run: Run) -> None:
        """Raise BadInput where a run that is about to begin could not be compared with BASE."""
        differences((*self.base, run), self.allow)

    def compared(self, head: Sequence[Run]) -> Comparison | None:
        """Return the comparison of BASE with a run, or nothing without a BASE."""
        if not self.base:
            return None
        return compare_runs(
            self.base,
            head,
            min_effect_fraction=self.min_effect_fraction,
            operators_min_effect_fraction=self.gate.operators_min_effect_fraction,
            allow=self.allow,
        )


def read(gating: Gating, operators: Collection[str]) -> Held:
    """Read the gate and the runs of BASE; BadInput for what is wrong with either.

    operators: the names that the gate may know besides the bundled ones.
    """
    check_floor(gating.fail_under)
    if gating.min_effect_fraction is not None:
        check_effect(gating.min_effect_fraction)
    gate = Gate()
    if gating.gate is not None:
        gate = read_gate(gating.gate, {*operators, *bundled().operators})
    if gating.fail_under is not None:
        gate = replace(gate, floors=replace(gate.floors, default_fraction=gating.fail_under))
    own = gating.min_effect_fraction
    effect = own if own is not None else gate.min_effect_fraction or MIN_EFFECT_FRACTION
    base = runs_of(gating.against)
    allow = frozenset((*gating.allow, *gate.allow))
    differences(base, allow)
    return Held(gate, base, effect, allow)


def unsure(comparison: Comparison | None) -> tuple[Case, ...]:
    """Return the cases that another measurement may decide."""
    changes = comparison.changes if comparison else ()
    return tuple(change.case for change in changes if change.word == "UNSURE")


def below(judged: Sequence[Judged], floors: Floors, roof: RoofName) -> dict[CaseKey, str]:
    """Return the cases that miss their floor, each with the sentence that says so."""
    return {
        each.item.outcome.case.key: (
            f"{percent(each.score_fraction)} of the {roof} roof, and the floor is "
            f"{percent(each.floor_fraction)}"
        )
        for each in shortfalls(judged, floors, roof)
    }


def failing(
    low: Mapping[CaseKey, str], comparison: Comparison | None, judged: Sequence[Judged] = ()
) -> dict[CaseKey, str]:
    """Return the cases that a floor or BASE fails, each with the sentence that says so.

    judged: the run by itself; what is INVALID there speaks for itself, what became so when it was
    measured once more would look fine.
    """
    if comparison is None:
        return dict(low)
    fine = {
        item.outcome.case.key
        for item in judged
        if isinstance(item, Scored) and item.status == "measured"
    }
    rows = {
        change.case.key: change_row(index, change)
        for index, change in enumerate(comparison.changes)
        if change.word in FAILS or (change.word == "INVALID" and change.case.key in fine)
    }
    than = {"SLOWER": "than the run before", "INVALID": "when it was measured once more"}
    said = {
        key: f"{row.word} {than.get(row.word, 'against the run before')}: {row.said}"
        for key, row in rows.items()
    }
    return {key: "; ".join(filter(None, (low.get(key), said.get(key)))) for key in {**low, **said}}


def ending(
    judged: Sequence[Judged],
    *,
    roof: RoofName,
    floors: Floors,
    comparison: Comparison | None,
) -> SolkitError | None:
    """Return how a run ends: a gate that says no comes before cases that failed."""
    own = verdict(judged, roof=roof, floors=floors)
    other = exit_error(comparison) if comparison else None
    said_no = [error for error in (other, own) if isinstance(error, GateSaysNo)]
    if len(said_no) > 1:
        return GateSaysNo(
            "; ".join(error.message for error in said_no),
            remedy="; ".join(error.remedy for error in said_no),
        )
    if said_no:
        return said_no[0]
    return next((error for error in (own, other) if isinstance(error, CasesFailed)), None)
