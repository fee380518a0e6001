"""Several runs of one side become one: what is pooled, and what is said of runs that disagree."""

from dataclasses import replace

import pytest
from timed_cases import around, run_of, timed

from solkit.errors import BadInput
from solkit.judge.score import Scored
from solkit.judge.sides import side
from solkit.model import Clocks, Failed, Measured, Skipped
from solkit.stats import spread

CASE = timed(around(1e-3)).case
WRONG = Failed(CASE, "check", "3 values differ")
DIED = Failed(CASE, "worker", "the worker died")


def pooled(*outcomes: Measured) -> Measured:
    runs = [run_of(outcome, name=str(place)) for place, outcome in enumerate(outcomes)]
    (found,) = side("HEAD", runs).run.outcomes
    assert isinstance(found, Measured)
    return found


def test_samples_of_all_runs_are_pooled() -> None:
    """Twenty and thirty samples: the median and interval of fifty."""
    one, other = around(1e-3), around(1.01e-3, count=30)
    found = pooled(timed(one), timed(other))
    seen = spread([*one, *other])
    assert (50, seen.median_s, seen.low_s, seen.high_s) == (
        found.sample_count,
        found.median_s,
        found.low_s,
        found.high_s,
    )


def test_the_interval_of_large_buffers_stays_wide() -> None:
    """More samples of other places narrow the samples' interval, never below the place's."""
    found = pooled(*(timed(around(1e-3), place_fraction=0.007),) * 1, timed(around(1e-3, count=30)))
    assert pytest.approx((0.993e-3, 1.007e-3)) == (found.low_s, found.high_s)


def test_clocks_stay_beside_their_samples() -> None:
    """A run without clocks leaves its places unknown, and all reasons are kept."""
    with_clocks = timed(around(1e-3), clocks_hz=1.8e9, held_hz=1.8e9, event_reasons=("a", "b"))
    without = timed(around(1e-3, count=30), event_reasons=("b", "c"))
    found = pooled(with_clocks, without)
    assert (*(1.8e9,) * 20, *(None,) * 30) == found.sample_hz
    assert Clocks(sm_hz=1.8e9, event_reasons=("a", "b", "c")) == found.clocks
    assert () == pooled(without, timed(around(1e-3))).sample_hz


def test_one_failed_check_in_several_runs_is_a_failed_check() -> None:
    """A kernel that is right most of the time is wrong."""
    found = side("HEAD", [run_of(timed(around(1e-3))), run_of(WRONG, name="b")])
    assert WRONG == found.judged[CASE.key]
    assert {CASE.key: "failed in 1 of 2 runs"} == found.remarks


def test_another_failure_leaves_the_runs_that_measured() -> None:
    """A worker that died once is said, and the other run counts."""
    found = side("HEAD", [run_of(DIED), run_of(timed(around(1e-3)), name="b")])
    assert isinstance(found.judged[CASE.key], Scored)
    assert {CASE.key: "measured in 1 of 2 runs"} == found.remarks
    assert (1e-3,) == pytest.approx(found.repeats[CASE.key].medians_s)


def test_a_failure_stands_for_a_case_before_a_skip() -> None:
    """Where no run has a time, the worst of what was said."""
    found = side("HEAD", [run_of(Skipped(CASE, "no bf16")), run_of(DIED, name="b")])
    assert DIED == found.judged[CASE.key]


def test_a_run_with_another_cache_state_is_left_out_of_its_case() -> None:
    """Samples of two cache states are two cases."""
    runs = [run_of(timed(around(1e-3))), run_of(timed(around(2e-3), cache="unknown"), name="b")]
    found = side("HEAD", runs)
    assert {CASE.key: "1 of 2 runs left out: the cache state was unknown, not cold"} == (
        found.remarks
    )
    assert 20 == len(found.run.outcomes[0].times_s)  # type: ignore[union-attr]


def test_a_run_given_twice_counts_once() -> None:
    """Its noise would look as if two runs had agreed to the last digit."""
    run = run_of(timed(around(1e-3)))
    found = side("BASE", [run, run_of(timed(around(1e-3)))])
    assert 1 == len(found.runs)
    assert ("BASE names a run twice: it counts once",) == found.notes


@pytest.mark.parametrize(
    ("said", "ended", "cut"),
    [
        ((), "complete", False),
        (
            ("BASE has no end record: it was cut, and is judged as far as it goes",),
            None,
            True,
        ),
        (("BASE was interrupted, and is judged as far as it goes",), "interrupted", True),
    ],
)
def test_a_run_that_did_not_end_is_named(
    said: tuple[str, ...],
    ended: str | None,
    cut: bool,  # noqa: FBT001  # pytest passes by name
) -> None:
    """Cases may be absent from it for no other reason."""
    found = side("BASE", [replace(run_of(timed(around(1e-3))), ended=ended)])
    assert (said, cut) == (found.notes, found.cut)


def test_which_of_several_runs_was_cut_is_said() -> None:
    """By its place among those given."""
    runs = [run_of(), replace(run_of(name="b"), ended=None)]
    (said,) = side("HEAD", runs).notes
    assert said.startswith("run 2 of HEAD has no end record")


def test_a_side_needs_a_run() -> None:
    """Nothing against something is no comparison."""
    with pytest.raises(BadInput, match="BASE has no run"):
        side("BASE", [])
