"""Levels of a series: no step in noise, a step at its run, drift that no pair shows."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.judge.steps import segments

logs = st.lists(st.floats(-20, 5), max_size=40)


def noisy(levels: Sequence[float], noise: float, seed: int) -> list[float]:
    source = random.Random(seed)  # noqa: S311  # noise of a test, no secret
    return [each + source.gauss(0, noise) for each in levels]


@pytest.mark.parametrize("noise", [0.007, 0.03])
def test_noise_alone_has_no_step(noise: float) -> None:
    """Of 200 cases over 50 runs at least 99 % show none, for a steady and for a restless case."""
    quiet = sum(segments(noisy([0.0] * 50, noise, seed)) == [0] for seed in range(200))
    assert quiet >= 198


@pytest.mark.parametrize("sign", [1, -1])
def test_a_step_of_5_percent_is_found_at_its_run(sign: int) -> None:
    """In a noise of 0.7 % at least 95 % are found, alone and within one run of their place."""
    hits = 0
    for seed in range(200):
        at = 5 + seed % 41
        series = noisy([sign * math.log(1.05) * (run >= at) for run in range(50)], 0.007, seed)
        found = segments(series)[1:]
        hits += len(found) == 1 and abs(found[0] - at) <= 1
    assert hits >= 190


def test_a_step_in_the_newest_two_runs_is_found() -> None:
    """Two runs show 6.5 %: at least 90 % of such steps are seen on the second day."""
    hits = sum(
        segments(noisy([math.log(1.065) * (run >= 38) for run in range(40)], 0.007, seed))
        == [0, 38]
        for seed in range(100)
    )
    assert hits >= 90


def test_drift_that_no_pair_shows_adds_up_to_steps() -> None:
    """0.3 % a run is within the noise of each pair; over 40 runs it is 12 %, and it is seen."""
    for seed in range(20):
        assert len(segments(noisy([0.003 * run for run in range(40)], 0.007, seed))) > 1


def test_a_step_and_its_repair_do_not_hide_each_other() -> None:
    """Slower for six runs in the middle of forty: both ends are found."""
    levels = [math.log(1.09) * (15 <= run < 21) for run in range(40)]
    assert all([0, 15, 21] == segments(noisy(levels, 0.007, seed)) for seed in range(20))


def test_one_run_that_went_wrong_is_no_step() -> None:
    """A neighbour on the card made a run 40 % slower once: no level holds that."""
    assert [0] == segments([0.4 * (run == 20) for run in range(40)])
    assert [0] == segments([0.4 * (run == 39) for run in range(40)])


@pytest.mark.parametrize(
    ("before", "after", "size", "found"),
    [
        (2, 2, 0.06, [0, 2]),
        (2, 2, 0.04, [0]),
        (1, 9, 0.5, [0]),
        (9, 1, 0.5, [0]),
        (5, 5, 0.025, [0, 5]),
        (4, 6, 0.025, [0]),
        (5, 5, 0.015, [0]),
    ],
)
def test_a_step_needs_a_size_for_the_runs_that_show_it(
    before: int, after: int, size: float, found: list[int]
) -> None:
    """5 % with two runs on each side, 2 % with five, nothing with one."""
    assert found == segments([0.0] * before + [math.log1p(size)] * after)


def test_the_least_step_is_the_callers() -> None:
    """Asked for 10 %, a step of 7 % in three runs is none; five runs still show it."""
    assert [0] == segments([0.0] * 9 + [math.log(1.07)] * 3, step_fraction=0.1)
    assert [0, 9] == segments([0.0] * 9 + [math.log(1.07)] * 5, step_fraction=0.1)


def test_a_step_within_the_runs_own_intervals_is_none() -> None:
    """Runs that are sure of their times to 20 % only can't show 6 %, however alike they look."""
    series = [0.0] * 3 + [math.log(1.06)] * 3
    assert [0, 3] == segments(series, [0.002] * 6)
    assert [0] == segments(series, [0.2] * 6)


@given(logs)
def test_levels_are_whole_and_in_order(series: list[float]) -> None:
    """They begin at 0, and each but a lone one holds two runs at least."""
    found = segments(series)
    ends = [*found[1:], len(series)]
    assert 0 == found[0]
    assert all(end - start >= 2 for start, end in zip(found, ends, strict=True) if len(found) > 1)


@given(logs, st.floats(-5, 5))
def test_a_unit_changes_no_step(series: list[float], shift: float) -> None:
    """Seconds or hours: a factor on all times moves no step (on a grid that floats hold)."""
    grid = [round(each * 64) / 64 for each in series]
    assert segments(grid) == segments([each + round(shift * 64) / 64 for each in grid])
