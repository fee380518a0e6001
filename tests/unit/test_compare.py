"""Two measurements of one case: same, faster, slower, or not sure; and the rate of false alarms."""

from dataclasses import replace
from math import comb, fsum
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from timed_cases import COMPUTE, MEMORY, around, timed

from solkit.errors import BadInput
from solkit.judge.compare import Change, compare, false_alarm_interval
from solkit.model import Measured, Work
from solkit.stats import spread

STEADY_HZ = 1.8e9
# Seven and more samples within 0.2 % of each other: noise far below the least effect.
tight = st.lists(st.floats(0.999, 1.001), min_size=7, max_size=60)
noisy = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=60)
FLIPPED = {"SAME": "SAME", "UNSURE": "UNSURE", "FASTER": "SLOWER", "SLOWER": "FASTER"}


def word(
    base: Measured, head: Measured, *, min_effect_fraction: float = 0.02, noise_fraction: float = 0
) -> str:
    return compare(
        base, head, min_effect_fraction=min_effect_fraction, noise_fraction=noise_fraction
    ).word


@given(samples=tight)
def test_equal_samples_are_the_same(samples: list[float]) -> None:
    """A/A: nothing changed, and the noise is below the least effect."""
    assert "SAME" == word(timed(samples), timed(samples))


@given(samples=noisy, clocked=st.booleans())
def test_equal_samples_are_never_a_change(samples: list[float], clocked: bool) -> None:  # noqa: FBT001  # hypothesis passes by name
    """However wild: at worst the noise hides what would matter."""
    hz = STEADY_HZ if clocked else None
    assert word(timed(samples, clocks_hz=hz), timed(samples, clocks_hz=hz)) in {"SAME", "UNSURE"}


@given(
    base=st.one_of(tight, noisy),
    head=st.one_of(tight, noisy),
    factor=st.floats(0.5, 2.0),
    clocks=st.sampled_from([(None, None), (1.8e9, 1.8e9), (1.8e9, 1.6e9), (None, 1.8e9)]),
    limiter=st.sampled_from([MEMORY, COMPUTE]),
    noise=st.sampled_from([0.0, 0.007]),
)
def test_base_and_head_exchanged_turn_the_verdict_round(
    base: list[float],
    head: list[float],
    factor: float,
    clocks: tuple[float | None, float | None],
    limiter: str,
    noise: float,
) -> None:
    """Faster one way is slower the other way; same and unsure stay."""
    one = timed(base, clocks_hz=clocks[0], limiter=limiter)
    other = timed([factor * time for time in head], clocks_hz=clocks[1], limiter=limiter)
    # at the very edge of a threshold a rounding may fall to either side
    ratio = compare(one, other).ratio_fraction
    assume(min(abs(ratio * edge - 1) for edge in (1.02, 1 / 1.02)) > 1e-9)
    assert FLIPPED[word(one, other, noise_fraction=noise)] == word(other, one, noise_fraction=noise)


@given(base=tight, head=st.one_of(tight, noisy), factor=st.sampled_from([0.25, 4.0, 1024.0]))
def test_the_verdict_does_not_depend_on_the_scale(
    base: list[float], head: list[float], factor: float
) -> None:
    """Milliseconds or seconds: far above the clock's step only ratios count."""
    scaled = [[factor * time for time in side] for side in (base, head)]
    assert word(timed(base), timed(head)) == word(timed(scaled[0]), timed(scaled[1]))


@given(base=tight, head=tight, clocked=st.booleans())
def test_a_tenth_slower_with_tight_samples_is_slower(
    base: list[float],
    head: list[float],
    clocked: bool,  # noqa: FBT001  # hypothesis passes by name
) -> None:
    """With clocks or without: at the same clock the cycles say the same."""
    hz = STEADY_HZ if clocked else None
    one = timed(base, clocks_hz=hz)
    other = timed([1.1 * time for time in head], clocks_hz=hz)
    assert ("SLOWER", "FASTER") == (word(one, other), word(other, one))


def test_groups_of_samples_at_one_clock_make_as_many_cycles_as_time() -> None:
    """Two groups 5 % apart and a clock that wanders a little: cycles follow the medians of time."""
    low, high = 1.0e-5, 1.05e-5
    hz = [1.97e9, 1.98e9] * 10
    one = compare_of([low] * 11 + [high] * 9, [low] * 9 + [high] * 11, hz)
    assert pytest.approx(one.ratio_fraction, rel=1e-9) == one.cycles_fraction


def compare_of(base: list[float], head: list[float], hz: list[float]) -> Change:
    return compare(timed(base, clocks_hz=hz), timed(head, clocks_hz=hz))


def test_clocks_that_are_read_roughly_hide_no_change() -> None:
    """5 % more time, and samples' clocks that scatter by 4 %: intervals of the cycles meet."""
    rough = [STEADY_HZ * (1 + 0.04 * (-1) ** place) for place in range(20)]
    one = timed(around(1e-5), clocks_hz=rough)
    other = timed([1.05 * time_s for time_s in around(1e-5)], clocks_hz=rough[::-1])
    assert ("SLOWER", "FASTER") == (word(one, other), word(other, one))


@given(base=tight, head=tight, limiter=st.sampled_from([MEMORY, COMPUTE]))
def test_a_clock_that_fell_is_not_slower_code(
    base: list[float], head: list[float], limiter: str
) -> None:
    """A tenth more time at a clock a tenth lower: as many cycles as before."""
    one = timed(base, clocks_hz=STEADY_HZ, limiter=limiter)
    other = timed([1.1 * time for time in head], clocks_hz=STEADY_HZ / 1.1, limiter=limiter)
    found = compare(one, other)
    assert "UNSURE" == found.word
    assert "the time moved with the SM clock" in found.reason


def test_a_memory_bound_case_keeps_its_time_whatever_the_clock() -> None:
    """DRAM has a clock of its own: fewer cycles in the same time are no change."""
    one = timed(around(1e-3), clocks_hz=1.8e9, limiter=MEMORY)
    assert "SAME" == word(one, timed(around(1e-3), clocks_hz=1.5e9, limiter=MEMORY))


def test_a_higher_clock_does_not_hide_slower_code() -> None:
    """Compute-bound, the same time at a clock a tenth higher: a tenth more cycles."""
    found = compare(timed(around(1e-3), clocks_hz=1.6e9), timed(around(1e-3), clocks_hz=1.76e9))
    assert ("UNSURE", "the same time, but 1.100 times the cycles") == (found.word, found.reason)


def test_clocks_of_one_side_alone_decide_nothing() -> None:
    """Without clocks on both sides the times are judged."""
    assert "SLOWER" == word(timed(around(1e-3), clocks_hz=1.8e9), timed(around(1.1e-3)))
    few = [1.8e9, *[None] * 19]
    assert "SLOWER" == word(
        timed(around(1e-3), clocks_hz=few), timed(around(1.1e-3), clocks_hz=few)
    )


@pytest.mark.parametrize(
    ("verdict", "factor", "effect"),
    [
        ("SAME", 1.01, 0.02),
        ("SLOWER", 1.03, 0.02),
        ("FASTER", 0.97, 0.02),
        ("SLOWER", 1.01, 0.005),
        ("SAME", 1.03, 0.05),
    ],
)
def test_the_least_effect_decides_what_matters(verdict: str, factor: float, effect: float) -> None:
    """1 % is the same at 2 %, and slower at 0.5 %."""
    base, head = timed(around(1e-3)), timed(around(factor * 1e-3))
    assert verdict == word(base, head, min_effect_fraction=effect)


def test_a_step_within_a_tenth_of_a_microsecond_is_the_same() -> None:
    """1.12 us against 1.05 us is 7 %, and two ticks of the clock."""
    base, head = around(1.05e-6, width=0.002), around(1.12e-6, width=0.002)
    assert "SAME" == word(timed(base), timed(head))
    assert "SLOWER" == word(timed(base), timed(around(1.16e-6, width=0.002)))


def test_noise_as_large_as_the_effect_is_unsure() -> None:
    """Medians 5 % apart whose intervals touch say nothing."""
    found = compare(timed(around(1e-3, width=0.2)), timed(around(1.05e-3, width=0.2)))
    assert ("UNSURE", "the noise is as large as the change that would matter") == (
        found.word,
        found.reason,
    )


def test_five_samples_are_too_few() -> None:
    """Their whole range holds the median in 93.75 % of all runs."""
    found = compare(timed([1e-3] * 5), timed([2e-3] * 20))
    assert ("UNSURE", "fewer than 6 samples") == (found.word, found.reason)


def test_a_verdict_carries_its_numbers() -> None:
    """Both spreads, the ratio with its interval, and the ratio in cycles."""
    base, head = around(1e-3), around(1.1e-3)
    found = compare(timed(base, clocks_hz=1.8e9), timed(head, clocks_hz=1.8e9))
    assert isinstance(found, Change)
    assert (spread(base), spread(head)) == (found.base, found.head)
    assert pytest.approx(1.1) == found.ratio_fraction
    assert pytest.approx(1.1) == found.cycles_fraction
    assert 1.098 < found.ratio_low_fraction < 1.1 < found.ratio_high_fraction < 1.102
    assert None is compare(timed(base), timed(head)).cycles_fraction


def test_a_step_as_large_as_the_noise_between_runs_is_no_change() -> None:
    """5 % is certain within one run, and none of the kernel's where runs differ by 3 %."""
    base, head = timed(around(1e-3)), timed(around(1.05e-3))
    assert ("SLOWER", "SLOWER") == (word(base, head), word(base, head, noise_fraction=0.007))
    found = compare(base, head, noise_fraction=0.03)
    assert ("UNSURE", "the noise is as large as the change that would matter") == (
        found.word,
        found.reason,
    )


def test_the_chance_of_a_step_is_that_of_a_normal_deviation() -> None:
    """4.88 % at a noise of 2.489 %: 1.96 standard deviations, so one in twenty."""
    base, head = timed([1e-3] * 20), timed([1.05e-3] * 20)
    found = compare(base, head, noise_fraction=0.0487902 / 1.959964)
    assert pytest.approx(0.05, rel=1e-5) == found.p_value
    assert pytest.approx((1.0, 1.1025), rel=1e-4) == (
        found.ratio_low_fraction,
        found.ratio_high_fraction,
    )
    assert (1.0, 0.0) == (compare(base, base).p_value, compare(base, head).p_value)


def test_the_place_in_memory_counts_once() -> None:
    """Within a run it widens the intervals of large cases; between runs it is in their noise."""
    base = timed([1e-3] * 20, place_fraction=0.007)
    head = timed([1.05e-3] * 20, place_fraction=0.007)
    within, between = compare(base, head), compare(base, head, noise_fraction=0.0099)
    assert pytest.approx(0.0487902 / 0.0099, rel=1e-3) == deviations(between.p_value)
    assert pytest.approx(0.0487902 / (0.007 / 1.96 * 2**0.5), rel=1e-2) == deviations(
        within.p_value
    )


def deviations(p_value: float) -> float:
    return -NormalDist().inv_cdf(p_value / 2)


def test_a_small_step_whose_noise_hides_twice_the_effect_is_unsure() -> None:
    """A median that is the same says little where 5 % up or down could hide."""
    base, head = timed(around(1e-3, width=0.1)), timed(around(1e-3, width=0.1))
    found = compare(base, head)
    assert ("UNSURE", "too noisy to tell: 0.935 to 1.069 x the time") == (found.word, found.reason)
    assert "SAME" == word(base, head, min_effect_fraction=0.05)


@given(
    base=st.one_of(tight, noisy),
    head=st.one_of(tight, noisy),
    noise=st.sampled_from([0.0, 0.007, 0.05]),
    factors=st.tuples(st.floats(1.0, 1.5), st.floats(1.0, 1.5)),
    clocked=st.booleans(),
)
def test_more_of_the_same_step_never_makes_it_the_same(
    base: list[float],
    head: list[float],
    noise: float,
    factors: tuple[float, float],
    clocked: bool,  # noqa: FBT001  # hypothesis passes by name
) -> None:
    """What is slower stays slower when every sample of head takes longer still."""
    hz = STEADY_HZ if clocked else None
    one = timed(base, clocks_hz=hz)
    less, more = (
        timed([factor * time for time in head], clocks_hz=hz) for factor in sorted(factors)
    )
    if "SLOWER" == word(one, less, noise_fraction=noise):
        assert "SLOWER" == word(one, more, noise_fraction=noise)


@pytest.mark.parametrize(
    ("expected", "base_reasons", "head_reasons"),
    [
        ("SLOWER", (), ("software power cap",)),
        ("SLOWER", ("hardware thermal",), ("hardware slowdown",)),
        ("UNSURE", (), ("hardware thermal",)),
        ("UNSURE", ("software thermal",), ()),
        ("UNSURE", ("software power cap",), ("power brake",)),
    ],
)
def test_a_card_that_was_unwell_on_one_side_alone_proves_nothing(
    expected: str, base_reasons: tuple[str, ...], head_reasons: tuple[str, ...]
) -> None:
    """A power cap is what heavy products meet daily; heat and slowdowns are not."""
    base = timed(around(1e-3), event_reasons=base_reasons)
    head = timed(around(1.1e-3), event_reasons=head_reasons)
    found = compare(base, head)
    assert expected == found.word
    assert ("alone was slowed down" in found.reason) == (expected == "UNSURE")


def test_clocks_held_stand_in_for_those_of_single_samples() -> None:
    """Thinned or older runs know only the median clock of a case."""
    base = timed(around(1e-3), held_hz=1.8e9)
    found = compare(base, timed(around(1.1e-3), held_hz=1.8e9 / 1.1))
    assert "UNSURE" == found.word
    assert pytest.approx((1.0, 1 / 1.1)) == (found.cycles_fraction, found.clock_ratio_fraction)
    assert "SLOWER" == word(base, timed(around(1.1e-3), held_hz=1.8e9))


def test_a_change_says_what_its_bytes_became() -> None:
    """Twice the bytes explain twice the time; nothing and nothing are the same."""
    base, head = timed(around(1e-3), read_bytes=99), timed(around(1e-3), read_bytes=199)
    assert 2.0 == compare(base, head).bytes_ratio_fraction
    empty = replace(base, work=Work(0, 0))
    assert 1.0 == compare(empty, empty).bytes_ratio_fraction
    assert None is compare(base, head).clock_ratio_fraction


def test_two_kernels_of_one_case_can_be_compared() -> None:
    """One kernel measured as two is how false alarms are counted."""
    assert "SAME" == word(timed(around(1e-3), kernel="a"), timed(around(1e-3), kernel="b"))


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("the method was cupti and is event_blocked", {"method": "event_blocked"}),
        ("the cache state was cold and is unknown", {"cache": "unknown"}),
        ("the case was scale rows=1 bf16 (cold) and is scale rows=2 bf16 (cold)", {"rows": 2}),
        (
            "the case was scale rows=1 bf16 (cold) and is scale rows=1 cache=hot bf16 (hot)",
            {"cache_mode": "hot", "cache": "hot"},
        ),
    ],
)
def test_what_was_measured_otherwise_is_refused(said: str, other: dict[str, object]) -> None:
    """With what differs, and both values; never a verdict on two methods."""
    with pytest.raises(BadInput, match="can't be compared") as caught:
        compare(timed(around(1e-3)), timed(around(1e-3), **other))  # type: ignore[arg-type]
    assert said in caught.value.message
    assert "measure both with the same" in caught.value.remedy


@given(seeds=st.tuples(st.integers(0, 9), st.integers(0, 9)), samples=tight)
def test_which_of_its_checks_was_the_worse_one_decides_nothing(
    seeds: tuple[int, int], samples: list[float]
) -> None:
    """The second check has a seed of its own, and of equal runs one may tell either."""
    base, head = (timed(samples, seed=seed) for seed in seeds)
    assert "SAME" == word(base, head)


@pytest.mark.parametrize("effect", [0.0, -0.1, 1.0, float("nan"), float("inf")])
def test_a_least_effect_that_is_no_fraction_is_refused(effect: float) -> None:
    """Zero would call every tick a change."""
    with pytest.raises(BadInput, match="no least effect"):
        compare(timed(around(1e-3)), timed(around(1e-3)), min_effect_fraction=effect)


def test_noise_alone_is_hardly_ever_called_a_change() -> None:
    """400 A/A pairs with normal noise of 3 %, more than the effect: at most 1 % are called one."""
    random = Random(0)  # noqa: S311  # noise, not a secret

    def noise() -> list[float]:
        return [10e-6 * random.gauss(1, 0.03) for _ in range(40)]

    words = [word(timed(noise()), timed(noise())) for _ in range(400)]
    assert 4 >= sum(each in {"FASTER", "SLOWER"} for each in words)


@pytest.mark.parametrize(
    ("expected", "changed", "pairs"),
    [
        ((0.0, 0.009180), 0, 400),
        ((0.0, 0.012221), 0, 300),
        ((0.002731, 0.025405), 4, 400),
        ((0.187086, 0.812914), 5, 10),
        ((0.691503, 1.0), 10, 10),
        ((0.0, 0.975), 0, 1),
    ],
)
def test_the_interval_of_a_rate_is_the_exact_one(
    expected: tuple[float, float], changed: int, pairs: int
) -> None:
    """The tables of Clopper and Pearson; none of 400 leaves up to 0.92 %."""
    assert pytest.approx(expected, abs=1e-6) == false_alarm_interval(changed, pairs)


@given(counts=st.tuples(st.integers(0, 60), st.integers(1, 60)))
def test_at_each_end_of_the_interval_the_count_has_a_chance_of_one_in_forty(
    counts: tuple[int, int],
) -> None:
    """That is its definition, summed here over the binomial distribution itself."""
    changed, pairs = min(counts), max(counts)
    low, high = false_alarm_interval(changed, pairs)

    def chance(hits: int, rate: float) -> float:
        return comb(pairs, hits) * rate**hits * (1 - rate) ** (pairs - hits)

    assert 0 <= low <= changed / pairs <= high <= 1
    if changed:
        more = fsum(chance(hits, low) for hits in range(changed, pairs + 1))
        assert pytest.approx(0.025, rel=1e-6) == more
    if changed < pairs:
        assert pytest.approx(0.025, rel=1e-6) == fsum(
            chance(hits, high) for hits in range(changed + 1)
        )


@pytest.mark.parametrize(("changed", "pairs"), [(-1, 10), (11, 10), (0, 0)])
def test_a_rate_that_can_not_be_is_refused(changed: int, pairs: int) -> None:
    """More changes than pairs, or none to count from."""
    with pytest.raises(BadInput, match="is no rate"):
        false_alarm_interval(changed, pairs)
