"""Medians with their intervals: read off the samples, whatever their order, none dropped."""

from collections.abc import Callable
from math import comb, log
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.model import SlowMode
from solkit.stats import (
    EXACT_COUNT,
    Spread,
    low_rank,
    median,
    quantile,
    slow_mode,
    spread,
    thin,
    widened,
)

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


def test_a_fifth_of_slower_samples_is_a_slow_mode() -> None:
    """80 at 1.0 and 20 at 1.6: a filter of outliers would drop all 20."""
    assert SlowMode(1.6, 0.2) == slow_mode([1.0] * 80 + [1.6] * 20, tick_s=0.0)


def test_most_samples_may_be_slow() -> None:
    """The second group is the slower one, not the smaller one."""
    assert SlowMode(1.6, 0.8) == slow_mode([1.0] * 20 + [1.6] * 80, tick_s=0.0)


@given(
    fast=st.lists(st.floats(0.99, 1.01), min_size=20, max_size=200),
    slow=st.lists(st.floats(1.55, 1.65), min_size=11, max_size=50),
    random=st.randoms(use_true_random=False),
)
def test_two_groups_far_apart_are_told_apart_in_any_order(
    fast: list[float], slow: list[float], random: object
) -> None:
    """Every sample of the slower group counts for it, whatever the spread inside each."""
    both = [*fast, *slow]
    random.shuffle(both)  # type: ignore[attr-defined]  # hypothesis has no type for it
    assert SlowMode(median(slow), len(slow) / len(both)) == slow_mode(both, tick_s=0.0)


@given(outlier=st.floats(2.0, 1e6))
def test_an_outlier_hides_no_slow_mode(outlier: float) -> None:
    """However far out it lies, the cut stays where the groups are."""
    found = slow_mode([1.0] * 80 + [1.6] * 19 + [outlier], tick_s=0.0)
    assert SlowMode(1.6, 0.2) == found


@given(factor=st.sampled_from([2.0**-30, 0.25, 1024.0]))
def test_a_slow_mode_scales_with_its_samples(factor: float) -> None:
    """Microseconds or seconds: only the clock's tick is absolute."""
    scaled = [factor * sample for sample in [1.0] * 80 + [1.6] * 20]
    assert SlowMode(1.6 * factor, 0.2) == slow_mode(scaled, tick_s=0.0)


def test_few_slow_samples_are_outliers() -> None:
    """Less than 5 %, or less than four: 4 of 100 and 3 of 24."""
    assert None is slow_mode([1.0] * 96 + [1.6] * 4, tick_s=0.0)
    assert None is slow_mode([1.0] * 21 + [1.6] * 3, tick_s=0.0)
    assert SlowMode(1.6, 0.05) == slow_mode([1.0] * 95 + [1.6] * 5, tick_s=0.0)


def test_a_group_within_three_ticks_or_three_percent_is_none() -> None:
    """The 32 ns grid splits every short kernel's samples, and no one minds 2 %."""
    assert None is slow_mode([1.024e-6] * 60 + [1.12e-6] * 40, tick_s=32e-9)
    assert SlowMode(1.152e-6, 0.4) == slow_mode([1.024e-6] * 60 + [1.152e-6] * 40, tick_s=32e-9)
    assert None is slow_mode([1.0] * 60 + [1.029] * 40, tick_s=0.0)
    assert SlowMode(1.031, 0.4) == slow_mode([1.0] * 60 + [1.031] * 40, tick_s=0.0)


@pytest.mark.parametrize("count", [20, 100, 1000])
@pytest.mark.parametrize(
    "place", [lambda p: p, lambda p: -log(1 - p), lambda p: 1 / (1 - p), NormalDist().inv_cdf]
)
def test_a_smooth_spread_has_one_mode(place: Callable[[float], float], count: int) -> None:
    """Even, exponential, heavy-tailed and normal spreads: all wide, none in two groups."""
    smooth = [10 + 0.5 * place((index + 0.5) / count) for index in range(count)]
    assert None is slow_mode(smooth, tick_s=0.0)


@given(samples=st.lists(st.floats(1e-9, 1e3), max_size=19))
def test_too_few_samples_have_no_modes(samples: list[float]) -> None:
    """Below 20 a smooth spread looks cut in two in one case of twenty."""
    assert None is slow_mode(samples, tick_s=0.0)


@given(samples=st.lists(st.floats(1e-9, 1e3), min_size=20, max_size=100))
def test_a_slow_mode_is_slower_than_the_rest(samples: list[float]) -> None:
    """It holds 5 % of the samples at least, and its median lies 3 % above that of the others."""
    found = slow_mode(samples, tick_s=0.0)
    if found is not None:
        count = round(found.share_fraction * len(samples))
        assert 0.05 * len(samples) <= count <= 0.95 * len(samples)
        assert found.median_s == median(sorted(samples)[-count:])
        assert found.median_s > 1.03 * median(sorted(samples)[:-count])


def test_an_interval_reaches_as_far_as_it_is_known_to() -> None:
    """A share of the median to each side where the samples lie closer, never less than they do."""
    narrow, wide = Spread(2.0, 1.999, 2.001), Spread(2.0, 1.5, 2.001)
    assert Spread(2.0, 1.98, 2.02) == widened(narrow, 0.01)
    assert Spread(2.0, 1.5, 2.02) == widened(wide, 0.01)
    assert narrow == widened(narrow, 0.0)
