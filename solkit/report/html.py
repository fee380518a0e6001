"""The report as one self-contained HTML file: no network, no script needed, same bytes always."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from solkit.judge.score import Judged
from solkit.model import Run
from solkit.report.page import asset, environment, escaped, sha256
from solkit.report.samples import SPARK_HEIGHT, SPARK_WIDTH
from solkit.report.spread import spread_svg
from solkit.report.table import Cell, Column, Row
from solkit.report.view import view

_LONG = 400  # rows; more are laid out when they are near
_ASIDE_MOST = 10  # a longer remark stands under its number: it would widen the whole column


class Charts(Protocol):
    """The charts of one operator: inline SVG that is safe in a page, and what each shows.

    rule: what a reader must know of how they are drawn. not_placed: which measured cases have no
    mark on one of them, with the reason.
    """

    @property
    def sol_svg(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def roofline_svg(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def sol_alt(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def roofline_alt(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def rivals_svg(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def rivals_alt(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def rule(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def not_placed(self) -> tuple[str, ...]: ...  # noqa: D102  # the class says it


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart in the page: the anchor behind it, its SVG (as `Markup`), and what it shows."""

    anchor: str
    svg: str
    caption: str


def render(
    run: Run,
    judged: Sequence[Judged],
    *,
    charts: Mapping[str, Charts] | None = None,
    overview: tuple[str, str] = ("", ""),
    budget: tuple[str, str] = ("", ""),
    course: tuple[str, str] = ("", ""),
    linked: bool = False,
) -> str:
    """Write the report as one HTML file. Row i of its table has the id `r<i>`.

    linked: the page of the folder form, which takes its style and script from files beside it.

    charts: by operator, as the operator is declared. overview, budget, course: a figure of the
    whole run each, and its text: the strip of all cases, what their time is made of, the clocks.
    """
    from markupsafe import Markup  # noqa: PLC0415  # jinja2's, and as late as jinja2

    seen, found = view(run, judged), charts or {}
    style = style_sheet(seen.columns)
    script = asset("report.js")
    template = environment().get_template("report.html.jinja")
    return template.render(
        view=seen,
        linked=linked,
        # the page's own policy: no request to anywhere, no style or script but these two
        policy=(
            f"default-src 'none'; style-src '{'self' if linked else sha256(style)}'; "
            f"script-src '{'self' if linked else sha256(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        style=Markup(style),  # noqa: S704  # our own file
        script=Markup(script),  # noqa: S704  # our own file
        spread=Markup(spread_svg(seen.bins, prefix="spread-") if seen.bins else ""),  # noqa: S704  # escaped there
        long=" long" if len(seen.rows) > _LONG else "",
        head=Markup(_head(seen.columns)),  # noqa: S704  # escaped in _head
        body=Markup("".join(_row(row) for row in seen.rows)),  # noqa: S704  # escaped in _row
        figures={each.anchor: _figures(each.name, each.anchor, found) for each in seen.operators},
        overview=_whole("overview", overview),
        budget=_whole("budget-chart", budget),
        course=_whole("course-chart", course),
        rivals={each.anchor: _rivals(each.name, each.anchor, found) for each in seen.operators},
        rules={
            each.anchor: found[each.name].rule if each.name in found else ""
            for each in seen.operators
        },
        not_placed={
            each.anchor: tuple(found[each.name].not_placed) if each.name in found else ()
            for each in seen.operators
        },
    )


def style_sheet(columns: Sequence[Column]) -> str:
    """Return the style of a page with these columns: report.css, and what depends on them."""
    return asset("report.css") + _bars() + _number_columns(columns) + _left_out(columns)


def _whole(anchor: str, drawn: tuple[str, str]) -> Figure | None:
    """Return a figure of the whole run, or nothing where nothing was drawn."""
    from markupsafe import Markup  # noqa: PLC0415  # jinja2's, and as late as jinja2

    return Figure(anchor, Markup(drawn[0]), drawn[1]) if drawn[0] else None  # noqa: S704  # charts sanitises it


def _rivals(name: str, anchor: str, charts: Mapping[str, Charts]) -> Figure | None:
    """Return the figure of an operator's kernels side by side."""
    if name not in charts:
        return None
    return _whole(f"{anchor}-rivals", (charts[name].rivals_svg, charts[name].rivals_alt))


def _figures(name: str, anchor: str, charts: Mapping[str, Charts]) -> list[Figure]:
    from markupsafe import Markup  # noqa: PLC0415  # jinja2's, and as late as jinja2

    if name not in charts:
        return []
    found = charts[name]
    pairs = ((found.sol_svg, found.sol_alt), (found.roofline_svg, found.roofline_alt))
    return [
        Figure(f"{anchor}-after{number}", Markup(svg), alt)  # noqa: S704  # charts sanitises it
        for number, (svg, alt) in enumerate(pairs)
        if svg
    ]


def _row(row: Row) -> str:
    """Write one row, its number first: charts name marks by it.

    End tags are optional in HTML, and 10,000 rows of them are a megabyte.
    """
    state = f" class={row.state}" if row.state else ""
    number = row.anchor.removeprefix("r")
    return f"<tr id={row.anchor}{state}><td>{number}{''.join(map(_cell, row.cells))}\n"


def _cell(cell: Cell) -> str:
    style = (
        ""
        if not cell.style
        else f' class="{cell.style}"'
        if " " in cell.style
        else f" class={cell.style}"
    )
    gap = " <br>" if len(cell.aside) > _ASIDE_MOST or cell.style == "bad" else " "
    aside = f"{gap}<small>{escaped(cell.aside)}</small>" if cell.aside else ""
    return f"<td{style}>{escaped(cell.text)}{aside}{_spark(cell.spark)}"


def _spark(path: str) -> str:
    """Draw a small line that only repeats what the text says: readers skip it."""
    if not path:
        return ""
    box = f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}"
    # size and stroke as attributes too: without a style sheet it would be a black blot
    drawn = f"width={SPARK_WIDTH} height={SPARK_HEIGHT} fill=none stroke=currentColor"
    return (
        f' <svg class=k viewBox="{box}" {drawn} aria-hidden=true><path d="{escaped(path)}"/></svg>'
    )


def _head(columns: Sequence[Column]) -> str:
    number = '<th scope=col class=number title="place in the run, as charts number it">#'
    return number + "".join(
        f'<th scope=col class={column.kind} title="{escaped(column.hint)}">'
        # a long heading may break where its column is narrower
        + escaped(column.name).replace("@", "@<wbr>")
        for column in columns
    )


def _bars() -> str:
    """Give each class b1 ... b100 the length of its bar: the page allows no style attribute."""
    return "".join(f".b{part}{{--part:{part}%}}" for part in range(1, 101)) + "\n"


def _number_columns(columns: Sequence[Column]) -> str:
    """Set the number columns right: by place, so that no cell needs a class of its own."""
    places = [1] + [place for place, column in enumerate(columns, 2) if column.kind == "number"]
    cells = ",".join(f"#all td:nth-child({place})" for place in places)
    return f"{cells}{{text-align:right;white-space:nowrap}}\n"


def _left_out(columns: Sequence[Column]) -> str:
    """Hide column n of a table of the class `no<n>`, which the script sets."""
    return "".join(
        f"#all.no{place} td:nth-child({place}){{display:none}}"
        for place in range(2, len(columns) + 2)
    )
