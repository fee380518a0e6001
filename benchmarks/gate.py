"""How far the gate can be trusted: runs with known changes, measured, recorded, judged, on a page.

    python benchmarks/gate.py                  measure all runs on this machine's GPU, then judge
    python benchmarks/gate.py --only p5,p10    some runs; the others stay as they were
    python benchmarks/gate.py --docs           judge the recorded runs, make record and page; no GPU
    python benchmarks/gate.py --check          exit 1 where record or page are not the runs'

Each run is `solkit run` in a process of its own. One that fails costs its own figures: what it left
is kept, the other runs go on, and the exit code is 1. See gate_parts/ for the parts.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from accuracy import text_of
from accuracy_parts.page import WORDS
from gate_parts import judging, page, runs, sweep
from gate_parts.limits import verdicts

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "h200" / "gate"
RECORD = ROOT / "benchmarks" / "h200" / "gate.json"
PAGE = ROOT / "docs" / "gate.md"
MOST_BYTES = 6_000_000  # of all recorded runs: they are part of the repository


def main(arguments: Sequence[str] | None = None, talk: runs.Talk | None = None) -> int:
    """Measure and judge, or only judge, or only look; return the exit code.

    talk: what runs a command, in place of a process of its own.
    """
    asked = options(arguments)
    if asked.check:
        held = (asked.record, asked.page)
        made = made_of(asked.runs)
        return int(not all(path.is_file() for path in held) or made != tuple(map(_read, held)))
    problems = [] if asked.docs else measure(asked, talk)
    record, text = made_of(asked.runs)
    for path, content in ((asked.record, record), (asked.page, text)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for verdict in verdicts(json.loads(record)):
        print(f"{WORDS[verdict.passed]:12} {verdict.test}: {verdict.figure} ({verdict.limit})")
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return int(bool(problems))


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=_chosen, default=tuple(sweep.FRACTIONS), metavar="RUNS")
    parser.add_argument("--docs", action="store_true", help="judge the recorded runs; no GPU")
    parser.add_argument("--check", action="store_true", help="exit 1 where the page is an old one")
    parser.add_argument("--runs", type=Path, default=KEPT, help="the folder of recorded runs")
    parser.add_argument("--record", type=Path, default=RECORD, help="the JSON file")
    parser.add_argument("--page", type=Path, default=PAGE, help="the Markdown file")
    parser.add_argument("--cases", type=int, default=sweep.CASES, help="cases of the sweep")
    parser.add_argument("--device", default="cuda", help="cuda or cuda:N")
    parser.add_argument("--budget", type=float, default=runs.BUDGET_S, help="seconds a case")
    return parser.parse_args(arguments)


def _chosen(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    strangers = [name for name in names if name not in sweep.FRACTIONS]
    if strangers or not names:
        message = (
            f"no run is called {', '.join(strangers) or 'nothing'}; "
            f"known: {', '.join(sweep.FRACTIONS)}"
        )
        raise argparse.ArgumentTypeError(message)
    return tuple(name for name in sweep.FRACTIONS if name in names)


def measure(asked: argparse.Namespace, talk: runs.Talk | None = None) -> list[str]:
    """Measure the runs that were asked for; return what went wrong."""
    plan = runs.Plan(asked.only, asked.runs, asked.cases, asked.device, asked.budget)
    print(f"about {runs.estimate_s(plan):.0f} s on the card", flush=True)
    began = monotonic()
    with tempfile.TemporaryDirectory() as name:
        problems = runs.measure(plan, Path(name), talk)
    print(f"all runs: {monotonic() - began:.0f} s", flush=True)
    size = sum(path.stat().st_size for path in plan.kept.glob("*"))
    if size > MOST_BYTES:
        problems.append(f"the runs take {size / 1e6:.1f} MB of {MOST_BYTES / 1e6:g}")
    return problems


def made_of(kept: Path) -> tuple[str, str]:
    """Return the record and the page that the recorded runs give."""
    record = judging.judged(runs.load(kept), runs.noted_in(kept))
    return text_of(record), page.render(record)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
