"""`solkit compare` as a person and a CI job meet it: exit codes, streams, files that are wrong."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from compared import pair, scaled
from synthetic import outcomes, synthetic_run

from solkit.cli.sides import files, segments
from solkit.errors import BadInput
from solkit.model import Measured, Outcome, Run
from solkit.record import Writer

ROOT = Path(__file__).parents[2]
PLAIN = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
Done = subprocess.CompletedProcess[str]
SOME = [item for item in outcomes() if isinstance(item, Measured)][6:12]
WRONG = [item for item in outcomes() if getattr(item, "stage", "") == "check"]


def solkit(*words: str, at: Path) -> Done:
    done = subprocess.run(
        (sys.executable, "-m", "solkit", *words),
        cwd=at,
        env=PLAIN,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


def written(path: Path, made: Sequence[Outcome], **changes: object) -> Path:
    """Write a whole run file of these outcomes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    run = replace(synthetic_run(made), ended=None, duration_s=None, **changes)  # type: ignore[arg-type]
    with Writer(path, replace(run, outcomes=())) as writer:
        writer.add(made)
    return path


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a BASE and the HEADs that it is compared with."""
    folder = tmp_path_factory.mktemp("compare")
    slow = [scaled(SOME[0], 1.121), *SOME[1:]]
    written(folder / "base" / "run.jsonl", SOME)
    written(folder / "same.jsonl", SOME, id="again")
    written(folder / "slow.jsonl", slow)
    written(folder / "fast.jsonl", [scaled(SOME[0], 0.8), *SOME[1:]])
    written(folder / "unsure.jsonl", [scaled(SOME[0], 1.05, noise=0.12), *SOME[1:]])
    written(folder / "less.jsonl", SOME[1:])
    written(folder / "wrong.jsonl", [*SOME, *WRONG])
    written(folder / "both.jsonl", [*slow, *WRONG])
    written(folder / "others.jsonl", [item for item in outcomes() if item not in SOME][:3])
    written(folder / "nothing.jsonl", [])
    facts = replace(synthetic_run([]).facts, driver="601.01")
    written(folder / "driver.jsonl", SOME, facts=facts)
    written(folder / "seed.jsonl", SOME, seed=7)
    for number in range(3):
        written(folder / "several" / f"run{number}" / "run.jsonl", SOME, id=f"run {number}")
    text = (folder / "slow.jsonl").read_bytes()
    lines = text.splitlines(keepends=True)
    (folder / "no_end.jsonl").write_bytes(b"".join(lines[:-1]))
    (folder / "half.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:100])
    (folder / "newer.jsonl").write_bytes(text.replace(b"solkit.run/1", b"solkit.run/9", 1))
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "broken.jsonl").write_bytes(lines[0] + b"{\n" + b"".join(lines[1:]))
    (folder / "folder").mkdir()
    (folder / "gate.toml").write_text(
        "version = 1\nmin_effect = 0.5\n[operators.add_rmsnorm]\nfail_under = 0.9\n"
    )
    (folder / "unknown.toml").write_text("version = 1\n[operators.softmacks]\nfail_under = 0.9\n")
    return folder


@pytest.mark.parametrize(
    ("code", "head", "last"),
    [
        (0, "same.jsonl", "SAME: no change that matters in 6 cases"),
        (0, "fast.jsonl", "FASTER: 1 of 6 cases is faster, by 20.0 %; none is slower"),
        (0, "unsure.jsonl", "UNSURE: 1 of 6 cases can't be told; none is slower"),
        (1, "slow.jsonl", "SLOWER: 1 of 6 cases is slower, by 12.1 %"),
        (1, "less.jsonl", "MISSING: 1 of 6 cases has no time in HEAD"),
        (1, "others.jsonl", "NOTHING: BASE and HEAD have no case in common"),
        (1, "nothing.jsonl", "NOTHING: BASE and HEAD have no case in common"),
        (3, "wrong.jsonl", "INVALID: 1 of 7 cases is no result"),
        (1, "both.jsonl", "SLOWER: 1 of 7 cases is slower, by 12.1 %"),  # 1 wins over 3
    ],
)
def test_the_exit_code_says_what_the_last_line_says(
    code: int, head: str, last: str, at: Path
) -> None:
    """0 fine, 1 slower, missing or nothing in common, 3 invalid."""
    done = solkit("compare", "base", head, at=at)
    assert (code, last) == (done.returncode, done.stdout.splitlines()[-1]), done.stderr
    assert ("error:" in done.stderr) == bool(code)


BAD_INPUT = (
    (["base", "none.jsonl"], "none.jsonl: can't be read"),
    (["base", "folder"], "folder: holds no run"),
    (["base", "empty.jsonl"], "empty.jsonl: is empty"),
    (["base", "newer.jsonl"], "solkit.run/9"),
    (["base", "broken.jsonl"], "broken.jsonl: line 2"),
    (["base", "gate.toml"], "gate.toml: line 1"),
    (["base", "driver.jsonl"], "the driver was 600.12 and is 601.01"),
    (["base", "driver.jsonl", "--allow", "seed"], "--allow driver,seed"),
    (["base", "seed.jsonl"], "the seed of the inputs was 0 and is 7"),
    (["base", "same.jsonl", "--allow", "drivers"], "did you mean 'driver'"),
    (["base", "same.jsonl", "--min-effect", "2"], "2 is no least effect"),
    (["base", "same.jsonl", "--min-effect", "nan"], "nan is no least effect"),
    (["base", "same.jsonl", "--gate", "none.toml"], "none.toml: can"),
    (["base", "same.jsonl", "--gate", "unknown.toml"], "did you mean 'softmax'"),
    (["base", "same.jsonl", "--format", "pdf"], "'pdf' is not one of"),
    (["base"], "Missing argument 'HEAD'"),
)


@pytest.mark.parametrize(("words", "said"), BAD_INPUT, ids=lambda each: " ".join(each)[:40])
def test_what_can_not_be_compared_is_refused_with_the_reason(
    words: Sequence[str], said: str, at: Path
) -> None:
    """Exit 2, nothing on stdout, and what to do about it."""
    done = solkit("compare", *words, at=at)
    assert (2, "") == (done.returncode, done.stdout), done.stderr
    assert said in done.stderr


def test_a_condition_that_is_allowed_is_said(at: Path) -> None:
    """On stderr and in the page, which may be all that is kept."""
    done = solkit("compare", "base", "driver.jsonl", "--allow", " driver,", at=at)
    assert 0 == done.returncode, done.stderr
    assert "note: the driver was 600.12 and is 601.01" in done.stderr
    assert "Driver" in done.stdout


@pytest.mark.parametrize("head", ["no_end.jsonl", "half.jsonl"])
def test_a_cut_run_is_judged_as_far_as_it_goes(head: str, at: Path) -> None:
    """Without an end, or cut in a line: said, and what is there counts."""
    done = solkit("compare", "base", head, at=at)
    assert 1 == done.returncode, done.stderr
    assert "HEAD has no end record: it was cut, and is judged as far as it goes" in done.stderr
    assert "SLOWER: 1 of 6 cases is slower, by 12.1 %" == done.stdout.splitlines()[-1]


def test_one_file_on_both_sides_is_the_same_and_is_said(at: Path) -> None:
    """No mistake goes unseen: by its folder and by its name it is one file."""
    done = solkit("compare", "base", "base/run.jsonl", at=at)
    assert 0 == done.returncode
    assert "note: BASE and HEAD are one file: nothing can differ" in done.stderr


def test_a_side_may_hold_several_runs(at: Path) -> None:
    """A folder of runs, and more by option."""
    done = solkit(
        "compare", "several", "slow.jsonl", "--base", "base", "--head", "slow.jsonl", at=at
    )
    assert 1 == done.returncode, done.stderr
    made = json.loads(
        solkit(
            "compare", "several", "slow.jsonl", "--base", "base", "--format", "json", at=at
        ).stdout
    )
    assert (4, 1) == (made["base"]["run_count"], made["head"]["run_count"])
    slower = next(case for case in made["cases"] if case["word"] == "SLOWER")
    assert (44, 11) == (slower["base"]["sample_count"], slower["head"]["sample_count"])


def test_a_gate_file_sets_the_least_effect_and_the_floors(at: Path) -> None:
    """12 % is no change under a least effect of 50 %; a floor that HEAD misses is exit 1."""
    done = solkit("compare", "base", "slow.jsonl", "--gate", "gate.toml", at=at)
    assert 1 == done.returncode
    assert "SAME" in done.stdout.splitlines()[-1]
    assert "below 90.0 %" in done.stderr
    assert "HEAD misses a floor: " in done.stdout
    words = ("compare", "base", "same.jsonl", "--gate", "gate.toml", "--format", "junit")
    assert 'type="below the floor"' in solkit(*words, at=at).stdout
    done = solkit(
        "compare", "base", "slow.jsonl", "--gate", "gate.toml", "--min-effect", "0.02", at=at
    )
    assert "SLOWER" in done.stdout.splitlines()[-1]
    assert "below 90.0 %" in done.stderr
    assert "SLOWER" in done.stderr


def test_the_least_effect_can_be_chosen(at: Path) -> None:
    """12.1 % slower is the same where only 20 % matter."""
    done = solkit("compare", "base", "slow.jsonl", "--min-effect", "0.2", at=at)
    assert (0, "SAME: no change that matters in 6 cases") == (
        done.returncode,
        done.stdout.splitlines()[-1],
    )


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("markdown", "## SLOWER: 1 of 6 cases is slower, by 12.1 %"),
        ("junit", '<?xml version="1.0" encoding="UTF-8"?>'),
        ("html", "<!doctype html>"),
        ("json", "{"),
        ("annotations", "::error title=solkit%3A SLOWER::"),
    ],
)
def test_a_format_goes_into_a_file_with_the_same_exit_code(
    form: str, begins: str, at: Path, tmp_path: Path
) -> None:
    """A CI job keeps the file and fails all the same."""
    path = tmp_path / "out"
    done = solkit("compare", "base", "slow.jsonl", "--format", form, "-o", str(path), at=at)
    assert (1, "") == (done.returncode, done.stdout), done.stderr
    assert path.read_text(encoding="utf-8").startswith(begins)
    assert f"wrote {path}" in done.stderr


def test_json_on_stdout_is_one_document_with_its_exit_code(at: Path) -> None:
    """And nothing else there, nor on stderr under --quiet but the error."""
    done = solkit("compare", "base", "wrong.jsonl", "--format", "json", "--quiet", at=at)
    assert 3 == done.returncode == json.loads(done.stdout)["exit_code"]
    assert done.stderr.startswith("error: ")


def test_nothing_to_annotate_prints_nothing(at: Path) -> None:
    """An empty line would be a line of the log."""
    done = solkit("compare", "base", "same.jsonl", "--format", "annotations", at=at)
    assert (0, "") == (done.returncode, done.stdout)


def test_every_case_is_listed_when_asked(at: Path) -> None:
    """`--all` shows what is the same, too."""
    done = solkit("compare", "base", "slow.jsonl", "--all", at=at)
    assert 5 == sum(line.startswith("SAME ") for line in done.stdout.splitlines())
    assert 80 >= max(map(len, done.stdout.splitlines()))


def test_an_output_that_can_not_be_written_is_refused_first(at: Path) -> None:
    """Before anything is read: exit 4, as for any full or missing place."""
    done = solkit("compare", "none.jsonl", "none.jsonl", "-o", "/dev/null/x", at=at)
    assert 4 == done.returncode
    assert "can't be written" in done.stderr


def test_a_folder_is_one_run_or_several(at: Path) -> None:
    """With a run.jsonl it is that run; without, its files and those one level below."""
    assert (at / "base" / "run.jsonl",) == files([at / "base"])
    assert [at / "several" / f"run{n}" / "run.jsonl" for n in range(3)] == [
        *files([at / "several"])
    ]
    found = files([at])
    assert at / "same.jsonl" in found
    assert at / "base" / "run.jsonl" in found
    with pytest.raises(BadInput, match="holds no run"):
        files([at / "folder"])


def test_a_report_holds_the_run_and_no_second_measurement(tmp_path: Path) -> None:
    """It counts in comparisons alone: `solkit report DIR` is the report that the run wrote."""
    run = written(tmp_path / "run.jsonl", SOME)
    more = written(tmp_path / "segment.jsonl", SOME[:1])
    again = written(tmp_path / "run_again.jsonl", [scaled(SOME[0], 2.0)])
    assert (run, again) == files([tmp_path])
    assert [run, more] == segments([tmp_path])
    assert [again] == segments([again]), "named, it is read"
    run.unlink()
    assert [tmp_path] == segments([tmp_path]), "without its run it is a run as any other"


def test_a_link_to_a_run_is_that_run(tmp_path: Path) -> None:
    """`solkit-out/latest` is no second run; links in a circle are no file."""
    run = written(tmp_path / "out" / "one" / "run.jsonl", SOME)
    (tmp_path / "out" / "latest").symlink_to("one", target_is_directory=True)
    (tmp_path / "out" / "circle").symlink_to("circle")
    assert 1 == len(files([tmp_path / "out", run]))
    assert (tmp_path / "out" / "circle",) == files([tmp_path / "out" / "circle"])


def test_ten_thousand_characters_in_a_name_do_no_harm(tmp_path: Path) -> None:
    """From the file to every line of the terminal."""
    base, head = pair()

    def named(run: Run) -> list[Outcome]:
        first = next(item for item in run.outcomes if isinstance(item, Measured))
        case = replace(first.case, operator="<b>\u202e" + "x" * 10_000, kernel="\x1b[31m|\n")
        return [replace(first, case=case)]

    paths = [
        written(tmp_path / f"{name}.jsonl", named(run)) for name, run in (("b", base), ("h", head))
    ]
    done = solkit("compare", *map(str, paths), "--all", at=tmp_path)
    assert 0 == done.returncode, done.stderr
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert 80 >= max(map(len, done.stdout.splitlines()))
