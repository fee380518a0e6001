"""The kind of a failure: from an error's own word, its type, or what it says."""

import numpy as np
import pytest

from solkit.errors import BadInput
from solkit.measure.device.nvrtc import CompileError
from solkit.measure.diagnosis import ends_the_context, verdict_in, verdict_of


class _Cuda(RuntimeError):
    """As CuPy's errors: with the driver's number."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@pytest.mark.parametrize(
    "words",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB",
        "OutOfMemoryError: Out of memory allocating 1,099,511,627,776 bytes",
        "CUDARuntimeError: cudaErrorMemoryAllocation: out of memory",
        "the worker ended with exit code 1; it said: MemoryError",
        "the worker ended with signal SIGABRT; it said: std::bad_alloc",
    ],
)
def test_out_of_memory_is_known_by_its_words(words: str) -> None:
    """Whoever says it, and even as last words."""
    assert "out_of_memory" == verdict_in(words, "crashed")


def test_other_words_leave_the_default() -> None:
    """A signal is no lack of memory."""
    assert "crashed" == verdict_in("the worker ended with signal SIGSEGV", "crashed")
    assert "" == verdict_in("ValueError: shapes differ")


def test_pythons_own_lack_of_memory_is_known_by_its_type() -> None:
    """NumPy raises a subclass."""
    with pytest.raises(MemoryError) as caught:
        np.empty(2**50)
    assert ("out_of_memory", "out_of_memory") == (
        verdict_of(caught.value),
        verdict_of(MemoryError()),
    )


def test_an_error_that_has_a_verdict_keeps_it() -> None:
    """A word that is none of ours is no verdict."""
    assert "timeout" == verdict_of(CompileError("too long", verdict="timeout"))
    strange = BadInput("x")
    strange.verdict = "fine"  # type: ignore[attr-defined]
    assert "" == verdict_of(strange)


@pytest.mark.parametrize(
    ("lost", "error"),
    [
        (True, _Cuda("cudaErrorIllegalAddress: an illegal memory access", 700)),
        (True, _Cuda("CUDA_ERROR_LAUNCH_FAILED", 719)),
        (True, RuntimeError("CUDA error: device-side assert triggered")),
        (False, _Cuda("cudaErrorMemoryAllocation: out of memory", 2)),
        (False, _Cuda("an illegal memory access, it says", 1)),
        (False, RuntimeError("shapes differ")),
        (False, ValueError("device-side assert is no word of CUDA's here")),
    ],
)
def test_after_some_errors_nothing_runs_in_the_process(lost: bool, error: Exception) -> None:  # noqa: FBT001  # a column of the table
    """By CuPy's number where there is one, by torch's words where there is none."""
    assert lost == ends_the_context(error)
