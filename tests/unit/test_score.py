"""Outcomes become scores: how near the bound, under which roof, and when a time can't be true."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from small_catalog import CARD

from solkit.bound import bound, measured_roof, spec_roof
from solkit.gpu import DeviceFacts, Gpu
from solkit.judge.regime import Regime, regime
from solkit.judge.score import (
    CEILING_ERROR_FRACTION,
    HOT_REASON,
    Judged,
    Scored,
    score,
    valid,
)
from solkit.model import (
    CacheMode,
    Case,
    Ceilings,
    Check,
    Clocks,
    DramCeiling,
    Failed,
    Measured,
    Outcome,
    PipeCeiling,
    Run,
    Skipped,
    Step,
    Work,
)

# 4 GB at 2 TB/s: 2 ms.
STREAM = Work(2 * 10**9, 2 * 10**9)
# 614.4 GFLOP at 614.4 TFLOP/s: 1 ms, at the 1.8 GHz the card can reach 0.833 ms.
PRODUCT = Work(10**6, 10**6, {"bf16_tensor": 614_400_000_000})
CEILINGS = Ceilings(
    "events",
    (DramCeiling("copy", 10**9, 10**9, 1.25e-3),),
    (PipeCeiling("bf16_tensor", 10**12, 2e-3, "product"),),
)

times = st.floats(1e-9, 1e3)


def measured(  # a case is measured in many ways
    time_s: float,
    work: Work = STREAM,
    *,
    kernel: str = "solkit",
    rows: int = 1,
    unfused: tuple[Step, ...] = (),
    clocks: Clocks = Clocks(),  # noqa: B008  # frozen, and nothing is known
    cache: str = "cold",
    cache_mode: CacheMode = "cold",
) -> Measured:
    return Measured(
        case=Case("scale", kernel, {"rows": rows}, "bf16", cache_mode=cache_mode),
        work=work,
        unfused=unfused,
        bound=bound(work, spec_roof(CARD)),
        times_s=(time_s,) * 7,
        sample_count=7,
        quantiles_s={"0.5": time_s},
        median_s=time_s,
        low_s=time_s,
        high_s=time_s,
        floor_s=2e-6,
        method="events",
        cache=cache,
        clocks=clocks,
        check=Check(0.5, 100, "whole", "1e-05 relative + 1e-05", 0),
    )


def run_of(*outcomes: Outcome, gpu: Gpu | None = CARD, ceilings: Ceilings | None = CEILINGS) -> Run:
    return Run(
        id="r",
        created="2026-01-31T00:00:00Z",
        device="cuda" if gpu else "cpu",
        facts=DeviceFacts("cuda", "Example GPU 100"),
        gpu=gpu,
        ceilings=ceilings,
        versions={},
        seed=0,
        method="events",
        cache="cold",
        outcomes=outcomes,
    )


def scored(outcome: Measured, **options: object) -> Scored:
    (found,) = judged(outcome, **options)
    assert isinstance(found, Scored)
    return found


def judged(
    *outcomes: Outcome, baseline: str | None = None, **options: object
) -> tuple[Judged, ...]:
    return score(run_of(*outcomes, **options), baseline=baseline)  # type: ignore[arg-type]


def gap_of(*, kernel_s: float, base_s: float) -> tuple[float | None, str]:
    """Return the gap score of one kernel against a baseline, on 2 ms of traffic."""
    found = judged(measured(kernel_s), measured(base_s, kernel="torch"), baseline="torch")
    assert isinstance(found[0], Scored)
    return found[0].gap_score, found[0].gap_reason


def test_score_of_a_kernel_at_its_bound_is_one() -> None:
    """2 ms of traffic in 2 ms: the speed of light."""
    found = scored(measured(2e-3))
    assert 1.0 == found.sol_score
    assert ("measured", "spec", False) == (found.status, found.roof, found.above_published)
    assert "memory" == found.bound.limiter


def test_score_is_the_bound_over_the_median() -> None:
    """Twice the bound, half the score."""
    assert 0.5 == scored(measured(4e-3)).sol_score


@given(slow_s=times, faster=st.floats(1.0, 1e6), work=st.sampled_from([STREAM, PRODUCT]))
def test_the_faster_of_two_kernels_never_scores_lower(
    slow_s: float, faster: float, work: Work
) -> None:
    """Under every roof."""
    slow, fast = (scored(measured(time_s, work)) for time_s in (slow_s, slow_s / faster))
    assert slow.raw_fraction <= fast.raw_fraction
    if fast.sol_score is not None:
        assert slow.sol_score is not None
        assert slow.sol_score <= fast.sol_score
        assert slow.sol_measured is not None
        assert fast.sol_measured is not None
        assert slow.sol_measured <= fast.sol_measured


def test_the_median_and_its_interval_come_from_the_samples() -> None:
    """Judging starts from times_s, never from a stored verdict."""
    outcome = replace(measured(9.0), times_s=(4e-3, 3e-3, 5e-3, 4e-3, 6e-3, 2e-3, 4e-3))
    found = scored(outcome)
    assert (4e-3, 2e-3, 6e-3) == (found.median_s, found.low_s, found.high_s)
    assert 0.5 == found.sol_score


def test_an_interval_knows_what_another_place_of_the_buffers_may_do() -> None:
    """Seven equal samples of buffers larger than the cache: 0.7 % to each side all the same."""
    found = scored(replace(measured(4e-3), place_fraction=0.007))
    assert pytest.approx((4e-3, 3.972e-3, 4.028e-3)) == (found.median_s, found.low_s, found.high_s)


def test_thinned_samples_leave_the_interval_of_all_of_them() -> None:
    """A file holds 100 samples of 1000: the median of all 1000 is the recorded one."""
    outcome = replace(measured(4e-3), times_s=(1e-3,), sample_count=1000, low_s=3e-3, high_s=5e-3)
    found = scored(outcome)
    assert (4e-3, 3e-3, 5e-3) == (found.median_s, found.low_s, found.high_s)


def test_clock_score_uses_the_clock_held() -> None:
    """1 ms of products at 1.5 GHz takes 2 ms at 0.75 GHz: a kernel of 2 ms is at its limit."""
    found = scored(measured(2e-3, PRODUCT, clocks=Clocks(sm_hz=0.75e9)))
    assert 0.5 == found.sol_score
    assert pytest.approx(1.0) == found.sol_clock


def test_no_clock_known_means_no_clock_score() -> None:
    """Unknown is absent, not one."""
    assert scored(measured(2e-3)).sol_clock is None


def test_measured_score_uses_the_ceilings() -> None:
    """4 GB at the 1.6 TB/s that a copy reaches here are 2.5 ms."""
    found = scored(measured(2e-3))
    assert pytest.approx(1.25) == found.sol_measured
    assert found.above_measured
    assert pytest.approx(1.0) == scored(measured(2.5e-3)).sol_measured
    assert not scored(measured(2.6e-3)).above_measured


def test_only_what_clearly_beats_the_ceiling_is_marked_as_above_it() -> None:
    """A ceiling has an error of its own, and a median an interval: its slow end must be beyond."""
    assert not scored(measured(2.5e-3 / (1 + 0.9 * CEILING_ERROR_FRACTION))).above_measured
    fast_s = 2.5e-3 / (1 + 1.1 * CEILING_ERROR_FRACTION)
    assert scored(measured(fast_s)).above_measured
    wide = replace(measured(fast_s), times_s=(fast_s,) * 6 + (3e-3,))
    assert not scored(wide).above_measured


def test_a_pipe_that_was_never_measured_gives_no_measured_score() -> None:
    """Without its peak the roof would be the memory's alone, and flatter."""
    without = replace(CEILINGS, pipes=())
    assert scored(measured(2e-3, PRODUCT), ceilings=without).sol_measured is None
    assert scored(measured(2e-3), ceilings=None).sol_measured is None


def test_above_the_published_peak_is_printed_and_marked() -> None:
    """The card can clock higher than its data sheet: 0.9 ms against 1 ms published is possible."""
    found = scored(measured(0.9e-3, PRODUCT))
    assert pytest.approx(1 / 0.9) == found.sol_score
    assert found.above_published
    assert "measured" == found.status


def test_beyond_the_highest_clock_is_invalid() -> None:
    """0.8 ms is less than 0.833 ms at 1.8 GHz: the ratio is shown, the scores are empty."""
    found = scored(measured(0.8e-3, PRODUCT, clocks=Clocks(sm_hz=1.8e9)))
    assert "invalid" == found.status
    assert "1.04 x the bf16_tensor pipe at its highest clock" in found.invalid_reason
    assert pytest.approx(1.25) == found.raw_fraction
    assert (None, None, None) == (found.sol_score, found.sol_clock, found.sol_measured)
    assert (False, False) == (found.above_published, found.above_measured)


def test_faster_than_the_pins_is_invalid_when_cold() -> None:
    """2 GB read and 2 GB written, less 32 MiB that may stay in L2, need 1.983 ms."""
    assert "invalid" == scored(measured(1.98e-3)).status
    assert "1.04 x the pin rate" in scored(measured(1.9e-3)).invalid_reason
    assert "measured" == scored(measured(1.99e-3)).status
    assert "measured" == scored(measured(1.0e-3, cache="warm")).status


@pytest.mark.parametrize("cache", ["cold", "clean", "zeroed"])
def test_every_state_in_which_reads_come_from_dram_has_the_pin_rate_as_its_limit(
    cache: str,
) -> None:
    """However the L2 was emptied; where it wasn't, or nobody knows, a fast time is possible."""
    assert "invalid" == scored(measured(1.9e-3, cache=cache)).status
    assert ["measured", "measured"] == [
        scored(measured(1.9e-3, cache=other)).status for other in ("hot", "unknown")
    ]


def test_a_hot_case_has_no_score_against_dram() -> None:
    """Its data may come from the L2: under every roof, with the ratio seen kept beside."""
    found = scored(measured(1.0e-3, cache="hot", cache_mode="hot", clocks=Clocks(sm_hz=1.8e9)))
    assert (None, None, None) == (found.sol_score, found.sol_clock, found.sol_measured)
    assert HOT_REASON == found.no_score_reason
    assert pytest.approx(2.0) == found.raw_fraction
    assert (False, False) == (found.above_published, found.above_measured)
    assert "measured" == found.status


def test_a_hot_case_bound_by_a_pipe_keeps_its_score() -> None:
    """The L2 feeds no tensor core faster than it can go."""
    found = scored(measured(2e-3, PRODUCT, cache="hot", cache_mode="hot"))
    assert (pytest.approx(0.5), "") == (found.sol_score, found.no_score_reason)


def test_a_case_that_should_be_hot_has_no_score_when_that_is_not_proved() -> None:
    """Unknown on top of hot: still nothing says that its data came from DRAM."""
    found = scored(measured(4e-3, cache="unknown", cache_mode="hot"))
    assert (None, HOT_REASON) == (found.sol_score, found.no_score_reason)


def test_hot_cases_count_in_no_median() -> None:
    """They answer another question than the cold ones of their run."""
    cold, hot = measured(4e-3), measured(4e-3, PRODUCT, cache="hot", cache_mode="hot")
    found = judged(cold, hot)
    assert [found[0]] == valid(found)


@pytest.mark.parametrize(
    ("note", "cache"),
    [
        ("", "cold"),
        ("the cache state isn't proved: data may come from the L2", "unknown"),
        ("writes up to the size of the L2 may stay there when the time ends", "clean"),
        ("overcharged: the flush's own writes leave the L2 inside the time", "zeroed"),
    ],
)
def test_a_score_says_what_its_cache_state_means(note: str, cache: str) -> None:
    """Scored all the same; only the proved default needs no word."""
    found = scored(measured(4e-3, cache=cache))
    assert (pytest.approx(0.5), note) == (found.sol_score, found.cache_note)


def test_a_gap_score_needs_a_baseline_in_the_same_cache_mode() -> None:
    """A hot baseline is no measure of a cold kernel, and a hot kernel has no gap to DRAM."""
    hot = {"cache": "hot", "cache_mode": "hot"}
    found = judged(
        measured(4e-3),
        measured(3e-3, kernel="torch", **hot),  # type: ignore[arg-type]
        measured(4e-3, **hot),  # type: ignore[arg-type]
        baseline="torch",
    )
    reasons = [item.gap_reason for item in found if isinstance(item, Scored)]
    assert "the baseline 'torch' was not measured here" == reasons[0]
    assert HOT_REASON == reasons[2]


def test_writes_that_fit_into_l2_are_not_certain_to_move() -> None:
    """8 MiB written may still be in L2 when the clock stops."""
    assert "measured" == scored(measured(1e-6, Work(0, 8 * 2**20))).status


def test_a_device_without_a_spec_file_is_scored_under_its_measured_roof() -> None:
    """The CPU has no data sheet and no hard limit: above its ceiling is a mark, never invalid."""
    found = scored(measured(1.25e-3), gpu=None)
    assert ("measured", "measured") == (found.status, found.roof)
    assert pytest.approx(2.0) == found.sol_score
    assert found.sol_score == found.sol_measured
    assert (False, True) == (found.above_published, found.above_measured)


def test_without_any_roof_the_recorded_bound_serves() -> None:
    """A run without card and ceilings still holds the bound it was planned with."""
    found = scored(measured(4e-3, unfused=(Step("copy", STREAM),)), gpu=None, ceilings=None)
    assert 0.5 == found.sol_score
    assert found.fusion_gain is None


def test_a_rescore_takes_the_card_given() -> None:
    """A corrected spec file changes the score of an old run."""
    run = run_of(measured(4e-3))
    (found,) = score(run, gpu=replace(CARD, dram_published_bytes_per_s=1.0e12))
    assert isinstance(found, Scored)
    assert 1.0 == found.sol_score


def test_fusion_gain_is_the_unfused_bound_over_the_fused() -> None:
    """Three passes over 4 GB instead of one."""
    steps = tuple(Step(name, STREAM) for name in ("add", "norm", "scale"))
    found = scored(measured(4e-3, unfused=steps))
    assert pytest.approx(6e-3) == found.unfused_sol_s
    assert pytest.approx(3.0) == found.fusion_gain
    assert scored(measured(4e-3)).fusion_gain is None


def test_failures_and_skips_pass_through_in_their_place() -> None:
    """A judge has nothing to say of what was not measured; only valid scores count."""
    case = Case("scale", "x", {"rows": 1}, "bf16")
    failed, skipped = Failed(case, "check", "wrong"), Skipped(case, "no such pipe")
    found = judged(failed, measured(4e-3), skipped, measured(0.1e-3))
    assert (failed, skipped) == (found[0], found[2])
    assert [found[1]] == valid(found)


@given(slower=st.floats(1.0, 1e6), base=st.floats(1.0, 1e6))
def test_gap_score_lies_in_zero_to_one(slower: float, base: float) -> None:
    """For any kernel that is not faster than light, against any baseline that is slower."""
    assume(base > 1.0)
    gap, reason = gap_of(kernel_s=2e-3 * slower, base_s=2e-3 * base)
    assert gap is not None
    assert 0 < gap <= 1
    assert "" == reason


def test_gap_score_is_a_half_for_the_baseline_itself() -> None:
    """S = 1 / (1 + 1): as good as the baseline; three quarters of its gap closed give 0.8."""
    assert (0.5, "") == gap_of(kernel_s=4e-3, base_s=4e-3)
    assert (pytest.approx(0.8), "") == gap_of(kernel_s=2.5e-3, base_s=4e-3)
    assert (1.0, "") == gap_of(kernel_s=2e-3, base_s=4e-3)


@pytest.mark.parametrize(
    ("reason", "kernel_s", "base_s"),
    [
        ("the kernel is above the speed of light", 1e-3, 4e-3),
        ("the kernel is above the speed of light", 1e-15, 4e-3),
        ("the baseline is at or above the speed of light", 3e-3, 2e-3),
        ("the baseline is at or above the speed of light", 3e-3, 1e-3),
    ],
)
def test_a_gap_score_that_would_leave_its_range_is_none(
    reason: str, kernel_s: float, base_s: float
) -> None:
    """At T_sol = 1, T_b = 2 and T_k = 0.5 the formula gives 2; at T_k = 0 it divides by zero."""
    assert (None, reason) == gap_of(kernel_s=kernel_s, base_s=base_s)


def test_a_gap_score_needs_a_baseline_of_the_same_case() -> None:
    """Another shape's baseline says nothing."""
    found = judged(measured(4e-3), measured(5e-3, kernel="torch", rows=2), baseline="torch")
    assert isinstance(found[0], Scored)
    assert "the baseline 'torch' was not measured here" == found[0].gap_reason
    assert "no baseline kernel was named" == scored(measured(4e-3)).gap_reason


@pytest.mark.parametrize(
    ("word", "median_s"), [("latency", 5.9e-6), ("throughput", 6.1e-6), ("throughput", 1.0)]
)
def test_regime_is_latency_below_three_floors(word: str, median_s: float) -> None:
    """An empty kernel of 2 us is over a third of anything shorter than 6 us."""
    assert word == scored(measured(median_s, cache="warm")).regime.word


def test_regime_says_how_many_floors() -> None:
    """The number stands beside the word; without a floor nothing is latency."""
    assert Regime("throughput", 4.0) == regime(median_s=8e-6, floor_s=2e-6)
    assert Regime("throughput", float("inf")) == regime(median_s=8e-6, floor_s=0.0)


def test_the_measured_roof_of_these_tests_is_what_they_say() -> None:
    """1.6 TB/s of copying and 500 TFLOP/s of bf16."""
    roof = measured_roof(CEILINGS)
    assert pytest.approx(1.6e12) == roof.dram_bytes_per_s
    assert pytest.approx(500e12) == roof.pipes_flop_per_s["bf16_tensor"]
