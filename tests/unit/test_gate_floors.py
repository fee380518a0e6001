"""Floors: who is below, and which floor could not be held; nothing passes by accident."""

from dataclasses import replace

import charted_runs as runs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.cli.summary import verdict
from solkit.errors import CasesFailed, GateSaysNo
from solkit.judge.gate import Floors, Unheld, held_count, score_of, shortfalls, unheld
from solkit.judge.score import Judged, Scored, score
from solkit.model import Case, Failed, Outcome, Skipped

COPY = Case("copy", "solkit", {"elements": 2**28}, "bf16")
SOFTMAX = Case("softmax", "solkit", {"rows": 2**15, "cols": 4096}, "bf16")


def judged(*outcomes: Outcome) -> tuple[Judged, ...]:
    return score(runs.a_run(outcomes, gpu=runs.card()))


def at(case: Case, efficiency_fraction: float) -> Scored:
    (item,) = judged(runs.measured(case, efficiency_fraction, gpu=runs.card()))
    assert isinstance(item, Scored)
    return item


def test_an_operators_own_floor_takes_the_place_of_the_default() -> None:
    """A softmax that can't do better passes its own floor; a copy of the same score does not."""
    both = [at(COPY, 0.75), at(SOFTMAX, 0.75)]
    low = shortfalls(both, Floors(0.8, {"softmax": 0.7}), "spec")
    assert [(COPY, 0.8)] == [(each.item.outcome.case, each.floor_fraction) for each in low]
    assert 2 == held_count(both, Floors(0.8), "spec")


def test_the_case_farthest_below_its_floor_comes_first() -> None:
    """70 % of a floor of 99 % is worse than 60 % of one of 62 %."""
    both = [at(SOFTMAX, 0.55), at(COPY, 0.6)]
    low = shortfalls(both, Floors(0.99, {"softmax": 0.6}), "spec")
    assert [COPY, SOFTMAX] == [each.item.outcome.case for each in low]


@given(efficiency=st.floats(0.3, 0.95), floor=st.floats(0.05, 1))
def test_below_means_the_upper_end_of_the_interval(efficiency: float, floor: float) -> None:
    """Whatever the numbers: a case fails if and only if even sol_s over low_s misses the floor."""
    item = at(COPY, efficiency)
    upper = item.bound.sol_s / item.low_s
    if abs(upper - floor) > 1e-12:
        assert bool(shortfalls([item], Floors(floor), "spec")) == (upper < floor)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ((), "the run has no case of it"),
        ((Skipped(SOFTMAX, "no pipe"), Skipped(SOFTMAX, "no")), "no case was measured cold (2 sk"),
        ((Failed(SOFTMAX, "check", "wrong"),), "no case was measured cold (1 failed)"),
    ],
)
def test_an_operator_with_a_floor_and_no_measured_case_fails(
    found: tuple[Outcome, ...], why: str
) -> None:
    """A floor that nothing was held against is no pass, however good the others are."""
    all_of_them = [at(COPY, 0.9), *judged(*found)]
    (missed,) = unheld(all_of_them, Floors(None, {"softmax": 0.7}), "spec")
    assert missed.operator == "softmax"
    assert missed.reason.startswith(why)
    ended = verdict(all_of_them, roof="spec", floors=Floors(None, {"softmax": 0.7}))
    assert isinstance(ended, GateSaysNo)
    assert "the floor of softmax of 70.0 % could not be held: " + why in ended.message


def test_a_measured_case_without_a_score_under_the_roof_fails_the_floor() -> None:
    """One of two cases has no clocks: its floor at the held clock is not held, and that is said."""
    blind = replace(at(SOFTMAX, 0.9), sol_clock=None)
    both = [at(COPY, 0.9), blind]
    assert (Unheld("", 0.1, "no score under the clock roof", (blind,)),) == unheld(
        both, Floors(0.1), "clock"
    )
    ended = verdict(both, roof="clock", fail_under=0.1)
    assert isinstance(ended, GateSaysNo)
    assert "1 case has no score under the clock roof (softmax/solkit" in ended.message
    assert verdict(both, roof="spec", fail_under=0.1) is None


def test_fail_under_overrides_the_default_and_leaves_operators_their_own() -> None:
    """The command line wins over the file's default, not over what is said of one operator."""
    both = [at(COPY, 0.75), at(SOFTMAX, 0.75)]
    floors = Floors(0.99, {"softmax": 0.99})
    ended = verdict(both, roof="spec", fail_under=0.1, floors=floors)
    assert isinstance(ended, GateSaysNo)
    assert "1 of 2 cases are below 99.0 %; the lowest is softmax" in ended.message
    assert verdict(both, roof="spec", fail_under=0.1, floors=Floors(0.99)) is None


def test_several_floors_say_which_one_was_missed() -> None:
    """Where floors differ, the sentence names the one of the lowest case."""
    both = [at(COPY, 0.5), at(SOFTMAX, 0.5)]
    ended = verdict(both, roof="spec", floors=Floors(0.9, {"softmax": 0.8}))
    assert ended is not None
    assert "2 of 2 cases are below their floors; the lowest is copy" in ended.message
    assert ended.message.endswith("%, 90.0 % wanted")


def test_without_floors_there_is_no_gate() -> None:
    """Failed cases alone end a run as ever."""
    assert not Floors()
    assert not Floors(roof="clock")
    found = [at(COPY, 0.1), Failed(SOFTMAX, "check", "wrong")]
    assert isinstance(verdict(found, roof="spec", floors=Floors()), CasesFailed)


def test_hot_cases_are_held_against_no_floor() -> None:
    """What came from the L2 has no DRAM bound: beside a cold case it neither passes nor fails."""
    hot = judged(
        replace(
            runs.measured(COPY, 0.1, gpu=runs.card()),
            case=replace(COPY, cache_mode="hot"),
            cache="hot",
        )
    )
    assert verdict([at(COPY, 0.9), *hot], roof="spec", fail_under=0.5) is None
    (missed,) = unheld(hot, Floors(0.5), "spec")
    assert "no case was measured cold (1 hot)" == missed.reason


def test_each_roof_has_its_own_floor() -> None:
    """A score is looked up under the roof that is named."""
    item = at(COPY, 0.8)
    assert (item.sol_score, item.sol_clock) == (score_of(item, "spec"), score_of(item, "clock"))
