"""What a run ends with: the costliest cases, the counts, and the verdict that is the exit code."""

from dataclasses import replace

import charted_runs as runs
import pytest

from solkit.cli.summary import check_floor, counts, summary, verdict
from solkit.errors import BadInput, CasesFailed, GateSaysNo
from solkit.judge.gate import score_of
from solkit.judge.score import Judged, Scored, score
from solkit.model import Case, Failed, Outcome, Skipped

CASE = Case("copy", "solkit", {"elements": 2**28}, "bf16")
OTHER = Case("copy", "solkit", {"elements": 2**20}, "bf16")


def judged(*outcomes: Outcome) -> tuple[Judged, ...]:
    return score(runs.a_run(outcomes, gpu=runs.card()))


def one(efficiency_fraction: float) -> Scored:
    (item,) = judged(runs.measured(CASE, efficiency_fraction, gpu=runs.card()))
    assert isinstance(item, Scored)
    return item


def test_a_case_is_below_the_floor_only_with_the_upper_end_of_its_interval() -> None:
    """A floor within the noise of a case is no verdict: 1 % above the median passes, 3 % fails."""
    item = one(0.8)
    assert item.sol_score is not None
    assert 1.01 < item.median_s / item.low_s < 1.02
    assert verdict([item], roof="spec", fail_under=item.sol_score * 1.01) is None
    below = verdict([item], roof="spec", fail_under=item.sol_score * 1.03)
    assert isinstance(below, GateSaysNo)
    assert f"1 of 1 cases are below {item.sol_score * 103:.1f} %" in below.message


def test_below_the_floor_wins_over_failed_cases() -> None:
    """Exit 1 comes before exit 3."""
    found = [one(0.5), Failed(OTHER, "launch", "it died")]
    assert isinstance(verdict(found, roof="spec", fail_under=0.9), GateSaysNo)
    assert isinstance(verdict(found, roof="spec", fail_under=0.1), CasesFailed)
    assert isinstance(verdict(found, roof="spec", fail_under=None), CasesFailed)


def test_skipped_cases_are_no_failure_beside_a_measured_one() -> None:
    """A sweep names what only some devices can do."""
    assert (
        verdict([one(0.8), *judged(Skipped(OTHER, "no such pipe"))], roof="spec", fail_under=None)
        is None
    )


def test_a_run_that_measured_nothing_is_no_success() -> None:
    """Nothing passes by accident: not a run of skipped cases, and no floor over them."""
    found = judged(Skipped(OTHER, "no such pipe"))
    ended = verdict(found, roof="spec", fail_under=None)
    assert isinstance(ended, CasesFailed)
    assert "nothing was measured: the case was skipped" == ended.message
    assert isinstance(verdict(found, roof="spec", fail_under=0.5), GateSaysNo)


def test_an_invalid_case_ends_as_a_failed_one_does() -> None:
    """Faster than light is no success: exit 3."""
    ended = verdict([one(3.0)], roof="spec", fail_under=None)
    assert isinstance(ended, CasesFailed)
    assert "of 1 cases 1 invalid" == ended.message


def test_each_roof_has_its_own_score() -> None:
    """The floor is judged under the roof that is named."""
    item = one(0.8)
    assert (item.sol_score, item.sol_clock, item.sol_measured) == tuple(
        score_of(item, roof) for roof in ("spec", "clock", "measured")
    )


def test_the_case_that_costs_most_comes_first() -> None:
    """A short case far from light costs less than a long one near it."""
    run = runs.a_run(
        (runs.measured(OTHER, 0.2, gpu=runs.card()), runs.measured(CASE, 0.8, gpu=runs.card())),
        gpu=runs.card(),
    )
    told = summary(run, score(run), "spec")
    assert 0 < told.index("268435456") < told.index("1048576")
    assert "2 measured on NVIDIA H200" in counts(run, score(run))


def test_rows_of_an_operator_with_rivals_name_their_kernel() -> None:
    """With one kernel its name says nothing; with two, no row can do without."""
    mine = replace(CASE, kernel="mine")
    cases = (CASE, mine)
    for shown, ours in ((cases, f"{CASE.operator}/{CASE.kernel} "), ((CASE,), f"{CASE.operator} ")):
        outcomes = tuple(runs.measured(case, 0.5, gpu=runs.card()) for case in shown)
        run = runs.a_run(outcomes, gpu=runs.card())
        assert f"\n{ours}" in summary(run, score(run), "spec")


@pytest.mark.parametrize("floor", [-0.1, 0.0, 1.1, float("nan")])
def test_a_floor_is_a_fraction(floor: float) -> None:
    """80 for 80 % is a mistake, and so is a floor that nothing can miss."""
    with pytest.raises(BadInput, match="is no fraction"):
        check_floor(floor)


def test_a_compilers_log_keeps_its_lines() -> None:
    """The line, the code and the caret stand under each other, as the compiler wrote them."""
    log = (
        "mine.cu does not compile:\nmine.cu(3): error: 'j' is undefined\n"
        "    y[i] = x[j];\n             ^"
    )
    found = judged(Failed(CASE, "compile", log + "\n" * 3 + "more\n" * 20, "mend it"))
    told = summary(runs.a_run((), gpu=runs.card()), found, "spec")
    assert "\n  mine.cu(3): error: 'j' is undefined\n      y[i] = x[j];\n               ^\n" in told
    assert "more lines: see the report" in told


def test_what_makes_times_doubtful_is_said_at_the_end_of_the_run() -> None:
    """On the row in a word, and below with the count of cases."""
    found = runs.measured(CASE, 0.8, gpu=runs.card())
    run = runs.a_run(
        (replace(found, other_process_count=1, throttled_count=3, cache="unknown"),),
        gpu=runs.card(),
    )
    told = summary(run, score(run), "spec")
    assert "memory, cache unknown, not alone, throttled" in told
    assert "\nmind: 1 case shared the device with other processes" in told
    assert "\nmind: 1 case with samples at a lowered clock" in told
    assert "mind:" not in summary(runs.a_run((found,), gpu=runs.card()), [one(0.8)], "spec")


def test_hot_cases_are_counted_apart_and_are_no_failure() -> None:
    """They were measured, and have no score to be below a floor."""
    hot = replace(CASE, cache_mode="hot")
    found = judged(replace(runs.measured(hot, 3.0, gpu=runs.card()), cache="hot"))
    assert "1 hot on NVIDIA H200" in counts(runs.a_run((), gpu=runs.card()), found)
    assert verdict(found, roof="spec", fail_under=None) is None
    assert isinstance(verdict(found, roof="spec", fail_under=0.5), GateSaysNo)


def test_a_cache_mode_other_than_cold_stands_with_the_shape() -> None:
    """The same shape in two modes is two rows."""
    case = replace(CASE, cache_mode="zeroed")
    run = runs.a_run((runs.measured(case, 0.5, gpu=runs.card()),), gpu=runs.card())
    assert "268435456 zeroed" in summary(run, score(run), "spec")


def test_a_failure_is_named_by_its_verdict() -> None:
    """Beside the stage, in words."""
    failed = Failed(CASE, "check", "3 differ", verdict="non_finite")
    told = summary(runs.a_run((), gpu=runs.card()), judged(failed), "spec")
    assert f"failed at check (NaN or infinite values): {CASE}" in told
