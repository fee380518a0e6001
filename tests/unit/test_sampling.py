"""When to stop sampling, and when a kernel is warm: rules on samples alone."""

import pytest

from solkit.measure.sampling import MOST_COUNT, Verdict, enough, steady


def verdict(times_s: list[float], *, spent_s: float = 0.0, tick_s: float = 1e-9) -> Verdict:
    return enough(times_s, spent_s=spent_s, budget_s=0.5, tick_s=tick_s)


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
