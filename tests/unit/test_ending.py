"""The end of a run: what is written beside the report, what it ends with, that nothing is lost."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import compared
import pytest

from solkit import history, record
from solkit.cli.ending import tell
from solkit.cli.extras import Extras
from solkit.cli.extras import prove_writable as prove_extras
from solkit.cli.gating import Gating, Held, read, unsure
from solkit.errors import BadInput, CasesFailed, GateSaysNo, NoDevice
from solkit.judge.gate import Floors, Gate
from solkit.model import Failed, Run, Skipped

# One case of each word, and a few that are the same: a report of 66 cases takes seconds to draw.
KEPT = {
    *(compared.SLOWER, compared.FASTER, compared.CLOCKED, compared.NOISY),
    *(compared.GONE, compared.FRESH, compared.WRONG),
    ("matmul_add", "solkit", "M=1024;N=2560;K=2560;weight=kn"),  # INVALID in both
}


def small(run: Run) -> Run:
    kept = tuple(item for item in run.outcomes if compared.place(item.case) in KEPT)
    return replace(run, outcomes=kept, planned_count=len(kept))


BASE, HEAD = map(small, compared.pair())


def write_run(folder: Path, run: Run, name: str = "run.jsonl") -> Path:
    """Write a run as `solkit run` does, and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    with record.Writer(folder / name, replace(run, outcomes=())) as writer:
        writer.add(run.outcomes)
    return folder / name


@pytest.fixture(autouse=True)
def _a_quick_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the charts out: the report has tests of its own, and they take seconds."""
    monkeypatch.setattr("solkit.cli.ending.RENDERERS", {"html": lambda _run, _judged: "report"})


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_run(tmp_path / "base", BASE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "head", HEAD).parent


def finish(folder: Path, extras: Extras = Extras(), held: Held = Held()) -> None:  # noqa: B008  # frozen
    tell(folder, extras, held, None, roof=None, baseline=None)


def test_a_run_that_got_slower_ends_with_one_and_shows_its_comparison(
    folder: Path, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1 by GateSaysNo; compare.html lies beside the report, and stdout names both."""
    with pytest.raises(GateSaysNo, match="1 SLOWER"):
        finish(folder, held=read(Gating(against=(base,)), ()))
    said = capsys.readouterr().out
    assert [f"{folder}/report.html", f"{folder}/compare.html"] == said.splitlines()[-2:]
    assert "add_rmsnorm" in (folder / "compare.html").read_text(encoding="utf-8")


def test_a_run_against_itself_passes(folder: Path) -> None:
    """SAME everywhere: the invalid case is what is left to say, exit 3."""
    held = read(Gating(against=(folder,)), ())
    with pytest.raises(Exception, match=r"INVALID|invalid") as ended:
        finish(folder, held=held)
    assert 3 == getattr(ended.value, "exit_code", None)


def test_a_floor_and_a_slower_case_are_both_told(folder: Path, base: Path) -> None:
    """One error with both sentences and both remedies."""
    held = read(Gating(fail_under=0.99, against=(base,)), ())
    with pytest.raises(GateSaysNo) as ended:
        finish(folder, held=held)
    assert "SLOWER" in ended.value.message
    assert "below 99.0 %" in ended.value.message


def test_junit_holds_floors_slower_and_missing_cases(folder: Path, base: Path) -> None:
    """A missing case is no case of the run, and fails in a suite all the same."""
    made = folder / "junit.xml"
    with pytest.raises(GateSaysNo):
        finish(folder, Extras(junit=made), read(Gating(against=(base,)), ()))
    cases = ET.fromstring(made.read_text(encoding="utf-8")).iter("testcase")  # noqa: S314  # our own
    failed = {
        (case.get("classname"), failure.get("type"))
        for case in cases
        for failure in case.iter("failure")
    }
    assert ("copy.solkit.bf16", "MISSING") in failed
    assert any(str(name).startswith("add_rmsnorm.solkit") for name, _ in failed)


def test_junit_fails_a_case_that_was_wrong_when_measured_once_more(
    folder: Path, tmp_path: Path
) -> None:
    """The run by itself has a good time of it; exit 3 and a green table would be a riddle."""
    both = (compared.SLOWER, compared.FASTER)
    kept = tuple(item for item in HEAD.outcomes if compared.place(item.case) in both)
    before = write_run(tmp_path / "two", replace(HEAD, outcomes=kept, planned_count=2)).parent
    good = next(item for item in kept if compared.place(item.case) == compared.SLOWER)
    wrong = Failed(good.case, "check", "3 of 8 values differ", verdict="wrong_values")
    write_run(
        folder, replace(HEAD, id="again", outcomes=(wrong,), planned_count=0), "run_again.jsonl"
    )
    made = tmp_path / "junit.xml"
    with pytest.raises(CasesFailed):
        finish(folder, Extras(junit=made), read(Gating(against=(before,)), ()))
    text = made.read_text(encoding="utf-8")
    assert "INVALID when it was measured once more: " in text
    assert "3 of 8 values differ" in text


def test_the_summary_is_appended_with_the_comparison_first(folder: Path, base: Path) -> None:
    """A job's summary has several authors: what stands in it stays. The refusal comes first."""
    made = folder / "summary.md"
    made.write_text("before\n", encoding="utf-8")
    with pytest.raises(GateSaysNo):
        finish(folder, Extras(summary=made), read(Gating(against=(base,)), ()))
    text = made.read_text(encoding="utf-8")
    assert text.startswith("before\n# The gate says no\n\n1 SLOWER, 1 MISSING")
    assert ["## SLOWER", "## The med"] == [
        each[:10].rstrip(":") for each in text.splitlines() if each.startswith("## ")
    ]


def test_annotations_are_ten_at_most_and_errors_come_first(
    folder: Path, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the comparison and of the run together."""
    held = read(Gating(fail_under=0.99, against=(base,)), ())
    with pytest.raises(GateSaysNo):
        finish(folder, Extras(annotations=True), held)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::")]
    assert 10 == len(lines)
    assert lines[0].startswith("::error title=solkit%3A SLOWER::add_rmsnorm")


def test_the_folder_form_lies_where_it_is_asked_for(folder: Path) -> None:
    """A page with its style beside it, and the run's numbers as JSON."""
    with pytest.raises(Exception, match="invalid"):
        finish(folder, Extras(assets=folder / "site"))
    assert {"index.html", "report.css", "report.js", "run.json"} == {
        path.name for path in (folder / "site").iterdir()
    }
    assert "solkit.report/1" == json.loads((folder / "site" / "run.json").read_text())["schema"]


def test_a_history_grows_by_the_run_and_has_its_page(folder: Path, tmp_path: Path) -> None:
    """The commit that is given is the one that is kept; the same run is not added twice."""
    kept = tmp_path / "history"
    for _ in range(2):
        with pytest.raises(Exception, match="invalid"):
            finish(folder, Extras(history=kept, commit="abc123"))
    (entry,) = history.load(kept).entries
    assert (HEAD.id, "abc123") == (entry.id, entry.commit)
    assert "<!doctype html>" in (kept / "trend.html").read_text(encoding="utf-8").lower()


def test_a_cut_run_is_no_entry_of_a_history(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until it is finished: an entry is never changed."""
    text = (folder / "run.jsonl").read_text(encoding="utf-8")
    (folder / "run.jsonl").write_text(text[: text.rindex('{"record":"end"')], encoding="utf-8")
    with pytest.raises(Exception, match="invalid"):
        finish(folder, Extras(history=tmp_path / "history"))
    assert not (tmp_path / "history").exists()
    assert "no entry of the history until it is finished" in capsys.readouterr().err


def test_the_commit_is_that_of_ci_where_none_is_given(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GITHUB_SHA before git itself."""
    monkeypatch.setenv("GITHUB_SHA", "fed987")
    with pytest.raises(Exception, match="invalid"):
        finish(folder, Extras(history=tmp_path / "history"))
    assert "fed987" == history.load(tmp_path / "history").entries[0].commit


def test_one_file_that_can_not_be_written_loses_no_other(folder: Path, base: Path) -> None:
    """A junit path under a file: exit 4 at the end, with the summary and the report written."""
    blocked = folder / "run.jsonl" / "junit.xml"
    extras = Extras(junit=blocked, summary=folder / "summary.md")
    with pytest.raises(NoDevice, match=r"junit\.xml: can't be written"):
        finish(folder, extras, read(Gating(against=(base,)), ()))
    assert (folder / "summary.md").stat().st_size
    assert (folder / "report.html").stat().st_size


def test_what_can_not_be_written_is_told_before_anything_is_measured(folder: Path) -> None:
    """Each of the four by its own name."""
    blocked = folder / "run.jsonl" / "x"
    for extras in (
        Extras(junit=blocked),
        Extras(summary=blocked),
        Extras(assets=blocked),
        Extras(history=blocked),
    ):
        with pytest.raises(NoDevice, match=r"run\.jsonl/x"):
            prove_extras(extras)


def test_a_run_that_could_not_be_compared_is_refused_before_it_is_measured(base: Path) -> None:
    """Another driver: the reason and the option that allows it; allowed, it goes on."""
    facts = replace(HEAD.facts, driver="999.99")
    with pytest.raises(BadInput, match=r"driver was .* and is 999\.99") as refused:
        read(Gating(against=(base,)), ()).refuse_other(replace(HEAD, facts=facts))
    assert "--allow driver" in refused.value.remedy
    allowed = read(Gating(against=(base,), allow=("driver",)), ())
    allowed.refuse_other(replace(HEAD, facts=facts))


def test_the_command_line_goes_before_the_gate_file(tmp_path: Path, base: Path) -> None:
    """--fail-under in place of its default, --min-effect in place of its own, --allow beside it."""
    file = tmp_path / "gate.toml"
    file.write_text(
        'version = 1\nfail_under = 0.5\nmin_effect = 0.03\nallow = ["driver"]\n'
        "[operators.softmax]\nfail_under = 0.4\n",
        encoding="utf-8",
    )
    own = read(Gating(gate=file, against=(base,)), ())
    assert (0.5, 0.4, 0.03) == (
        own.gate.floors.of("copy"),
        own.gate.floors.of("softmax"),
        own.min_effect_fraction,
    )
    given = Gating(gate=file, fail_under=0.7, min_effect_fraction=0.05, allow=("seed",))
    held = read(given, ())
    assert (0.7, 0.4, 0.05) == (
        held.gate.floors.of("copy"),
        held.gate.floors.of("softmax"),
        held.min_effect_fraction,
    )
    assert {"driver", "seed"} == held.allow


@pytest.mark.parametrize(
    ("gating", "said"),
    [
        (Gating(fail_under=1.5), "--fail-under 1.5 is no fraction"),
        (Gating(min_effect_fraction=-0.1), "-0.1 is no least effect"),
        (Gating(gate=Path("none.toml")), "none.toml"),
        (Gating(against=(Path("nowhere"),)), "nowhere"),
        (Gating(allow=("weather",)), "unknown condition 'weather'"),
    ],
)
def test_a_gate_that_can_not_be_held_is_told_at_once(gating: Gating, said: str) -> None:
    """BadInput, exit 2, naming what is wrong."""
    with pytest.raises(BadInput) as refused:
        read(gating, ())
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("said", "text", "gating"),
    [
        ("", "", Gating()),
        ("", "fail_under = 0.5", Gating()),
        ("--min-effect without --against: nothing is held", "", Gating(min_effect_fraction=0.1)),
        (
            "--min-effect, --allow without --against: its floors are all that is held",
            "fail_under = 0.5",
            Gating(min_effect_fraction=0.1, allow=("driver",)),
        ),
        (
            "the gate's min_effect and allow without --against: nothing is held",
            'allow = ["driver"]',
            Gating(),
        ),
        (
            "the gate's min_effect and allow without --against: nothing is held",
            "[operators.copy]\nmin_effect = 0.05",
            Gating(),
        ),
    ],
)
def test_a_least_effect_without_a_baseline_is_said_to_hold_nothing(
    said: str, text: str, gating: Gating, base: Path, tmp_path: Path
) -> None:
    """A first run may have no BASE yet, and passes; it isn't silent about it."""
    if text:
        file = tmp_path / "gate.toml"
        file.write_text(f"version = 1\n{text}\n", encoding="utf-8")
        gating = replace(gating, gate=file)
    assert said == read(gating, {"copy"}).idle_options(gating)
    assert "" == read(replace(gating, against=(base,)), {"copy"}).idle_options(gating)


def test_a_run_that_was_cut_is_told_to_be_finished_under_its_gate(
    folder: Path, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--resume knows of no gate: without the options again it would hold nothing."""
    for held, more in (
        (Held(), ""),
        (
            read(Gating(against=(base,)), ()),
            ", and what it is held to (--against, --gate, --fail-under)",
        ),
    ):
        with pytest.raises(KeyboardInterrupt):
            tell(folder, Extras(), held, KeyboardInterrupt(), roof=None, baseline=None)
        assert f"solkit run --resume {folder}{more}\n" in capsys.readouterr().err


def test_what_is_unsure_is_what_another_measurement_may_decide(base: Path) -> None:
    """The noisy case, and the one whose time went with the clock."""
    assert {compared.NOISY, compared.CLOCKED} == {
        compared.place(case) for case in unsure(read(Gating(against=(base,)), ()).compared([HEAD]))
    }


def test_a_second_measurement_is_pooled_with_the_first(folder: Path, base: Path) -> None:
    """run_again.jsonl counts as a second run of HEAD, here and in `solkit compare`."""
    again = replace(HEAD, id=f"{HEAD.id}-again", planned_count=0)
    write_run(folder, again, "run_again.jsonl")
    with pytest.raises(GateSaysNo):
        finish(folder, held=read(Gating(against=(base,)), ()))
    page = (folder / "compare.html").read_text(encoding="utf-8")
    assert '<th scope="row">Runs<td>1<td>2' in page
    merged = read(Gating(against=(folder,)), ()).base
    assert [HEAD.id, f"{HEAD.id}-again"] == [run.id for run in merged]


def test_a_case_that_is_skipped_now_fails_in_every_output(
    tmp_path: Path, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MISSING, since BASE has a time of it: in JUnit a failure, and in the summary by name."""
    gone, *rest = HEAD.outcomes
    head = replace(HEAD, outcomes=(Skipped(gone.case, "no such pipe"), *rest))
    folder = write_run(tmp_path / "skipping", head).parent
    extras = Extras(junit=folder / "j.xml", summary=folder / "s.md", annotations=True)
    with pytest.raises(GateSaysNo):
        finish(folder, extras, read(Gating(against=(base,)), ()))
    failures = [
        (case.get("name"), failure.get("message"))
        for case in ET.fromstring((folder / "j.xml").read_text(encoding="utf-8")).iter("testcase")  # noqa: S314  # our own
        for failure in case.iter("failure")
    ]
    shape = " ".join(f"{axis}={size}" for axis, size in gone.case.shape.items())
    assert [said for name, said in failures if str(name).startswith(shape) and "MISSING" in said]
    assert "MISSING against the run before" in (folder / "s.md").read_text(encoding="utf-8")
    assert "::error title=solkit%3A MISSING" in capsys.readouterr().out


def test_a_floor_that_nothing_was_held_against_fails_in_every_output(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operator with a floor and no case: no single case can say so."""
    held = Held(Gate(floors=Floors(operators_fraction={"absent": 0.5})))
    extras = Extras(junit=folder / "j.xml", summary=folder / "s.md", annotations=True)
    with pytest.raises(GateSaysNo, match="floor of absent"):
        finish(folder, extras, held)
    suite = ET.fromstring((folder / "j.xml").read_text(encoding="utf-8"))[0]  # noqa: S314  # our own
    assert ("gate", "1") == (suite.get("name"), suite.get("failures"))
    assert (folder / "s.md").read_text(encoding="utf-8").startswith("# The gate says no\n")
    assert "::error " in capsys.readouterr().out


def test_an_operators_own_least_effect_is_told(folder: Path, base: Path, tmp_path: Path) -> None:
    """12 % of add_rmsnorm are SAME where 20 % are asked for, and the page says so."""
    file = tmp_path / "gate.toml"
    file.write_text("version = 1\n[operators.add_rmsnorm]\nmin_effect = 0.2\n", encoding="utf-8")
    with pytest.raises(GateSaysNo, match="MISSING"):
        finish(folder, held=read(Gating(gate=file, against=(base,)), ()))
    page = (folder / "compare.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "a change counts from 2.0 % (add_rmsnorm: 20.0 %) on" in page


def test_of_a_part_of_a_sweep_only_what_was_asked_for_is_compared(base: Path) -> None:
    """A case by hand, or --only: nothing else of BASE is MISSING; without a case, NOTHING."""
    held = read(Gating(against=(base,)), ())
    asked = [item.case for item in HEAD.outcomes if compared.place(item.case) == compared.SLOWER]
    head = replace(HEAD, outcomes=tuple(item for item in HEAD.outcomes if item.case in asked))
    found = held.of(asked).compared([head])
    assert found is not None
    assert ["SLOWER"] == [change.word for change in found.changes]
    nothing = held.of([]).compared([head])
    assert nothing is not None
    assert "NOTHING" == nothing.overall
