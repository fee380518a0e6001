"""A comparison on the terminal: the worst changes, the counts, and the verdict as the last line."""

import textwrap
from collections.abc import Sequence

from solkit.report.changes import ChangeRow, ChangesView
from solkit.report.plain import counted
from solkit.report.table import NONE

SHOWN_MOST = 20
WIDTH = 80
_WORD_WIDTH = 9  # the longest word, and two blanks
_COLOURS = {
    "SLOWER": "1;31",
    "MISSING": "1;31",
    "NOTHING": "1;31",
    "INVALID": "1;35",
    "UNSURE": "1;33",
    "FASTER": "1;32",
    "NEW": "1;36",
    "SAME": "1",
}
# What a reader must see of both sides; the rest is said only where it differs.
_ALWAYS = ("Run", "Created", "Card", "Processor", "Cases", "SM clock held")


def render(
    view: ChangesView, *, everything: bool = False, color: bool = False, width: int = WIDTH
) -> str:
    """Write the comparison in lines of `width` columns; a name that is longer is folded.

    everything: list every case, those that are the same too; else the worst 20 that are not.
    """
    rows = (*view.changed, *view.same) if everything else view.changed[:SHOWN_MOST]
    parts = ["\n".join(_conditions(view, width))]
    parts += ["\n".join(_case(row, color=color, width=width)) for row in rows]
    if len(view.changed) > len(rows):
        more = len(view.changed) - len(rows)
        parts.append(f"and {counted(more, 'case')} more that changed: --all lists every one")
    counts = ", ".join(f"{each.count} {each.word}" for each in view.counts)
    last = [*_wrapped(view.summary, width), *_wrapped(counts, width)]
    verdict = _wrapped(view.verdict, width)
    verdict[0] = _coloured(verdict[0], view.overall, color=color)
    parts.append("\n".join(last))
    if view.missed:
        parts.append("\n".join(_wrapped(view.missed, width)))
    parts.append("\n".join(verdict))
    return "\n\n".join(parts)


def _conditions(view: ChangesView, width: int) -> list[str]:
    """Write both sides beside each other; what does not fit beside is folded below."""
    shown = [each for each in view.conditions if each.label in _ALWAYS or each.mark]
    label_width = max(len(each.label) for each in shown) + 2
    half = (width - label_width - 2) // 2
    lines = [f"{'':{label_width}}{'BASE':{half}}  HEAD"]
    for each in shown:
        pairs = _beside(_wrapped(each.base, half), _wrapped(each.head, half))
        for place, (base, head) in enumerate(pairs):
            label = each.label if not place else ""
            lines.append(f"{label:{label_width}}{base:{half}}  {head}".rstrip())
    return lines


def _beside(left: Sequence[str], right: Sequence[str]) -> list[tuple[str, str]]:
    height = max(len(left), len(right))
    return [
        (left[at] if at < len(left) else "", right[at] if at < len(right) else "")
        for at in range(height)
    ]


def _case(row: ChangeRow, *, color: bool, width: int) -> list[str]:
    """Write a case: its word and name, its numbers, and where the change comes from."""
    name = _wrapped(row.name, width - _WORD_WIDTH)
    word = _coloured(f"{row.word:{_WORD_WIDTH}}", row.word, color=color)
    lines = [f"{word}{name[0]}", *(_inset(each) for each in name[1:])]
    lines += [_inset(each) for each in _wrapped(_numbers(row), width - _WORD_WIDTH)]
    for said in filter(None, (row.explanation, row.reason)):
        lines += [_inset(each) for each in _wrapped(said, width - _WORD_WIDTH)]
    return lines


def _numbers(row: ChangeRow) -> str:
    """Write times, change and score on one line, as far as there are any."""
    sides = f"{row.base} -> {row.head}"
    parts = [f"{row.change:>7}  {sides}" if row.change != NONE else sides]
    if row.span:
        parts.append(f"({row.span})")
    if NONE not in (row.sol_base, row.sol_head):
        parts.append(f"SOL {row.sol_base.removesuffix(' %')} -> {row.sol_head}")
    return "  ".join(parts).lstrip()


def _inset(text: str) -> str:
    return " " * _WORD_WIDTH + text


def _wrapped(text: str, width: int) -> list[str]:
    """Fold a text at its blanks, or within a word that is longer than a line."""
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _coloured(text: str, word: str, *, color: bool) -> str:
    return f"\x1b[{_COLOURS[word]}m{text}\x1b[0m" if color else text
