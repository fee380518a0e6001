"""Trends: which cases stepped, at which run, under equal conditions only."""

from dataclasses import replace

import history_made as made
import pytest

from solkit.entry import CaseEntry, Entry
from solkit.errors import BadInput
from solkit.judge.trend import newest_steps_up, trends

SLOWER, STEADY, FASTER, MENDED = (made.case(number) for number in range(4))
COURSES: tuple[tuple[made.Case, made.Course], ...] = (
    (STEADY, made.flat),
    (SLOWER, made.stepped(30, 1.06)),
    (FASTER, made.stepped(10, 0.9)),
    (MENDED, made.stepped(15, 1.09, until=21)),
)


def test_a_step_names_its_run_its_size_and_its_sides() -> None:
    """What a person needs to look at: the commit, how much, and how many runs say so."""
    entries = made.history(*COURSES)
    steady, slower, faster, mended = trends(entries)
    assert [STEADY, SLOWER, FASTER, MENDED] == [
        each.case for each in (steady, slower, faster, mended)
    ]
    (step,) = slower.steps
    assert (entries[30], entries[29], 30) == (step.entry, step.previous, step.run)
    assert pytest.approx(0.06, abs=0.008) == step.size_fraction
    assert (30, 10, True, False) == (
        step.before_count,
        step.after_count,
        step.is_up,
        step.undone,
    )
    assert pytest.approx(1.06e-5, rel=0.008) == step.after_s
    assert () == steady.steps
    assert not faster.steps[0].is_up
    assert pytest.approx(-0.1, abs=0.01) == faster.change_fraction


def test_a_step_that_was_taken_back_stands_no_more() -> None:
    """The repair is a step down of its own, which stands."""
    mended = trends(made.history(*COURSES))[3]
    assert [(15, True, True), (21, False, False)] == [
        (step.run, step.is_up, step.undone) for step in mended.steps
    ]
    assert not mended.stands_up


@pytest.mark.parametrize(
    ("field", "value"),
    [("gpu_id", "other"), ("method", "events"), ("settle", "sustained"), ("seed", 1)],
)
def test_other_conditions_are_another_series(field: str, value: object) -> None:
    """A step between two cards, methods, settles or seeds is no step of the code."""
    entries = made.history((SLOWER, made.stepped(20, 1.5)))
    changed = [
        replace(each, **{field: value}) if run >= 20 else each  # type: ignore[arg-type]
        for run, each in enumerate(entries)
    ]
    assert [(), ()] == [each.steps for each in trends(changed)]
    assert 1 == len(trends(entries)[0].steps)


def test_a_case_timed_in_another_way_is_another_series() -> None:
    """Host time in it, or a cache state that was not proved, is no slower code."""
    entries = made.history((SLOWER, made.stepped(20, 1.5)))
    for change in ({"method": "event_unblocked"}, {"cache": "unknown"}):
        changed = [
            replace(
                each,
                cases=tuple(replace(one, **change) for one in each.cases),  # type: ignore[arg-type]
            )
            if run >= 20
            else each
            for run, each in enumerate(entries)
        ]
        assert [(), ()] == [each.steps for each in trends(changed)]


def test_the_machine_that_changed_with_a_step_is_named() -> None:
    """A new driver at the same run may be all there is to it."""
    entries = made.with_driver(made.history((SLOWER, made.stepped(30, 1.1))), 30, "601.03")
    (step,) = trends(entries)[0].steps
    assert (("driver", "600.12", "601.03"),) == step.moved
    assert () == trends(made.with_driver(entries, 31, "601.04"))[0].steps[0].moved[1:]


def without(entry: Entry, status: str = "") -> Entry:
    """Return a run in which no case has a time: it is missing, or of that status."""
    cases = tuple(CaseEntry(each.case, status) for each in entry.cases) if status else ()  # type: ignore[arg-type]
    return replace(entry, cases=cases)


@pytest.mark.parametrize("status", ["", "failed", "skipped"])
def test_runs_without_a_time_are_gaps(status: str) -> None:
    """The step is found across them, at the first run that shows it."""
    entries = made.history((SLOWER, made.stepped(20, 1.1)))
    entries[18:22] = [without(each, status) for each in entries[18:22]]
    (trend,) = trends(entries)
    assert [22] == [step.run for step in trend.steps]
    assert (18, entries[17]) == (trend.steps[0].before_count, trend.steps[0].previous)


def test_an_invalid_time_is_no_point() -> None:
    """Faster than light is no step down."""
    entries = made.history((SLOWER, made.flat))
    entries[20:] = [
        replace(
            each,
            cases=tuple(
                replace(one, status="invalid", median_s=1e-6, low_s=1e-6) for one in each.cases
            ),
        )
        for each in entries[20:]
    ]
    (trend,) = trends(entries)
    assert (20, (), "invalid") == (len(trend.points), trend.steps, trend.last.status)


def test_a_failed_run_joins_the_series_of_its_case() -> None:
    """It has no method of its own: the case is one row that failed last, not two rows."""
    entries = made.history((SLOWER, made.flat))
    entries = [
        replace(each, cases=tuple(replace(one, method="event_unblocked") for one in each.cases))
        for each in entries
    ]
    (trend,) = trends([*entries[:-1], without(entries[-1], "failed")])
    assert (39, "failed", 39) == (len(trend.points), trend.last.status, trend.last_run)
    (only,) = trends([without(entries[0], "failed")])
    assert ((), None) == (only.points, only.change_fraction)


def test_the_order_of_the_lines_does_not_matter() -> None:
    """Runs are ordered by when they began."""
    entries = made.history(*COURSES)
    assert trends(entries) == trends(entries[::-1])


def test_a_step_up_fails_only_among_the_newest_runs() -> None:
    """Three runs back counts by default; an old one, a mended one or one down never does."""
    entries = made.history(*COURSES, (made.case(9), made.stepped(37, 1.1)))
    found = trends(entries)
    assert [] == newest_steps_up(found, entries, 2)
    assert [37] == [step.run for step in newest_steps_up(found, entries, 3)]
    assert [30, 37] == [step.run for step in newest_steps_up(found, entries, 40)]


def test_the_newest_runs_are_those_of_the_card() -> None:
    """Another card's later runs don't push a step out of sight."""
    entries = made.history((SLOWER, made.stepped(38, 1.1)))
    other = [replace(each, gpu_id="other", id=f"o{each.id}") for each in made.history(*COURSES)]
    both = [*entries, *other]
    assert [38] == [step.run for step in newest_steps_up(trends(both), both, 3)]


@pytest.mark.parametrize("step_fraction", [0.0, 1.0, -0.1, float("nan"), float("inf")])
def test_a_least_step_is_a_fraction(step_fraction: float) -> None:
    """5 for 5 % is a mistake."""
    with pytest.raises(BadInput, match="is no least step"):
        trends([], step_fraction=step_fraction)


def test_no_runs_have_no_trend() -> None:
    """Nothing to see is nothing, and no error."""
    assert () == trends([])
