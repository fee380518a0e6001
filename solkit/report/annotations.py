"""Workflow commands that GitHub shows beside a job: ten at most, the worst first.

A step shows ten errors and ten warnings, a job fifty of both; what comes after them vanishes
without a word. So the tenth line says how many more there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from solkit import units
from solkit.judge.score import Judged, Scored
from solkit.model import CaseKey, Failed, Run
from solkit.report.facts import CUT_REMEDY, caveats, cut_short, notices
from solkit.report.junit import NOTHING_BELOW
from solkit.report.plain import block, counted, line
from solkit.report.trouble import INVALID_REMEDY, case_of
from solkit.report.verdicts import failure_text

ANNOTATIONS_MOST = 10
TITLE_MOST, MESSAGE_MOST = 120, 800


@dataclass(frozen=True, slots=True)
class Annotation:
    """One remark beside a job: how bad it is, what it is about, and what is said."""

    level: Literal["error", "warning", "notice"]
    title: str
    message: str


def render(
    run: Run, judged: Sequence[Judged], *, below: Mapping[CaseKey, str] = NOTHING_BELOW
) -> str:
    """Write the commands of a run, a line each; nothing where there is nothing to say.

    below: the cases that a gate fails, each with the sentence that says why.
    """
    return commands(annotations(run, judged, below=below))


def annotations(
    run: Run, judged: Sequence[Judged], *, below: Mapping[CaseKey, str] = NOTHING_BELOW
) -> tuple[Annotation, ...]:
    """Return all there is to say of a run: errors, the worst first, and then warnings."""
    found = (
        [Annotation("error", "run cut short", f"{cut} {CUT_REMEDY}")]
        if (cut := cut_short(run))
        else []
    )
    found += _failures(judged)
    scored = sorted(
        (item for item in judged if isinstance(item, Scored)), key=lambda item: item.raw_fraction
    )
    found += [
        _of_case("INVALID", item, f"{units.percent(item.raw_fraction)}: {item.invalid_reason}")
        for item in reversed(scored)
        if item.status == "invalid"
    ]
    found += [
        _of_case("fails the gate", item, said)
        for item in scored
        if (said := below.get(item.outcome.case.key, ""))
    ]
    doubts = [*notices(run), *caveats(run, judged)]
    found += [
        Annotation("warning", "measurement", doubt)
        for doubt in doubts
        if not (cut and doubt.startswith(cut))
    ]
    return tuple(found)


def commands(found: Iterable[Annotation]) -> str:
    """Write at most ten commands, a line each, in the order given; the tenth counts the rest.

    For other commands than `report` and `run`, too: order them worst first. A title is cut after
    120 characters and a message after 800; controls are dropped.
    """
    every = list(found)
    shown = every if len(every) <= ANNOTATIONS_MOST else every[: ANNOTATIONS_MOST - 1]
    rest = every[len(shown) :]
    if rest:
        counts = [
            counted(number, f"more {level}")
            for level in ("error", "warning", "notice")
            if (number := sum(each.level == level for each in rest))
        ]
        said = f"{' and '.join(counts)}: the report and the job's summary hold them all"
        shown = [*shown, Annotation(rest[0].level, "and more", said)]
    return "".join(f"{_command(each)}\n" for each in shown)


def _command(each: Annotation) -> str:
    title = _escaped(f"solkit: {line(each.title, TITLE_MOST)}")
    title = title.replace(":", "%3A").replace(",", "%2C")
    return f"::{each.level} title={title}::{_escaped(block(each.message, MESSAGE_MOST))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _failures(judged: Sequence[Judged]) -> list[Annotation]:
    """Return the failures, those with one cause together, most cases first."""
    causes: dict[tuple[str, str, str], list[Failed]] = {}
    for item in judged:
        if isinstance(item, Failed):
            key = (failure_text(item), item.message, item.remedy)
            causes.setdefault(key, []).append(item)
    return [
        Annotation("error", f"{how}{_more(items)}", _failure(items[0]))
        for (how, _, _), items in sorted(causes.items(), key=lambda cause: -len(cause[1]))
    ]


def _more(items: Sequence[Failed]) -> str:
    return f" ({counted(len(items), 'case')})" if len(items) > 1 else ""


def _failure(item: Failed) -> str:
    said = block(item.message, MESSAGE_MOST // 2)
    remedy = f"\nRemedy: {line(item.remedy, MESSAGE_MOST // 4)}" if item.remedy else ""
    return f"{line(str(item.case))}: {said}{remedy}"


def _of_case(title: str, item: Scored, said: str) -> Annotation:
    remedy = f"\nRemedy: {INVALID_REMEDY}" if item.status == "invalid" else ""
    return Annotation("error", title, f"{line(str(case_of(item)))}: {line(said, 400)}{remedy}")
