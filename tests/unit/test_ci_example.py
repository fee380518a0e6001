"""The example of a CI run: its files are what the command makes today, from real runs."""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from test_gate_benchmark import Card
from test_gate_benchmark import made as measured_gate

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "ci-run"
sys.path.insert(0, str(EXAMPLE))

import make  # noqa: E402  # a script, found by the path above


def test_the_files_are_what_is_made_today(capsys: pytest.CaptureFixture[str]) -> None:
    """After a change of any output: python examples/ci-run/make.py."""
    assert (0, "all are what is made today\n") == (make.main(["--check"]), capsys.readouterr().out)
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir() if path.is_file()) < 1_500_000


def test_check_names_what_is_old(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder with nothing in it lacks every file."""
    assert 1 == make.main(["--check", "--into", str(tmp_path)])
    assert "report.html, compare.html" in capsys.readouterr().out


def test_every_file_is_named_on_its_page() -> None:
    """Whoever opens the folder reads what each of them is; every link leads somewhere."""
    text = (EXAMPLE / "README.md").read_text()
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert [] == [target for target in targets if not (EXAMPLE / target).exists()]
    there = {path.name for path in EXAMPLE.iterdir() if path.is_file()}
    assert {"README.md", "make.py"} == there - set(targets)


def test_a_slower_operator_fails_the_gate_and_nothing_else_does(tmp_path: Path) -> None:
    """From the gate's runs: softmax is SLOWER, in every file; a third of the cases is taken."""
    measured_gate(tmp_path, Card(), "--only", "a,a2,p5", "--cases", "108")
    both = make.sides(tmp_path)
    files = make.artifacts(both)
    changes = json.loads(files["comparison.json"])["cases"]
    assert 36 == len(changes)
    assert {"softmax"} == {case["operator"] for case in changes if case["word"] == "SLOWER"}
    assert 6 == sum(case["word"] == "SLOWER" for case in changes)
    assert "6 SLOWER, 30 SAME. The command ends with 1." in files["README.md"]
    suites = ET.fromstring(files["junit.xml"])  # noqa: S314  # our own file
    failed = [case.get("classname", "") for case in suites.iter("testcase") if len(case)]
    assert 6 == len([name for name in failed if name.startswith("softmax")])
    errors = [line for line in files["annotations.txt"].splitlines() if line.startswith("::error")]
    assert 6 == len(errors)
    assert str(tmp_path) not in "".join(files.values())


def test_without_the_gates_runs_a_run_is_held_against_itself(tmp_path: Path) -> None:
    """Before the first measurement of the gate there is one recorded run; nothing is made up."""
    (tmp_path / "main.jsonl").write_text('{"a":1}\n', encoding="utf-8")
    both = make.sides(tmp_path)
    assert (both.base, "the same run once more") == (both.head, both.story)
