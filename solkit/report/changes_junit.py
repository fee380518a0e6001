"""A comparison as JUnit XML: what got slower or is missing fails, what is no result is an error.

UNSURE is skipped: it doesn't fail, and the list shows it with its reason.
"""

from collections.abc import Iterable
from typing import Literal

from solkit.judge.changes import CaseChange, Comparison, Word
from solkit.judge.score import Scored
from solkit.report.changes import ChangeRow, change_row, verdict
from solkit.report.junit import classname, name
from solkit.report.junit_xml import Entry, Problem, Suite, document

KINDS: dict[Word, Literal["failure", "error", "skipped"]] = {
    "SLOWER": "failure",
    "MISSING": "failure",
    "INVALID": "error",
    "UNSURE": "skipped",
}


def render(comparison: Comparison, *, missed: str = "") -> str:
    """Write a suite for each operator, a test case for each case, timed by HEAD's median.

    Where there was nothing to compare, one case of its own fails: an empty list would pass.
    missed: the sentence that says which floors HEAD misses, which is a failure, too.
    """
    made = _suites(comparison, range(len(comparison.changes)))
    if missed:
        problem = Problem("failure", missed, "below the floor", missed)
        floors = Entry("solkit.compare", "HEAD and its floors", 0.0, problem)
        made.insert(0, Suite("floors", (floors,), _properties(comparison), comparison.head.created))
    return document("solkit compare", made)


def absent(comparison: Comparison) -> list[Suite]:
    """Return the suites of what HEAD's own list of cases does not hold: MISSING cases, NOTHING."""
    changes = comparison.changes
    return _suites(comparison, [at for at, item in enumerate(changes) if item.head is None])


def _suites(comparison: Comparison, places: Iterable[int]) -> list[Suite]:
    suites: dict[str, list[Entry]] = {}
    for place in places:
        item = comparison.changes[place]
        suites.setdefault(item.case.operator, []).append(_entry(place, item))
    known, created = _properties(comparison), comparison.head.created
    made = [Suite(name, tuple(entries), known, created) for name, entries in suites.items()]
    if comparison.overall == "NOTHING":
        said = verdict(comparison)
        whole = Entry("solkit.compare", "BASE and HEAD", 0.0, Problem("failure", said, "NOTHING"))
        made.insert(0, Suite("compare", (whole,), known, created))
    return made


def _entry(index: int, item: CaseChange) -> Entry:
    row = change_row(index, item)
    kind = KINDS.get(item.word)
    numbers = _numbers(row)
    problem = Problem(kind, _message(row), item.word, numbers) if kind else None
    time_s = item.head.median_s if isinstance(item.head, Scored) else 0.0
    out = "" if kind in ("failure", "error") else numbers  # these have a body that says it
    return Entry(classname(item.case), name(item.case), time_s, problem, out)


def _message(row: ChangeRow) -> str:
    said = row.said or f"{row.change}, from {row.base} to {row.head}"
    return f"{row.word}: {said}"


def _numbers(row: ChangeRow) -> str:
    """Return what a person who opens the case wants to know, a line each."""
    span = f" (95 %: {row.span})" if row.span else ""
    said = (
        f"{row.word}: {row.change}{span}",
        f"BASE {row.base} {row.base_spread}".rstrip(),
        f"HEAD {row.head} {row.head_spread}".rstrip(),
        f"SOL {row.sol_base} -> {row.sol_head}",
        f"SOL@clock {row.sol_clock_base} -> {row.sol_clock_head}",
        ", ".join(filter(None, (row.traffic, row.clock))),
        row.explanation,
        row.reason,
    )
    return "\n".join(filter(None, said))


def _properties(comparison: Comparison) -> dict[str, str]:
    sides = {"base": comparison.base, "head": comparison.head}
    known = {
        f"{side}_{label}": value
        for side, run in sides.items()
        for label, value in (
            ("run", run.id),
            ("created", run.created),
            ("card", run.facts.name),
            ("driver", run.facts.driver),
        )
    }
    known["min_effect"] = f"{comparison.min_effect_fraction:g}"
    known["overall"] = comparison.overall
    return {label: value for label, value in known.items() if value}
