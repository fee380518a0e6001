"""The formats a run can be written in: one function and one line each, loaded when used."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from solkit.judge.score import Judged
from solkit.model import Run

Renderer = Callable[[Run, Sequence[Judged]], str]


def _html(run: Run, judged: Sequence[Judged]) -> str:
    from solkit.report import charts, html  # noqa: PLC0415  # matplotlib and jinja2 take 0.9 s

    return html.render(
        run,
        judged,
        charts=charts.operator_charts(judged, run),
        overview=charts.overview(judged, run),
    )


def _markdown(run: Run, judged: Sequence[Judged]) -> str:
    from solkit.report import markdown  # noqa: PLC0415  # loads when used

    return markdown.render(run, judged)


def _csv(run: Run, judged: Sequence[Judged]) -> str:
    from solkit.report import csv  # noqa: PLC0415  # loads when used

    return csv.render(run, judged)


RENDERERS: Mapping[str, Renderer] = MappingProxyType(
    {"html": _html, "markdown": _markdown, "csv": _csv}
)
