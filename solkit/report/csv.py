"""Every case as one line of CSV, for spreadsheets and scripts: SI units, full precision."""

import csv
import io
from collections.abc import Iterable, Sequence

from solkit.judge.score import Judged, Scored
from solkit.model import Case, Failed, Run
from solkit.report.plain import line

COLUMNS = (
    "operator",
    "kernel",
    "dtype",
    "shape",
    "status",
    "read_bytes",
    "write_bytes",
    "flop",
    "median_s",
    "low_s",
    "high_s",
    "sol_s",
    "sol_score",
    "sol_clock",
    "sol_measured",
    "limiter",
    "regime",
    "gap_score",
    "cache",
    "method",
    "sm_hz",
    "throttled_count",
    "slow_share",
    "busy_s",
    "energy_j",
    "verdict",
)
TEXT_MOST = 32_767  # what a spreadsheet's cell holds
_FORMULA = ("=", "+", "-", "@")


def render(run: Run, judged: Sequence[Judged]) -> str:  # noqa: ARG001  # the signature of a renderer
    """Write the judged outcomes in the run's order. An absent number is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_cells(item) for item in judged)
    return out.getvalue()


def _cells(item: Judged) -> Iterable[str]:
    if not isinstance(item, Scored):
        status, verdict = ("failed", item.verdict) if isinstance(item, Failed) else ("skipped", "")
        return [*_names(item.case), status, *[""] * (len(COLUMNS) - 6), verdict]
    outcome, work = item.outcome, item.outcome.work
    return [
        *_names(outcome.case),
        item.status,
        str(work.read_bytes),
        str(work.write_bytes),
        str(sum(work.flop.values())),
        _number(item.median_s),
        _number(item.low_s),
        _number(item.high_s),
        _number(item.bound.sol_s),
        _number(item.sol_score),
        _number(item.sol_clock),
        _number(item.sol_measured),
        text(item.bound.limiter),
        item.regime.word,
        _number(item.gap_score),
        text(outcome.cache),
        text(outcome.method),
        _number(outcome.clocks.sm_hz),
        str(outcome.throttled_count) if outcome.sample_hz else "",  # unknown without clocks
        _number(outcome.slow_mode.share_fraction if outcome.slow_mode else None),
        _number(outcome.busy_s),
        _number(outcome.energy_j),
        "",
    ]


def text(value: str) -> str:
    """Return one line that no spreadsheet runs: a leading = + - or @ gets a quote before it."""
    cleaned = line(value, TEXT_MOST)
    return f"'{cleaned}" if cleaned.startswith(_FORMULA) else cleaned


def _names(case: Case) -> tuple[str, str, str, str]:
    return text(case.operator), text(case.kernel), text(case.dtype), text(case.shape_text)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"  # far below any timer's tick, without dust
