"""What a run says of itself on its way: the case, what became of it, the best score so far."""

from dataclasses import replace

import pytest
from synthetic import measured

from solkit.cli.progress import Progress
from solkit.model import Bound, CacheMode, Case, Failed, Measured, Work


def timed(sol_fraction: float, *, mode: CacheMode = "cold") -> Measured:
    case = Case("copy", "solkit", {"elements": 2**20}, "bf16", cache_mode=mode)
    bound = Bound(1e-6 * sol_fraction, {}, 1e-6 * sol_fraction, "memory", near_ridge=False)
    return replace(measured(case, Work(2**21, 2**21), time_s=1e-6), bound=bound)


def said(capsys: pytest.CaptureFixture[str], *outcomes: Measured | Failed) -> str:
    with Progress(len(outcomes)) as progress:
        progress.finished(outcomes)
    return capsys.readouterr().err


def test_the_best_score_is_that_of_the_best_case(capsys: pytest.CaptureFixture[str]) -> None:
    """With the last case and its own."""
    text = said(capsys, timed(0.9), timed(0.5))
    assert "[2/2, best SOL 90.0 %] copy/solkit elements=1048576 bf16: 1.00 µs, SOL 50.0 %" in text


def test_a_hot_case_is_no_best_one_and_has_no_score(capsys: pytest.CaptureFixture[str]) -> None:
    """Its data may come from the L2: 250 % of DRAM's bound says nothing of the kernel."""
    text = said(capsys, timed(0.6), timed(2.5, mode="hot"))
    assert "best SOL 60.0 %" in text
    assert text.rstrip().endswith("cache=hot bf16: 1.00 µs")


@pytest.mark.parametrize("mode", ["clean", "zeroed"])
def test_a_flushed_case_counts(capsys: pytest.CaptureFixture[str], mode: CacheMode) -> None:
    """All that it reads comes from DRAM."""
    assert "best SOL 70.0 %" in said(capsys, timed(0.6), timed(0.7, mode=mode))


def test_without_a_score_there_is_no_best_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Hot cases alone, or failures alone."""
    failed = Failed(timed(1.0).case, "compile", "line 2: no such type")
    text = said(capsys, timed(2.5, mode="hot"), failed)
    assert "best" not in text
    assert "[2/2] copy/solkit elements=1048576 bf16: failed at compile: line 2" in text
