"""How far two runs of the same code differ, and what several runs say of that."""

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timed_cases import around, timed

from solkit.judge.noise import Repeats, excess_fraction, prior_fraction, ratio_noise

ONE = Repeats((1e-3,), (0.0,), 1.0)


def repeats(*medians_s: float) -> Repeats:
    return Repeats.of([timed([median_s] * 20) for median_s in medians_s])


def test_one_run_has_the_noise_that_a_card_was_measured_to_have() -> None:
    """0.4 % of the ratio, 0.7 % where buffers lie beyond the L2; a side has less, a host more."""
    small, large = timed(around(1.0)), timed(around(1.0), place_fraction=0.007)
    of_ratio = [2**0.5 * prior_fraction(each, host=False) for each in (small, large)]
    assert pytest.approx([0.004, 0.007]) == of_ratio
    assert 0.1 == prior_fraction(small, host=True)
    assert pytest.approx(0.00707, rel=1e-3) == ratio_noise(0.005, 1.0, ONE, ONE)


def test_short_times_differ_by_nanoseconds_and_the_more_with_a_gap_between_launches() -> None:
    """40 ns of 5 us are 0.8 %, and 81 ns are 1.6 % where a call has two launches."""
    one = timed(around(5e-6))
    two = replace(one, launch_count=2)
    of_ratio = [2**0.5 * prior_fraction(each, host=False) for each in (one, two)]
    assert pytest.approx([0.0089, 0.0166], rel=0.01) == of_ratio


def test_noise_falls_with_the_root_of_the_runs() -> None:
    """Four runs on each side halve it."""
    four = repeats(1e-3, 1e-3, 1e-3, 1e-3)
    assert pytest.approx(0.005 / 2**0.5) == ratio_noise(0.005, 1.0, four, four)
    assert pytest.approx(0.005 * 1.25**0.5) == ratio_noise(0.005, 1.0, ONE, four)


def test_a_case_that_scatters_has_its_own_noise() -> None:
    """Two runs 4 % apart on one side: 2.8 % a run, and the ratio of two and two as much."""
    wild = repeats(1e-3, 1e-3 * math.exp(0.04))
    calm = repeats(1e-3, 1e-3)
    own = 0.04 / 2**0.5 / 2**0.5  # two degrees of freedom, one of which saw nothing
    assert pytest.approx(own) == ratio_noise(0.005, 1.0, wild, calm)
    assert pytest.approx(0.005) == ratio_noise(0.005, 1.0, calm, calm)


def test_runs_of_other_lengths_count_by_their_samples() -> None:
    """Ninety samples and ten are worth 1.2 runs of equal weight."""
    found = Repeats.of([timed([1e-3] * 90), timed([1e-3] * 10)])
    assert pytest.approx(100**2 / (90**2 + 10**2)) == found.even_count


def test_a_machine_noisier_than_the_constants_is_heard() -> None:
    """400 cases in two runs a side, four times the noise that was assumed: 4, within a tenth."""
    random = Random(0)  # noqa: S311  # noise, not a secret
    cases = [
        (0.005, [repeats(*(1e-3 * math.exp(random.gauss(0, 0.02)) for _ in range(2)))] * 1)
        for _ in range(400)
    ]
    assert pytest.approx(4.0, rel=0.1) == excess_fraction(cases)


@given(apart=st.floats(0, 0.5))
def test_one_case_can_not_tell_a_calm_machine_from_luck(apart: float) -> None:
    """The constants weigh as much as twenty runs, and are never undercut."""
    pair = repeats(1e-3, 1e-3 * math.exp(apart))
    expected = max(1.0, math.sqrt((20 + apart**2 / 2 / 0.005**2) / 21))
    assert pytest.approx(expected) == excess_fraction([(0.005, [pair, ONE])])
    assert 1.0 == excess_fraction([])
