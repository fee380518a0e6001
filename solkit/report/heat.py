"""The heat table of an operator: shapes down, dtypes across, the score of the best kernel in each.

A table and no picture: each number can be read, searched, copied and followed to its row.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from solkit import units
from solkit.judge.score import Judged, Scored
from solkit.model import Failed
from solkit.report.plain import counted, line
from solkit.report.table import NONE, shape_text
from solkit.report.trouble import case_of

ROWS_MOST = 60  # of one operator
_ROWS_IN_ALL = 800  # over a report: about 250 bytes each
_ROWS_LEAST = 2
LONG_ROWS, LONG = 24, " tall"  # a table of more rows scrolls in its own box
# The room beside a chart is 440 px on a page of 1280: 150 are the shape's, 7.5 each letter's.
_BESIDE_LETTERS, _CELL_LETTERS, _PADDING_LETTERS = 38, 12, 4
STEPS = 10  # of the scale: classes h0 ... h9 of the style sheet


class HeatCell(NamedTuple):
    """One shape in one dtype: its words, an aside, the style of its ground, the row it leads to."""

    text: str
    aside: str = ""
    style: str = ""
    anchor: str = ""


class HeatRow(NamedTuple):
    """One shape with its params, and a cell for each dtype."""

    shape: str
    cells: tuple[HeatCell, ...]


@dataclass(frozen=True, slots=True)
class HeatTable:
    """One operator: its dtypes, its rows, and what the reader must know of both.

    more: how many shapes are left out. long: the class of a table that needs a box of its own.
    """

    caption: str
    dtypes: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    more: str
    long: str = ""

    @property
    def narrow(self) -> bool:
        """Whether its columns fit beside a chart."""
        cells = [(row.cells[place] for row in self.rows) for place in range(len(self.dtypes))]
        letters = (max(_letters(cell) for cell in column) for column in cells)
        return sum(max(_CELL_LETTERS, count) for count in letters) <= _BESIDE_LETTERS


Found = dict[str, list[tuple[int, Judged]]]  # by dtype, with each outcome's place in the run


def _letters(cell: HeatCell) -> int:
    return len(cell.text) + len(cell.aside) + _PADDING_LETTERS


def heat_tables(judged: Sequence[Judged]) -> dict[str, HeatTable]:
    """Return the heat table of each operator that has a measured case, by its name as declared."""
    shapes: dict[str, dict[object, Found]] = {}
    measured: set[str] = set()
    for index, item in enumerate(judged):
        case = case_of(item)
        _, _, _, where = case.group_key
        found = shapes.setdefault(case.operator, {}).setdefault(where, {})
        found.setdefault(case.dtype, []).append((index, item))
        if isinstance(item, Scored):
            measured.add(case.operator)
    most = min(ROWS_MOST, max(_ROWS_LEAST, _ROWS_IN_ALL // max(1, len(measured))))
    return {
        operator: _table(list(found.values()), most)
        for operator, found in shapes.items()
        if operator in measured
    }


def _table(rows: Sequence[Found], most: int) -> HeatTable:
    items = [item for row in rows for cell in row.values() for _, item in cell]
    dtypes = tuple(dict.fromkeys(case_of(item).dtype for item in items))
    kernels = {case_of(item).kernel for item in items}
    shown = list(rows)
    if len(rows) > most:
        shown = sorted(rows, key=lambda row: (_lowest(row), _first(row)))[:most]
    rest = len(rows) - len(shown)
    best = f"the best of {counted(len(kernels), 'kernel')}" if len(kernels) > 1 else ""
    order = "lowest first" if rest else ""
    said = ", ".join(filter(None, (best, order)))
    return HeatTable(
        caption=f"SOL by shape and dtype{f': {said}' if said else ''}",
        dtypes=tuple(line(dtype) for dtype in dtypes),
        rows=tuple(
            HeatRow(
                shape_text(case_of(_any(row))),
                tuple(_cell(row.get(dtype, ()), named=len(kernels) > 1) for dtype in dtypes),
            )
            for row in shown
        ),
        more=f"{counted(rest, 'more shape')} with higher scores: in the table of every case."
        if rest
        else "",
        long=LONG if len(shown) > LONG_ROWS else "",
    )


def _cell(found: Sequence[tuple[int, Judged]], *, named: bool) -> HeatCell:
    """Write one cell: the best result, or in words why there is none; what is amiss beside it."""
    if not found:
        return HeatCell("")
    good = [(index, item) for index, item in found if _counts(item)]
    invalid = [pair for pair in found if isinstance(pair[1], Scored) and _invalid(pair[1])]
    failed = [pair for pair in found if isinstance(pair[1], Failed)]
    hot = [pair for pair in found if isinstance(pair[1], Scored) and not _invalid(pair[1])]
    if good:
        index, item = max(good, key=lambda pair: (_fraction(pair[1]), -pair[0]))
        amiss = [f"✕ {len(invalid)} INVALID"] if invalid else []
        amiss += [f"✕ {len(failed)} failed"] if failed else []
        name = [line(case_of(item).kernel, 40)] if named else []
        return HeatCell(_text(item), ", ".join([*name, *amiss]), _style(item), f"r{index}")
    if invalid:
        index, item = invalid[0]
        return HeatCell("✕ INVALID", units.percent(_fraction(item)), "bad", f"r{index}")
    if failed:
        return HeatCell("✕ failed", "", "bad", f"r{failed[0][0]}")
    if hot:
        return HeatCell(NONE, "hot: no score", "", f"r{hot[0][0]}")
    return HeatCell("○ skipped", "", "off", f"r{found[0][0]}")


def _counts(item: Judged) -> bool:
    return isinstance(item, Scored) and item.status == "measured" and not item.hot


def _invalid(item: Scored) -> bool:
    return item.status == "invalid"


def _fraction(item: Judged) -> float:
    return item.raw_fraction if isinstance(item, Scored) else 0.0


def _text(item: Judged) -> str:
    above = isinstance(item, Scored) and item.above_published
    return f"{'▲ ' if above else ''}{units.percent(_fraction(item))}"


def _style(item: Judged) -> str:
    return f"h{max(0, min(STEPS - 1, int(_fraction(item) * STEPS)))}"


def _lowest(row: Found) -> float:
    """Return the lowest of a shape's cells: what failed or is INVALID comes before any score."""
    return min(map(_rank, row.values()))


def _rank(cell: Sequence[tuple[int, Judged]]) -> float:
    good = [_fraction(item) for _, item in cell if _counts(item)]
    if good:
        return max(good)
    amiss = any(
        isinstance(item, Failed) or (isinstance(item, Scored) and _invalid(item))
        for _, item in cell
    )
    return -1.0 if amiss else math.inf


def _first(row: Mapping[str, Sequence[tuple[int, Judged]]]) -> int:
    return min(index for cell in row.values() for index, _ in cell)


def _any(row: Found) -> Judged:
    return next(iter(row.values()))[0][1]
