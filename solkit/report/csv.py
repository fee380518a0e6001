"""Every case as one line of CSV, for spreadsheets and scripts: SI units, full precision."""

import csv
import io
from collections.abc import Sequence

from solkit.judge.score import Judged
from solkit.model import Run
from solkit.report.columns import COLUMNS, Value, values

# What makes a cell a formula; some programs read the full-width forms as the plain ones.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def render(run: Run, judged: Sequence[Judged]) -> str:  # noqa: ARG001  # the signature of a renderer
    """Write the judged outcomes in the run's order. An absent number is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in COLUMNS])
    writer.writerows([_cell(value) for value in values(item).values()] for item in judged)
    return out.getvalue()


def _cell(value: Value) -> str:
    match value:
        case None:
            return ""
        case str():
            return inert(value)
        case int():
            return str(value)
        case float():
            return f"{value:.12g}"  # far below any timer's tick, without dust


def inert(text: str) -> str:
    """Return a text that no spreadsheet runs: a leading = + - or @ gets a quote before it."""
    return f"'{text}" if text.startswith(_FORMULA) else text
