"""What the benchmarks of kernels beside their peers have recorded, and their sections of a page."""

import sys
import tempfile
from pathlib import Path

import pytest

from solkit.model import Measured

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import matmul  # a script, found by the path above
import memory
from beside_parts import runs
from beside_parts.script import MOST_BYTES, Script

SCRIPTS = [pytest.param(each.SCRIPT, id=each.SCRIPT.name) for each in (memory, matmul)]


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_committed_section_is_the_committed_runs(script: Script) -> None:
    """After a new recording: python benchmarks/memory.py --docs, or matmul.py."""
    assert 0 == script.main(["--check"])


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_recorded_runs_are_of_a_real_card_and_small(script: Script) -> None:
    """An H200, cold, checked, each with its samples; no place of the machine that made them."""
    recorded = runs.load(script.kept, script.sweep)
    if not recorded:
        pytest.skip("no run was recorded yet")
    assert {"NVIDIA H200"} == {run.facts.name for run in recorded}
    outcomes = [each for run in recorded for each in run.outcomes if isinstance(each, Measured)]
    assert {"cold"} == {each.case.cache_mode for each in outcomes}
    assert all(len(each.times_s) >= 7 for each in outcomes)
    kept = [path for path in script.kept.rglob("*") if path.is_file()]
    assert MOST_BYTES > sum(path.stat().st_size for path in kept)
    text = "".join(path.read_text(encoding="utf-8") for path in kept)
    assert f"{tempfile.gettempdir()}/" not in text
