"""Drills: a real run, and what can befall it. What was finished stays, and --resume completes it.

One sweep is begun and cut by SIGKILL; each further drill goes on with a copy of that folder, so
that the host's ceilings are measured once.
"""

import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from drill import begin, fill, gone, keys, mount, resume, unmount

from solkit import record
from solkit.model import Case, CaseKey, Failed, Measured

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="runs are made on Linux")

HERE = Path(__file__).parent
LOADS = ("twice", "wrong_results", "raises", "ends_the_worker", "wants_too_much", "takes_its_time")
LOADS += ("odd_errors",)
# Every kind of bad kernel, between two good ones: what it is recorded as.
BAD = {
    "segfaults": ("launch", "crashed", "the worker ended with signal SIGSEGV"),
    "aborts": ("launch", "crashed", "the worker ended with signal SIGABRT"),
    "says_why_and_exits": ("launch", "crashed", "the worker ended with exit code 7; it said:"),
    "raises": ("launch", "", "ArithmeticError: not today (raises.py, line 9)"),
    "wordless": ("launch", "", "Wordless: (its text can't be had: __str__ raised ValueError)"),
    "surrogate": ("launch", "", "ValueError: half \\ud800 of a sign"),
    "endless": ("launch", "", "xxx... (996,000 more characters)"),
    "says_done": ("worker", "", "the worker's answer does not fit: it holds 0 of the"),
    "asserts": ("launch", "", "AssertionError: rows are negative"),
    "spins": ("launch", "timeout", "it did not finish within 2 s and was stopped"),
    "wants_all_memory": ("launch", "out_of_memory", "Unable to allocate 4.00 PiB"),
    "writes_nothing": ("check", "unwritten", "of 'y'"),
    "returns_another_shape": ("check", "wrong_shape", "(63, 256)"),
}
SLOW_ROWS = (65, 66, 67, 68)
SWEEP = f"""version: 1
defaults: {{dtype: fp32}}
sweeps:
- operator: twice
  kernels: [right, {", ".join(BAD)}, last]
  shapes: [{{rows: 64, cols: 256}}]
- operator: twice
  kernels: [right, slow]
  grid: {{rows: {list(SLOW_ROWS)}, cols: 256}}
"""
COUNT = len(BAD) + 2 + 2 * len(SLOW_ROWS)


@dataclass(frozen=True, slots=True)
class Cut:
    """A sweep that was killed in the middle: its folder, and the worker that it had."""

    folder: Path
    worker: int
    planned: frozenset[CaseKey]


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cut]:
    """Begin the sweep, and kill solkit (SIGKILL) when the bad kernels and one more are done."""
    at = tmp_path_factory.mktemp("drills")
    (at / "shapes.yaml").write_text(SWEEP, encoding="utf-8")
    loads = [word for name in LOADS for word in ("--load", str(HERE / f"{name}.py"))]
    words = ("--shapes", str(at / "shapes.yaml"), "--timeout", "2", "--budget", "0.01")
    running = begin(at / "cut", (*words, *loads, "--out", str(at / "cut")))
    running.until_finished(len(BAD) + 2 + 2)
    worker = running.worker()
    running.process.kill()
    running.end()
    planned = {
        Case("twice", kernel, {"rows": rows, "cols": 256}, "fp32").key
        for rows in (64, *SLOW_ROWS)
        for kernel in (("right", *BAD, "last") if rows == 64 else ("right", "slow"))
    }
    yield Cut(at / "cut", worker, frozenset(planned))
    shutil.rmtree(at)


@pytest.fixture
def folder(cut: Cut, tmp_path: Path) -> Path:
    """Return a copy of the cut run."""
    return Path(shutil.copytree(cut.folder, tmp_path / "run"))


def test_a_killed_parent_takes_its_worker_along(cut: Cut) -> None:
    """No process stays on the device when solkit is gone."""
    assert gone(cut.worker)


def test_what_a_killed_run_finished_is_on_disk(cut: Cut) -> None:
    """The file is readable and has no end; a part of the sweep is in it."""
    run = record.read(cut.folder)
    assert (None, COUNT) == (run.ended, run.planned_count)
    assert len(BAD) + 4 <= len(run.outcomes) < COUNT
    assert keys(run) < cut.planned


def test_each_bad_kernel_is_recorded_as_what_it_was(cut: Cut) -> None:
    """Stage, verdict and words; the good ones before, between and after it are measured."""
    outcomes = {outcome.case.kernel: outcome for outcome in record.read(cut.folder).outcomes}
    for kernel, (stage, verdict, words) in BAD.items():
        failed = outcomes.pop(kernel)
        assert isinstance(failed, Failed)
        assert (stage, verdict) == (failed.stage, failed.verdict), failed
        assert words in failed.message
        assert failed.remedy
    assert {"right": Measured, "last": Measured, "slow": Measured} == {
        kernel: type(outcome) for kernel, outcome in outcomes.items()
    }


def complete(folder: Path, cut: Cut, extra_failed: int = 0) -> None:
    """Finish the run: exactly the planned cases are in it, the bad ones failed (exit 3)."""
    code, out, errors = resume(folder).end()
    run = record.read(folder)
    assert 3 == code, errors  # the bad kernels
    assert ("complete", COUNT) == (run.ended, len(run.outcomes))
    assert cut.planned == keys(run)
    failed = [outcome for outcome in run.outcomes if isinstance(outcome, Failed)]
    assert len(BAD) + extra_failed == len(failed)
    assert str(folder / "report.html") == out.splitlines()[-1]


def test_a_killed_run_is_completed_to_the_same_cases(cut: Cut, folder: Path) -> None:
    """With half a line at its end, as a machine that loses power leaves it."""
    text = (folder / "run.jsonl").read_bytes()
    (folder / "run.jsonl").write_bytes(text[:-40])
    complete(folder, cut)


def test_a_killed_worker_costs_the_case_in_hand(cut: Cut, folder: Path) -> None:
    """SIGKILL from outside, as an out-of-memory killer does; the sweep goes on to its end."""
    before = keys(folder)
    running = resume(folder)
    running.until_finished(len(before) + 1)
    time.sleep(0.1)  # into the next group, which takes 0.5 s; between groups nobody would be hit
    os.kill(running.worker(), signal.SIGKILL)
    code, _, errors = running.end()
    run = record.read(folder)
    assert (3, "complete") == (code, run.ended), errors
    assert cut.planned == keys(run)
    (hit,) = (
        outcome
        for outcome in run.outcomes
        if isinstance(outcome, Failed) and outcome.case.kernel not in BAD
    )
    assert ("crashed", "the worker ended with signal SIGKILL") == (hit.verdict, hit.message)
    assert "out-of-memory killer" in hit.remedy


def test_a_run_is_completed_by_one_solkit_at_a_time(cut: Cut, folder: Path) -> None:
    """A second one would write into the lines of the first: exit 4, and the first goes on."""
    first = resume(folder)
    first.until_finished(len(keys(folder)) + 1)
    first.process.send_signal(signal.SIGSTOP)  # in the middle, however slow this machine is
    try:
        code, _, errors = resume(folder).end()
    finally:
        first.process.send_signal(signal.SIGCONT)
    ended = first.end()[0]
    assert (4, True) == (code, "another solkit is writing it" in errors), errors
    assert 3 == ended
    run = record.read(folder)
    assert ("complete", cut.planned) == (run.ended, keys(run))


@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM"])
def test_an_interrupt_ends_with_a_report_and_is_completed(
    cut: Cut, folder: Path, ending: str
) -> None:
    """Ctrl-C reaches the whole process group, a batch system's SIGTERM does, too: exit 130."""
    before = record.read(folder)
    running = resume(folder)
    running.until_finished(len(before.outcomes) + 2)
    worker = running.worker()
    os.killpg(running.process.pid, getattr(signal, ending))
    code, out, errors = running.end()
    assert 130 == code, errors
    assert f"solkit run --resume {folder}" in errors
    assert str(folder / "report.html") == out.splitlines()[-1]
    assert gone(worker)
    run = record.read(folder)
    assert "interrupted" == run.ended
    assert keys(before) < keys(run) < cut.planned
    complete(folder, cut)


def test_a_disk_that_fills_up_ends_the_run_and_loses_nothing(cut: Cut, folder: Path) -> None:
    """Exit 4; whole lines alone are in the file; with more space it is completed."""
    before = record.read(folder)
    most_bytes = (folder / "run.jsonl").stat().st_size + 3000  # a group of two needs about 4000
    limits = (most_bytes, most_bytes)
    running = resume(folder, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))
    code, _, errors = running.end()
    assert (4, True) == (code, "run.jsonl: can't be written: File too large" in errors), errors
    run = record.read(folder)
    assert keys(before) <= keys(run) < cut.planned
    assert (folder / "run.jsonl").read_bytes().endswith(b"}\n")
    assert () == tuple(note for note in run.notes if "cut short" in note)
    complete(folder, cut)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 64 KiB, where that is allowed (root, and no container that forbids it)."""
    place = tmp_path / "disk"
    if not mount(place, "64k"):
        pytest.skip("only root may mount a disk")
    yield place
    unmount(place)


def test_a_truly_full_disk_ends_the_run_and_loses_nothing(
    cut: Cut, folder: Path, tiny_disk: Path
) -> None:
    """The same with a file system that has no block left, report and all."""
    shutil.copy(folder / "resume.json", tiny_disk)
    shutil.copy(folder / "run.jsonl", tiny_disk)
    filler = fill(tiny_disk)
    code, _, errors = resume(tiny_disk).end()
    assert (4, True) == (code, "can't be written: No space left on device" in errors), errors
    run = record.read(tiny_disk)
    assert keys(folder) <= keys(run) < cut.planned
    filler.unlink()
    assert mount(tiny_disk, "16m")
    complete(tiny_disk, cut)
