"""solkit's memory-bound kernels beside their peers: measured, judged, and shown in README.md.

    python benchmarks/memory.py                  measure the sweep on this machine's GPU, then judge
    python benchmarks/memory.py --seconds 550    stop in time; what was measured by then is kept
    python benchmarks/memory.py --resume         go on where it was cut, on the same card
    python benchmarks/memory.py --only norms     some segments; the others stay as they were
    python benchmarks/memory.py --docs           judge the recorded runs, make the section; no GPU
    python benchmarks/memory.py --check          exit 1 where the section is not the runs'

Each segment of the sweep is `solkit run` in a process of its own, with a file of its own. A kernel
that fails costs its own case; a segment that fails costs its own figures. The exit code is 1 where
something was not measured; that a bar was missed is no error. See memory_parts/ for the parts.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from accuracy_parts.page import WORDS
from memory_parts import page, runs, segments
from memory_parts.bars import judged, mean_verdict, told
from memory_parts.standing import mean_gain, standings

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "h200" / "memory"
WORK = ROOT / "solkit-out" / "memory"
PAGE = ROOT / "benchmarks" / "README.md"
BEGIN, END = "<!-- memory:begin -->\n", "<!-- memory:end -->\n"
MOST_BYTES = 8_000_000  # of all recorded runs: they are part of the repository
SECONDS = 3600.0


def main(arguments: Sequence[str] | None = None, talk: runs.Talk | None = None) -> int:
    """Measure and judge, or only judge, or only look; return the exit code.

    talk: what runs a command, in place of a process of its own.
    """
    asked = options(arguments)
    if asked.check:
        return int(_with_section(asked) != asked.page.read_text(encoding="utf-8"))
    problems = [] if asked.docs else measure(asked, talk)
    asked.page.write_text(_with_section(asked), encoding="utf-8")
    tell(asked.runs, each=asked.docs)
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return int(bool(problems))


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", type=_chosen, default=tuple(segments.SEGMENTS), metavar="SEGMENTS"
    )
    parser.add_argument("--docs", action="store_true", help="judge the recorded runs; no GPU")
    parser.add_argument("--check", action="store_true", help="exit 1 where the section is old")
    parser.add_argument("--resume", action="store_true", help="finish what was cut")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all segments")
    parser.add_argument(
        "--shapes", type=Path, default=segments.SHAPES, help="another sweep, from the root's view"
    )
    parser.add_argument("--runs", type=Path, default=KEPT, help="the folder of recorded runs")
    parser.add_argument("--work", type=Path, default=WORK, help="where runs are made")
    parser.add_argument("--page", type=Path, default=PAGE, help="the Markdown file with the marks")
    parser.add_argument("--device", default="cuda", help="cuda or cuda:N")
    parser.add_argument(
        "--budget", type=float, default=segments.BUDGET_S, help="seconds of sampling a case"
    )
    return parser.parse_args(arguments)


def _chosen(text: str) -> tuple[str, ...]:
    try:
        return segments.chosen([name.strip() for name in text.split(",") if name.strip()])
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def measure(asked: argparse.Namespace, talk: runs.Talk | None = None) -> list[str]:
    """Measure the segments that were asked for; return what went wrong or was not done."""
    plan = runs.Plan(
        names=asked.only,
        kept=asked.runs,
        work=asked.work.resolve(),
        seconds=asked.seconds,
        device=asked.device,
        budget_s=asked.budget,
        shapes=asked.shapes,
        resume=asked.resume,
    )
    began_s = monotonic()
    problems = runs.measure(plan, talk)
    print(f"all segments: {monotonic() - began_s:.0f} s", flush=True)
    size = sum(path.stat().st_size for path in plan.kept.glob("*"))
    if size > MOST_BYTES:
        problems.append(f"the runs take {size / 1e6:.1f} MB of {MOST_BYTES / 1e6:g}")
    return problems


def tell(kept: Path, *, each: bool) -> None:
    """Print the judgement: every bar, the means operator by operator, and each shape that misses.

    each: without it, the page alone names the shapes.
    """
    shapes = standings(runs.load(kept))
    found = judged(shapes)
    for verdict in (*(bar.verdict for bar in found), mean_verdict(shapes)):
        print(f"{WORDS[verdict.passed]:12} {verdict.test}: {verdict.figure} ({verdict.limit})")
    for operator, members in page.by_operator(shapes).items():
        mean, count = mean_gain(members)
        said = "no peer" if mean is None else f"{mean:.3f} x over {count} shapes"
        print(f"{operator}: {said}")
    for bar in found if each else ():
        for shape in bar.missed:
            print(f"missed: {bar.bar.title}: {shape.where}: {told(bar.bar, shape)}")


def _with_section(asked: argparse.Namespace) -> str:
    """Return the page with the section that the recorded runs give."""
    head, rest = asked.page.read_text(encoding="utf-8").split(BEGIN)
    _, tail = rest.split(END)
    text = page.render(runs.load(asked.runs), runs.versions_in(asked.runs))
    return f"{head}{BEGIN}{text}{END}{tail}"


if __name__ == "__main__":
    sys.exit(main())
