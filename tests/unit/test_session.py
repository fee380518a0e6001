"""The run flow's own rules, where no command line is needed to show them."""

from dataclasses import replace

import charted_runs as runs
import pytest

from solkit.cli.session import _planned, _same_manner
from solkit.declare.catalog import LocalCatalog
from solkit.declare.registry import bundled
from solkit.errors import BadInput
from solkit.measure.manner import Manner
from solkit.model import Case

CATALOG = LocalCatalog(bundled())
FP32 = Case("softmax", "numpy", {"rows": 64, "cols": 512}, "fp32")
BF16 = Case("softmax", "numpy", {"rows": 64, "cols": 512}, "bf16")


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
