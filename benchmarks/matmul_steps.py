"""The tables of docs/matmul_add.md, which tells how the wgmma products came about, step by step.

    python benchmarks/matmul_steps.py            make the tables anew from the recorded runs; no GPU
    python benchmarks/matmul_steps.py --check    exit 1 where the page is not the runs'

Each run in h200/matmul_add/steps/ has some shapes and forms of a step, cut from one that measured
many more: variants of the kernel as it then was, beside cublasLt's fastest of eight.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from accuracy_parts.page import table

from solkit import units
from solkit.model import Measured, Run
from solkit.record import read

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "matmul_add.md"
STEPS = ROOT / "benchmarks" / "h200" / "matmul_add" / "steps"
PEER = "cublaslt_best"
SECTION = re.compile(r"<!-- step:(\w+):begin -->\n.*?<!-- step:\1:end -->\n", re.DOTALL)


def step_table(run: Run) -> str:
    """Return a run's times, a line a shape: solkit's forms, fastest first, and the peer.

    No column a form: most shapes have few of a step's forms, and the table is wider than a page.
    """
    times: dict[str, dict[str, float]] = {}
    for outcome in run.outcomes:
        if isinstance(outcome, Measured):
            case = outcome.case
            extents = " x ".join(str(case.shape[axis]) for axis in ("M", "N", "K"))
            times.setdefault(f"{extents}, {case.params['weight']}", {})[case.kernel] = (
                outcome.median_s
            )
    head = ("M x N x K, w", "forms, fastest first", PEER, "fastest / peer")
    return table(head, [_row(shape, found) for shape, found in times.items()], words=2)


def _row(shape: str, found: dict[str, float]) -> tuple[str, ...]:
    forms = sorted((time_s, name) for name, time_s in found.items() if name != PEER)
    said = [f"{name} {units.seconds(time_s)}" for time_s, name in forms]
    cells = ", ".join((f"**{said[0]}**", *said[1:]))
    return (shape, cells, units.seconds(found[PEER]), f"{forms[0][0] / found[PEER]:.3f}")


def rendered(page: str) -> str:
    """Return the page with the table of each step between its marks."""

    def section(found: re.Match[str]) -> str:
        name = found[1]
        text = step_table(read(STEPS / f"{name}.jsonl"))
        return f"<!-- step:{name}:begin -->\n{text}<!-- step:{name}:end -->\n"

    return SECTION.sub(section, page)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the tables, or only look."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit 1 where the page is old")
    asked = parser.parse_args(arguments)
    page = PAGE.read_text(encoding="utf-8")
    if asked.check:
        return int(rendered(page) != page)
    PAGE.write_text(rendered(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
