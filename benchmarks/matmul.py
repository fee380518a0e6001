"""solkit's matmul_add beside cuBLAS and other peers: measured, judged, and shown in README.md.

    python benchmarks/matmul.py                  measure the sweep on this machine's GPU, then judge
    python benchmarks/matmul.py --seconds 550    stop in time; what was measured by then is kept
    python benchmarks/matmul.py --resume         go on where it was cut, on the same card
    python benchmarks/matmul.py --only large     some segments; the others stay as they were
    python benchmarks/matmul.py --docs           judge the recorded runs, make the section; no GPU
    python benchmarks/matmul.py --check          exit 1 where the section is not the runs'

Each segment of the sweep (large, medium, small: by the number of tokens) is `solkit run` in a
process of its own, with a file of its own. A kernel that fails costs its own case; a segment that
fails costs its own figures. The exit code is 1 where something was not measured; that a bar was
missed is no error. What the tuned peers compile is best compiled ahead, by compile_peers.py. See
matmul_parts/ for the parts, and beside_parts/ for those that memory.py has, too.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from accuracy_parts.limits import Verdict
from beside_parts.bars import told
from beside_parts.script import Script
from beside_parts.standing import standings
from matmul_parts import bars, page, segments

from solkit.model import Run


def verdicts(runs: Sequence[Run]) -> list[Verdict]:
    """Return what became of every bar and of every stretch without one."""
    return [line.verdict for line in bars.lines(standings(runs))]


def lines(runs: Sequence[Run], each: bool) -> list[str]:  # noqa: FBT001  # as a script calls it
    """Return, with `each`, the shapes that miss their bar."""
    return [
        f"missed: {bar.bar.title}: {shape.where}: {told(bar.bar, shape)}"
        for bar in (bars.judged(standings(runs)) if each else ())
        for shape in bar.missed
    ]


SCRIPT = Script("matmul_add", __doc__, segments.SWEEP, page.render, verdicts, lines)

if __name__ == "__main__":
    sys.exit(SCRIPT.main())
