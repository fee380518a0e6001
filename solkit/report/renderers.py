"""The formats a run can be written in: one function and one line each, loaded when used."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from solkit.judge.score import Judged
from solkit.model import Run

Renderer = Callable[[Run, Sequence[Judged]], str]
FileRenderer = Callable[[Run, Sequence[Judged]], bytes]


def page(run: Run, judged: Sequence[Judged], *, linked: bool = False) -> str:
    """Write the report with all its charts; linked: as the page of the folder form."""
    # matplotlib and jinja2 take 0.9 s
    from solkit.report import budget_chart, charts, course_chart, html  # noqa: PLC0415

    return html.render(
        run,
        judged,
        charts=charts.operator_charts(judged, run),
        overview=charts.overview(judged, run),
        budget=budget_chart.budget_chart(judged),
        course=course_chart.course_chart(judged, run),
        linked=linked,
    )


def _markdown(run: Run, judged: Sequence[Judged]) -> str:
    from solkit.report import markdown  # noqa: PLC0415  # loads when used

    return markdown.render(run, judged)


def _csv(run: Run, judged: Sequence[Judged]) -> str:
    from solkit.report import csv  # noqa: PLC0415  # loads when used

    return csv.render(run, judged)


def _json(run: Run, judged: Sequence[Judged]) -> str:
    from solkit.report import json  # noqa: PLC0415  # loads when used

    return json.render(run, judged)


def _junit(run: Run, judged: Sequence[Judged]) -> str:
    from solkit.report import junit  # noqa: PLC0415  # loads when used

    return junit.render(run, judged)


def _parquet(run: Run, judged: Sequence[Judged]) -> bytes:
    from solkit.report import parquet  # noqa: PLC0415  # loads when used

    return parquet.render(run, judged)


# Text, for a file or a terminal.
RENDERERS: Mapping[str, Renderer] = MappingProxyType(
    {"html": page, "markdown": _markdown, "csv": _csv, "json": _json, "junit": _junit}
)
# Bytes, for a file alone.
FILE_RENDERERS: Mapping[str, FileRenderer] = MappingProxyType({"parquet": _parquet})
