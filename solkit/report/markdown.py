"""A short summary in Markdown, for a job's page or a pull request: the verdict and the worst."""

import re
from collections.abc import Mapping, Sequence

from solkit.judge.score import Judged, Scored, valid
from solkit.model import CaseKey, Run
from solkit.report.facts import caveats, conditions_line, notices
from solkit.report.junit import NOTHING_BELOW
from solkit.report.kernel_rows import kernel_rows
from solkit.report.plain import counted, line
from solkit.report.ranking import Ranked, Ranking
from solkit.report.trouble import (
    CaseLink,
    Trouble,
    case_link,
    case_of,
    failures,
    invalid,
    skips,
)
from solkit.report.view import opening

BYTES_MOST = 60_000  # a comment holds 64 KiB, a job's summary 1 MiB
TROUBLES_MOST = BELOW_MOST = 10
LIMITS_MOST, KERNELS_MOST = 12, 20
_MESSAGE_MOST, _GATE_MOST = 300, 1_000
NO_BREAK = "\u00a0"
# What Markdown, or GitHub behind it, acts on: marks, tags, mentions, addresses that become links.
_SPECIAL = re.compile(r"[\\`*_\[\]#|~$<>&@]|:(?=//)|www(?=\.)", re.IGNORECASE)
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_BREAK = "&#8203;"  # a space of no width: an entity alone is a mention again once it is rendered


def render(
    run: Run,
    judged: Sequence[Judged],
    *,
    gate: str = "",
    below: Mapping[CaseKey, str] = NOTHING_BELOW,
) -> str:
    """Write the summary: at most `BYTES_MOST` bytes of UTF-8, whole lines, worst things first.

    gate: what a floor or a comparison says of the run, in a sentence. below: the cases that it
    fails, each with the sentence that says why.
    """
    # The page's table, heat tables and charts aren't needed: 2.4 s of 10,000 cases.
    verdict, summary, banner = opening(run, judged)
    places = {id(item): index for index, item in enumerate(judged)}
    ranked = Ranking(valid(judged), places, on_cpu=run.device == "cpu")
    lines = [f"## {safe(verdict)}", ""]
    lines += [f"**Gate:** {safe(line(gate, _GATE_MOST))}", ""] if gate else []
    lines += [safe(summary), "", safe(conditions_line(run, judged)), ""]
    if banner:
        lines += [f"> **CPU run.** {safe(banner)}", ""]
    lines += _troubles("Not results", (*invalid(judged), *failures(judged)))
    lines += _below(judged, below)
    lines += _limits((*notices(run), *caveats(run, judged)))
    lines += _kernels(judged)
    lines += _ranking("Costliest cases, by time above the bound", ranked.costly())
    lines += _troubles("Skipped", skips(judged))
    return _cut(lines)


def _limits(texts: Sequence[str]) -> list[str]:
    lines = [f"- {safe(each)}" for each in texts[:LIMITS_MOST]]
    if len(texts) > LIMITS_MOST:
        lines.append(f"- and {counted(len(texts) - LIMITS_MOST, 'more note')} in the report")
    return ["### To keep in mind", "", *lines, ""] if lines else []


def _below(judged: Sequence[Judged], below: Mapping[CaseKey, str]) -> list[str]:
    """List the cases that a gate fails, the farthest from light first."""
    low = [
        (index, item, below[case_of(item).key])
        for index, item in enumerate(judged)
        if case_of(item).key in below
    ]
    if not low:
        return []
    low.sort(key=lambda each: each[1].raw_fraction if isinstance(each[1], Scored) else 0.0)
    lines = [
        f"- {_case(case_link(item, index))}: {safe(line(said, _MESSAGE_MOST))}"
        for index, item, said in low[:BELOW_MOST]
    ]
    if len(low) > BELOW_MOST:
        lines.append(f"- and {counted(len(low) - BELOW_MOST, 'more case')} in the report")
    return ["### Failing the gate", "", *lines, ""]


def _kernels(judged: Sequence[Judged]) -> list[str]:
    """Write a row for each kernel of each operator, the lowest median first."""
    rows = kernel_rows(judged)
    if not rows:
        return []
    shown = [
        f"| {safe(row.kernel)} | {safe(row.cases)} | {safe(row.median)} | {safe(row.span)} "
        f"| {safe(row.trouble)} |"
        for row in rows[:KERNELS_MOST]
    ]
    rest = counted(len(rows) - KERNELS_MOST, "more kernel")
    return [
        "### SOL per kernel, lowest first",
        "",
        "| kernel | cases | median SOL | lowest to highest | not measured |",
        "|---|--:|--:|--:|---|",
        *shown,
        "",
        *([f"{rest} in the report", ""] if len(rows) > KERNELS_MOST else []),
    ]


def _ranking(title: str, items: Sequence[Ranked]) -> list[str]:
    if not items:
        return []
    rows = [
        f"| {_case(item.case)} | {_number(item.score)} | {_number(item.time)} "
        f"| {_number(item.cost)} | {safe(item.advice)} |"
        for item in items
    ]
    return [
        f"### {title}",
        "",
        "| case | SOL | time | above the bound | what would help |",
        "|---|--:|--:|--:|---|",
        *rows,
        "",
    ]


def _troubles(title: str, items: Sequence[Trouble]) -> list[str]:
    if not items:
        return []
    lines = [f"### {title}", ""]
    for item in items[:TROUBLES_MOST]:
        first = item.message.strip().split("\n")[0]
        said = first if len(first) <= _MESSAGE_MOST else f"{first[: _MESSAGE_MOST - 1]}…"
        where = f" ({_case(item.cases[0])})" if item.cases else ""
        count = f", {safe(item.count)}" if item.count else ""
        lines.append(f"- **{safe(item.title)}**{count}{where}: {safe(said)}")
        lines += [f"  - Remedy: {safe(item.remedy)}"] if item.remedy else []
    if len(items) > TROUBLES_MOST:
        lines.append(f"- and {counted(len(items) - TROUBLES_MOST, 'more cause')} in the report")
    return [*lines, ""]


def _case(case: CaseLink) -> str:
    return f"**{safe(case.kernel)}** {safe(case.where)}"


def _number(text: str) -> str:
    return unbroken(safe(text))


def unbroken(text: str) -> str:
    """Keep a number and its unit on one line of a narrow cell; what is in brackets may follow."""
    return text.replace(" ", NO_BREAK).replace(f"{NO_BREAK}(", " (")


def safe(text: str) -> str:
    """Escape what Markdown or its HTML would act on; a cell and a sentence stay one line."""
    return _SPECIAL.sub(_escaped, text.replace("\n", " "))


def _escaped(found: re.Match[str]) -> str:
    text = found.group()
    if text in "@:" or len(text) > 1:
        return f"{text}{_BREAK}"
    return _ENTITIES.get(text, f"\\{text}")


def _cut(lines: Sequence[str]) -> str:
    """Keep whole lines up to the limit, and say how many are left out."""
    kept: list[str] = []
    size = 0
    for place, each in enumerate(lines):
        size += len(each.encode()) + 1
        if size > BYTES_MOST:
            return "\n".join([*kept, "", f"{counted(len(lines) - place, 'line')} left out.", ""])
        kept.append(each)
    return "\n".join(kept).rstrip("\n") + "\n"
