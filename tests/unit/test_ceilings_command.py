"""`solkit ceilings`: what it prints, keeps and refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from solkit.measure.probe import cuda_devices


def solkit(*words: str, at: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SOLKIT_CACHE_DIR": str(at / "cache"), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "solkit", "ceilings", *words],
        cwd=at,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=200,
        check=False,
    )


@pytest.mark.slow
def test_a_hosts_ceilings_are_one_document(tmp_path: Path) -> None:
    """The same on stdout and in --out, with the samples' place; nothing is kept elsewhere."""
    done = solkit("--device", "cpu", "--json", "--out", "mine.json", at=tmp_path)
    assert 0 == done.returncode, done.stderr
    document = json.loads(done.stdout)
    assert "mine.json" == document.pop("path")
    assert json.loads((tmp_path / "mine.json").read_text(encoding="utf-8")) == document
    assert ("solkit.ceilings/1", "perf_counter") == (document["schema"], document["timer"])
    found = document["ceilings"]
    assert {"read", "copy", "triad", "write"} == {point["kernel"] for point in found["dram"]}
    assert {"perf_counter"} == set(found["floors_s"])
    assert "measuring the ceilings" in done.stderr
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("--timer", "sundial"), 2, "unknown timer 'sundial'"),
        (("--device", "abacus"), 2, "unknown device 'abacus'"),
        (("--device", "cpu", "--timer", "cupti"), 4, "cupti"),
    ],
)
def test_what_can_not_be_measured_is_refused(
    tmp_path: Path, words: tuple[str, ...], code: int, why: str
) -> None:
    """Before anything is measured, with the exit code of its kind."""
    done = solkit(*words, at=tmp_path)
    assert code == done.returncode, done.stderr
    assert why in done.stderr
    assert "" == done.stdout


@pytest.mark.skipif(bool(cuda_devices().devices), reason="a card is here")
def test_a_card_that_is_not_here_is_exit_4(tmp_path: Path) -> None:
    """No ceilings are made up for it."""
    done = solkit("--device", "cuda", at=tmp_path)
    assert 4 == done.returncode
    assert "error:" in done.stderr
