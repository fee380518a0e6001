"""A benchmark as a script: measure, judge, and make a section of a page from what is recorded."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from accuracy_parts.limits import Verdict
from accuracy_parts.page import WORDS
from beside_parts import runs
from beside_parts.sweep import Sweep

from solkit.model import Run

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "benchmarks" / "README.md"
MOST_BYTES = 8_000_000  # of all recorded runs: they are part of the repository
SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Script:
    """What a benchmark measures, and what it makes of it.

    name: of its folder of recorded runs, of its folder of work, and of the marks in the page.
    verdicts: what it says of every bar. told: further lines, the second argument True for those
    that the page has, too.
    """

    name: str
    text: str
    sweep: Sweep
    render: Callable[[Sequence[Run], Mapping[str, str]], str]
    verdicts: Callable[[Sequence[Run]], Sequence[Verdict]]
    told: Callable[[Sequence[Run], bool], Sequence[str]]

    @property
    def kept(self) -> Path:
        """The folder of its recorded runs."""
        return ROOT / "benchmarks" / "h200" / self.name

    def main(self, arguments: Sequence[str] | None = None, talk: runs.Talk | None = None) -> int:
        """Measure and judge, or only judge, or only look; return the exit code.

        talk: what runs a command, in place of a process of its own.
        """
        asked = self.options(arguments)
        if asked.check:
            return int(self._with_section(asked) != asked.page.read_text(encoding="utf-8"))
        problems = [] if asked.docs else self._measure(asked, talk)
        asked.page.write_text(self._with_section(asked), encoding="utf-8")
        recorded = runs.load(asked.runs, self.sweep)
        for verdict in self.verdicts(recorded):
            print(f"{WORDS[verdict.passed]:12} {verdict.test}: {verdict.figure} ({verdict.limit})")
        for line in self.told(recorded, asked.docs):
            print(line)
        for problem in problems:
            print(f"problem: {problem}", file=sys.stderr)
        return int(bool(problems))

    def options(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Read the command line."""
        parser = argparse.ArgumentParser(
            description=self.text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument(
            "--only", type=self._chosen, default=tuple(self.sweep.segments), metavar="SEGMENTS"
        )
        parser.add_argument("--docs", action="store_true", help="judge the recorded runs; no GPU")
        parser.add_argument("--check", action="store_true", help="exit 1 where the section is old")
        parser.add_argument("--resume", action="store_true", help="finish what was cut")
        parser.add_argument("--seconds", type=float, default=SECONDS, help="for all segments")
        parser.add_argument(
            "--shapes",
            type=Path,
            default=self.sweep.shapes,
            help="another sweep, from the root's view",
        )
        parser.add_argument(
            "--runs", type=Path, default=self.kept, help="the folder of recorded runs"
        )
        parser.add_argument(
            "--work", type=Path, default=ROOT / "solkit-out" / self.name, help="where runs are made"
        )
        parser.add_argument(
            "--page", type=Path, default=PAGE, help="the Markdown file with the marks"
        )
        parser.add_argument("--device", default="cuda", help="cuda or cuda:N")
        parser.add_argument(
            "--budget", type=float, default=self.sweep.budget_s, help="seconds of sampling a case"
        )
        return parser.parse_args(arguments)

    def _chosen(self, text: str) -> tuple[str, ...]:
        try:
            return self.sweep.chosen([name.strip() for name in text.split(",") if name.strip()])
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    def _measure(self, asked: argparse.Namespace, talk: runs.Talk | None) -> list[str]:
        """Measure the segments that were asked for; return what went wrong or was not done."""
        plan = runs.Plan(
            sweep=replace(self.sweep, shapes=asked.shapes, budget_s=asked.budget),
            names=asked.only,
            kept=asked.runs,
            work=asked.work.resolve(),
            seconds=asked.seconds,
            device=asked.device,
            resume=asked.resume,
        )
        began_s = monotonic()
        problems = runs.measure(plan, talk)
        print(f"all segments: {monotonic() - began_s:.0f} s", flush=True)
        size = sum(path.stat().st_size for path in plan.kept.rglob("*") if path.is_file())
        if size > MOST_BYTES:
            problems.append(f"the runs take {size / 1e6:.1f} MB of {MOST_BYTES / 1e6:g}")
        return problems

    def _with_section(self, asked: argparse.Namespace) -> str:
        """Return the page with the section that the recorded runs give."""
        begin, end = (f"<!-- {self.name}:{mark} -->\n" for mark in ("begin", "end"))
        head, rest = asked.page.read_text(encoding="utf-8").split(begin)
        _, tail = rest.split(end)
        text = self.render(runs.load(asked.runs, self.sweep), runs.versions_in(asked.runs))
        return f"{head}{begin}{text}{end}{tail}"
