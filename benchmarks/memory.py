"""solkit's memory-bound kernels beside their peers: measured, judged, and shown in README.md.

    python benchmarks/memory.py                  measure the sweep on this machine's GPU, then judge
    python benchmarks/memory.py --seconds 550    stop in time; what was measured by then is kept
    python benchmarks/memory.py --resume         go on where it was cut, on the same card
    python benchmarks/memory.py --only norms     some segments; the others stay as they were
    python benchmarks/memory.py --docs           judge the recorded runs, make the section; no GPU
    python benchmarks/memory.py --check          exit 1 where the section is not the runs'

Each segment of the sweep is `solkit run` in a process of its own, with a file of its own. A kernel
that fails costs its own case; a segment that fails costs its own figures. The exit code is 1 where
something was not measured; that a bar was missed is no error. See memory_parts/ for the parts, and
beside_parts/ for those that matmul.py has, too.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from accuracy_parts.limits import Verdict
from beside_parts.bars import told
from beside_parts.page import by_operator
from beside_parts.script import Script
from beside_parts.standing import mean_gain, standings
from memory_parts import page, segments
from memory_parts.bars import judged, mean_verdict

from solkit.model import Run


def verdicts(runs: Sequence[Run]) -> list[Verdict]:
    """Return what became of every bar, and of the mean over all shapes."""
    shapes = standings(runs)
    return [*(bar.verdict for bar in judged(shapes)), mean_verdict(shapes)]


def lines(runs: Sequence[Run], each: bool) -> list[str]:  # noqa: FBT001  # as a script calls it
    """Return the means operator by operator and, with `each`, the shapes that miss their bar."""
    shapes = standings(runs)
    found = []
    for operator, members in by_operator(shapes).items():
        mean, count = mean_gain(members)
        said = "no peer" if mean is None else f"{mean:.3f} x over {count} shapes"
        found.append(f"{operator}: {said}")
    for bar in judged(shapes) if each else ():
        found += [
            f"missed: {bar.bar.title}: {shape.where}: {told(bar.bar, shape)}"
            for shape in bar.missed
        ]
    return found


SCRIPT = Script("memory", __doc__, segments.SWEEP, page.render, verdicts, lines)

if __name__ == "__main__":
    sys.exit(SCRIPT.main())
