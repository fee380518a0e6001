"""A comparison in Markdown, for a job's summary or a comment: verdict, worst cases, conditions."""

from collections.abc import Sequence

from solkit.report.changes import ChangeRow, ChangesView, Condition
from solkit.report.markdown import BYTES_MOST, safe
from solkit.report.plain import counted
from solkit.report.table import NONE

_ROOM_BYTES = 200  # for the line that says what was left out
_SIGNS = {
    "SLOWER": "▲",
    "MISSING": "✕",
    "INVALID": "✕",
    "UNSURE": "?",
    "FASTER": "▼",
    "NEW": "+",
    "SAME": "=",
}


def render(view: ChangesView) -> str:
    """Write at most `BYTES_MOST` bytes of UTF-8: whole rows, worst first, and what is left out."""
    counts = ", ".join(f"{safe(each.count)} {each.word}" for each in view.counts)
    lines = [f"## {safe(view.verdict)}", "", f"{counts}. {safe(view.summary)}", ""]
    lines += [f"- {safe(each)}" for each in view.notes]
    lines += [""] if view.notes else []
    tail = ["", *_conditions(view.conditions)]
    room = BYTES_MOST - _ROOM_BYTES - _size(lines) - _size(tail)
    return "\n".join([*lines, *_changed(view.changed, room), *tail]).rstrip("\n") + "\n"


def _changed(rows: Sequence[ChangeRow], room_bytes: int) -> list[str]:
    if not rows:
        return ["Every case is the same."]
    made = [
        "| | case | BASE | HEAD | change | SOL | why |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    size = _size(made)
    for place, row in enumerate(rows):
        text = _row(row)
        size += _size([text])
        if size > room_bytes:
            left = counted(len(rows) - place, "more case")
            return [*made, "", f"{left} that changed left out: the report has every one."]
        made.append(text)
    return made


def _row(row: ChangeRow) -> str:
    case = f"**{safe(row.operator)}/{safe(row.kernel)}** {safe(row.shape)} {safe(row.dtype)}"
    change = safe(row.change) + (f" ({safe(row.span)})" if row.span else "")
    alike = (row.sol_base, row.sol_head) == (NONE, NONE)
    score = NONE if alike else f"{safe(row.sol_base)} → {safe(row.sol_head)}"
    cells = (
        f"{_SIGNS[row.word]} {row.word}",
        case,
        safe(row.base),
        safe(row.head),
        change,
        score,
        safe(row.said),
    )
    return f"| {' | '.join(cells)} |"


def _conditions(conditions: Sequence[Condition]) -> list[str]:
    rows = [
        f"| {safe(each.label)} | {safe(each.base)} | {safe(each.head)} | {each.mark} |"
        for each in conditions
    ]
    return ["| | BASE | HEAD | |", "|---|---|---|---|", *rows]


def _size(lines: Sequence[str]) -> int:
    return sum(len(each.encode()) + 1 for each in lines)
