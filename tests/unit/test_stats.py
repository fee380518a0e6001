"""Medians with their intervals: read off the samples, whatever their order, none dropped."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.stats import EXACT_COUNT, Spread, low_rank, median, quantile, spread, thin

times = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=200)


def coverage(count: int, low: int) -> float:
    """Return how often the samples of rank `low` and its mirror enclose the true median."""
    return 1 - 2 * sum(comb(count, below) for below in range(low + 1)) / 2**count


@given(samples=times)
def test_the_interval_contains_the_median(samples: list[float]) -> None:
    """Both ends are samples, one on each side."""
    seen = spread(samples)
    assert seen.low_s <= seen.median_s <= seen.high_s
    assert {seen.low_s, seen.high_s} <= set(samples)


@given(samples=times, random=st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(samples: list[float], random: object) -> None:
    """A spread is of the values alone."""
    shuffled = list(samples)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis has no type for it
    assert spread(samples) == spread(shuffled)


@given(samples=times, factor=st.sampled_from([0.25, 2.0, 1024.0]))
def test_a_spread_scales_with_its_samples(samples: list[float], factor: float) -> None:
    """Twice the times, twice the median and twice the interval."""
    seen = spread(samples)
    scaled = Spread(seen.median_s * factor, seen.low_s * factor, seen.high_s * factor)
    assert scaled == spread([sample * factor for sample in samples])


@pytest.mark.parametrize("count", [6, 8, 9, 20, 21, 50, 101, 999, 1000])
def test_the_interval_holds_the_true_median_in_95_percent_of_all_runs(count: int) -> None:
    """It is the narrowest symmetric pair of ranks that does."""
    low = low_rank(count)
    assert coverage(count, low) >= 0.95
    assert coverage(count, low + 1) < 0.95


@pytest.mark.parametrize("count", [EXACT_COUNT + 1, 2001, 5000])
def test_many_samples_take_the_normal_approximation_outwards(count: int) -> None:
    """One rank further out than it says: never below 95 %, hardly above."""
    assert 0.95 <= coverage(count, low_rank(count)) < 0.96


def test_twenty_samples_give_ranks_six_and_fifteen() -> None:
    """The textbook pair (counted from one) for n = 20, 95.9 %."""
    assert Spread(10.5, 6.0, 15.0) == spread([float(value) for value in range(1, 21)])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_samples_give_the_whole_range(count: int) -> None:
    """Five samples enclose the median in 93.75 % of all runs: there is nothing wider."""
    values = [float(value) for value in range(count)]
    assert Spread((count - 1) / 2, 0.0, count - 1.0) == spread(values)


def test_an_outlier_moves_the_range_and_not_the_median() -> None:
    """No sample is dropped, and one of them does not rule."""
    assert Spread(3.0, 1.0, 1000.0) == spread([1.0, 2.0, 3.0, 4.0, 1000.0])


def test_a_quantile_lies_between_its_neighbours() -> None:
    """Type 7: a quarter of the way through four samples is three quarters past the first."""
    assert 1.75 == quantile([1.0, 2.0, 3.0, 4.0], 0.25)
    assert [1.0, 4.0] == [quantile([1.0, 2.0, 3.0, 4.0], end) for end in (0.0, 1.0)]


def test_the_median_of_an_even_count_is_the_mean_of_the_middle_two() -> None:
    """Unsorted input is fine."""
    assert 2.5 == median([4.0, 1.0, 3.0, 2.0])


def test_no_samples_have_no_quantile() -> None:
    """There is nothing to read off."""
    with pytest.raises(ValueError, match="at least one sample"):
        spread([])


@given(samples=st.lists(st.integers(), max_size=400), most=st.integers(1, 120))
def test_thinning_keeps_order_and_count(samples: list[int], most: int) -> None:
    """At most so many remain, in their order, the first among them."""
    kept = thin(samples, most)
    assert min(most, len(samples)) == len(kept)
    assert tuple(samples[:1]) == kept[:1]
    places = iter(samples)
    assert all(any(sample is place for place in places) for sample in kept)


def test_thinning_is_even() -> None:
    """Every second of ten."""
    assert (0, 2, 4, 6, 8) == thin(range(10), 5)
