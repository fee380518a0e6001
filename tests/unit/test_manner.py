"""The manner of measuring: what a person may ask for, and what is refused with the remedy."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.errors import BadInput
from solkit.measure.manner import CACHE_MODES, Manner, modes_named, timer_named

TIMERS = ("auto", "cupti", "event_blocked", "event_unblocked", "graph")


def refusal(**asked: float) -> BadInput:
    with pytest.raises(BadInput) as caught:
        Manner(**asked)
    return caught.value


def test_what_nobody_asks_for_is_cold_from_rest_within_half_a_percent_or_half_a_second() -> None:
    """The defaults that the documentation promises."""
    manner = Manner()
    assert ("auto", ("cold",), "burst") == (manner.timer, manner.modes, manner.settle)
    assert (0.005, 0.5) == (manner.precision_fraction, manner.budget_s)
    assert (False, 60.0, 0) == (manner.energy, manner.timeout_s, manner.seed)


@pytest.mark.parametrize("value", [-1.0, 0.0, -0.0, math.nan, math.inf, -math.inf, 600.1])
def test_a_budget_is_a_time_above_zero_and_up_to_ten_minutes(value: float) -> None:
    """Exit code 2, the option, the value, and what to give."""
    error = refusal(budget_s=value)
    assert f"--budget {value:g} is no time to sample for" == error.message
    assert ("give seconds, above 0 and up to 600", 2) == (error.remedy, error.exit_code)


@pytest.mark.parametrize("value", [0.0, -0.005, math.nan, math.inf, 0.51])
def test_a_precision_is_a_fraction_above_zero_and_up_to_a_half(value: float) -> None:
    """Zero can never be reached."""
    error = refusal(precision_fraction=value)
    assert f"--precision {value:g} is no precision to stop at" == error.message
    assert "give a fraction of the median, above 0 and up to 0.5, e.g. 0.005" == error.remedy


@pytest.mark.parametrize("value", [0.0, -3.0, 0.99, math.nan, math.inf, 86_401.0])
def test_a_timeout_is_a_second_to_a_day(value: float) -> None:
    """Less would end every case, more is no limit."""
    error = refusal(timeout_s=value)
    assert f"--timeout {value:g} is no time to wait for" == error.message
    assert "give seconds, 1 to 86400" == error.remedy


@given(
    budget_s=st.floats(0, 600, exclude_min=True),
    precision_fraction=st.floats(0, 0.5, exclude_min=True),
    timeout_s=st.floats(1, 86_400),
)
def test_everything_between_is_taken_as_it_is(
    budget_s: float, precision_fraction: float, timeout_s: float
) -> None:
    """The ends belong to it, but for zero."""
    manner = replace(
        Manner(), budget_s=budget_s, precision_fraction=precision_fraction, timeout_s=timeout_s
    )
    assert (budget_s, precision_fraction, timeout_s) == (
        manner.budget_s,
        manner.precision_fraction,
        manner.timeout_s,
    )


@pytest.mark.parametrize("name", TIMERS)
def test_a_timer_is_named_exactly(name: str) -> None:
    """Five of them."""
    assert name == timer_named(name)


@pytest.mark.parametrize(
    ("name", "near"), [("cupty", "'cupti'"), ("event", "'event_blocked'"), ("grpah", "'graph'")]
)
def test_an_unknown_timer_is_refused_with_the_nearest_and_all_known(name: str, near: str) -> None:
    """Whoever mistypes reads what was meant."""
    with pytest.raises(BadInput) as caught:
        timer_named(name)
    assert f"--timer: unknown timer {name!r}" == caught.value.message
    assert f"did you mean {near}? known: {', '.join(TIMERS)}" == caught.value.remedy


def test_a_name_near_nothing_still_lists_what_is_known() -> None:
    """No guess where there is none to make."""
    with pytest.raises(BadInput) as caught:
        timer_named("nvbench")
    assert f"known: {', '.join(TIMERS)}" == caught.value.remedy


def test_cache_modes_are_four() -> None:
    """`unknown` is no mode to ask for, it is a label."""
    assert ("cold", "clean", "zeroed", "hot") == CACHE_MODES


@pytest.mark.parametrize(
    ("modes", "text"),
    [
        (("cold",), "cold"),
        (("hot", "cold"), "hot,cold"),
        (("cold", "hot"), " cold , hot,"),
        (("cold", "hot"), "cold,hot,cold,hot,cold"),
    ],
)
def test_cache_modes_keep_their_order_and_come_once(modes: tuple[str, ...], text: str) -> None:
    """Spaces and a comma too many do no harm; a mode named twice is measured once."""
    assert modes == modes_named(text)


@pytest.mark.parametrize(
    ("name", "near"), [("cld", "'cold'"), ("zero", "'zeroed'"), ("clear", "'clean'")]
)
def test_an_unknown_mode_is_refused_with_the_nearest_and_all_known(name: str, near: str) -> None:
    """Even where a known one stands beside it."""
    with pytest.raises(BadInput) as caught:
        modes_named(f"hot,{name}")
    assert f"--cache: unknown cache mode {name!r}" == caught.value.message
    assert f"did you mean {near}? known: clean, cold, hot, zeroed" == caught.value.remedy


@pytest.mark.parametrize("text", ["", " ", ",", " , ,"])
def test_no_mode_at_all_is_refused(text: str) -> None:
    """A list of nothing measures nothing."""
    with pytest.raises(BadInput, match="--cache names no mode") as caught:
        modes_named(text)
    assert "known: cold, clean, zeroed, hot" == caught.value.remedy


@given(st.text(max_size=30))
def test_any_text_is_modes_or_a_refusal(text: str) -> None:
    """Never another error, never a mode that is none, never one twice."""
    try:
        modes = modes_named(text)
    except BadInput:
        return
    assert set(modes) <= set(CACHE_MODES)
    assert len(set(modes)) == len(modes) > 0
