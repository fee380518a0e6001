"""When to stop sampling, and when a kernel is warm: rules on samples alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.measure.sampling import (
    MOST_COUNT,
    Verdict,
    awake,
    batch_count,
    enough,
    steady,
)
from solkit.stats import spread

seconds = st.floats(1e-7, 1.0)


def verdict(
    times_s: list[float],
    *,
    spent_s: float = 0.0,
    budget_s: float = 0.5,
    precision_fraction: float = 0.005,
    tick_s: float = 1e-9,
) -> Verdict:
    return enough(
        times_s,
        spent_s=spent_s,
        budget_s=budget_s,
        precision_fraction=precision_fraction,
        tick_s=tick_s,
    )


def wide(count: int) -> list[float]:
    """Return samples that spread over 10 %."""
    return [1.0 + 0.1 * (place % 11) / 10 for place in range(count)]


def test_twenty_equal_samples_are_precise() -> None:
    """Nineteen are not yet enough to say so."""
    assert Verdict(stop=True, reason="precision reached") == verdict([1.0] * 20)
    assert Verdict(stop=False, reason="") == verdict([1.0] * 19)


@pytest.mark.parametrize(("stop", "half_s"), [(True, 0.0049), (False, 0.0051)])
def test_precision_is_half_the_interval_within_half_a_percent(*, stop: bool, half_s: float) -> None:
    """The half-width of the median's 95 % interval over the median."""
    times_s = [1.0 - half_s] * 8 + [1.0] * 4 + [1.0 + half_s] * 8
    assert stop is verdict(times_s).stop


def test_precision_is_never_finer_than_three_ticks() -> None:
    """A clock of 0.1 s tells nothing below 0.3 s: spread within it is no spread."""
    assert verdict(wide(20), tick_s=0.1).stop
    assert not verdict(wide(20), tick_s=0.001).stop


def test_the_time_budget_ends_a_noisy_case_after_seven_samples() -> None:
    """Fewer can never show a change, so they are taken whatever they cost."""
    assert Verdict(stop=False, reason="") == verdict(wide(6), spent_s=99.0)
    assert Verdict(stop=True, reason="time budget of 0.5 s used") == verdict(wide(7), spent_s=0.5)
    assert not verdict(wide(7), spent_s=0.49).stop


def test_a_thousand_samples_end_the_noisiest_case() -> None:
    """More would not help."""
    assert 1000 == MOST_COUNT
    noisy = [1.0, 2.0] * 500
    assert Verdict(stop=True, reason="1000 samples taken") == verdict(noisy)
    assert not verdict(noisy[:-1]).stop


def test_a_kernel_is_warm_when_two_batches_agree() -> None:
    """Within 1 % of the larger median; one outlier does not count."""
    assert steady([1.0, 1.0, 1.0], [1.009, 1.009, 5.0])
    assert not steady([1.0, 1.0, 1.0], [1.02, 1.02, 1.0])


def test_nothing_is_steady_with_nothing() -> None:
    """The first batch has no batch before it."""
    assert not steady([], [1.0])
    assert not steady([1.0], [])


@pytest.mark.parametrize("fraction", [0.001, 0.02, 0.3])
def test_the_precision_that_is_asked_for_is_the_one_that_stops(fraction: float) -> None:
    """A little within it stops, a little without it does not."""
    for stop, half_s in ((True, 0.99 * fraction), (False, 1.01 * fraction)):
        times_s = [1.0 - half_s] * 8 + [1.0] * 4 + [1.0 + half_s] * 8
        assert stop is verdict(times_s, precision_fraction=fraction).stop


def test_three_ticks_stop_the_finest_wish() -> None:
    """5 us on a grid of 32 ns: an interval of two ticks either way, at a wish of 0.001 %."""
    times_s = [5.000e-6 - 64e-9] * 8 + [5.000e-6] * 4 + [5.000e-6 + 64e-9] * 8
    assert verdict(times_s, precision_fraction=1e-5, tick_s=32e-9).stop
    wider_s = [5.000e-6 - 128e-9] * 8 + [5.000e-6] * 4 + [5.000e-6 + 128e-9] * 8
    assert not verdict(wider_s, precision_fraction=1e-5, tick_s=32e-9).stop


@pytest.mark.parametrize("budget_s", [1e-9, 0.25, 30.0])
def test_the_budget_that_is_asked_for_is_the_one_that_stops(budget_s: float) -> None:
    """And its number is in the reason."""
    assert (
        f"time budget of {budget_s:g} s used"
        == verdict(wide(7), spent_s=budget_s, budget_s=budget_s).reason
    )
    assert not verdict(wide(7), spent_s=budget_s / 2, budget_s=budget_s).stop


def test_precision_is_said_before_the_budget_and_the_count() -> None:
    """Where all end it together, the best news is told."""
    assert "precision reached" == verdict([1.0] * 1000, spent_s=99.0).reason


@given(
    times_s=st.lists(seconds, max_size=60), spent_s=st.floats(0, 2), fraction=st.floats(1e-4, 0.5)
)
def test_a_stop_has_a_reason_that_is_true(
    times_s: list[float], spent_s: float, fraction: float
) -> None:
    """Going on has none; nobody stops below seven samples."""
    found = verdict(times_s, spent_s=spent_s, precision_fraction=fraction)
    assert found.stop is bool(found.reason)
    if found.stop:
        assert len(times_s) >= 7
    if found.reason == "precision reached":
        seen = spread(times_s)
        assert (seen.high_s - seen.low_s) / 2 <= max(fraction * seen.median_s, 3e-9)
        assert len(times_s) >= 20
    elif found.stop:
        assert spent_s >= 0.5


def test_a_median_within_one_percent_is_steady_just_so() -> None:
    """The larger of the two is the measure: the order of batches does not matter."""
    assert steady([0.991], [1.0])
    assert steady([1.0], [0.991])
    assert not steady([0.989], [1.0])
    assert not steady([1.0], [0.989])


@given(before=st.lists(seconds, min_size=1), after=st.lists(seconds, min_size=1))
def test_steady_is_the_same_both_ways(before: list[float], after: list[float]) -> None:
    """And every batch agrees with itself."""
    assert steady(before, after) is steady(after, before)
    assert steady(before, before)


@pytest.mark.parametrize(
    ("count", "median_s"),
    [
        (4, None),  # nobody knows yet
        (32, 1e-6),
        (32, 156e-6),
        (31, 160e-6),
        (5, 1e-3),
        (1, 4e-3),
        (1, 10.0),  # a call that takes seconds is a batch by itself
        (32, 0.0),  # a clock too coarse to see the call
    ],
)
def test_a_batch_is_five_milliseconds_of_work_and_32_calls_at_most(
    count: int, median_s: float | None
) -> None:
    """Between two readings of the card's conditions."""
    assert count == batch_count(median_s, most=63)


@given(median_s=st.none() | st.floats(0, 100), most=st.integers(1, 100))
def test_a_batch_is_never_empty_nor_larger_than_allowed(median_s: float | None, most: int) -> None:
    """Five milliseconds are exceeded by single calls alone."""
    count = batch_count(median_s, most=most)
    assert 1 <= count <= min(32, most)
    assert count == 1 or median_s is None or count * median_s <= 0.005 * (1 + 1e-9)


@pytest.mark.parametrize(("up", "hz"), [(True, 1.485e9), (False, 1.484e9), (False, 0.345e9)])
def test_a_card_is_awake_from_three_quarters_of_its_highest_clock_on(
    *, up: bool, hz: float
) -> None:
    """Of 1980 MHz; an idle H200 stands at 345."""
    assert up is awake([hz, hz, 1.98e9, hz, hz], 1.98e9)


def test_a_clock_that_nobody_knows_keeps_nobody_waiting() -> None:
    """A host has none, and some cards don't tell their highest."""
    assert awake([], 1.98e9)
    assert awake([0.345e9], None)
