"""benchmarks/sanitizer.py around its tool: what it makes of processes that end, fail or hang."""

import sys
from pathlib import Path

import pytest
from cards import H200

from solkit.declare.registry import bundled
from solkit.declare.wgmma import FORMS

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import sanitizer  # found by the line above

CLEAN = """
echo 'card: NVIDIA H200, CUDA 13.0'
echo 'running: matmul_add M=8'
echo 'cases: 12'
echo '========= ERROR SUMMARY: 0 errors'
"""
FOUND = """
echo 'cases: 12'
echo '========= ERROR SUMMARY: 3 errors'
exit 9
"""
DIES = """
echo 'running: matmul_add M=8'
exit 1
"""
HANGS = """
echo 'running: matmul_add M=8'
echo 'running: matmul_add M=16'
sleep 60 &
wait
"""


def tool(folder: Path, script: str) -> str:
    """Return a program that takes a tool's arguments and does something else."""
    program = folder / "tool"
    program.write_text(f"#!/bin/sh\n{script}", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("script", "cases", "errors", "failed"),
    [(CLEAN, 12, 0, False), (FOUND, 12, 3, True), (DIES, 0, 0, True)],
    ids=["clean", "found", "dies"],
)
def test_a_part_is_clean_where_its_tool_says_so_and_ends_well(
    tmp_path: Path, script: str, cases: int, errors: int, *, failed: bool
) -> None:
    """No word of the tool, or no case, is no clean part."""
    found = sanitizer.examined(tool(tmp_path, script), "memcheck", 0, ("child",), 60)
    assert (cases, errors, failed) == (found.cases, found.errors, found.failed)


def test_a_part_that_hangs_is_stopped_and_says_in_what(tmp_path: Path) -> None:
    """With all that the tool has started: what it waits for would keep the pipe open."""
    found = sanitizer.examined(tool(tmp_path, HANGS), "racecheck", 3, ("child",), 1)
    assert found.failed
    assert found.text.startswith("racecheck, part 3:\n")
    assert found.text.endswith("not done in 1 s, stopped in: matmul_add M=16\n")


def test_the_page_tells_parts_that_failed_from_clean_ones() -> None:
    found = [
        sanitizer.Found("memcheck", 12, 0, failed=False, text=""),
        sanitizer.Found("memcheck", 10, 0, failed=False, text=""),
        sanitizer.Found("racecheck", 12, 2, failed=True, text=""),
    ]
    page = sanitizer.page("NVIDIA H200, CUDA 13.0", found, 76.4)
    assert "| memcheck | 22 | clean |" in page
    assert "| racecheck | 12 | 2 errors, 1 parts failed |" in page
    assert "in\n76 s:" in page


def test_the_cases_are_those_of_the_tests_on_a_card() -> None:
    """Each form of the products by wgmma in both layouts: no module that they need is missing."""
    pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")
    sys.path.insert(0, str(sanitizer.FORMS.parent))
    assert 2 * len(FORMS) == len([*sanitizer.cases_of_forms(H200, "")])
    smallest = [*sanitizer.small_cases(bundled(), H200, "matmul_add")]
    assert {"matmul_add", "matmul_add_bias"} == {case.operator for case in smallest}
