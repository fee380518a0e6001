"""The Markdown summary: short, bounded, and safe to paste into a page."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import synthetic_run

from solkit import record
from solkit.judge.score import score, valid
from solkit.model import Case, Failed
from solkit.report.markdown import BYTES_MOST, render, safe
from solkit.report.plain import DASH

CASE = Case("copy", "solkit", {"elements": 8}, "bf16")


def test_the_summary_of_a_run_is_as_recorded(golden: Callable[[str, str], None]) -> None:
    """Verdict first, then what is not a result, then the costliest cases."""
    run = synthetic_run()
    golden("report.md", render(run, score(run)))


def test_names_cannot_make_markup() -> None:
    """Pipes, tags, mentions and code marks in a name are text."""
    case = replace(CASE, kernel="a|b<img>`c`@team")
    run = synthetic_run([Failed(case, "check", "wrong")])
    assert "a\\|b&lt;img&gt;\\`c\\`@&#8203;team" in render(run, score(run))


@pytest.mark.parametrize("text", ["https://example.com", "www.example.com", "WWW.x.org", "a@b.org"])
def test_an_address_in_a_name_is_no_link(text: str) -> None:
    """GitHub makes links of bare addresses, and of an entity's once it is rendered."""
    said = safe(text)
    assert text == said.replace("&#8203;", "")
    assert not re.search(r"://|www\.|@\w", said, re.IGNORECASE)


def test_what_is_no_result_stands_before_everything_else() -> None:
    """The order of sections: results of a table come after what went wrong."""
    run = synthetic_run()
    below = {run.outcomes[3].case.key: "SOL 86.7 % is below the floor of 90 %"}
    text = render(run, score(run), gate="1 of 63 cases is below its floor", below=below)
    assert "**Gate:** 1 of 63 cases is below its floor" == text.splitlines()[2]
    assert [
        "### Not results",
        "### Failing the gate",
        "### To keep in mind",
        "### SOL per kernel, lowest first",
        "### Costliest cases, by time above the bound",
        "### Skipped",
    ] == [line for line in text.splitlines() if line.startswith("###")]
    assert (
        "- **copy/solkit** elements=16777216 bf16: SOL 86.7 % is below the floor of 90 %"
    ) in text.splitlines()


def test_the_farthest_below_the_floor_are_named_and_the_rest_are_counted() -> None:
    """Ten of them, the lowest score first."""
    run = synthetic_run()
    judged = score(run)
    good = sorted(valid(judged), key=lambda item: item.raw_fraction)
    text = render(run, judged, below={item.outcome.case.key: "low" for item in good})
    section = text.partition("### Failing the gate\n\n")[2].partition("\n\n")[0].splitlines()
    assert ["- and 53 more cases in the report"] == section[10:]
    assert "- **bias\\_gelu/torch** rows=1 cols=4096 bf16: low" == section[0]


def test_a_kernel_without_a_score_is_the_first_row() -> None:
    """It has no median, and what became of its cases is said."""
    run = synthetic_run()
    rows = render(run, score(run)).partition("### SOL per kernel")[2].splitlines()
    assert [
        "| matmul\\_add/wide&lt;256, 8&gt; | 1 | — | — | 1 failed |",
        "| softmax/fast | 1 | — | — | 1 failed |",
        f"| bias\\_gelu/torch | 6 | 55.8 % | 0.5{DASH}68 % |  |",
    ] == rows[4:7]


def test_the_recorded_run_fits_a_screen_or_two() -> None:
    """The summary of 70 cases on an H200."""
    run = record.read(Path(__file__).parents[2] / "benchmarks" / "h200" / "main.jsonl")
    text = render(run, score(run))
    assert 5_000 > len(text.encode())
    assert "| **matmul\\_add/solkit** M=8192 N=10240 K=2560 weight=kn bf16 |" in text


@settings(max_examples=50, deadline=None)
@given(st.text(min_size=1, max_size=300), st.integers(1, 400))
def test_the_summary_is_bounded(text: str, count: int) -> None:
    """However much failed, the summary fits a comment."""
    failed = [
        Failed(replace(CASE, shape={"elements": n + 1}), "check", f"{n} {text}" * 20, text)
        for n in range(count)
    ]
    run = synthetic_run(failed)
    run = replace(run, notes=tuple(f"{text * 20}{n}" for n in range(count)))
    below = {each.case.key: text * 20 for each in failed}
    said = render(run, score(run), gate=text[:300], below=below)
    assert len(said.encode()) <= BYTES_MOST + 100
