"""`solkit report`: one recorded run in every format, to stdout or into a file."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

from solkit import record
from solkit.cli.main import app
from solkit.judge.score import score
from solkit.report.renderers import FILE_RENDERERS, RENDERERS

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "benchmarks" / "h200" / "main.jsonl"
RUN = record.read(RECORDED)


def report(*words: str | Path) -> Result:
    """Run the command in this process, as the program does."""
    return CliRunner().invoke(app, ["report", *map(str, words)])


@pytest.mark.parametrize("to", sorted(set(RENDERERS) - {"html"}))
def test_a_text_format_goes_to_stdout(to: str) -> None:
    """The whole of it, and nothing else; the page is too long to be asked for twice."""
    done = report(RECORDED, "--format", to)
    assert (0, "") == (done.exit_code, done.stderr)
    assert RENDERERS[to](RUN, score(RUN)).rstrip("\n") == done.stdout.rstrip("\n")


@pytest.mark.parametrize("to", [*RENDERERS, *FILE_RENDERERS])
def test_every_format_goes_into_a_file(tmp_path: Path, to: str) -> None:
    """Named by -o, with stdout left empty."""
    path = tmp_path / "out" / f"run.{to}"
    done = report(RECORDED, "--format", to, "-o", path)
    assert (0, "", f"wrote {path}\n") == (done.exit_code, done.stdout, done.stderr)
    match to:
        case "parquet":
            assert 70 == pq.read_table(path).num_rows
        case "json":
            assert 70 == len(json.loads(path.read_text(encoding="utf-8"))["cases"])
        case "junit":
            assert "70" == ET.parse(path).getroot().get("tests")  # noqa: S314  # our own file
        case "csv":
            assert 71 == len(path.read_text(encoding="utf-8").splitlines())
        case "html":
            assert path.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
        case "markdown":
            assert path.read_text(encoding="utf-8").startswith("## ")


def test_parquet_needs_a_file() -> None:
    """It is no text for a terminal: said before anything is read."""
    done = report("none.jsonl", "--format", "parquet")
    assert (2, "") == (done.exit_code, done.stdout)
    assert "parquet is no text for a terminal" in done.stderr
    assert "remedy: name a file: -o run.parquet" in done.stderr


def test_parquet_without_its_extra_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4, as for any library that is missing, and no half a file."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "run.parquet"
    done = report(RECORDED, "--format", "parquet", "-o", path)
    assert 4 == done.exit_code, done.stderr
    assert "remedy: pip install 'solkit[parquet]'" in done.stderr
    assert not path.exists()


def test_an_unknown_format_names_the_known_ones() -> None:
    """A usage error."""
    done = report(RECORDED, "--format", "pdf")
    assert (2, "") == (done.exit_code, done.stdout)
    assert all(f"'{to}'" in done.stderr for to in (*RENDERERS, *FILE_RENDERERS))


@pytest.mark.parametrize("to", ["junit", "markdown", "json"])
def test_a_run_that_was_cut_in_a_line_says_so_in_every_format(tmp_path: Path, to: str) -> None:
    """It is judged as far as it goes, and does not look whole."""
    lines = RECORDED.read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(lines[:11]) + lines[11][:200])
    done = report(cut, "--format", to)
    assert 0 == done.exit_code
    assert "the last line is cut short and was left out" in done.stderr
    assert "The run was cut short: 10 cases of 70 planned are here." in done.stdout
