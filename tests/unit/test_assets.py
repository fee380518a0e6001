"""The folder form of the report: a page that carries neither style nor script of its own."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic import outcomes, synthetic_run

from solkit.judge.score import score
from solkit.report.assets import PAGE_NAME, render_folder
from solkit.report.renderers import RENDERERS

RUN = synthetic_run(outcomes()[::6] + outcomes()[-8:])


@pytest.fixture(scope="module")
def folder() -> dict[str, str]:
    return dict(render_folder(RUN, score(RUN)))


def tags_of(text: str) -> list[tuple[str, dict[str, str | None]]]:
    found: list[tuple[str, dict[str, str | None]]] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Tags().feed(text)
    return found


def test_the_folder_holds_the_page_and_what_it_needs(folder: dict[str, str]) -> None:
    """The page comes first; plain names, so that a host may keep them side by side anywhere."""
    assert [PAGE_NAME, "report.css", "report.js", "run.json"] == list(folder)


def test_the_page_holds_no_style_and_no_script_of_its_own(folder: dict[str, str]) -> None:
    """A strict host drops both; they stand in files beside it."""
    tags = tags_of(folder[PAGE_NAME])
    assert "style" not in {tag for tag, _ in tags}
    assert [{"src": "report.js"}] == [attributes for tag, attributes in tags if tag == "script"]
    assert [{"rel": "stylesheet", "href": "report.css"}] == [
        attributes for tag, attributes in tags if tag == "link"
    ]
    assert not {"style", "onclick", "target", "download"} & {
        name for _, attributes in tags for name in attributes
    }


def test_the_page_allows_nothing_but_its_own_files(folder: dict[str, str]) -> None:
    """A policy of its own, for hosts that send none."""
    policy = next(
        attributes["content"]
        for _, attributes in tags_of(folder[PAGE_NAME])[:5]
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert (
        "default-src 'none'; style-src 'self'; script-src 'self'; "
        "base-uri 'none'; form-action 'none'"
    ) == policy


def test_both_forms_say_the_same(folder: dict[str, str]) -> None:
    """But for their head and foot they are one page."""

    def middle(text: str) -> str:
        return text[text.index("<main>") : text.index("</main>")]

    assert middle(RENDERERS["html"](RUN, score(RUN))) == middle(folder[PAGE_NAME])


def test_the_style_sheet_holds_the_bars_and_the_columns(folder: dict[str, str]) -> None:
    """What depends on the run is in the sheet, since the page may not carry it."""
    assert ".b66{--part:66%}" in folder["report.css"]
    assert "#all td:nth-child(6)" in folder["report.css"]
    assert not re.search(r"@import|url\(", folder["report.css"])


def test_the_data_is_json(folder: dict[str, str]) -> None:
    """Every number of the page, for those who want to go on with it."""
    assert isinstance(json.loads(folder["run.json"]), dict)


def solkit(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "solkit", "report", *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_recorded_run_is_written_as_a_folder(tmp_path: Path) -> None:
    """`solkit report RUN --assets DIR` makes the folder and says where the page is."""
    run = Path(__file__).parents[2] / "benchmarks" / "h200" / "main.jsonl"
    place = tmp_path / "new" / "page"
    done = solkit(str(run), "--assets", str(place))
    assert (0, "") == (done.returncode, done.stdout)
    assert str(place / PAGE_NAME) in done.stderr
    assert {PAGE_NAME, "report.css", "report.js", "run.json"} == {
        each.name for each in place.iterdir()
    }


@pytest.mark.parametrize("other", [("-o", "page.html"), ("--format", "csv")])
def test_a_folder_is_no_file_and_no_other_format(other: tuple[str, str], tmp_path: Path) -> None:
    """Both at once is a question of which one was meant."""
    done = solkit("run.jsonl", "--assets", str(tmp_path / "page"), *other)
    assert 2 == done.returncode
    assert "--assets writes html into its folder" in done.stderr
    assert [] == list(tmp_path.iterdir())


def test_both_forms_have_the_same_bytes_anywhere() -> None:
    """Hash seed, time zone and locale leave no trace, charts included."""
    program = (
        "import hashlib, synthetic\n"
        "from solkit.judge.score import score\n"
        "from solkit.report.assets import render_folder\n"
        "from solkit.report.renderers import RENDERERS\n"
        "run = synthetic.synthetic_run(synthetic.outcomes()[::6] + synthetic.outcomes()[-8:])\n"
        "made = {**render_folder(run, score(run)), 'one': RENDERERS['html'](run, score(run))}\n"
        "for name, text in made.items():\n"
        "    print(name, hashlib.sha256(text.encode()).hexdigest())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **changed, "PYTHONPATH": str(Path(__file__).parents[1])},
            check=True,
            capture_output=True,
        ).stdout
        for changed in (
            {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C"},
            {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"},
        )
    }
    assert 1 == len(said)
    assert 5 == len(next(iter(said)).splitlines())
