"""Run against run: the word of each case, the word of all, and how a command ends."""

from dataclasses import replace
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import GPU, measured
from timed_cases import COMPUTE, MEMORY, around, noisy_run, run_of, timed

from solkit.errors import BadInput, CasesFailed, GateSaysNo
from solkit.judge.changes import WORDS, CaseChange, compare_runs, exit_error
from solkit.model import Case, Failed, Measured, Outcome, Run, Skipped, Work

BASE = timed(around(1e-3))
SLOW, FAST = timed(around(1.1e-3)), timed(around(0.9e-3))
CASE = BASE.case
FLIPPED = {"SLOWER": "FASTER", "FASTER": "SLOWER"}
WRONG = Failed(CASE, "check", "3 of 8 values differ\nby 7", verdict="wrong_values")
DIED = Failed(CASE, "worker", "the worker died")
SKIPPED = Skipped(CASE, "no bf16 here")
# 1 TB in a millisecond: no card does that.
LIGHT = replace(BASE, work=Work(10**12, 1))
# Other cases that are the same on both sides, so that no comparison is empty.
OTHER = timed(around(2e-3), rows=2)


def compared(base: Outcome | None, head: Outcome | None, **options: float) -> CaseChange:
    """Compare two runs of one case beside another one, and return what became of it."""
    runs = [run_of(OTHER, *([each] if each else []), name="r") for each in (base, head)]
    found = [
        change
        for change in compare_runs(runs[:1], runs[1:], **options).changes  # type: ignore[arg-type]
        if change.case == CASE
    ]
    assert 1 == len(found)
    return found[0]


def words(base: Run, head: Run) -> list[str]:
    return [change.word for change in compare_runs([base], [head]).changes]


@pytest.mark.parametrize(
    ("expected", "reason", "base", "head"),
    [
        ("SAME", "", BASE, BASE),
        ("SLOWER", "", BASE, SLOW),
        ("FASTER", "", BASE, FAST),
        ("UNSURE", "fewer than 6 samples", BASE, timed([1e-3] * 5)),
        ("MISSING", "not in HEAD", BASE, None),
        ("MISSING", "failed in HEAD at worker: the worker died", BASE, DIED),
        ("MISSING", "skipped in HEAD: no bf16 here", BASE, SKIPPED),
        ("INVALID", "HEAD fails its check: 3 of 8 values differ by 7", BASE, WRONG),
        ("INVALID", "HEAD fails its check: 3 of 8 values differ by 7", None, WRONG),
        ("INVALID", "not measured: failed in HEAD at worker: the worker died", DIED, DIED),
        ("INVALID", "not measured: failed in HEAD at worker: the worker died", SKIPPED, DIED),
        ("INVALID", "not measured: failed in HEAD at worker: the worker died", None, DIED),
        ("NEW", "not in BASE", None, BASE),
        ("NEW", "failed in BASE at check (wrong values): 3 of 8 values differ by 7", WRONG, BASE),
        ("NEW", "skipped in BASE: no bf16 here", SKIPPED, BASE),
    ],
)
def test_what_became_of_a_case(
    expected: str, reason: str, base: Outcome | None, head: Outcome | None
) -> None:
    """The word, and why it is no plain verdict on a time."""
    found = compared(base, head)
    assert (expected, reason) == (found.word, found.reason)
    both = isinstance(base, Measured) and isinstance(head, Measured)
    assert both == (found.change is not None)


def test_a_time_faster_than_light_is_invalid() -> None:
    """On HEAD it says so; on BASE it proves nothing against a HEAD that is possible."""
    found = compared(BASE, LIGHT)
    assert "INVALID" == found.word
    assert found.reason.startswith("moved bytes at 490.20 x the pin rate")
    assert "INVALID" == compared(None, LIGHT).word
    assert "INVALID" == compared(LIGHT, LIGHT).word
    back = compared(LIGHT, BASE)
    assert "UNSURE" == back.word
    assert back.reason.startswith("BASE is invalid: moved bytes at")


def test_a_case_without_a_time_or_a_failure_is_left_out() -> None:
    """Skipped on both sides is no change; how many were left out is said."""
    runs = [run_of(OTHER, SKIPPED, name="a"), run_of(OTHER, SKIPPED, name="b")]
    found = compare_runs(runs[:1], runs[1:])
    assert [OTHER.case] == [change.case for change in found.changes]
    assert ("1 case was measured on neither side, and left out",) == found.notes


def test_missing_cases_come_last_and_the_rest_in_the_order_of_head() -> None:
    """A reader follows the run that was just made."""
    cases = [timed(around(1e-3), rows=row) for row in range(1, 5)]
    found = compare_runs([run_of(*cases)], [run_of(cases[3], cases[1], name="b")])
    assert [4, 2, 1, 3] == [change.case.shape["rows"] for change in found.changes]


def test_other_work_is_said_and_time_is_compared_all_the_same() -> None:
    """A corrected work model moves no time."""
    found = compared(BASE, timed(around(1e-3), read_bytes=3))
    assert ("SAME", "bytes differ: 2 and 4") == (found.word, found.reason)
    counted = replace(BASE, work=replace(BASE.work, flop={"bf16_tensor": 2}))
    assert "the work models differ, not in bytes" == compared(BASE, counted).reason


@pytest.mark.parametrize(
    ("said", "head"),
    [
        ("can't be compared: the cache state was cold and is unknown", {"cache": "unknown"}),
        (
            "can't be compared: the method was cupti and is event_blocked",
            {"method": "event_blocked"},
        ),
    ],
)
def test_a_case_measured_otherwise_is_unsure(said: str, head: dict[str, str]) -> None:
    """A run's method is its header's; single cases may have had to take another."""
    found = compared(BASE, timed(around(1.1e-3), **head))  # type: ignore[arg-type]
    assert ("UNSURE", said, "") == (found.word, found.reason, found.cause)
    assert found.change is not None
    assert ("UNSURE", said) == (found.change.word, found.change.reason)


def test_another_method_of_a_case_is_compared_where_it_was_allowed() -> None:
    """Whoever allows it knows what an instrument adds."""
    head = run_of(timed(around(1.1e-3), method="event_blocked"), name="b")
    assert "SLOWER" == compare_runs([run_of(BASE)], [head], allow=["method"]).overall


def test_what_differs_and_was_allowed_is_said() -> None:
    """Another driver: refused, or part of the answer."""
    head = replace(run_of(BASE, name="b"), facts=replace(run_of().facts, driver="700.01"))
    with pytest.raises(BadInput, match=r"the driver was 600\.12 and is 700\.01"):
        compare_runs([run_of(BASE)], [head])
    found = compare_runs([run_of(BASE)], [head], allow=["driver"])
    assert ("the driver was 600.12 and is 700.01",) == found.differences


@pytest.mark.parametrize(
    ("expected", "head"),
    [
        ("SAME", [BASE]),
        ("SAME", [BASE, OTHER]),
        ("UNSURE", [timed([1e-3] * 5)]),
        ("FASTER", [FAST]),
        ("SLOWER", [SLOW]),
        ("MISSING", [DIED, OTHER]),
        ("INVALID", [WRONG, OTHER]),
        ("NOTHING", [OTHER]),
        ("NOTHING", [WRONG]),
        ("NOTHING", []),
    ],
)
def test_the_word_of_a_whole_comparison(expected: str, head: list[Outcome]) -> None:
    """NEW changes nothing, and without a time on both sides nothing was compared."""
    base = [BASE, OTHER] if OTHER in head and expected in {"MISSING", "INVALID"} else [BASE]
    assert expected == compare_runs([run_of(*base)], [run_of(*head, name="b")]).overall


@pytest.mark.parametrize(
    ("expected", "base", "head"),
    [
        ("NOTHING", BASE, timed(around(2e-3), cache="unknown")),
        ("NOTHING", BASE, timed(around(2e-3), method="event_blocked")),
        ("NOTHING", LIGHT, timed(around(2e-3))),
        ("INVALID", BASE, LIGHT),
    ],
)
def test_times_that_say_nothing_of_each_other_are_no_comparison(
    expected: str, base: Measured, head: Measured
) -> None:
    """UNSURE passes, but not where no pair of times can be compared, whatever they are.

    One pair that can be is a comparison, and INVALID is a finding.
    """
    found = compare_runs([run_of(base)], [run_of(head, name="b")])
    error = exit_error(found)
    assert (expected, {"NOTHING": 1, "INVALID": 3}[expected]) == (
        found.overall,
        error and error.exit_code,
    )
    if error and expected == "NOTHING":
        assert "nothing was compared: no two times can be compared" == error.message
    beside = compare_runs([run_of(base, OTHER)], [run_of(head, OTHER, name="b")])
    assert {"NOTHING": "UNSURE", "INVALID": "INVALID"}[expected] == beside.overall


def made(word: str, row: int) -> tuple[list[Outcome], list[Outcome]]:
    """Return what BASE and HEAD hold for a case of that word."""
    base, slow, fast = (timed(around(time_s), rows=row) for time_s in (1e-3, 1.1e-3, 0.9e-3))
    few = timed([1e-3] * 5, rows=row)
    wrong = replace(WRONG, case=base.case)
    sides: dict[str, tuple[list[Outcome], list[Outcome]]] = {
        "SAME": ([base], [base]),
        "SLOWER": ([base], [slow]),
        "FASTER": ([base], [fast]),
        "UNSURE": ([base], [few]),
        "MISSING": ([base], []),
        "NEW": ([], [base]),
        "INVALID": ([base], [wrong]),
    }
    return sides[word]


@given(mixed=st.lists(st.sampled_from(WORDS), max_size=8))
@settings(max_examples=50)
def test_the_first_word_that_decides_is_that_of_all(mixed: list[str]) -> None:
    """What fails comes first; UNSURE passes and hides no FASTER; SAME needs all."""
    pairs = [made(word, row) for row, word in enumerate(["SAME", *mixed], 1)]
    base, head = ([each for pair in pairs for each in pair[place]] for place in (0, 1))
    found = compare_runs([run_of(*base)], [run_of(*head, name="b")])
    assert sorted(["SAME", *mixed]) == sorted(change.word for change in found.changes)
    order = ("SLOWER", "MISSING", "INVALID", "FASTER", "UNSURE", "SAME")
    assert next(word for word in order if word in {*mixed, "SAME"}) == found.overall
    codes = {"SLOWER": 1, "MISSING": 1, "INVALID": 3}
    error = exit_error(found)
    assert codes.get(found.overall, 0) == (error.exit_code if error else 0)


@pytest.mark.parametrize(
    ("kind", "message", "head"),
    [
        (GateSaysNo, "1 SLOWER, 1 SAME: scale/solkit rows=1 bf16", [SLOW, OTHER]),
        (GateSaysNo, "1 MISSING, 1 SAME: scale/solkit rows=1 bf16", [OTHER]),
        (CasesFailed, "1 INVALID, 1 SAME: scale/solkit rows=1 bf16", [WRONG, OTHER]),
        (GateSaysNo, "nothing was compared: no case was measured on both sides", []),
    ],
)
def test_a_comparison_ends_a_command(
    kind: type[Exception], message: str, head: list[Outcome]
) -> None:
    """With its exit code, the counts, the worst cases by name and what to do."""
    error = exit_error(compare_runs([run_of(BASE, OTHER)], [run_of(*head, name="b")]))
    assert kind is type(error)
    assert error is not None
    assert message == error.message
    assert error.remedy


def test_an_error_names_three_cases_at_most() -> None:
    """A thousand slower cases are counted."""
    base = run_of(*(timed(around(1e-3), rows=row) for row in range(1, 8)))
    head = run_of(*(timed(around(1.1e-3), rows=row) for row in range(1, 8)), name="b")
    error = exit_error(compare_runs([base], [head]))
    assert error is not None
    assert error.message.endswith("rows=3 bf16 and 4 more")


def test_a_case_missing_from_a_run_that_was_cut_fails_and_says_why() -> None:
    """Nothing passes because a run died early."""
    head = replace(run_of(OTHER, name="b"), ended=None)
    found = compare_runs([run_of(OTHER, BASE)], [head])
    assert ("MISSING", "not in HEAD, whose run was cut") == (
        found.changes[-1].word,
        found.changes[-1].reason,
    )
    assert ("HEAD has no end record: it was cut, and is judged as far as it goes",) == found.notes
    assert "MISSING" == found.overall


def test_other_versions_and_another_card_of_the_model_are_said() -> None:
    """Neither is refused: the first is often what is compared, the second is more noise."""
    head = run_of(BASE, name="b")
    head = replace(head, versions=head.versions | {"cupy": "15.0"})
    head = replace(head, facts=replace(head.facts, uuid="GPU-2"))
    cards, versions = compare_runs([run_of(BASE)], [head]).notes
    assert cards.startswith("BASE and HEAD were measured on different cards of this model")
    assert "BASE and HEAD have other versions: cupy 14.2 and 15.0" == versions


def test_another_card_of_the_model_needs_a_larger_step() -> None:
    """Two H200s differ by 4 % in one case of a hundred."""
    base, head = run_of(BASE), run_of(timed(around(1.05e-3)), name="b")
    other = replace(head, facts=replace(head.facts, uuid="GPU-2"))
    far = replace(other, outcomes=(SLOW,))
    assert ["SLOWER"] == words(base, head)
    p_values = [
        change.change.p_value
        for run in (head, other)
        for change in compare_runs([base], [run]).changes
        if change.change
    ]
    assert p_values[0] < 1e-9 < p_values[1]
    assert ["SLOWER"] == words(base, far)


@pytest.mark.parametrize(
    ("cause", "word", "factor", "clock", "limiter"),
    [
        ("code", "SLOWER", 1.1, 1.0, COMPUTE),
        ("code", "FASTER", 0.9, 1.0, MEMORY),
        ("machine", "UNSURE", 1.1, 1 / 1.1, COMPUTE),
        ("machine", "UNSURE", 1.1, 1 / 1.1, MEMORY),
        ("code", "SLOWER", 1.1, 1.05, COMPUTE),
        ("", "UNSURE", 1.1, 1 / 1.2, COMPUTE),
        ("", "SAME", 1.0, 1.0, COMPUTE),
    ],
)
def test_code_or_machine(cause: str, word: str, factor: float, clock: float, limiter: str) -> None:
    """As many SM cycles as before is the machine; a step in cycles is the code."""
    base = timed(around(1e-3), clocks_hz=1.8e9, limiter=limiter)
    head = timed(around(factor * 1e-3), clocks_hz=clock * 1.8e9, limiter=limiter)
    found = compared(base, head)
    assert (cause, word) == (found.cause, found.word)


def test_a_clock_that_explains_little_of_a_step_is_not_named_as_its_cause() -> None:
    """2.5 % more time at 0.6 % less clock: 1.9 % more cycles, below the least effect; no cause."""
    base = timed(around(1e-3), clocks_hz=1.8e9)
    found = compared(base, timed(around(1.025e-3), clocks_hz=1.8e9 * 0.994))
    assert ("UNSURE", "") == (found.word, found.cause)
    assert "in SM cycles the step is no larger than the least effect: 1.019 times" in found.reason


def test_a_change_must_stand_among_all_cases() -> None:
    """2.2 % at a noise of 0.6 %: one case in five thousand, so certain alone and not in 1,000."""
    step = timed(around(1.022e-5, width=0.004))
    base = timed(around(1e-5, width=0.004))
    assert "SLOWER" == compared(base, step).word
    others = [timed(around(1e-5, width=0.004), rows=row) for row in range(2, 1000)]
    found = compare_runs([run_of(base, *others)], [run_of(step, *others, name="b")])
    first = found.changes[0]
    assert first.change is not None
    assert ("UNSURE", "UNSURE", "") == (first.word, first.change.word, first.cause)
    assert "too often among 999" in first.reason
    assert "1.022 x the time" in first.reason


def test_an_operator_can_have_its_own_least_effect() -> None:
    """A noisy operator is asked for more."""
    own = {"scale": 0.15}
    runs = [run_of(BASE), run_of(SLOW, name="b")]
    found = compare_runs(runs[:1], runs[1:], operators_min_effect_fraction=own)
    assert ("SAME", 0.02) == (found.overall, found.min_effect_fraction)
    with pytest.raises(BadInput, match="no least effect"):
        compare_runs(runs[:1], runs[1:], operators_min_effect_fraction={"scale": 0.0})


def test_several_runs_are_counted_and_pooled() -> None:
    """Two of BASE and one of HEAD; the judged sides hold all samples."""
    base = [run_of(BASE, name="a"), run_of(timed(around(1.001e-3)), name="b")]
    found = compare_runs(base, [run_of(SLOW, name="c")])
    assert (2, 1, "SLOWER") == (found.base_count, found.head_count, found.overall)
    assert 40 == found.changes[0].base.outcome.sample_count  # type: ignore[union-attr]


def test_several_runs_find_a_step_that_one_can_not() -> None:
    """3 % with noise of 3 % within and 0.3 % between runs: four runs a side are sure of it."""
    cases = [1e-3] * 60

    def side(first: int, count: int, factor: float) -> list[Run]:
        times = [factor * time_s for time_s in cases]
        return [noisy_run(first + seed, times, within=0.03, between=0.003) for seed in range(count)]

    found = [
        sum(
            change.word == "SLOWER"
            for change in compare_runs(side(1, count, 1.0), side(9, count, 1.03)).changes
        )
        for count in (1, 4)
    ]
    assert 45 > found[0]
    assert 57 <= found[1]


def test_runs_that_disagree_among_themselves_call_nothing_a_change() -> None:
    """BASE in two runs 6 % apart: a HEAD 5 % above their middle is no news."""
    base = [run_of(timed(around(time_s)), name=str(time_s)) for time_s in (0.97e-3, 1.03e-3)]
    head = [run_of(timed(around(time_s)), name=str(time_s)) for time_s in (1.05e-3, 1.0501e-3)]
    assert "UNSURE" == compare_runs(base, head).overall


times = st.lists(st.floats(0.9, 1.1), min_size=6, max_size=20)


@given(
    sides=st.lists(
        st.tuples(times, times, st.sampled_from([1.0, 1.03, 1.3])), min_size=1, max_size=5
    )
)
def test_base_and_head_exchanged_turn_every_word_round(
    sides: list[tuple[list[float], list[float], float]],
) -> None:
    """What one calls slower the other calls faster, and the rest stays."""
    base = run_of(
        *(timed([1e-3 * t for t in one], rows=i) for i, (one, _, _) in enumerate(sides, 1))
    )
    head = run_of(
        *(timed([f * 1e-3 * t for t in two], rows=i) for i, (_, two, f) in enumerate(sides, 1)),
        name="b",
    )
    assert [FLIPPED.get(word, word) for word in words(base, head)] == words(head, base)


@pytest.mark.parametrize(
    ("within", "between", "counts", "place_fraction"),
    [
        (0.03, 0.003, (30, 100), 0.0),
        (0.01, 0.004, (30, 64), 0.0),
        (0.01, 0.005, (30, 64), 0.007),
    ],
)
def test_of_two_runs_of_the_same_code_hardly_a_case_is_called_changed(
    within: float, between: float, counts: tuple[int, int], place_fraction: float
) -> None:
    """400 cases with normal noise within and between runs: 1 % at most, and here none or one."""
    options = {"within": within, "between": between, "place_fraction": place_fraction}
    base, head = (
        noisy_run(seed, [1e-5 * 1.01**n for n in range(400)], counts=counts, **options)
        for seed in (1, 2)
    )
    assert 1 >= sum(word in {"SLOWER", "FASTER"} for word in words(base, head))


@pytest.mark.parametrize(
    ("within", "between", "counts", "place_fraction"),
    [
        (0.01, 0.003, (30, 64), 0.0),
        (0.02, 0.003, (30, 100), 0.0),
        (0.01, 0.005, (30, 64), 0.007),
        (0.03, 0.003, (100, 100), 0.0),
    ],
)
def test_a_twentieth_more_time_is_found(
    within: float, between: float, counts: tuple[int, int], place_fraction: float
) -> None:
    """Planted in every second of 400 cases above 10 us: 95 % of them at least, and no other."""
    options = {"within": within, "between": between, "place_fraction": place_fraction}
    times = [1e-5 * 1.01**n for n in range(400)]
    planted = [time_s * (1.05 if n % 2 else 1.0) for n, time_s in enumerate(times)]
    base = noisy_run(3, times, counts=counts, **options)  # type: ignore[arg-type]
    head = noisy_run(4, planted, counts=counts, **options)  # type: ignore[arg-type]
    found = words(base, head)
    assert 190 <= found[1::2].count("SLOWER")
    assert {"SAME", "UNSURE"} >= set(found[::2])


def test_ten_thousand_cases_take_seconds() -> None:
    """2 s is meant, of the processor's own time; four times that leaves room for slow machines."""
    case = Case("copy", "solkit", {"n": 1}, "bf16")
    one = measured(case, Work(2**24, 2**24), time_s=20e-6, gpu=GPU)
    outcomes = tuple(replace(one, case=replace(case, shape={"n": n + 1})) for n in range(10_000))
    run = run_of(*outcomes)
    started_s = process_time()
    assert "SAME" == compare_runs([run], [replace(run, id="b")]).overall
    assert 8 > process_time() - started_s


def test_nothing_crashes_on_names_that_mean_harm() -> None:
    """Reasons and errors stay single, bounded lines."""
    name = 'x<script>"\n\u202e' * 1000
    case = replace(CASE, kernel=name)
    died = Failed(case, "worker", name)
    base = run_of(replace(BASE, case=case), OTHER)
    found = compare_runs([base], [run_of(died, OTHER, name="b")])
    (gone,) = (change for change in found.changes if change.word == "MISSING")
    error = exit_error(found)
    assert error is not None
    for text in (gone.reason, error.message):
        assert "\n" not in text
        assert len(text) < 1500


def test_a_side_without_runs_is_refused() -> None:
    """An empty folder is no baseline."""
    for base, head in (([], [run_of(BASE)]), ([run_of(BASE)], [])):
        with pytest.raises(BadInput, match="has no run"):
            compare_runs(base, head)
