"""What a plan leaves out, in a few lines: by reason, the one with the most cases first."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from solkit.report.plain import counted, line, listed

if TYPE_CHECKING:
    from solkit.plan.jobs import Plan

REASONS_MOST = 8  # each size beyond the memory has a reason of its own
_OPERATORS_MOST = 3


def left_out(planned: "Plan") -> list[str]:
    """Say which cases are not measured and why: skipped ones, then those that can't be planned."""
    return [
        *_told("skipped", ((item.case.operator, item.reason) for item in planned.skipped)),
        *_told("failed", ((item.case.operator, item.message) for item in planned.failed)),
    ]


def _told(became: str, cases: Iterable[tuple[str, str]]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for operator, reason in cases:
        by_reason.setdefault(reason, []).append(line(operator))
    ordered = sorted(by_reason.items(), key=lambda found: -len(found[1]))
    shown, rest = ordered[:REASONS_MOST], ordered[REASONS_MOST:]
    lines = [
        f"{became} {counted(len(operators), 'case')} of "
        f"{listed(list(dict.fromkeys(operators)), _OPERATORS_MOST)}: {line(reason, 300)}"
        for reason, operators in shown
    ]
    if rest:
        cases_left = sum(len(operators) for _, operators in rest)
        reasons = counted(len(rest), "other reason")
        lines.append(f"{became} {counted(cases_left, 'case')} for {reasons}")
    return lines
