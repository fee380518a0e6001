"""A run as a piece of HTML inside another page, such as a notebook's: short, the worst first.

It takes colours and type from the page around it, and has no script, no link, no id, no class and
no style sheet: nothing of it acts beyond its own cell, and nothing of the page is needed.
"""

from collections.abc import Collection, Sequence
from html import escape

from solkit import units
from solkit.judge.score import Judged, Scored, valid
from solkit.model import Failed, Run, Skipped
from solkit.report.facts import caveats, conditions_line, notices
from solkit.report.kernel_rows import KernelRow, kernel_rows
from solkit.report.plain import counted, line
from solkit.report.ranking import bar
from solkit.report.table import limiter_cell
from solkit.report.trouble import case_link
from solkit.report.verdicts import failure_text
from solkit.report.view import opening

ROWS_MOST = 20
TEXTS_MOST = 6
TEXT_MOST = 160  # of a message in a row
ONE_LINE = 80  # a case named in so many characters isn't broken
_LEFT = "text-align:left;vertical-align:top;padding:2px 14px 2px 0"
_RIGHT = "text-align:right;vertical-align:top;padding:2px 14px 2px 0;white-space:nowrap"
_CAPTION = f"{_LEFT};font-weight:bold;caption-side:top;color:inherit"
_PLAIN = "border-collapse:collapse;margin:10px 0"
_QUIET = "opacity:.75"


def render(run: Run, judged: Sequence[Judged]) -> str:
    """Write the fragment: verdict, conditions, caveats, the kernels, and the worst 20 cases."""
    verdict, summary, banner = opening(run, judged)
    parts = [
        _paragraph(f"<strong>{escape(verdict)}</strong>", "font-size:1.15em"),
        _paragraph(escape(summary)),
        _paragraph(escape(conditions_line(run, judged)), _QUIET),
    ]
    parts += [_paragraph(f"<strong>CPU run.</strong> {escape(banner)}")] if banner else []
    parts += _list((*notices(run), *caveats(run, judged)))
    parts += _kernels(kernel_rows(judged))
    parts += _cases(judged)
    return f'<div style="max-width:72em">{"".join(parts)}</div>'


def _paragraph(html: str, style: str = "") -> str:
    return f'<p style="margin:0 0 4px;{style}">{html}</p>'


def _list(texts: Sequence[str]) -> list[str]:
    shown = [f"<li>{escape(each)}</li>" for each in texts[:TEXTS_MOST]]
    if len(texts) > TEXTS_MOST:
        shown.append(f"<li>and {counted(len(texts) - TEXTS_MOST, 'more note')} in the report</li>")
    return [f'<ul style="margin:4px 0 4px 1.4em;padding:0">{"".join(shown)}</ul>'] if shown else []


def _kernels(rows: Sequence[KernelRow]) -> list[str]:
    made = [
        (
            f"<strong>{escape(row.kernel)}</strong>",
            _score(row.median, row.bar),
            escape(row.span),
            escape(row.cases),
            escape(row.trouble),
        )
        for row in rows[:ROWS_MOST]
    ]
    title = f"SOL per kernel, lowest median first{_of(len(made), len(rows))}"
    headers = ("kernel", "median SOL", "lowest to highest", "cases", "not measured")
    kept = len(headers) if any(row.trouble for row in rows) else len(headers) - 1
    return _table(title, headers[:kept], [row[:kept] for row in made], right=(1, 2, 3))


def _cases(judged: Sequence[Judged]) -> list[str]:
    ranked = sorted(enumerate(judged), key=lambda pair: _rank(pair[1]))
    made = [_case(index, item) for index, item in ranked[:ROWS_MOST]]
    title = (
        "Cases, worst first: what is no result, then by time above the bound"
        f"{_of(len(made), len(judged))}"
    )
    headers = ("case", "SOL", "time", "above the bound", "why")
    return _table(title, headers, made, right=(1, 2, 3))


def _of(shown: int, count: int) -> str:
    return f" ({shown:,} of {count:,})" if shown < count else ""


def _rank(item: Judged) -> tuple[int, float]:
    """Order cases: failed, invalid, then by time lost; hot and skipped ones, which lose none."""
    match item:
        case Failed():
            return 0, 0.0
        case Skipped():
            return 4, 0.0
        case Scored(status="invalid"):
            return 1, -item.raw_fraction
        case Scored():
            return (3 if item.hot else 2), item.bound.sol_s - item.median_s


def _case(index: int, item: Judged) -> tuple[str, ...]:
    named = case_link(item, index)
    name = f"<strong>{escape(named.kernel)}</strong> {escape(named.where)}"
    if len(named.kernel) + len(named.where) <= ONE_LINE:
        name = f'<span style="white-space:nowrap">{name}</span>'
    match item:
        case Failed():
            said = f"{failure_text(item)}: {item.message.strip().partition(chr(10))[0]}"
            return name, "✕ failed", "", "", _text(said)
        case Skipped():
            return name, "○ skipped", "", "", _text(item.reason)
        case Scored(status="invalid"):
            time = escape(units.seconds(item.median_s))
            return name, "✕ INVALID", time, "", _text(item.invalid_reason)
        case Scored():
            return name, *_times(item)


def _times(item: Scored) -> tuple[str, ...]:
    lost_s = item.median_s - item.bound.sol_s
    limiter = limiter_cell(item)
    latency = "launch latency; " if item.regime.word == "latency" else ""
    mark = "▲ " if item.above_published else ""
    score = (
        _score(f"{mark}{units.percent(item.raw_fraction)}", bar(item.raw_fraction))
        if item.sol_score is not None
        else "hot"
    )
    return (
        score,
        escape(units.seconds(item.median_s)),
        escape(units.seconds(lost_s)) if lost_s > 0 and valid([item]) else "",
        _text(f"{latency}{limiter.text} {limiter.aside}"),
    )


def _text(text: str) -> str:
    return escape(line(text, TEXT_MOST))


def _score(text: str, length: str) -> str:
    """Write a score with its bar, in the colour of the text around it."""
    if not length:
        return escape(text)
    return (
        f"{escape(text)} "
        '<span style="display:inline-block;width:50px;height:.6em;border:1px solid;opacity:.6" '
        'aria-hidden="true"><span style="display:block;width:'
        f'{length}%;height:100%;background:currentColor"></span></span>'
    )


def _table(
    title: str, headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int]
) -> list[str]:
    if not rows:
        return []
    styles = [_RIGHT if place in right else _LEFT for place in range(len(headers))]
    head = "".join(
        f'<th scope="col" style="{style}">{escape(header)}</th>'
        for header, style in zip(headers, styles, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{style}">{cell}</td>' for cell, style in zip(row, styles, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    caption = f'<caption style="{_CAPTION}">{escape(title)}</caption>'
    inside = f"{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return [f'<div style="overflow-x:auto"><table style="{_PLAIN}">{inside}</table></div>']
