"""JUnit XML as CI systems read it: suites of cases, each with what was wrong with it, if anything.

The writer knows no runs: whoever has verdicts makes `Suite`s of them. What it writes is well-formed
whatever the names hold: they are cleaned, bounded and escaped here, and made unique.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from solkit.report.plain import block, line

MESSAGE_MOST = 400  # of an attribute: a line that a list shows
BODY_MOST = 4_000  # of a body: what a person opens
_QUOTES = {'"': "&quot;"}


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a case did not pass: `failure` (it ran and missed its mark), `error`, or `skipped`.

    type: the kind in a word or two. message: one line. body: the whole of it.
    """

    kind: Literal["failure", "error", "skipped"]
    message: str
    type: str = ""
    body: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One test case. classname: dots make the tree that Jenkins shows. out: what it printed."""

    classname: str
    name: str
    time_s: float = 0.0
    problem: Problem | None = None
    out: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases that belong together, and what is known of how they came about."""

    name: str
    entries: tuple[Entry, ...]
    properties: dict[str, str] = field(default_factory=dict)
    created: str = ""


def document(name: str, suites: Sequence[Suite]) -> str:
    """Write the suites as one document; of cases named alike, the later ones get a number."""
    entries = [entry for suite in suites for entry in suite.entries]
    names = iter(_told_apart(entries))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', _start("testsuites", _sums(name, entries))]
    for suite in suites:
        stamp = {"timestamp": _utc(suite.created)} if _utc(suite.created) else {}
        skipped = str(_counts(suite.entries)["skipped"])  # which the whole has no attribute for
        said = {**_sums(suite.name, suite.entries), "skipped": skipped, **stamp}
        lines.append(_start("testsuite", said))
        lines += _properties(suite.properties)
        lines += [each for entry in suite.entries for each in _case(entry, next(names))]
        lines.append("</testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _told_apart(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """Return class name and name of each entry, cleaned; no two entries share both."""
    taken: set[tuple[str, str]] = set()
    found: list[tuple[str, str]] = []
    numbers: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        plain = pair = (line(entry.classname) or "-", line(entry.name) or "-")
        while pair in taken:
            numbers[plain] += 1
            pair = (plain[0], f"{plain[1]} ({numbers[plain] + 1})")
        taken.add(pair)
        found.append(pair)
    return found


def _sums(name: str, entries: Sequence[Entry]) -> dict[str, str]:
    counts = _counts(entries)
    return {
        "name": line(name) or "-",
        "tests": str(len(entries)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "time": _seconds(sum(entry.time_s for entry in entries)),
    }


def _counts(entries: Sequence[Entry]) -> Counter[str]:
    return Counter(entry.problem.kind for entry in entries if entry.problem)


def _properties(properties: dict[str, str]) -> list[str]:
    if not properties:
        return []
    rows = [
        _start(
            "property", {"name": line(name) or "-", "value": line(value, MESSAGE_MOST)}, end="/>"
        )
        for name, value in properties.items()
    ]
    return ["<properties>", *rows, "</properties>"]


def _case(entry: Entry, names: tuple[str, str]) -> list[str]:
    said = {"classname": names[0], "name": names[1], "time": _seconds(entry.time_s)}
    inside = _problem(entry.problem) if entry.problem else []
    if out := block(entry.out, BODY_MOST):
        inside.append(f"<system-out>{_body(out)}</system-out>")
    if not inside:
        return [_start("testcase", said, end="/>")]
    return [_start("testcase", said), *inside, "</testcase>"]


def _problem(problem: Problem) -> list[str]:
    said = {"message": line(problem.message, MESSAGE_MOST)}
    if problem.kind == "skipped":  # the one element that has no type
        return [_start("skipped", said, end="/>")]
    said["type"] = line(problem.type) or problem.kind
    body = block(problem.body, BODY_MOST)
    return [f"{_start(problem.kind, said)}{_body(body)}</{problem.kind}>"]


def _start(tag: str, attributes: dict[str, str], *, end: str = ">") -> str:
    said = "".join(f" {name}={_quoted(value)}" for name, value in attributes.items())
    return f"<{tag}{said}{end}"


def _quoted(value: str) -> str:
    return quoteattr(value, _QUOTES)


def _body(text: str) -> str:
    return escape(text, _QUOTES)


def _seconds(value_s: float) -> str:
    """Write a time without an exponent, which readers of JUnit don't all know, to 0.1 ns."""
    return f"{value_s:.10f}"


def _utc(created: str) -> str:
    """Return a time as JUnit has it, in whole seconds and without a zone; nothing if it is none."""
    try:
        when = datetime.fromisoformat(created)
    except ValueError:
        return ""
    return f"{when:%Y-%m-%dT%H:%M:%S}"
