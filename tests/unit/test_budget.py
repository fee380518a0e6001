"""What a run's time is made of: parts that add up, in the table and in the picture."""

import re
from dataclasses import replace

import charted_runs as runs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.judge.score import Scored, score, valid
from solkit.model import Case, Measured
from solkit.report.budget import (
    OPERATORS_MOST,
    budget,
    by_regime,
    regime_shares,
    shares,
    spent,
)
from solkit.report.budget_chart import budget_chart

GPU = runs.card()


def judged(*outcomes: Measured) -> list[Scored]:
    return [it for it in score(runs.a_run(outcomes, gpu=GPU)) if isinstance(it, Scored)]


def copy(elements: int, efficiency_fraction: float = 0.5, operator: str = "copy") -> Measured:
    case = Case("copy", "solkit", {"elements": elements}, "bf16")
    made = runs.measured(case, efficiency_fraction, gpu=GPU)
    time_s = runs.FLOOR_S + made.bound.sol_s / efficiency_fraction
    return replace(
        made,
        case=replace(case, operator=operator),
        times_s=(time_s,) * 21,
        median_s=time_s,
        low_s=time_s,
        high_s=time_s,
    )


def test_a_case_is_its_bound_the_floor_and_the_rest() -> None:
    """96 MB at 4.8 TB/s are 20 us; at half of that, with a floor of 2.3 us, 20 us are lost."""
    of = spent(judged(copy(24_000_000, 0.5)))
    assert of.memory_s == pytest.approx(20e-6)
    assert of.floor_s == pytest.approx(2.3e-6)
    assert of.loss_s == pytest.approx(20e-6)
    assert of.compute_s == 0


@given(
    median_s=st.floats(1e-7, 1.0),
    floor_s=st.floats(0, 1.0),
    elements=st.integers(1, 10**9),
)
def test_the_parts_of_a_case_add_up_to_its_time(
    median_s: float, floor_s: float, elements: int
) -> None:
    """Whatever the floor, and also where a case beats its bound: no part is negative."""
    (sample,) = judged(copy(elements))
    item = replace(sample, median_s=median_s, outcome=replace(sample.outcome, floor_s=floor_s))
    of = spent([item])
    assert of.time_s == pytest.approx(median_s)
    assert min(of.memory_s, of.compute_s, of.floor_s, of.loss_s) >= 0


def test_regimes_and_operators_divide_the_same_time() -> None:
    """Both lists hold all of it, and nothing twice."""
    items = score(runs.big_run())
    whole = spent(valid(items)).time_s
    assert whole == pytest.approx(sum(part.spent.time_s for part in shares(items)))
    assert whole == pytest.approx(sum(part.spent.time_s for part in regime_shares(items)))


def test_latency_stands_before_what_bounds_a_case() -> None:
    """A case that fixed cost rules is no case of memory or compute."""
    tiny, large = judged(copy(8), copy(2**28))
    assert {"memory": [large], "latency": [tiny]} == by_regime([tiny, large])


def test_the_longest_operator_is_first_and_the_many_share_a_line() -> None:
    """A dozen lines at most, and their times still add up."""
    outcomes = [copy(10**6 * (index + 1), operator=f"op_{index}") for index in range(20)]
    found = shares(judged(*outcomes))
    assert len(found) == OPERATORS_MOST
    assert ("op_19", "op19") == (found[0].name, found[0].anchor)
    assert ("9 others", "", 9) == (found[-1].name, found[-1].anchor, found[-1].spent.case_count)
    whole = spent(judged(*outcomes)).time_s
    assert whole == pytest.approx(sum(part.spent.time_s for part in found))


def test_the_sentence_and_the_table_say_it_in_seconds() -> None:
    """Times in absolute units, each with its share."""
    seen = budget(judged(copy(24_000_000, 0.5), copy(24_000_000, 0.5)))
    assert seen is not None
    assert seen.sentence == (
        "One call of each measured case takes 84.6 µs in all: 40.0 µs is the bound (all memory), "
        "4.60 µs the floor of 2 launches, 40.0 µs (47.3 %) is lost above both."
    )
    (line,) = seen.operators
    assert ("copy", "op0", "2", "84.6 µs (100.0 %)", "100") == (
        line.name,
        line.anchor,
        line.cases,
        line.time,
        line.bar,
    )
    assert ("40.0 µs", "—", "4.60 µs", "40.0 µs (47.3 %)") == line[6:]


def test_an_invalid_case_takes_no_part() -> None:
    """A time that can't be true is nobody's time."""
    items = score(runs.big_run())
    invalid = [it for it in items if isinstance(it, Scored) and it.status == "invalid"]
    assert invalid
    assert len(valid(items)) == sum(part.spent.case_count for part in shares(items))


def test_nothing_measured_has_no_budget() -> None:
    """No line, no picture, no division by zero."""
    assert budget(()) is None
    assert ("", "Nothing was measured, so there is no time to divide.") == budget_chart(())


def test_the_picture_leads_to_the_operators_and_says_its_numbers() -> None:
    """Each name is a link to its section, with the parts in its title."""
    text, alt = budget_chart(judged(copy(24_000_000, 0.5)))
    assert ["#op0"] == re.findall(r'<a href="([^"]+)"', text)
    assert "copy: 42.3 µs: 20.0 µs memory bound, 2.30 µs launch floor, 20.0 µs loss" in text
    assert alt == (
        "The 42.3 µs of all measured cases by regime: Memory-bound 42.3 µs, of it 20.0 µs lost. "
        "By operator: copy 42.3 µs, of it 20.0 µs lost."
    )


def test_parts_are_told_apart_without_colour() -> None:
    """The loss is hatched: a print in grey shows it."""
    assert "<pattern" in budget_chart(judged(copy(24_000_000, 0.5)))[0]
