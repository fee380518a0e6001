"""The choice among several ways to make a call, by which peers are tuned."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from peers.parts.fastest import fastest  # noqa: E402  # it imports torch

pytestmark = pytest.mark.gpu


def spin(cycles: int, _operand: Any) -> None:
    torch.cuda._sleep(cycles)


def refused(_operand: Any) -> None:
    message = "more shared memory than there is"
    raise RuntimeError(message)


@pytest.fixture
def operands() -> list[Any]:
    return [torch.zeros(2**20, device="cuda")]


def test_the_way_that_takes_the_gpu_least_is_chosen(operands: list[Any]) -> None:
    """Spins of 50, 20 and 80 us; one that raises is no choice, and costs nothing else."""
    ways = [partial(spin, 100_000), refused, partial(spin, 40_000), partial(spin, 160_000)]
    assert 2 == fastest(ways, operands)


def test_where_no_way_runs_the_first_reason_is_told(operands: list[Any]) -> None:
    """It is what a library said of it."""
    with pytest.raises(RuntimeError, match=r"none of 2 ways runs: more shared memory"):
        fastest([refused, refused], operands)
