"""A run in a notebook: what IPython shows of it, safe and short."""

import time
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter
from synthetic import measured, outcomes, synthetic_run

import solkit
from solkit import record
from solkit.errors import BadInput
from solkit.judge.score import Scored, score
from solkit.model import Case, Failed, Run, Work

RUN_FILE = Path(__file__).parents[2] / "benchmarks" / "h200" / "main.jsonl"
CASE = Case("copy", "solkit", {"elements": 8}, "bf16")
VOID = {"br", "hr", "img", "meta", "link", "input"}


class Reader(HTMLParser):
    """Collects elements, attributes and text, and refuses what does not close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        assert tag not in VOID
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        """Close the element that was opened last."""
        assert tag == self.open.pop()

    def handle_data(self, data: str) -> None:
        """Note a piece of text."""
        self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert [] == reader.open
    return reader


def shown(value: object) -> dict[str, Any]:
    """Return what IPython would put into the notebook."""
    data, _ = DisplayFormatter().format(value)
    return dict(data)


def test_the_fragment_of_a_run_is_as_recorded(golden: Callable[[str, str], None]) -> None:
    """Verdict, conditions, caveats, kernels, and the worst twenty cases."""
    html = solkit.Report.of(synthetic_run())._repr_html_()
    golden("fragment.html", html.replace("<tr>", "\n<tr>") + "\n")


def test_a_run_file_is_read_judged_and_shown() -> None:
    """The last line of a cell: HTML for a notebook, Markdown, and one line for a terminal."""
    report = solkit.Report.read(RUN_FILE)
    found = shown(report)
    assert (
        f"<Report of {report.run.id} on NVIDIA H200: 70 of 70 cases measured>"
        == found["text/plain"]
    )
    assert "of the speed of light of the NVIDIA H200." in found["text/html"]
    assert found["text/markdown"].startswith("## The median case runs at ")


def test_a_run_by_itself_is_shown_as_its_report() -> None:
    """And not by a representation that holds every sample."""
    run = record.read(RUN_FILE)
    found = shown(run)
    assert {"text/plain", "text/html"} == set(found)
    assert solkit.Report.of(run)._repr_html_() == found["text/html"] == run._repr_html_()
    assert 200 > len(found["text/plain"])


def test_the_worst_stands_first() -> None:
    """Failed, then INVALID, then by the time above the bound; twenty rows at most."""
    reader = read(solkit.Report.of(synthetic_run())._repr_html_())
    text = "|".join(reader.text)
    cases = text.partition("Cases, worst first")[2]
    order = ["matmul_add/wide<256, 8>", "softmax/fast", "✕ INVALID", "add_rmsnorm/torch"]
    places = [cases.index(each) for each in order]
    assert sorted(places) == places
    assert "(20 of 69)" in cases
    assert 12 + 20 + 2 == reader.tags.count("tr")


def test_it_takes_everything_from_the_page_around_it() -> None:
    """No script, link, id, class or style sheet; no colour of its own; nothing is loaded."""
    reader = read(solkit.Report.of(synthetic_run())._repr_html_())
    assert {"style", "scope", "aria-hidden"} == {name for _, name, _ in reader.attributes}
    assert not {"script", "style", "a", "img", "iframe", "link"} & set(reader.tags)
    styles = " ".join(value for _, name, value in reader.attributes if name == "style")
    assert not any(word in styles for word in ("url(", "#", "rgb", "position", "font-family"))


def test_hostile_names_are_text() -> None:
    """Tags, quotes, entities, controls and ten thousand letters in every name."""
    name = "<script>alert(1)</script>\"'&amp;\x1b[31m\u202e\ud800" + "x" * 10_000
    case = Case(name, name, {name: 1}, "bf16", {name: name})
    run = synthetic_run(
        [
            measured(case, Work(10**9, 10**9), time_s=2e-3),
            *(Failed(replace(case, shape={name: n + 2}), "check", name, name) for n in range(400)),
        ]
    )
    run = replace(run, notes=(name,) * 50, facts=replace(run.facts, name=name))
    html = solkit.Report.of(run)._repr_html_()
    reader = read(html)
    assert "script" not in reader.tags
    assert "<script>alert(1)</script>\"'&amp;\ufffdxxx" in "".join(reader.text)
    assert html.encode()
    assert 60_000 > len(html)


@pytest.mark.parametrize(
    "run",
    [
        synthetic_run([]),
        synthetic_run(outcomes(None), gpu=None),
        replace(synthetic_run(), ended=None),
    ],
    ids=["empty", "cpu", "cut"],
)
def test_every_kind_of_run_is_shown(run: Run) -> None:
    """With what limits it: that it is of a CPU, or was cut."""
    text = " ".join(read(solkit.Report.of(run)._repr_html_()).text)
    if run.device == "cpu":
        assert "CPU run." in text
    if run.ended is None:
        assert "The run was cut short: 69 cases of 69 planned are here." in text
    if not run.outcomes:
        assert "No case was measured" in text


def test_rows_are_what_a_data_frame_takes() -> None:
    """The columns of the CSV, typed, and the samples."""
    report = solkit.Report.read(RUN_FILE)
    rows = report.rows()
    assert 70 == len(rows)
    first = report.judged[0]
    assert isinstance(first, Scored)
    assert (first.median_s, first.sol_score, list(first.outcome.times_s)) == (
        rows[0]["median_s"],
        rows[0]["sol_score"],
        rows[0]["times_s"],
    )


def test_a_report_is_written_in_any_text_format() -> None:
    """What the command of that name writes."""
    report = solkit.Report.of(synthetic_run())
    assert report.render("csv").startswith("operator,kernel,")
    with pytest.raises(BadInput, match="unknown format 'pdf'"):
        report.render("pdf")


def test_gap_scores_are_taken_against_a_baseline_that_is_there() -> None:
    """An unknown one is refused, with those that are known."""
    run = synthetic_run()
    assert score(run, baseline="torch") == solkit.Report.of(run, baseline="torch").judged
    with pytest.raises(BadInput, match="unknown baseline kernel 'torhc'") as caught:
        solkit.Report.of(run, baseline="torhc")
    assert "did you mean 'torch'" in caught.value.remedy


def test_a_path_that_holds_no_run_is_refused(tmp_path: Path) -> None:
    """As the command does, with the file named."""
    with pytest.raises(BadInput, match=r"none.jsonl: can't be read"):
        solkit.Report.read(tmp_path / "none.jsonl")


def test_ten_thousand_cases_are_shown_at_once() -> None:
    """A cell answers in a few seconds, and its output stays small."""
    one = measured(CASE, Work(10**9, 10**9), time_s=2e-3)
    many = [replace(one, case=replace(CASE, shape={"elements": n + 1})) for n in range(10_000)]
    report = solkit.Report.of(synthetic_run(many))
    start_s = time.process_time()
    html = report._repr_html_()
    assert 5 > time.process_time() - start_s
    assert 20_000 > len(html)
