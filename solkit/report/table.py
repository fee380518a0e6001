"""The table of every case: its columns, and each outcome as a row of strings.

A new metric is one more `Column`: its title, its explanation, and the function that writes it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from solkit import units
from solkit.judge.score import Judged, Scored
from solkit.model import Case, Failed
from solkit.report.plain import DASH, TIMES, line
from solkit.report.samples import clock_spark, clock_text, doubted, energy_text, remarks
from solkit.report.verdicts import failure_word

WIDE_FRACTION = 0.01  # an interval wider than this either side is printed beside the score
SPARKS_MOST = 1_000  # rows with a line each: 200 bytes apiece
NONE = "—"


class Cell(NamedTuple):
    """One cell: the text, a quieter aside, a style word, and the path of a small line.

    style: `b87`, a bar of 87 %; `bad`; `up`; `words`, which may break. spark: SVG path data.
    """

    text: str
    aside: str = ""
    style: str = ""
    spark: str = ""


class Row(NamedTuple):
    """One case: its anchor (`r12`: position 12 in the judged outcomes), its state and its cells."""

    anchor: str
    state: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `name` heads it, `hint` explains it, `cell` writes it for a measured case.

    kind: `text` sorts as words, `number` by the number and its unit. An `optional` column that is
    empty in every row is left out.
    """

    name: str
    hint: str
    kind: str
    cell: Callable[[Scored], Cell]
    optional: bool = False


def shape_text(case: Case) -> str:
    """Write shape and params as a person reads them: `M=8192 N=2560 weight=kn`."""
    return line(case.shape_text.replace(";", " "))


def ratio(value: float) -> str:
    """Write a factor with its sign: 3.712 as 3.71 times."""
    return f"{units.digits(value)}{TIMES}"


def sol_cell(scored: Scored) -> Cell:
    """Write the score with its bar; invalid or above the sheet, with word and sign instead."""
    raw = units.percent(scored.raw_fraction)
    if scored.status == "invalid":
        return Cell("✕ INVALID", raw, "bad")
    if scored.sol_score is None:
        return Cell(NONE, f"hot: {raw} of DRAM")
    if scored.above_published:
        return Cell(f"▲ {raw}", "above published", "b100 up")
    style = f"b{max(0, min(100, round(scored.raw_fraction * 100)))}"
    low, high = scored.bound.sol_s / scored.high_s, scored.bound.sol_s / scored.low_s
    if high - low > 2 * WIDE_FRACTION:
        return Cell(raw, f"{low * 100:.0f}{DASH}{high * 100:.0f}", style)
    return Cell(raw, "", style)


def spread_text(scored: Scored) -> str:
    """Write half the 95 % interval as a share of the median: '±0.4 %'."""
    return f"±{(scored.high_s - scored.low_s) / 2 / scored.median_s * 100:.1f} %"


def limiter_cell(scored: Scored) -> Cell:
    """Name the limit and by what factor it leads the next; both when they are within 10 %."""
    times = sorted((scored.bound.memory_s, *scored.bound.compute_s.values()), reverse=True)
    name = scored.bound.limiter.replace(":", " ")
    margin = ratio(times[0] / times[1]) if len(times) > 1 and times[1] > 0 else ""
    if scored.bound.near_ridge:
        margin = f"≈ near ridge {margin}"
    pipe, estimate_s = max(
        scored.bound.estimate_s.items(), key=lambda item: item[1], default=("", 0.0)
    )
    if estimate_s > scored.bound.sol_s:
        margin = f"{margin} {pipe} estimate {ratio(estimate_s / scored.bound.sol_s)}".strip()
    return Cell(name, margin)


def _flop_rate(scored: Scored) -> Cell:
    """Exact FLOP over time; where nothing is exact the fp32 estimate, marked with a tilde."""
    work = scored.outcome.work
    if exact := sum(work.flop.values()):
        return Cell(units.flop_rate(exact / scored.median_s))
    if estimated := work.estimated_flop.get("fp32", 0):
        return Cell(f"~{units.flop_rate(estimated / scored.median_s)}")
    return Cell(NONE)


def _other_roof(fraction: float | None) -> Cell:
    if fraction is None:
        return Cell(NONE)
    return Cell(units.percent(fraction) if fraction <= 1 else f"▲ {units.percent(fraction)}")


def _regime(scored: Scored) -> Cell:
    floors = scored.regime.floors_count
    return Cell(scored.regime.word, ratio(floors) if math.isfinite(floors) else "")


def _registers(scored: Scored) -> Cell:
    counts = [each.register_count for each in scored.outcome.compiled if each.register_count]
    if not counts:
        return Cell(NONE)
    spilled = sum(each.spill_bytes or 0 for each in scored.outcome.compiled)
    return Cell(str(max(counts)), f"{spilled} B spilled" if spilled else "")


def _time(scored: Scored) -> Cell:
    mark = " !" if doubted(scored) else ""
    return Cell(units.seconds(scored.median_s), f"{spread_text(scored)}{mark}")


def _clock(scored: Scored) -> Cell:
    text, aside = clock_text(scored.outcome)
    return Cell(text or NONE, aside)


def _energy(scored: Scored) -> Cell:
    text, aside = energy_text(scored)
    return Cell(text or NONE, aside)


def _launch(scored: Scored) -> Cell:
    launch_s = scored.outcome.launch_s
    return Cell(units.seconds(launch_s) if launch_s is not None else NONE)


def _remarks(scored: Scored) -> Cell:
    said = "; ".join(remarks(scored))
    return Cell(said, style="words" if said else "")


COLUMNS = (
    Column("Operator", "what is computed", "text", lambda it: Cell(line(it.outcome.case.operator))),
    Column(
        "Kernel", "the way it is computed", "text", lambda it: Cell(line(it.outcome.case.kernel))
    ),
    Column(
        "Dtype",
        "the number format of the case",
        "text",
        lambda it: Cell(line(it.outcome.case.dtype)),
    ),
    Column("Shape", "axes and params", "text", lambda it: Cell(shape_text(it.outcome.case))),
    Column(
        "Time",
        "median of the kernel's own time, ± half its 95 % interval; ! where Remarks doubt it",
        "number",
        _time,
    ),
    Column("SOL", "time of the bound over time taken", "number", sol_cell),
    Column(
        "SOL@measured",
        "the score against ceilings measured on this device",
        "number",
        lambda it: _other_roof(it.sol_measured),
        optional=True,
    ),
    Column(
        "SOL@clock",
        "the score at the SM clock truly held",
        "number",
        lambda it: _other_roof(it.sol_clock),
        optional=True,
    ),
    Column("Limiter", "what sets the bound, and by what factor it leads", "text", limiter_cell),
    Column("Regime", "and the time in empty-kernel floors", "text", _regime),
    Column(
        "Bytes",
        "least traffic: each tensor once",
        "number",
        lambda it: Cell(units.traffic(it.outcome.work.traffic_bytes)),
    ),
    Column(
        "Bytes/s",
        "least traffic over time",
        "number",
        lambda it: Cell(units.bandwidth(it.outcome.work.traffic_bytes / it.median_s)),
    ),
    Column("FLOP/s", "exact operations over time; ~ where only estimated", "number", _flop_rate),
    Column(
        "Fusion gain",
        "bounds of the unfused steps over the bound",
        "number",
        lambda it: Cell(ratio(it.fusion_gain) if it.fusion_gain else NONE),
        optional=True,
    ),
    Column(
        "Gap score",
        "how much of the baseline's distance to the bound is closed",
        "number",
        lambda it: Cell(units.digits(it.gap_score) if it.gap_score is not None else NONE),
        optional=True,
    ),
    Column(
        "Check error",
        "largest error over its allowance: 1 is just allowed",
        "number",
        lambda it: Cell(units.digits(it.outcome.check.error_fraction, 2)),
    ),
    Column("Registers", "per thread, and spilled bytes", "number", _registers, optional=True),
    Column(
        "SM clock",
        "median over the samples, their range, and its course where it moved",
        "number",
        _clock,
        optional=True,
    ),
    Column("Energy", "of a call, and what a joule of it does", "number", _energy, optional=True),
    Column(
        "Launch",
        "the host's time to enqueue a call: no part of Time",
        "number",
        _launch,
        optional=True,
    ),
    Column("Remarks", "what its samples say beside the median", "text", _remarks, optional=True),
)
SOL_PLACE = next(place for place, column in enumerate(COLUMNS) if column.name == "SOL")
CLOCK_PLACE = next(place for place, column in enumerate(COLUMNS) if column.cell is _clock)
_STATES = ("", "bad", "off")  # the states of rows, in the order of the table
_NAMES = 4  # operator, kernel, dtype, shape: what a case has without a measurement


def table(judged: Sequence[Judged]) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """Return the columns that hold something, and every outcome as a row.

    Results come first, then what is invalid or failed, then what was skipped; each in the run's
    order, which the anchors keep.
    """
    sparks = len(judged) <= SPARKS_MOST
    rows = [_row(index, item, sparks=sparks) for index, item in enumerate(judged)]
    rows.sort(key=lambda row: _STATES.index(row.state))
    kept = [
        place
        for place, column in enumerate(COLUMNS)
        if not column.optional or any(row.cells[place].text not in ("", NONE) for row in rows)
    ]
    columns = tuple(COLUMNS[place] for place in kept)
    if len(kept) == len(COLUMNS):
        return columns, tuple(rows)
    return columns, tuple(row._replace(cells=tuple(row.cells[i] for i in kept)) for row in rows)


def _row(index: int, item: Judged, *, sparks: bool) -> Row:
    if isinstance(item, Scored):
        cells = [column.cell(item) for column in COLUMNS]
        if sparks:
            spark = clock_spark(item.outcome)
            cells[CLOCK_PLACE] = cells[CLOCK_PLACE]._replace(spark=spark)
        return Row(f"r{index}", "bad" if item.status == "invalid" else "", tuple(cells))
    case = item.case
    names = (line(case.operator), line(case.kernel), line(case.dtype), shape_text(case))
    cells = [*(Cell(name) for name in names), *(Cell("") for _ in COLUMNS[_NAMES:])]
    if isinstance(item, Failed):
        cells[SOL_PLACE] = Cell("✕ failed", failure_word(item), "bad")
        return Row(f"r{index}", "bad", tuple(cells))
    cells[SOL_PLACE] = Cell("○ skipped")
    return Row(f"r{index}", "off", tuple(cells))
