"""What is advised where a case ended the worker: what its author can do on that device."""

from typing import Literal

import pytest

from solkit.measure.death import failed
from solkit.measure.process import WorkerDied
from solkit.model import Case, Failed

CASE = Case("twice", "right", {"rows": 8}, "fp32")


def failure(
    message: str, device: Literal["cuda", "cpu"] = "cpu", stage: str = "launch", verdict: str = ""
) -> Failed:
    return failed(CASE, WorkerDied(0, stage, message, verdict), device)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("remedy", "device"), [("PYTHONFAULTHANDLER=1", "cpu"), ("compute-sanitizer", "cuda")]
)
def test_a_crash_is_looked_into_with_the_devices_own_tool(
    remedy: str, device: Literal["cuda", "cpu"]
) -> None:
    """compute-sanitizer sees nothing of a program that runs on the host."""
    said = failure("the worker ended with signal SIGSEGV", device)
    assert ("launch", "crashed") == (said.stage, said.verdict)
    assert remedy in said.remedy


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("remedy", "message"),
    [
        ("must not end its process", "the worker ended with exit code 0"),
        ("must not end its process", "the worker ended with exit code 7; it said: bye"),
        ("must not write", "the declarations wrote b'x' where the worker answers"),
        ("out-of-memory killer", "the worker ended with signal SIGKILL"),
        ("find it with compute-sanitizer", "cudaErrorIllegalAddress: an illegal memory access"),
    ],
)
def test_an_end_that_tells_its_reason_is_advised_by_it(
    remedy: str, message: str, device: Literal["cuda", "cpu"]
) -> None:
    """On any device."""
    assert remedy in failure(message, device).remedy


@pytest.mark.parametrize(("told", "stage"), [(True, "time"), (False, "allocate")])
def test_a_timeout_names_the_option_where_it_counts(told: bool, stage: str) -> None:  # noqa: FBT001  # a column of the table
    """The stages of solkit itself have limits of their own."""
    said = failure("it did not finish within 2 s and was stopped", "cuda", stage, "timeout")
    assert (stage, "timeout") == (said.stage, said.verdict)
    assert told == ("--timeout SECONDS" in said.remedy)


def test_a_stage_that_is_no_cases_is_the_workers() -> None:
    """Such as what is told of ceilings."""
    assert "worker" == failure("the worker ended with signal SIGSEGV", stage="copy").stage
