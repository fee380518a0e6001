"""A comparison as one self-contained HTML page: no network, no script, same bytes always."""

from collections.abc import Sequence

from solkit.report.changes import ChangeRow, ChangesView
from solkit.report.page import asset, environment, escaped, sha256
from solkit.report.table import NONE

_ARROW = "\u2192"
_SIGNS = {
    "SLOWER": "\u25b2",
    "MISSING": "\u2715",
    "INVALID": "\u2715",
    "UNSURE": "?",
    "FASTER": "\u25bc",
    "NEW": "+",
    "SAME": "=",
}


def render(view: ChangesView, *, chart: tuple[str, str] = ("", "")) -> str:
    """Write the page. Case i of the comparison has the id `c<i>`, which the chart's marks link to.

    chart: safe inline SVG, empty for none, and the words beside it (`changes_chart.chart`).
    """
    from markupsafe import Markup  # noqa: PLC0415  # jinja2's, and as late as jinja2

    style = asset("report.css") + asset("compare.css")
    drawn, caption = chart
    return (
        environment()
        .get_template("compare.html.jinja")
        .render(
            view=view,
            # the page's own policy: no request to anywhere, no script, no style but this one
            policy=(
                f"default-src 'none'; style-src '{sha256(style)}'; "
                "base-uri 'none'; form-action 'none'"
            ),
            style=Markup(style),  # noqa: S704  # our own files
            summary=_tied(view.summary),
            signs=_SIGNS,
            chart=Markup(drawn),  # noqa: S704  # svg.sanitise made it
            caption=caption,
            changed=Markup(_rows(view.changed, explained=True)),  # noqa: S704  # escaped in _row
            same=Markup(_rows(view.same, explained=False)),  # noqa: S704  # escaped in _row
        )
    )


def _rows(rows: Sequence[ChangeRow], *, explained: bool) -> str:
    return "".join(_row(row, explained=explained) for row in rows)


def _row(row: ChangeRow, *, explained: bool) -> str:
    """Write one row; end tags are optional in HTML, and 10,000 rows of them are a megabyte."""
    word = row.word.lower()
    case = (
        f"<b>{escaped(row.operator)}/{escaped(row.kernel)}</b> "
        f"{escaped(row.shape)} {escaped(row.dtype)}"
    )
    cells = [
        f"<td class=number>{_with(row.base, row.base_spread)}",
        f"<td class=number>{_with(row.head, row.head_spread)}",
        f'<td class="number move">{_with(row.change, row.span)}',
        f"<td class=number>{_scores(row)}",
    ]
    if not explained:
        return f"<tr id={row.anchor}><th scope=row>{case}{''.join(cells)}\n"
    cells.append(f"<td class=words>{_why(row)}")
    sign = f'<span aria-hidden="true">{_SIGNS[row.word]}</span>'
    first = f"<td class=word>{sign} {row.word}<th scope=row>{case}"
    return f"<tr id={row.anchor} class=is-{word}>{first}{''.join(cells)}\n"


def _with(text: str, aside: str) -> str:
    return escaped(text) + (f" <small>{escaped(aside)}</small>" if aside else "")


def _scores(row: ChangeRow) -> str:
    """Write SOL before and after; below it SOL@clock, where that says something else."""
    score = _pair(row.sol_base, row.sol_head)
    at_clock = _pair(row.sol_clock_base, row.sol_clock_head)
    return score if at_clock in (score, NONE) else f"{score} <small>@clock {at_clock}</small>"


def _pair(before: str, after: str) -> str:
    """Write a score before and after; the unit once."""
    if (before, after) == (NONE, NONE):
        return NONE
    return f"{escaped(before.removesuffix(' %'))} {_ARROW} {escaped(after)}"


def _why(row: ChangeRow) -> str:
    """Write the sentences, or what is known of bytes and clock where nothing is to explain."""
    facts = ", ".join(filter(None, (row.traffic, row.clock)))
    said = [escaped(_tied(each)) for each in (row.explanation, row.reason) if each]
    if facts and not row.explanation:
        said.append(f"<small>{escaped(facts)}</small>")
    return "<br>".join(said)


def _tied(text: str) -> str:
    """Keep a number and its percent sign on one line."""
    return text.replace(" %", "\u00a0%")
