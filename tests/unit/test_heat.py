"""The heat table: a number, a word or nothing in each cell, and a row behind it."""

import re
from dataclasses import replace
from pathlib import Path

import charted_runs as runs
import pytest

from solkit.judge.score import Judged, Scored, score
from solkit.model import Case, Failed, Outcome, Skipped
from solkit.report.heat import ROWS_MOST, heat_tables

GPU = runs.card()
CSS = Path(__file__).parents[2] / "reports" / "report.css"


def case(rows: int, dtype: str = "bf16", kernel: str = "solkit") -> Case:
    return Case("softmax", kernel, {"rows": rows, "cols": 4096}, dtype)


def judged(*outcomes: Outcome) -> tuple[Judged, ...]:
    return score(runs.a_run(outcomes, gpu=GPU))


def at(of: Case, sol_fraction: float) -> Outcome:
    """Return a case of that score."""
    made = runs.measured(of, 1.0, floor_s=1e-9, gpu=GPU)
    time_s = made.bound.sol_s / sol_fraction
    return replace(made, times_s=(time_s,) * 21, median_s=time_s, low_s=time_s, high_s=time_s)


def test_shapes_stand_down_and_dtypes_across() -> None:
    """A shape that was not run in a dtype leaves its cell empty."""
    table = heat_tables(judged(at(case(8), 0.5), at(case(8, "fp32"), 0.25), at(case(16), 0.75)))
    seen = table["softmax"]
    assert ("bf16", "fp32") == seen.dtypes
    assert ["rows=8 cols=4096", "rows=16 cols=4096"] == [row.shape for row in seen.rows]
    assert ["50.0 %", "25.0 %"] == [cell.text for cell in seen.rows[0].cells]
    assert ["75.0 %", ""] == [cell.text for cell in seen.rows[1].cells]
    assert ["r0", "r1"] == [cell.anchor for cell in seen.rows[0].cells]
    assert "" == seen.more


@pytest.mark.parametrize(
    ("sol_fraction", "style", "text"),
    [(0.004, "h0", "0.4 %"), (0.55, "h5", "55.0 %"), (0.999, "h9", "99.9 %")],
)
def test_the_ground_has_ten_steps(sol_fraction: float, style: str, text: str) -> None:
    """A tenth of the scale each; the number stands on it."""
    (row,) = heat_tables(judged(at(case(4096), sol_fraction)))["softmax"].rows
    assert (text, style) == (row.cells[0].text, row.cells[0].style)


def test_of_several_kernels_the_best_is_shown_by_name() -> None:
    """What another kernel failed at stands beside it, so that nothing is dropped silently."""
    items = judged(
        at(case(8), 0.5), at(case(8, kernel="torch"), 0.6), Failed(case(8, kernel="x"), "check", "")
    )
    seen = heat_tables(items)["softmax"]
    assert "SOL by shape and dtype: the best of 3 kernels" == seen.caption
    assert ("60.0 %", "torch, ✕ 1 failed", "h6", "r1") == seen.rows[0].cells[0]


def test_what_is_no_result_has_its_word_and_sign() -> None:
    """INVALID, failed, skipped and hot are never a colour alone."""
    hot = replace(case(64), cache_mode="hot")
    items = judged(
        at(case(2**16), 1.5),
        Failed(case(16), "compile", "no"),
        Skipped(case(32), "no"),
        replace(at(case(64), 0.9), case=hot, cache="hot"),  # type: ignore[type-var]
    )
    rows = heat_tables(items)["softmax"].rows
    assert [
        ("✕ INVALID", "150.0 %", "bad", "r0"),
        ("✕ failed", "", "bad", "r1"),
        ("○ skipped", "", "off", "r2"),
        ("—", "hot: no score", "", "r3"),
    ] == [row.cells[0] for row in rows]
    assert "rows=64 cols=4096 cache=hot" == rows[3].shape


def test_a_long_table_keeps_the_lowest_and_counts_the_rest() -> None:
    """Sixty rows, failures before scores, and how many more there are."""
    many = [at(case(rows), 0.9 - rows / 1000) for rows in range(1, 101)]
    seen = heat_tables(judged(*many, Failed(case(500), "check", "no"), Skipped(case(600), "no")))
    table = seen["softmax"]
    assert ROWS_MOST == len(table.rows)
    assert ["✕ failed", "80.0 %", "80.1 %"] == [row.cells[0].text for row in table.rows[:3]]
    assert "42 more shapes with higher scores: in the table of every case." == table.more
    assert "SOL by shape and dtype: lowest first" == table.caption


def test_many_operators_share_the_room() -> None:
    """A report of 800 operators has two rows each, not sixty."""
    sample = at(case(8), 0.5)
    outcomes = [
        replace(sample, case=replace(case(rows), operator=f"op{number}"))  # type: ignore[type-var]
        for number in range(800)
        for rows in (1, 2, 3)
    ]
    found = heat_tables(judged(*outcomes))  # type: ignore[arg-type]
    assert 1600 == sum(len(table.rows) for table in found.values())


def test_an_operator_without_a_measurement_has_no_table() -> None:
    """Its failures have a section of their own."""
    assert {} == heat_tables(judged(Failed(case(8), "check", "no")))


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_each_step_can_be_read_and_told_in_grey() -> None:
    """Contrast of number and ground is 4.5:1 at least; luminance rises or falls step by step."""
    found = re.findall(
        r"\.heat \.h(\d) \{ background: (#\w{6}); color: (#\w{6}); \}", CSS.read_text("utf-8")
    )
    assert [str(step) for step in range(10)] * 2 == [step for step, _, _ in found]
    for _, ground, ink in found:
        low, high = sorted((_luminance(ground), _luminance(ink)))
        assert (high + 0.05) / (low + 0.05) >= 4.5
    light, dark = (
        [_luminance(ground) for _, ground, _ in part] for part in (found[:10], found[10:])
    )
    assert light == sorted(light, reverse=True)
    assert dark == sorted(dark)


def test_every_cell_of_a_real_run_leads_to_its_own_row() -> None:
    """The anchor is the place of the case in the run."""
    items = score(runs.big_run())
    for operator, table in heat_tables(items).items():
        for row in table.rows:
            for cell in row.cells:
                if cell.anchor:
                    item = items[int(cell.anchor[1:])]
                    found = item.outcome.case if isinstance(item, Scored) else item.case
                    assert operator == found.operator
                    assert row.shape == found.shape_text.replace(";", " ")


def test_a_table_stands_beside_the_charts_where_its_columns_fit() -> None:
    """Three dtypes do; the names of several kernels in each cell do not."""
    dtypes = ("bf16", "fp16", "fp32")
    alone = heat_tables(judged(*(at(case(8, each), 0.5) for each in dtypes)))["softmax"]
    named = heat_tables(
        judged(
            *(at(case(8, each, kernel), 0.5) for each in dtypes for kernel in ("solkit", "torch"))
        )
    )["softmax"]
    assert alone.narrow
    assert not named.narrow
