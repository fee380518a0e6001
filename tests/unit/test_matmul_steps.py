"""The tables of docs/matmul_add.md come from the recorded runs."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import matmul_steps  # noqa: E402  # benchmarks are scripts, no package

from solkit.record import read  # noqa: E402


def test_the_page_is_what_its_runs_give() -> None:
    """Nobody writes a measured time by hand."""
    page = (ROOT / "docs" / "matmul_add.md").read_text(encoding="utf-8")
    assert page == matmul_steps.rendered(page)


def test_every_run_has_its_table() -> None:
    """A run that no page shows would be forgotten."""
    page = (ROOT / "docs" / "matmul_add.md").read_text(encoding="utf-8")
    shown = {found[1] for found in matmul_steps.SECTION.finditer(page)}
    assert shown == {path.stem for path in matmul_steps.STEPS.glob("*.jsonl")}


def test_a_table_says_who_was_fastest_and_by_how_much() -> None:
    """A line a shape: solkit's forms by time, the fastest in bold, beside the peer."""
    lines = matmul_steps.step_table(read(matmul_steps.STEPS / "5_medium.jsonl")).splitlines()
    assert "| M x N x K, w | forms, fastest first | cublaslt_best | fastest / peer |" == lines[0]
    row = next(line for line in lines if line.startswith("| 586 x 5120 x 5120, nk "))
    assert row.split(" | ")[1].startswith("**w128x200 42.5 µs**, w128x200m 43.5 µs, w64x200 47.1")
    assert row.endswith("| 44.8 µs | 0.948 |")
