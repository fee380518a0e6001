"""The formats a comparison can be written in: one function and one line each, loaded when used."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from solkit.judge.changes import Comparison


class Renderer(Protocol):
    """Writes a comparison.

    exit_code: what the command ends with, for whoever has the file alone. missed: the sentence that
    says which floors HEAD misses; empty where it misses none.
    """

    def __call__(self, comparison: Comparison, exit_code: int, /, *, missed: str = "") -> str: ...  # noqa: D102  # the class says it


def _html(comparison: Comparison, _exit_code: int, /, *, missed: str = "") -> str:
    # matplotlib and jinja2 take 0.9 s
    from solkit.report import changes_chart, changes_html  # noqa: PLC0415
    from solkit.report.changes import view  # noqa: PLC0415  # loads when used

    chart = changes_chart.chart(comparison)
    return changes_html.render(view(comparison, missed=missed), chart=chart)


def _markdown(comparison: Comparison, _exit_code: int, /, *, missed: str = "") -> str:
    from solkit.report import changes_markdown  # noqa: PLC0415  # loads when used
    from solkit.report.changes import view  # noqa: PLC0415

    return changes_markdown.render(view(comparison, missed=missed))


def _json(comparison: Comparison, exit_code: int, /, *, missed: str = "") -> str:
    from solkit.report import changes_json  # noqa: PLC0415  # loads when used

    return changes_json.render(comparison, exit_code=exit_code, missed=missed)


def _junit(comparison: Comparison, _exit_code: int, /, *, missed: str = "") -> str:
    from solkit.report import changes_junit  # noqa: PLC0415  # loads when used

    return changes_junit.render(comparison, missed=missed)


def _annotations(comparison: Comparison, _exit_code: int, /, *, missed: str = "") -> str:
    from solkit.report import changes_annotations  # noqa: PLC0415  # loads when used
    from solkit.report.changes import view  # noqa: PLC0415

    return changes_annotations.render(view(comparison, missed=missed))


RENDERERS: Mapping[str, Renderer] = MappingProxyType(
    {
        "html": _html,
        "markdown": _markdown,
        "json": _json,
        "junit": _junit,
        "annotations": _annotations,
    }
)
