"""How sure a difference is: tails of the normal distribution, and many tests at once."""

from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.judge.evidence import holm, two_sided_p

p_lists = st.lists(st.floats(0, 1), max_size=30)


@pytest.mark.parametrize(
    ("expected", "deviations"),
    [(1.0, 0.0), (0.05, 1.959964), (0.05, -1.959964), (6.334e-5, 4.0), (0.0, float("inf"))],
)
def test_the_chance_of_a_deviation_counts_both_tails(expected: float, deviations: float) -> None:
    """1.96 standard deviations, up or down, are met once in twenty."""
    assert pytest.approx(expected, rel=1e-4) == two_sided_p(deviations)


@given(deviations=st.floats(-6, 6))
def test_the_chance_is_that_of_the_normal_distribution(deviations: float) -> None:
    """As the standard library's own table has it."""
    assert pytest.approx(2 * NormalDist().cdf(-abs(deviations))) == two_sided_p(deviations)


def test_each_chance_is_held_against_what_is_left_to_ask() -> None:
    """Four at 5 %: 0.0125, 0.01667, 0.025 and 0.05; from the first above, none stands."""
    assert [True, False, False, True] == holm([0.01, 0.04, 0.03, 0.005])
    assert [True, True, True, True] == holm([0.0125, 0.016, 0.025, 0.05])
    assert [False, False] == holm([0.026, 0.026])
    assert [] == holm([])


@given(p_values=p_lists)
def test_what_stands_is_between_strict_and_lax(p_values: list[float]) -> None:
    """At least what Bonferroni keeps, and never what would not stand alone."""
    for p_value, stands in zip(p_values, holm(p_values), strict=True):
        assert stands or p_value > 0.05 / len(p_values)
        assert p_value <= 0.05 or not stands


@given(p_values=st.lists(st.floats(0, 1), max_size=30, unique=True), data=st.data())
def test_the_order_of_cases_decides_nothing(p_values: list[float], data: st.DataObject) -> None:
    """Shuffled cases keep their verdicts."""
    order = data.draw(st.permutations(range(len(p_values))))
    stands = holm(p_values)
    assert [stands[place] for place in order] == holm([p_values[place] for place in order])
