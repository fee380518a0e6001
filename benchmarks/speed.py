"""How fast solkit itself is: start-up, planning and reporting, against the limits it set itself.

    python benchmarks/speed.py [--runs 5]

Each command runs several times as a whole process; the median of its CPU time (user + system) and
wall time is printed beside its limit. The 10,000 outcomes that are reported are the recorded H200
run, repeated at made-up shapes in a temporary folder: their times mean nothing and are not kept.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

RECORDED = Path(__file__).parent / "h200" / "main.jsonl"
COUNT = 10_000


@dataclass(frozen=True, slots=True)
class Limit:
    """A command, what is limited (its CPU or wall time), and the limit in seconds."""

    name: str
    command: list[str]
    kind: str
    limit_s: float


def main() -> int:
    """Time every command; return 1 when one is over its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    over = False
    with tempfile.TemporaryDirectory() as folder:
        shapes, outcomes, page = (Path(folder) / name for name in ("s.yaml", "run.jsonl", "r.html"))
        shapes.write_text(ten_thousand_cases())
        outcomes.write_text(ten_thousand_outcomes())
        for limit in limits(shapes, outcomes, page):
            seen = [timed(limit.command) for _ in range(runs)]
            cpu_s, wall_s = (statistics.median(column) for column in zip(*seen, strict=True))
            value_s = cpu_s if limit.kind == "CPU" else wall_s
            over = over or value_s > limit.limit_s
            verdict = "OVER" if value_s > limit.limit_s else "ok"
            print(
                f"{limit.name:28} CPU {cpu_s:6.2f} s   wall {wall_s:6.2f} s   "
                f"limit {limit.kind} {limit.limit_s:g} s   {verdict}"
            )
        size_mb = page.stat().st_size / 1e6
        over = over or size_mb > 5  # noqa: PLR2004  # the limit, in MB
        print(f"{'its size':28} {size_mb:.2f} MB   limit 5 MB")
    return int(over)


def limits(shapes: Path, outcomes: Path, page: Path) -> list[Limit]:
    """Return the commands with their limits."""
    solkit = [sys.executable, "-m", "solkit"]
    plan = [*solkit, "plan", "--shapes", str(shapes), "--gpu", "h200", "--json"]
    report = [*solkit, "report", str(outcomes), "-o", str(page)]
    return [
        Limit("solkit --help", [*solkit, "--help"], "CPU", 0.3),
        Limit("solkit list", [*solkit, "list"], "CPU", 0.7),
        Limit("plan of 10,000 cases", plan, "wall", 2.0),
        Limit("report of 10,000 outcomes", report, "wall", 10.0),
    ]


def timed(command: list[str]) -> tuple[float, float]:
    """Return a command's CPU and wall time in seconds."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    if status:
        message = f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}"
        raise RuntimeError(message)
    return usage.ru_utime + usage.ru_stime, wall_s


def ten_thousand_cases() -> str:
    """Return a shapes.yaml of 10,000 cases."""
    rows = ", ".join(str(8 * number) for number in range(1, 101))
    cols = ", ".join(str(64 * number) for number in range(1, 101))
    return (
        "version: 1\nsweeps:\n  - operator: softmax\n    dtype: bf16\n"
        f"    grid: {{rows: [{rows}], cols: [{cols}]}}\n"
    )


def ten_thousand_outcomes() -> str:
    """Return the recorded run, its outcomes repeated at other shapes until there are 10,000."""
    lines = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    header, *rest = lines
    measured = [line for line in rest if line.get("kind") == "measured"]
    outcomes = []
    for number in range(COUNT):
        line = dict(measured[number % len(measured)])
        axis, extent = next(iter(line["shape"].items()))
        line["shape"] = {**line["shape"], axis: extent + 8 * (number // len(measured))}
        outcomes.append(line)
    return "\n".join(json.dumps(line) for line in (header, *outcomes, rest[-1])) + "\n"


if __name__ == "__main__":
    sys.exit(main())
