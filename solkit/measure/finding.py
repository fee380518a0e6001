"""What an examination finds: a check's verdict, its evidence and, where needed, one remedy."""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warn", "fail", "unknown"]

CANNOT_RUN = 4
CANNOT_TELL = 5
SCHEMA = "solkit.doctor/1"
_NARROWEST = 20  # columns; below that folded text is harder to read than the terminal's own folds


@dataclass(frozen=True, slots=True)
class Finding:
    """One check. `id` is fixed and documented; `subject` names the device where there are several.

    fail: a run cannot work. warn: it works, but worse than it could. unknown: nobody tells.
    required: without an answer nobody can say whether a run works.
    """

    id: str
    status: Status
    evidence: str
    remedy: str = ""
    subject: str = ""
    required: bool = False


def exit_code(findings: Sequence[Finding]) -> int:
    """Return 4 when a run cannot work, else 5 when a required check has no answer, else 0."""
    if any(finding.status == "fail" for finding in findings):
        return CANNOT_RUN
    if any(finding.status == "unknown" and finding.required for finding in findings):
        return CANNOT_TELL
    return 0


def document(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the examination as plain JSON data."""
    return {
        "schema": SCHEMA,
        "exit_code": exit_code(findings),
        "findings": [asdict(finding) for finding in findings],
    }


def lines(findings: Sequence[Finding], *, width: int = 0) -> list[str]:
    """Write the examination for people: a line a check, its remedy below it, the count last.

    With a width, long lines go on below the text they belong to.
    """
    wide = max((len(finding.id) for finding in findings), default=0)
    written = []
    subject = ""
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            if subject:
                written.append(subject)
        indent = "  " if subject else ""
        start = f"{indent}{finding.status:<8}{finding.id:<{wide}}  "
        written += _folded(start, finding.evidence, width)
        if finding.remedy:
            written += _folded(f"{'':<{len(start)}}-> ", finding.remedy, width)
    return [*written, _summary(findings)]


def _folded(start: str, text: str, width: int) -> list[str]:
    room = width - len(start)
    if room < _NARROWEST:
        return [start + text]
    first, *rest = textwrap.wrap(text, room, break_long_words=False) or [""]
    return [start + first, *(" " * len(start) + more for more in rest)]


def _summary(findings: Sequence[Finding]) -> str:
    words = {"ok": "ok", "warn": "to improve", "fail": "in the way", "unknown": "unknown"}
    counts = {status: sum(finding.status == status for finding in findings) for status in words}
    told = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
    verdict = {
        0: "measuring works here",
        CANNOT_RUN: "measuring on this device does not work yet",
        CANNOT_TELL: "whether measuring works here is not known",
    }[exit_code(findings)]
    return f"{told or 'nothing was examined'}: {verdict}"
