"""The run flow's own rules, where no command line is needed to show them."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import charted_runs as runs
import compared
import pytest

from solkit import record
from solkit.cli import outputs
from solkit.cli.gating import Gating, Held
from solkit.cli.session import (
    Intent,
    Request,
    _again_cut,
    _measure_unsure,
    _planned,
    _same_manner,
    finish_cut,
)
from solkit.declare.catalog import LocalCatalog
from solkit.declare.registry import bundled
from solkit.errors import BadInput
from solkit.measure.bench import Bench
from solkit.measure.manner import Manner
from solkit.model import Case, Run

CATALOG = LocalCatalog(bundled())
USUAL = {"masking": "none", "scale": 1.0}
FP32 = Case("softmax", "numpy", {"rows": 64, "cols": 512}, "fp32", dict(USUAL))
BF16 = Case("softmax", "numpy", {"rows": 64, "cols": 512}, "bf16", dict(USUAL))


def test_a_host_run_without_ceilings_takes_no_case() -> None:
    """No bound is ever taken against limits that nobody measured; what is skipped needs none."""
    run = replace(runs.cpu_run(), ceilings=None)
    assert () == _planned(run, [BF16], CATALOG).jobs
    with pytest.raises(BadInput, match="neither a card nor ceilings"):
        _planned(run, [FP32], CATALOG)


def test_a_host_run_is_bound_by_what_was_measured_on_it() -> None:
    """64 x 512 fp32, in and out: 262,144 bytes under the run's own ceilings."""
    run = runs.cpu_run()
    (job,) = _planned(run, [FP32], CATALOG).jobs
    assert 262_144 == job.work.traffic_bytes
    assert 1e-7 < job.bound.memory_s < 1e-3


def test_a_cut_run_goes_on_in_its_own_manner() -> None:
    """Its budget and cache modes; the limit of a case is the run's unless another is given."""
    begun = Manner(budget_s=0.25, modes=("hot",), timeout_s=7.0)
    assert begun == replace(_same_manner(runs.cpu_run(), begun, None), timer=begun.timer)
    assert 9.0 == _same_manner(runs.cpu_run(), begun, 9.0).timeout_s
    assert 0.25 == _same_manner(runs.cpu_run(), begun, 9.0).budget_s


def written(path: Path, run: Run) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with record.Writer(path, replace(run, outcomes=(), ended=None, duration_s=None)) as writer:
        writer.add(run.outcomes)
    return path


@pytest.mark.parametrize("end", [KeyboardInterrupt(), OSError("gone"), BadInput("no")])
def test_whatever_ends_a_second_measurement_is_told_after_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: BaseException
) -> None:
    """The run itself is whole: an end before the first repeated case comes back, too."""

    def ended(*_: object) -> None:
        raise end

    base, head = compared.pair()
    written(tmp_path / outputs.RUN_FILE, head)
    monkeypatch.setattr("solkit.cli.session._planned", ended)
    no_bench = cast("Bench", type("NoBench", (), {"catalog": CATALOG}))
    assert end is _measure_unsure(no_bench, tmp_path, Held(base=(base,)))
    assert _measure_unsure(no_bench, tmp_path, Held()) is None, "without a BASE none is wanted"


def test_a_second_measurement_that_was_cut_is_made_again_by_resume(tmp_path: Path) -> None:
    """Only where there is a BASE to measure it for, and where it was begun and is not whole."""
    base, head = compared.pair()
    held, again = Held(base=(base,)), tmp_path / outputs.AGAIN_FILE
    assert not _again_cut(tmp_path, held)
    written(again, head)
    assert not _again_cut(tmp_path, held)
    again.write_bytes(again.read_bytes()[:-20])
    assert _again_cut(tmp_path, held)
    assert not _again_cut(tmp_path, Held())


def test_a_run_is_no_baseline_of_itself(tmp_path: Path) -> None:
    """`--resume latest --against latest`: a gate that nothing could fail, by folder or by copy."""
    _, head = compared.pair()
    run = written(tmp_path / "head" / outputs.RUN_FILE, head)
    intent = Intent(tuple(item.case for item in head.outcomes), (), None, Manner())
    (run.parent / outputs.RESUME_FILE).write_bytes(record.to_json(intent))
    for name in (run.parent, written(tmp_path / "copy.jsonl", head)):
        with pytest.raises(BadInput, match="is the run itself, and nothing could differ"):
            finish_cut(run.parent, Request(gating=Gating(against=(name,))))
