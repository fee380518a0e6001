"""A kernel over rows is launched as one of three templates, by what holds a row."""

from dataclasses import replace

import pytest

from solkit.declare.geometry import RowLimits
from solkit.declare.kernel import Launch
from solkit.declare.row_launch import row_launch
from solkit.model import Case

LIMITS = RowLimits(chunks=2, most_chunks=4, registers=lambda _chunks: 40, most_threads=512)


@pytest.mark.parametrize(
    ("rows", "cols", "expected"),
    [
        # 512 vectors of 8: 256 threads hold 2 each; 6 blocks of 40 registers a thread fit on an SM.
        (8192, 4096, Launch("norm<__half, 256, 1, 8, 2, 6, true>", (8192, 1, 1), (256, 1, 1))),
        # Five pairs: 8 threads a row, 16 rows in a block of 128.
        (17, 10, Launch("norm<__half, 8, 16, 2, 1, 16, true>", (2, 1, 1), (128, 1, 1))),
        # One row of 2048 vectors: 8 blocks of 128 threads hold 2 each.
        (1, 16384, Launch("norm_cluster<__half, 8, 128, 8, 2, true>", (8, 1, 1), (128, 1, 1))),
        # 32,768 vectors are more than 1024 threads hold.
        (9, 262_144, Launch("norm_looped<__half, 1024, 8, true>", (9, 1, 1), (1024, 1, 1))),
    ],
)
def test_what_holds_a_row_chooses_the_template(rows: int, cols: int, expected: Launch) -> None:
    """Registers of a block, of a cluster where rows are few and long, or none."""
    case = Case("norm", "solkit", {"rows": rows, "cols": cols}, "fp16")
    assert expected == row_launch(case, "norm", LIMITS, more="true")


@pytest.mark.parametrize(("at_once", "expected"), [(1, 1), (2, 2), (4, 2)])
def test_the_chunks_asked_for_at_once_follow_the_blocks_of_an_sm(
    at_once: int, expected: int
) -> None:
    """No more than a thread has, which is 2; clusters ask for all of theirs."""
    limits = replace(LIMITS, at_once=at_once)
    case = Case("norm", "solkit", {"rows": 8192, "cols": 4096}, "fp16")
    assert f"norm<__half, 256, 1, 8, 2, 6, {expected}>" == row_launch(case, "norm", limits).entry
    few = replace(case, shape={"rows": 1, "cols": 16384})
    assert "norm_cluster<__half, 8, 128, 8, 2>" == row_launch(few, "norm", limits).entry


def test_the_arguments_are_passed_on() -> None:
    """And nothing stands behind the sizes where nothing is asked for."""
    case = Case("norm", "solkit", {"rows": 9, "cols": 262_144}, "fp32")
    launch = row_launch(case, "norm", LIMITS, args=("x", "y", 1e-6))
    assert ("norm_looped<float, 1024, 4>", ("x", "y", 1e-6)) == (launch.entry, launch.args)
