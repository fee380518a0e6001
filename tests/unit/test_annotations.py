"""Annotations beside a CI job: GitHub's commands, escaped, the worst first, ten at most."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import measured, synthetic_run

from solkit.judge.score import score
from solkit.model import Case, Failed, Work
from solkit.report.annotations import ANNOTATIONS_MOST, Annotation, commands, render

CASE = Case("copy", "solkit", {"elements": 8}, "bf16")
GOOD = measured(CASE, Work(10**9, 10**9), time_s=2e-3)


def failed(count: int) -> list[Failed]:
    return [
        Failed(replace(CASE, shape={"elements": n + 1}), "check", f"cause {n}")
        for n in range(count)
    ]


def test_a_clean_run_says_nothing() -> None:
    """No line, not even an empty one."""
    run = synthetic_run([GOOD])
    run = replace(run, facts=replace(run.facts, power_limit_w=500.0))
    assert "" == render(run, score(run))


def test_errors_come_before_warnings_and_the_worst_first() -> None:
    """Failed, then INVALID, then below the floor by score, then what doubts the measurement."""
    run = synthetic_run()
    slow, slower = run.outcomes[4].case, run.outcomes[2].case
    text = render(run, score(run), below={slow.key: "low", slower.key: "lower"})
    lines = text.splitlines()
    assert [
        "::error title=solkit%3A failed at compile",
        "::error title=solkit%3A failed at check%3A wrong values",
        "::error title=solkit%3A INVALID",
        "::error title=solkit%3A fails the gate",
        "::error title=solkit%3A fails the gate",
    ] == [line.rpartition("::")[0] for line in lines[:5]]
    assert "copy/solkit elements=4194304 bf16: lower" in lines[3]
    assert "copy/solkit elements=67108864 bf16: low" in lines[4]
    assert all(line.startswith("::warning ") for line in lines[5:])


def test_a_failure_is_told_whole_with_its_remedy() -> None:
    """Line breaks are escaped, so that the command stays one line."""
    outcome = Failed(CASE, "compile", "x.cu(1): error\n  50 % done", "Fix it.")
    run = synthetic_run([outcome, GOOD])
    assert (
        "::error title=solkit%3A failed at compile::copy/solkit elements=8 bf16: "
        "x.cu(1): error%0A  50 %25 done%0ARemedy: Fix it."
    ) == render(run, score(run)).splitlines()[0]


def test_cases_that_fail_alike_are_one_error() -> None:
    """A kernel that does not compile says so once."""
    cases = [replace(CASE, shape={"elements": n}) for n in (1, 2, 3)]
    run = synthetic_run([Failed(case, "compile", "no") for case in cases])
    assert "::error title=solkit%3A failed at compile (3 cases)::" in render(run, score(run))


def test_a_run_that_was_cut_is_the_first_error() -> None:
    """And not told a second time among the warnings."""
    run = replace(synthetic_run(failed(1)), ended=None)
    text = render(run, score(run))
    assert text.startswith("::error title=solkit%3A run cut short::The run was cut short: 1 case")
    assert 1 == text.count("was cut short")


@pytest.mark.parametrize(("count", "lines"), [(9, 9), (10, 10), (11, 10), (400, 10)])
def test_there_are_ten_lines_at_most(count: int, lines: int) -> None:
    """What comes after them would vanish without a word."""
    every = [Annotation("error", f"t{n}", "m") for n in range(count)]
    assert lines == len(commands(every).splitlines())


def test_the_tenth_line_counts_what_is_left_out() -> None:
    """Errors and warnings apart, at the level of the worst of them."""
    every = [Annotation("error", "t", "m")] * 12 + [Annotation("warning", "t", "m")] * 4
    assert (
        "::error title=solkit%3A and more::3 more errors and 4 more warnings: "
        "the report and the job's summary hold them all"
    ) == commands(every).splitlines()[-1]


def test_what_ends_a_title_or_a_command_is_escaped() -> None:
    """A comma or a colon in a title would begin another property, or the message."""
    said = Annotation("warning", "a,b::c", "d%0A::error::e")
    assert "::warning title=solkit%3A a%2Cb%3A%3Ac::d%250A::error::e\n" == commands([said])


@given(st.text(), st.text())
def test_any_text_is_one_bounded_line(title: str, message: str) -> None:
    """Nothing in a name starts a command of its own."""
    text = commands([Annotation("error", title, message * 50)])
    assert 1 == text.count("\n")
    assert text.startswith("::error title=solkit%3A")
    assert 6_000 > len(text)


def test_hostile_names_keep_the_limit() -> None:
    """Four hundred causes with names of ten thousand letters."""
    bad = replace(CASE, operator="x\n::error::" * 1_000)
    run = synthetic_run(
        [replace(each, case=replace(bad, shape=each.case.shape)) for each in failed(400)]
    )
    lines = render(run, score(run)).splitlines()
    assert ANNOTATIONS_MOST == len(lines)
    assert "391 more errors" in lines[-1]
    assert all(len(line) < 2_000 for line in lines)
