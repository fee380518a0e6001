"""Kernels side by side: who is the fastest, by how much, and what the gap score says."""

import re
from dataclasses import replace

import charted_runs as runs
import pytest

from solkit.judge.score import Judged, score
from solkit.model import Case, Failed, Measured, Outcome
from solkit.report.charts import operator_charts
from solkit.report.plain import TIMES
from solkit.report.rivals import GROUPS_MOST, KERNELS_MOST, groups_of, names_of, rivals
from solkit.report.rivals_chart import LINES_MOST

GPU = runs.card()


def at(kernel: str, times: float, rows: int = 4096, noise_fraction: float = 0.001) -> Measured:
    """Return a case that takes so many times its bound."""
    case = Case("softmax", kernel, {"rows": rows, "cols": 4096}, "bf16")
    made = runs.measured(case, 1.0, gpu=GPU)
    time_s = made.bound.sol_s * times
    return replace(
        made,
        times_s=(time_s,) * 21,
        sample_count=22,
        median_s=time_s,
        low_s=time_s * (1 - noise_fraction),
        high_s=time_s * (1 + noise_fraction),
    )


def judged(*outcomes: Outcome, baseline: str | None = None) -> tuple[Judged, ...]:
    return score(runs.a_run(outcomes, gpu=GPU), baseline=baseline)


def test_each_kernel_has_its_time_and_its_ratio_to_the_fastest() -> None:
    """The nearest to the fastest over all groups stands first."""
    seen = rivals(judged(at("slow", 3.0), at("quick", 1.5)))["softmax"]
    assert ("quick", "slow") == seen.kernels
    (row,) = seen.rows
    assert "rows=4096 cols=4096 bf16" == row.where
    assert ("21.0 µs", "fastest", "win", "r1") == row.cells[0]
    assert ("41.9 µs", f"2.00{TIMES}", "", "r0") == row.cells[1]
    assert "S:" not in seen.caption


def test_intervals_that_meet_are_level() -> None:
    """A difference within the noise is no victory, and says so."""
    items = judged(at("a", 1.5), at("b", 1.501, noise_fraction=0.01))
    assert f"≈ 1.00{TIMES}" == rivals(items)["softmax"].rows[0].cells[1].aside


def test_the_gap_score_stands_beside_the_time_where_a_baseline_was_named() -> None:
    """S = 1 / (1 + (1.5 - 1) / (3 - 1)) = 0.8 for the kernel, 0.5 for the baseline itself."""
    items = judged(at("slow", 3.0), at("quick", 1.5), baseline="slow")
    seen = rivals(items)["softmax"]
    assert seen.caption.endswith("; S: gap score, 0.5 at the baseline, 1 at the bound")
    assert ["fastest, S 0.80", f"2.00{TIMES}, S 0.50"] == [
        cell.aside for cell in seen.rows[0].cells
    ]
    assert "median gap score 0.800" in seen.tallies[0]


def test_an_invalid_time_wins_nothing() -> None:
    """Faster than light is not faster: it has its word, and the fastest is another."""
    seen = rivals(judged(at("cheat", 0.3), at("a", 1.5), at("b", 3.0)))["softmax"]
    assert ("a", "b", "cheat") == seen.kernels
    assert ["fastest", f"2.00{TIMES}", "4.19 µs"] == [cell.aside for cell in seen.rows[0].cells]
    assert "✕ INVALID" == seen.rows[0].cells[2].text
    assert "cheat has no time that counts" == seen.tallies[2]


def test_a_kernel_that_failed_keeps_its_cell() -> None:
    """The word, the sign, and the way to its row."""
    failed = Failed(Case("softmax", "c", {"rows": 4096, "cols": 4096}, "bf16"), "check", "no")
    items = judged(at("a", 1.5), at("b", 3.0), at("c", 4.0, rows=64), at("a", 1.5, rows=64), failed)
    row = rivals(items)["softmax"].rows[0]
    assert ("✕ failed", "", "bad", "r4") == row.cells[2]


def test_the_tally_counts_wins_and_averages_ratios_geometrically() -> None:
    """Twice as slow here and twice as fast there is level."""
    items = judged(at("a", 2.0), at("b", 4.0), at("a", 4.0, rows=64), at("b", 2.0, rows=64))
    assert (
        f"a is the fastest in 1 of 2 groups, 1.41{TIMES} the fastest at the geometric mean",
        f"b is the fastest in 1 of 2 groups, 1.41{TIMES} the fastest at the geometric mean",
    ) == rivals(items)["softmax"].tallies


def test_kernels_that_never_met_are_not_compared() -> None:
    """A group needs two times; two shapes of one kernel each are no race."""
    assert {} == rivals(judged(at("a", 2.0), at("b", 2.0, rows=64)))


def test_a_long_list_keeps_the_widest_groups_and_counts_the_rest() -> None:
    """The groups in which kernels differ most are the ones to look at."""
    outcomes = [
        one
        for rows in range(1, 61)
        for one in (at("a", 2.0, rows=rows), at("b", 2.0 + rows / 10, rows=rows))
    ]
    seen = rivals(judged(*outcomes))["softmax"]
    assert GROUPS_MOST == len(seen.rows)
    assert "rows=60 cols=4096 bf16" == seen.rows[0].where
    assert "20 more groups in which they differ less: in the table of every case." == seen.more


def test_many_kernels_keep_the_nearest() -> None:
    """Six columns fit; the slower ones are counted."""
    seen = rivals(judged(*(at(f"k{place}", 2.0 + place) for place in range(9))))["softmax"]
    assert KERNELS_MOST == len(seen.kernels)
    assert ("k0", "k5") == (seen.kernels[0], seen.kernels[-1])
    assert "3 more kernels, slower than these: in the table of every case." == seen.more


def test_hot_cases_are_compared_too() -> None:
    """Data in the L2 has no score, but two kernels on it have times."""
    hot = [
        replace(each, case=replace(each.case, cache_mode="hot"), cache="hot")
        for each in (at("a", 0.8), at("b", 0.9))
    ]
    assert f"1.12{TIMES}" == rivals(judged(*hot))["softmax"].rows[0].cells[1].aside


def test_the_picture_has_a_mark_for_each_kernel_that_leads_to_its_row() -> None:
    """A line for each group, and the names of the kernels in the legend."""
    items = judged(at("slow", 3.0), at("quick", 1.5), baseline="slow")
    drawn = operator_charts(items, runs.a_run((), gpu=GPU))["softmax"]
    assert {"#r0", "#r1"} == set(re.findall(r'href="(#r\d+)"', drawn.rivals_svg))
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", drawn.rivals_svg)
    assert {
        "softmax: kernels side by side",
        "quick bf16",
        "slow bf16",
        f"1{TIMES}",
        f"2{TIMES}",
    } <= set(labels)
    assert drawn.rivals_alt == (
        "Kernels of softmax in 1 group: quick is the fastest in 1 of 1 group, "
        f"1.00{TIMES} the fastest at the geometric mean, median gap score 0.800; "
        "slow is the fastest in 0 of 1 group, "
        f"2.00{TIMES} the fastest at the geometric mean, median gap score 0.500."
    )


def test_one_kernel_alone_has_no_picture() -> None:
    """There is nobody to compare with."""
    drawn = operator_charts(judged(at("a", 2.0)), runs.a_run((), gpu=GPU))["softmax"]
    assert ("", "") == (drawn.rivals_svg, drawn.rivals_alt)


@pytest.mark.parametrize("count", [2, 40])
def test_the_picture_is_bounded(count: int) -> None:
    """Of many groups the widest are drawn, and the title says of how many."""
    outcomes = [
        one
        for rows in range(1, count + 1)
        for one in (at("a", 2.0, rows=rows), at("b", 2.0 + rows / 10, rows=rows))
    ]
    text = operator_charts(judged(*outcomes), runs.a_run((), gpu=GPU))["softmax"].rivals_svg
    assert min(count, LINES_MOST) == len(re.findall(r">rows=\d+ bf16</text>", text))
    assert ("(the 16 widest of 40 groups)" in text) == (count == 40)


def test_names_break_ties_so_that_the_order_never_changes() -> None:
    """Two kernels of one speed stand by their names."""
    items = judged(at("b", 2.0), at("a", 2.0))
    assert ["a", "b"] == names_of(groups_of(list(enumerate(items))))


def test_the_tally_tells_what_a_launch_costs_the_host() -> None:
    """The median over the groups, beside times of the GPU; nothing where nobody knows."""
    items = judged(
        *(replace(at("a", 1.5, rows=rows), launch_s=s) for rows, s in ((64, 4e-6), (128, 6e-6))),
        *(at("b", 3.0, rows=rows) for rows in (64, 128)),
    )
    first, second = rivals(items)["softmax"].tallies
    assert first.endswith("at the geometric mean; launching it costs the host 5.00 µs")
    assert second.endswith("at the geometric mean")
