"""What is not a result: invalid, failed and skipped cases by cause, alike ones together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from solkit import units
from solkit.judge.score import Judged, Scored
from solkit.model import Case, Failed, Skipped
from solkit.report.plain import block, counted, isolated, line
from solkit.report.table import shape_text
from solkit.report.verdicts import VERDICT_WORDS

CASES_MOST = 8  # cases named per cause; the table and the CSV hold them all
CAUSES_MOST = 60  # causes listed per kind
INVALID_REMEDY = "Check the work model and the dtype's roof, and that the cache was cold."


class CaseLink(NamedTuple):
    """A case by what computes it and where, and the anchor of its row."""

    kernel: str
    where: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """One cause: what happened, what was said, what to do, and the cases that share it."""

    title: str
    message: str
    remedy: str
    count: str
    cases: tuple[CaseLink, ...]
    more: str


def case_of(item: Judged) -> Case:
    """Return the case of any judged outcome."""
    return item.outcome.case if isinstance(item, Scored) else item.case


def counts_of(judged: Sequence[Judged]) -> list[tuple[str, int]]:
    """Count what is not a result among `judged`, by status."""
    return [
        ("invalid", sum(isinstance(it, Scored) and it.status == "invalid" for it in judged)),
        ("failed", sum(isinstance(it, Failed) for it in judged)),
        ("skipped", sum(isinstance(it, Skipped) for it in judged)),
    ]


def hot_count(judged: Sequence[Judged]) -> int:
    """Count the cases that were measured hot on purpose: they are in no median or ranking."""
    return sum(isinstance(it, Scored) and it.status == "measured" and it.hot for it in judged)


def case_link(item: Judged, index: int) -> CaseLink:
    """Name a case in words that are safe inside a sentence; `index` is its place in the run."""
    case = case_of(item)
    return CaseLink(
        f"{isolated(case.operator)}/{isolated(case.kernel)}",
        f"{isolated(shape_text(case))} {isolated(case.dtype)}",
        f"r{index}",
    )


def invalid(judged: Sequence[Judged]) -> tuple[Trouble, ...]:
    """Return the cases beyond the hard limit, farthest first, with their likely causes."""
    beyond = [
        (index, item)
        for index, item in enumerate(judged)
        if isinstance(item, Scored) and item.status == "invalid"
    ]
    beyond.sort(key=lambda pair: (-pair[1].raw_fraction, pair[0]))
    made = [
        Trouble(
            f"✕ INVALID {units.percent(item.raw_fraction)}",
            line(item.invalid_reason, 400),
            INVALID_REMEDY,
            "1 case",
            (case_link(item, index),),
            "",
        )
        for index, item in beyond
    ]
    return _capped(made, "invalid case")


def failures(judged: Sequence[Judged]) -> tuple[Trouble, ...]:
    """Return the failures, those with one stage, message and remedy together, most cases first."""
    causes: dict[tuple[str, str, str], list[tuple[int, Judged]]] = {}
    for index, item in enumerate(judged):
        if isinstance(item, Failed):
            word = VERDICT_WORDS[item.verdict]
            title = f"✕ Failed at {line(item.stage)}{f': {word}' if word else ''}"
            causes.setdefault((title, item.message, item.remedy), []).append((index, item))
    made = [
        _trouble(title, block(message), line(remedy, 600), cases)
        for (title, message, remedy), cases in _largest_first(causes)
    ]
    return _capped(made, "cause")


def skips(judged: Sequence[Judged]) -> tuple[Trouble, ...]:
    """Return the skipped cases by reason, most cases first."""
    causes: dict[tuple[str, str, str], list[tuple[int, Judged]]] = {}
    for index, item in enumerate(judged):
        if isinstance(item, Skipped):
            causes.setdefault((item.reason, "", ""), []).append((index, item))
    made = [
        _trouble("○ Skipped", line(reason, 400), "", cases)
        for (reason, _, _), cases in _largest_first(causes)
    ]
    return _capped(made, "reason")


def _trouble(title: str, message: str, remedy: str, cases: Sequence[tuple[int, Judged]]) -> Trouble:
    named = tuple(case_link(item, index) for index, item in cases[:CASES_MOST])
    rest = len(cases) - len(named)
    more = f"and {rest:,} more, all in the table" if rest else ""
    return Trouble(title, message, remedy, counted(len(cases), "case"), named, more)


def _largest_first(
    causes: dict[tuple[str, str, str], list[tuple[int, Judged]]],
) -> list[tuple[tuple[str, str, str], list[tuple[int, Judged]]]]:
    return sorted(causes.items(), key=lambda item: (-len(item[1]), item[1][0][0]))


def _capped(made: list[Trouble], noun: str) -> tuple[Trouble, ...]:
    if len(made) <= CAUSES_MOST:
        return tuple(made)
    rest = len(made) - CAUSES_MOST
    last = Trouble(
        f"{counted(rest, f'more {noun}')}",
        "Not listed here; each of them is a marked row of the table and a line of the run file.",
        "",
        "",
        (),
        "",
    )
    return (*made[:CAUSES_MOST], last)
