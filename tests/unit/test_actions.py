"""What to do next: a few steps, the most rewarding first, each with a place to start."""

from dataclasses import replace

import charted_runs as runs

from solkit.judge.score import Judged, score, valid
from solkit.model import Case, Failed, Measured, Outcome, Run
from solkit.report.actions import actions, goal_s, why_sentence, whys

GPU = runs.card()


def a_run(*outcomes: Outcome, with_ceilings: bool = True) -> tuple[Run, tuple[Judged, ...]]:
    run = replace(runs.a_run(outcomes, gpu=GPU, with_ceilings=with_ceilings), ended="complete")
    return run, score(run)


def at(operator: str, rows: int, sol_fraction: float, kernel: str = "solkit") -> Measured:
    case = Case("softmax", kernel, {"rows": rows, "cols": 4096}, "bf16")
    made = runs.measured(case, 1.0, gpu=GPU)
    time_s = made.bound.sol_s / sol_fraction
    return replace(
        made,
        case=replace(case, operator=operator),
        times_s=(time_s,) * 21,
        median_s=time_s,
        low_s=time_s,
        high_s=time_s,
    )


def test_the_cause_that_costs_most_comes_first_with_the_case_to_start_at() -> None:
    """Cases of one operator with one cause are one step; its costliest case is the start."""
    run, judged = a_run(at("norm", 2**16, 0.7), at("gelu", 2**14, 0.3), at("gelu", 2**16, 0.3))
    first, second = actions(run, judged)
    assert "gelu" == first.subject
    assert first.what.startswith("Memory is the limit, but probably too little is in flight")
    assert first.case is not None
    assert "r2" == first.case.anchor
    assert "in 2 cases before they meet the ceilings measured here." in first.gain
    assert "norm" == second.subject


def test_the_gain_is_what_the_measured_ceilings_leave() -> None:
    """At 25 % of the sheet, with 91 % to be had: (1 - 25 / 91) of the time, but for the ramp."""
    (item,) = valid(a_run(at("norm", 2**20, 0.25))[1])
    share = 1 - goal_s(item) / item.median_s
    assert 0.72 < share < 0.73


def test_without_ceilings_the_published_limit_is_the_goal() -> None:
    """And the step says so."""
    run, judged = a_run(at("norm", 2**20, 0.25), with_ceilings=False)
    (step,) = actions(run, judged)
    assert "(75.0 %)" in step.gain
    assert step.gain.endswith("before they meet the limits they are scored against.")


def test_what_is_no_result_is_looked_at_first() -> None:
    """A failure stands before any gain, and leads to its section."""
    failed = Failed(Case("x", "solkit", {"n": 8}, "bf16"), "check", "wrong")
    run, judged = a_run(at("norm", 2**16, 0.3), failed)
    first = actions(run, judged)[0]
    assert "Look at what is not a result: 1 failed." == first.what
    assert ("failed", "See the causes") == (first.anchor, first.anchor_text)


def test_a_run_that_was_cut_is_finished_first() -> None:
    """What is missing can change every number."""
    run, judged = a_run(at("norm", 2**16, 0.3))
    first = actions(replace(run, ended=None, planned_count=9), judged)[0]
    assert "Finish the run with --resume." == first.what
    assert "1 case of 9 planned" in first.gain


def test_there_are_three_steps_at_most() -> None:
    """More than three is a list, not a next step."""
    run, judged = a_run(*(at(f"op{number}", 2**16, 0.3) for number in range(9)))
    assert 3 == len(actions(run, judged))


def test_a_slower_kernel_of_a_group_is_no_work_left() -> None:
    """What the fastest kernel has won already is not to be had again."""
    run, judged = a_run(at("norm", 2**16, 0.2, "torch"), at("norm", 2**16, 0.6))
    (step,) = actions(run, judged)
    assert step.case is not None
    assert "r1" == step.case.anchor
    assert "of the fastest kernels' " in step.gain


def test_at_the_ceilings_only_less_work_helps() -> None:
    """Nobody is sent to tune what is at its limit."""
    run, judged = a_run(at("norm", 2**20, 0.91))
    (step,) = actions(run, judged)
    assert step.what.startswith("Leave the kernels as they are")
    assert "costly" == step.anchor


def test_nothing_measured_asks_for_nothing() -> None:
    """No advice without a number."""
    run, judged = a_run()
    assert () == actions(run, judged)
    assert () == whys([])


def test_the_reasons_count_cases_and_say_where_the_loss_is() -> None:
    """Regimes with their medians and their share of the loss."""
    _, judged = a_run(at("norm", 2**16, 0.5), at("norm", 2**15, 0.95), at("norm", 1, 0.001))
    memory, latency = whys(valid(judged))
    assert ("Memory-bound", "1 at the roof", "2", "72.5 %") == (
        memory.name,
        memory.detail,
        memory.cases,
        memory.score,
    )
    assert ("Launch latency", "1") == (latency.name, latency.cases)
    assert "of it in cases ruled by memory." in why_sentence(valid(judged))


def test_a_loss_that_is_spread_over_many_operators_is_told_by_its_cause() -> None:
    """Two hundred operators lose half a per cent each: together they are the next step."""
    run, judged = a_run(*(at(f"op{number}", 2**16, 0.5) for number in range(200)))
    (step,) = actions(run, judged)
    assert "200 operators" == step.subject
    assert step.what.startswith("Memory is the limit")
    assert "in 200 cases before" in step.gain


def test_a_case_at_its_roof_is_nobodys_next_step() -> None:
    """Only less work would help it: its last per cent are told, and not as a thing to be had."""
    run, judged = a_run(at("norm", 2**20, 0.85))
    (step,) = actions(run, judged)
    assert step.what.startswith("Leave the kernels as they are")
    assert step.gain.startswith("Beyond the cases at their roof no cause holds 1 % of the run, and")
    run, judged = a_run(at("norm", 2**20, 0.85), at("gelu", 2**18, 0.5))
    assert ["gelu"] == [step.subject for step in actions(run, judged)]
