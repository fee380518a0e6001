"""The report as a folder: for hosts whose policy forbids a style or script inside a page."""

from collections.abc import Mapping, Sequence

from solkit.judge.score import Judged
from solkit.model import Run

PAGE_NAME = "index.html"


def render_folder(run: Run, judged: Sequence[Judged]) -> Mapping[str, str]:
    """Return the files of the report's folder form: relative name to text, the page first.

    The charts stay inside the page: inline SVG keeps its links and its words under any policy,
    and in an `<img>` it would lose both. Jenkins passes links to .json on and blocks .csv.
    """
    from solkit.report import html, renderers  # noqa: PLC0415  # matplotlib and jinja2 take 0.9 s
    from solkit.report.page import asset  # noqa: PLC0415  # jinja2's
    from solkit.report.table import table  # noqa: PLC0415  # with the page

    columns, _ = table(judged)
    return {
        PAGE_NAME: renderers.page(run, judged, linked=True),
        "report.css": html.style_sheet(columns),
        "report.js": asset("report.js"),
        "run.json": renderers.RENDERERS["json"](run, judged),
    }
