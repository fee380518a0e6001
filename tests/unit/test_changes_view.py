"""A comparison in words: the verdict, both sides beside each other, and why a case moved."""

from dataclasses import replace

import pytest
from compared import CLOCKED, DOUBLED, FASTER, GONE, SLOWER, pair, scaled
from hypothesis import given
from hypothesis import strategies as st
from synthetic import outcomes, synthetic_run

from solkit.judge.changes import WORDS, Comparison, compare_runs
from solkit.model import Measured, Outcome, Run
from solkit.report.change_words import amount, signed
from solkit.report.changes import ChangeRow, ChangesView, view

BASE, HEAD = pair()
MIXED = compare_runs([BASE], [HEAD])
SEEN = view(MIXED)
SOME = [item for item in outcomes() if isinstance(item, Measured)][6:12]


def row_of(seen: ChangesView, where: tuple[str, str, str]) -> ChangeRow:
    operator, kernel, shape = where
    wanted = (operator, kernel, shape.replace(";", " "))
    rows = (*seen.changed, *seen.same)
    return next(row for row in rows if (row.operator, row.kernel, row.shape) == wanted)


def whole(made: list[Outcome]) -> Run:
    return replace(synthetic_run(made), ended="complete")


def compared(factor: float = 1.0, noise: float = 0.0) -> Comparison:
    """Compare six cases with a run whose first case takes `factor` times as long."""
    after = [scaled(SOME[0], factor, noise=noise), *SOME[1:]]
    return compare_runs([whole([*SOME])], [whole([*after])])


@pytest.mark.parametrize(
    ("said", "ratio"),
    [
        ("+12.1 %", 1.121),
        ("-8.0 %", 0.92),
        ("0.0 %", 1.0),
        ("0.0 %", 0.9999),  # and never -0.0 %
        ("+100.0 %", 2.0),
        ("2.50\u00d7", 2.5),
        ("0.400\u00d7", 0.4),
        ("10000\u00d7", 1e300),
        ("0.000100\u00d7", 1e-300),
    ],
)
def test_a_change_is_a_percentage_and_from_twice_the_time_on_a_factor(
    said: str, ratio: float
) -> None:
    """A reader grasps +12 % and 2.5 times; what is beyond any sense stays short."""
    assert said == signed(ratio)


@given(st.floats(1e-9, 1e9))
def test_the_amount_of_a_change_has_no_sign(ratio: float) -> None:
    """The sentence around it says slower or faster."""
    assert not amount(ratio).startswith(("-", "+"))
    assert len(amount(ratio)) < 24


@pytest.mark.parametrize(
    ("said", "comparison"),
    [
        ("SLOWER: 2 of 66 cases are slower, the worst by a factor of 2.50", MIXED),
        ("SLOWER: 1 of 6 cases is slower, by 12.1 %", compared(1.121)),
        ("FASTER: 1 of 6 cases is faster, by 20.0 %; none is slower", compared(0.8)),
        ("UNSURE: 1 of 6 cases can't be told; none is slower", compared(1.05, noise=0.12)),
        ("SAME: no change that matters in 6 cases", compared()),
    ],
)
def test_the_verdict_says_how_many_and_how_much(said: str, comparison: Comparison) -> None:
    """One line that stands for itself."""
    assert said == view(comparison).verdict


def test_an_empty_comparison_says_why_it_is_none() -> None:
    """Other cases, or no case with two times: both are NOTHING."""
    made = outcomes()
    seen = view(compare_runs([whole(made[:3])], [whole(made[3:6])]))
    assert seen.verdict == "NOTHING: BASE and HEAD have no case in common"
    failed = whole([item for item in made if getattr(item, "stage", "")])
    seen = view(compare_runs([failed], [failed]))
    assert seen.verdict == "NOTHING: no case was measured on both sides"


def test_missing_and_invalid_cases_have_verdicts_of_their_own() -> None:
    """What has no time in HEAD, and what is no result there."""
    seen = view(compare_runs([whole([*SOME])], [whole([*SOME[1:]])]))
    assert seen.verdict == "MISSING: 1 of 6 cases has no time in HEAD"
    wrong = [item for item in outcomes() if getattr(item, "stage", "") == "check"]
    seen = view(compare_runs([whole([*SOME])], [whole([*SOME, *wrong])]))
    assert seen.verdict == "INVALID: 1 of 7 cases is no result"


def test_rows_come_worst_first() -> None:
    """By word, and among those of one word by how far the time moved."""
    places = [[*WORDS].index(row.word) for row in SEEN.changed]  # type: ignore[arg-type]
    assert places == sorted(places)
    assert ["2.50\u00d7", "+12.1 %"] == [row.change for row in SEEN.changed[:2]]
    assert {"SAME"} == {row.word for row in SEEN.same}
    assert 56 == len(SEEN.same)


def test_every_word_is_counted_and_explained() -> None:
    """The counts add up to all cases; the pair the goldens show has every word."""
    assert list(WORDS) == [each.word for each in SEEN.counts]
    assert len(MIXED.changes) == sum(int(each.count) for each in SEEN.counts)
    assert all(each.means for each in SEEN.counts)


TO_THE_CODE = "SM clock equal, SOL@clock 67.6 % -> 54.1 %: the code"


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (SLOWER, "12.1 % slower at the same clock and bytes: the code"),
        (FASTER, "12.0 % faster at the same clock and bytes: the code"),
        (
            DOUBLED,
            f"2.50\u00d7 the time: moves 2.00\u00d7 the bytes by its work model, {TO_THE_CODE}",
        ),
        (
            CLOCKED,
            (
                "6.1 % slower: bytes equal, SM clock -5.7 %, SOL@clock equal: "
                "the machine, not the code"
            ),
        ),
    ],
)
def test_a_change_is_explained_in_one_sentence(where: tuple[str, str, str], said: str) -> None:
    """Bytes, clock and score say whether it is the code or the machine."""
    assert said == row_of(SEEN, where).explanation


def test_what_did_not_move_is_not_explained() -> None:
    """No sentence for a case that is the same, new or gone."""
    assert {""} == {row.explanation for row in SEEN.same}
    assert ("", "not in HEAD") == (row_of(SEEN, GONE).explanation, row_of(SEEN, GONE).reason)


def test_both_sides_of_a_case_stand_beside_each_other() -> None:
    """Times with half their interval, the change with its own, scores before and after."""
    row = row_of(SEEN, SLOWER)
    assert ("223 \u00b5s", "250 \u00b5s", "+12.1 %") == (row.base, row.head, row.change)
    assert ("90.3 %", "80.6 %") == (row.sol_base, row.sol_head)
    assert row.base_spread.startswith("\u00b1")
    low, high = row.span.removesuffix(" %").split(" to ")
    assert float(low) < 12.1 < float(high)
    assert "\u2014" == row_of(SEEN, GONE).head


def test_conditions_that_differ_are_marked_and_named() -> None:
    """Another driver, where it was allowed; another id and date are no difference."""
    other = replace(HEAD, facts=replace(HEAD.facts, driver="601.01"))
    seen = view(compare_runs([BASE], [other], allow=["driver"]))
    marked = [each for each in seen.conditions if each.mark]
    assert [("Driver", "600.12", "601.01")] == [(it.label, it.base, it.head) for it in marked]
    assert any(note.startswith("allowed to differ: the driver was 600.12") for note in seen.notes)
    assert [] == [each for each in SEEN.conditions if each.mark]


def test_a_cut_run_is_said() -> None:
    """Judged as far as it goes, and the reader knows."""
    seen = view(compare_runs([BASE], [replace(HEAD, ended=None)]))
    assert any("HEAD has no end record" in note for note in seen.notes)


def test_a_processor_has_no_clocks_to_explain_by() -> None:
    """The verdict stands all the same, and says what it does not know."""
    made = [item for item in outcomes(None) if isinstance(item, Measured)][:6]
    base = replace(synthetic_run(made, gpu=None), ended="complete")
    head = replace(synthetic_run([scaled(made[3], 1.5), *made[4:]], gpu=None), ended="complete")
    seen = view(compare_runs([base], [head]))
    slower = next(row for row in seen.changed if row.word != "MISSING")
    assert "SM clock unknown" == slower.clock
    assert "Processor" in [each.label for each in seen.conditions]


def test_several_runs_of_a_side_are_counted() -> None:
    """Three of BASE, one of HEAD."""
    more = [replace(BASE, id=f"run {number}") for number in range(3)]
    seen = view(compare_runs(more, [HEAD]))
    runs = next(each for each in seen.conditions if each.label == "Runs")
    assert ("3", "1", "") == (runs.base, runs.head, runs.mark)


def test_notes_are_bounded() -> None:
    """However many a comparison has, twenty are shown and the others counted."""
    many = replace(MIXED, notes=tuple(f"note {number}" * 500 for number in range(100)))
    notes = view(many).notes
    assert 21 == len(notes)
    assert "and 80 more notes" == notes[-1]
    assert all(len(note) <= 400 for note in notes)
