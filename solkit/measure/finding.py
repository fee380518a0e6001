"""What an examination finds: a check's verdict, its evidence and, where needed, one remedy."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warn", "fail", "unknown"]

CANNOT_RUN = 4
CANNOT_TELL = 5
SCHEMA = "solkit.doctor/1"


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


def lines(findings: Sequence[Finding]) -> list[str]:
    """Write the examination for people: a line a check, its remedy below it, the count last."""
    wide = max((len(finding.id) for finding in findings), default=0)
    written = []
    subject = ""
    for finding in findings:
        if finding.subject != subject:
            subject = finding.subject
            if subject:
                written.append(subject)
        indent = "  " if subject else ""
        written.append(f"{indent}{finding.status:<8}{finding.id:<{wide}}  {finding.evidence}")
        if finding.remedy:
            written.append(f"{indent}{'':<8}{'':<{wide}}  -> {finding.remedy}")
    return [*written, _summary(findings)]


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
