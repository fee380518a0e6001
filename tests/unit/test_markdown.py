"""The Markdown summary: short, bounded, and safe to paste into a page."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import synthetic_run

from solkit.judge.score import score
from solkit.model import Case, Failed
from solkit.report.markdown import BYTES_MOST, render

CASE = Case("copy", "solkit", {"elements": 8}, "bf16")


def test_the_summary_of_a_run_is_as_recorded(golden: Callable[[str, str], None]) -> None:
    """Verdict first, then what is not a result, then the costliest cases."""
    run = synthetic_run()
    golden("report.md", render(run, score(run)))


def test_names_cannot_make_markup() -> None:
    """Pipes, tags, mentions and code marks in a name are text."""
    case = replace(CASE, kernel="a|b<img>`c`@team")
    run = synthetic_run([Failed(case, "check", "wrong")])
    assert "a\\|b&lt;img&gt;\\`c\\`&#64;team" in render(run, score(run))


@settings(max_examples=50, deadline=None)
@given(st.text(min_size=1, max_size=300), st.integers(1, 400))
def test_the_summary_is_bounded(text: str, count: int) -> None:
    """However much failed, the summary fits a comment."""
    failed = [
        Failed(replace(CASE, shape={"elements": n + 1}), "check", f"{n} {text}" * 20, text)
        for n in range(count)
    ]
    run = synthetic_run(failed)
    assert len(render(run, score(run)).encode()) <= BYTES_MOST + 100
