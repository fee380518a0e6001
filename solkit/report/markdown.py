"""A short summary in Markdown, for a job's page or a pull request: the verdict and the worst."""

import re
from collections.abc import Sequence

from solkit.judge.score import Judged
from solkit.model import Run
from solkit.report.plain import counted
from solkit.report.ranking import Ranked
from solkit.report.trouble import CaseLink, Trouble
from solkit.report.view import view

BYTES_MOST = 60_000  # a comment holds 64 KiB, a job's summary 1 MiB
TROUBLES_MOST = 10
_MESSAGE_MOST = 300
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$@:-])")


def render(run: Run, judged: Sequence[Judged]) -> str:
    """Write the summary: at most `BYTES_MOST` bytes of UTF-8, whole lines, worst things first."""
    seen = view(run, judged)
    lines = [f"## {_safe(seen.verdict)}", "", _safe(seen.summary), "", _safe(seen.conditions), ""]
    if seen.banner:
        lines += [f"> **CPU run.** {_safe(seen.banner)}", ""]
    limits = (*seen.notices, *seen.caveats)
    lines += [f"- {_safe(each)}" for each in limits]
    lines += [""] if limits else []
    lines += _troubles("Not results", (*seen.invalid, *seen.failures))
    lines += _ranking("Costliest cases, by time above the bound", seen.costly)
    lines += _troubles("Skipped", seen.skips)
    return _cut(lines)


def _ranking(title: str, items: Sequence[Ranked]) -> list[str]:
    if not items:
        return []
    rows = [
        f"| {_case(item.case)} | {_safe(item.score)} | {_safe(item.time)} | {_safe(item.cost)} "
        f"| {_safe(item.advice)} |"
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
        count = f", {_safe(item.count)}" if item.count else ""
        remedy = f" Remedy: {_safe(item.remedy)}" if item.remedy else ""
        lines.append(f"- **{_safe(item.title)}**{count}{where}: {_safe(said)}{remedy}")
    if len(items) > TROUBLES_MOST:
        lines.append(f"- and {counted(len(items) - TROUBLES_MOST, 'more cause')} in the report")
    return [*lines, ""]


def _case(case: CaseLink) -> str:
    return f"**{_safe(case.kernel)}** {_safe(case.where)}"


def _safe(text: str) -> str:
    """Escape what Markdown or its HTML would act on; a cell and a sentence stay one line."""
    return _SPECIAL.sub(_escaped, text.replace("\n", " "))


def _escaped(found: re.Match[str]) -> str:
    # entities where a backslash isn't enough: a raw tag, a mention, a link made of a bare address
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;"}
    char = found.group(1)
    if char in "-+:()!{}":
        return (
            char
            if char in "-+()!{}"
            else "&#58;"
            if found.string[found.end() :][:2] == "//"
            else char
        )
    return entities.get(char, f"\\{char}")


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
