"""What the documents show comes from the recorded runs, and these are what they claim to be."""

import subprocess
import sys
from pathlib import Path

from solkit.judge.score import Scored, score
from solkit.model import Measured
from solkit.record import read

ROOT = Path(__file__).parents[2]
RUN = read(ROOT / "benchmarks" / "h200" / "main.jsonl")


def test_the_recorded_run_is_whole_and_from_a_real_card() -> None:
    """70 cases on an H200, complete, cold, checked, each with raw samples and clocks."""
    assert ("NVIDIA H200", "cuda", "complete") == (RUN.facts.name, RUN.device, RUN.ended)
    assert 70 == len(RUN.outcomes) == RUN.planned_count
    for outcome in RUN.outcomes:
        assert isinstance(outcome, Measured)
        assert "cold" == outcome.cache
        assert 20 <= len(outcome.times_s)
        assert 0 <= outcome.check.error_fraction <= 1
        assert 1e9 < (outcome.clocks.sm_hz or 0) < 2.02e9


def test_no_recorded_score_is_beyond_light() -> None:
    """Nothing invalid, nothing above the data sheet, nothing clearly above the ceilings."""
    judged = [item for item in score(RUN) if isinstance(item, Scored)]
    assert 70 == len(judged)
    assert [] == [item for item in judged if item.status == "invalid"]
    assert [] == [item for item in judged if item.above_published or item.above_measured]


def test_the_readmes_table_is_made_from_it() -> None:
    """After a new recording: python benchmarks/readme.py."""
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "readme.py", "--check"], check=False
    )
    assert 0 == done.returncode
