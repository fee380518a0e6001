"""The report as one self-contained HTML file: no network, no script needed, same bytes always."""

import base64
import functools
import hashlib
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from solkit import resources
from solkit.judge.score import Judged
from solkit.model import Run
from solkit.report.plain import END_ISOLATE, ISOLATE
from solkit.report.samples import SPARK_HEIGHT, SPARK_WIDTH
from solkit.report.table import Cell, Column, Row
from solkit.report.view import view

if TYPE_CHECKING:
    from jinja2 import Environment


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
) -> str:
    """Write the report as one HTML file. Row i of its table has the id `r<i>`.

    charts: by operator, as the operator is declared. overview: the strip of all cases and its text.
    """
    from markupsafe import Markup  # noqa: PLC0415  # jinja2's, and as late as jinja2

    seen, found = view(run, judged), charts or {}
    style = _asset("report.css") + _bars() + _number_columns(seen.columns)
    script = _asset("report.js")
    template = _environment().get_template("report.html.jinja")
    return template.render(
        view=seen,
        # the page's own policy: no request to anywhere, no style or script but these two
        policy=(
            f"default-src 'none'; style-src '{_sha256(style)}'; script-src '{_sha256(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        style=Markup(style),  # noqa: S704  # our own file
        script=Markup(script),  # noqa: S704  # our own file
        head=Markup(_head(seen.columns)),  # noqa: S704  # escaped in _head
        body=Markup("".join(_row(row) for row in seen.rows)),  # noqa: S704  # escaped in _row
        figures={each.anchor: _figures(each.name, each.anchor, found) for each in seen.operators},
        overview=Figure("overview", Markup(overview[0]), overview[1]) if overview[0] else None,  # noqa: S704  # as above
        rules={
            each.anchor: found[each.name].rule if each.name in found else ""
            for each in seen.operators
        },
        not_placed={
            each.anchor: tuple(found[each.name].not_placed) if each.name in found else ()
            for each in seen.operators
        },
    )


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


@functools.lru_cache(maxsize=16_384)
def _escaped(text: str) -> str:
    """Escape for HTML text and double-quoted attributes, isolating what `plain.isolated` marked."""
    return html.escape(text).replace(ISOLATE, "<bdi>").replace(END_ISOLATE, "</bdi>")


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
    aside = f"{gap}<small>{_escaped(cell.aside)}</small>" if cell.aside else ""
    return f"<td{style}>{_escaped(cell.text)}{aside}{_spark(cell.spark)}"


def _spark(path: str) -> str:
    """Draw a small line that only repeats what the text says: readers skip it."""
    if not path:
        return ""
    box = f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}"
    return f' <svg class=k viewBox="{box}" aria-hidden=true><path d="{_escaped(path)}"/></svg>'


def _head(columns: Sequence[Column]) -> str:
    number = '<th scope=col class=number title="place in the run, as charts number it">#'
    return number + "".join(
        f'<th scope=col class={column.kind} title="{_escaped(column.hint)}">'
        # a long heading may break where its column is narrower
        + _escaped(column.name).replace("@", "@<wbr>")
        for column in columns
    )


def _bars() -> str:
    """Give each class b1 ... b100 the length of its bar: the page allows no style attribute."""
    return "".join(f".b{part}{{--part:{part}%}}" for part in range(1, 101)) + "\n"


def _number_columns(columns: Sequence[Column]) -> str:
    """Set the number columns right: by place, so that no cell needs a class of its own."""
    places = [1] + [place for place, column in enumerate(columns, 2) if column.kind == "number"]
    cells = ",".join(f"#all td:nth-child({place})" for place in places)
    return f"{cells}{{text-align:right}}\n"


@functools.cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, Undefined  # noqa: PLC0415  # heavy
    from markupsafe import Markup  # noqa: PLC0415  # jinja2's

    def finalize(value: object) -> object:
        """Let strings alone through: a number in a template is a bug."""
        if isinstance(value, Undefined):
            return str(value)  # raises, and names what is missing
        if isinstance(value, Markup):
            return value
        if isinstance(value, str):
            return Markup(_escaped(value))  # noqa: S704  # escaped here
        message = f"the template was given {type(value).__name__}, not text"
        raise TypeError(message)

    return Environment(
        loader=FileSystemLoader(resources.folder("reports")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _asset(name: str) -> str:
    return (resources.folder("reports") / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _sha256(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
