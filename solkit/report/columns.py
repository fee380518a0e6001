"""What every case is written down as in CSV, Parquet and JSON: the columns, typed, in SI units.

A new column goes to the end: scripts rely on the names and on their order (docs/outputs.md).
"""

from collections.abc import Callable
from dataclasses import dataclass

from solkit.judge.score import Judged, Scored
from solkit.model import Case, Failed
from solkit.report.plain import line

TEXT_MOST = 32_767  # what a spreadsheet's cell holds
Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, the type of its values (str, int, float), and that of a measured case.

    Every other case leaves it empty (None), but for its names, status and verdict.
    """

    name: str
    kind: type
    of: Callable[[Scored], Value]


def _text(name: str, of: Callable[[Scored], str]) -> Column:
    return Column(name, str, lambda item: line(of(item), TEXT_MOST))


def _whole(name: str, of: Callable[[Scored], int | None]) -> Column:
    return Column(name, int, of)


def _number(name: str, of: Callable[[Scored], float | None]) -> Column:
    return Column(name, float, of)


def _throttled(item: Scored) -> int | None:
    """Count the samples at a lowered clock; unknown where samples carry no clocks."""
    return item.outcome.throttled_count if item.outcome.sample_hz else None


def _slow_share(item: Scored) -> float | None:
    return item.outcome.slow_mode.share_fraction if item.outcome.slow_mode else None


NAMES = ("operator", "kernel", "dtype", "shape")
COLUMNS = (
    _text("operator", lambda it: it.outcome.case.operator),
    _text("kernel", lambda it: it.outcome.case.kernel),
    _text("dtype", lambda it: it.outcome.case.dtype),
    _text("shape", lambda it: it.outcome.case.shape_text),
    _text("status", lambda it: it.status),
    _whole("read_bytes", lambda it: it.outcome.work.read_bytes),
    _whole("write_bytes", lambda it: it.outcome.work.write_bytes),
    _whole("flop", lambda it: sum(it.outcome.work.flop.values())),
    _number("median_s", lambda it: it.median_s),
    _number("low_s", lambda it: it.low_s),
    _number("high_s", lambda it: it.high_s),
    _number("sol_s", lambda it: it.bound.sol_s),
    _number("sol_score", lambda it: it.sol_score),
    _number("sol_clock", lambda it: it.sol_clock),
    _number("sol_measured", lambda it: it.sol_measured),
    _text("limiter", lambda it: it.bound.limiter),
    _text("regime", lambda it: it.regime.word),
    _number("gap_score", lambda it: it.gap_score),
    _text("cache", lambda it: it.outcome.cache),
    _text("method", lambda it: it.outcome.method),
    _number("sm_hz", lambda it: it.outcome.clocks.sm_hz),
    _whole("throttled_count", _throttled),
    _number("slow_share", _slow_share),
    _number("busy_s", lambda it: it.outcome.busy_s),
    _number("energy_j", lambda it: it.outcome.energy_j),
    Column("verdict", str, lambda _: None),
    _number("launch_s", lambda it: it.outcome.launch_s),
)


def values(item: Judged) -> dict[str, Value]:
    """Return the value of every column, in their order; None where there is none."""
    if isinstance(item, Scored):
        return {column.name: column.of(item) for column in COLUMNS}
    empty: dict[str, Value] = dict.fromkeys(column.name for column in COLUMNS)
    status, verdict = ("failed", item.verdict) if isinstance(item, Failed) else ("skipped", "")
    return {**empty, **names(item.case), "status": status, "verdict": verdict or None}


def names(case: Case) -> dict[str, str]:
    """Return a case's names on one line each, cleaned; the shape with its params."""
    held = (case.operator, case.kernel, case.dtype, case.shape_text)
    return {name: line(text, TEXT_MOST) for name, text in zip(NAMES, held, strict=True)}
