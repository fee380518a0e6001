"""Nsight Compute beside our own times: one run of `ncu` over a child, its CSV read back.

Clocks and caches are left alone (--clock-control none --cache-control none). No kernel may be
replayed, since a second pass finds the caches as the first left them: where the metrics don't fit
in one pass they are collected one by one. ncu runs a kernel at a time, so nothing may be blocked.
"""

import csv
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from solkit.model import CacheMode

TIME, READ, WRITTEN = "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"
METRICS = (TIME, READ, WRITTEN)
# What ncu writes in its row of units, in SI.
UNITS = {
    "nsecond": 1e-9,
    "usecond": 1e-6,
    "msecond": 1e-3,
    "second": 1.0,
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "byte": 1.0,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
}
TIMEOUT_S = 150
CHILD = Path(__file__).with_name("profiled.py")


class NoNcu(RuntimeError):
    """Nsight Compute can't be had here, or did not say what it was asked for."""


class Replayed(NoNcu):
    """The metrics did not fit in one pass."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A kernel at one size and cache mode, to be profiled `count` times in a row."""

    kernel: str
    buffer_bytes: int
    mode: CacheMode
    count: int


@dataclass(frozen=True, slots=True)
class Profiled:
    """One kernel as ncu saw it: its name, and each metric in SI units."""

    name: str
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Seen:
    """The medians over the profiles of one Wanted, and every time in seconds."""

    wanted: Wanted
    time_s: float
    read_bytes: float
    written_bytes: float
    times_s: tuple[float, ...]


def profiles(buffer_bytes: int) -> int:
    """Return how many calls are profiled: of two arrays of 1 GiB there are four sets in all."""
    return 5 if buffer_bytes < 2**29 else 3


def profile(wanted: Sequence[Wanted]) -> list[Seen]:
    """Have ncu profile the child that makes these calls; NoNcu with the reason where it can't."""
    program = shutil.which("ncu")
    if program is None:
        raise NoNcu("ncu is not on the PATH")

    def said(metrics: Sequence[str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            asked, log = Path(folder) / "wanted.json", Path(folder) / "ncu.csv"
            asked.write_text(json.dumps([asdict(each) for each in wanted]), encoding="utf-8")
            done = subprocess.run(
                command(program, wanted, metrics, asked, log),
                check=False,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
            text = log.read_text(encoding="utf-8") if log.exists() else ""
        if done.returncode:
            tail = f"{text}\n{done.stdout}\n{done.stderr}".strip()[-600:]
            raise NoNcu(f"ncu ended with status {done.returncode}: {tail}")
        return text

    return shared_out(wanted, collected(said))


def collected(said: Callable[[Sequence[str]], str]) -> list[Profiled]:
    """Collect all metrics, in one run of ncu or, where that would replay kernels, in one each."""
    try:
        return parse(said(METRICS), METRICS)
    except Replayed:
        first, *rest = [parse(said([metric]), [metric]) for metric in METRICS]
    for other in rest:
        if [row.name for row in other] != [row.name for row in first]:
            raise NoNcu("ncu saw other kernels in its second run than in its first")
        for row, more in zip(first, other, strict=True):
            row.values.update(more.values)
    return first


def command(
    program: str, wanted: Sequence[Wanted], metrics: Sequence[str], asked: Path, log: Path
) -> list[str]:
    """Return the command line: only the wanted kernels, only between the child's start and stop."""
    names = "|".join(sorted({each.kernel for each in wanted}))
    options = {
        "--page": "raw",
        "--metrics": ",".join(metrics),
        "--clock-control": "none",
        "--cache-control": "none",
        "--profile-from-start": "off",
        "--kernel-name-base": "function",
        "--kernel-name": f"regex:^({names})",  # a kernel's functions begin with its name
        "--log-file": str(log),
    }
    words = [word for pair in options.items() for word in pair]
    return [program, "--csv", *words, sys.executable, str(CHILD), str(asked)]


def parse(text: str, metrics: Sequence[str]) -> list[Profiled]:
    """Read `ncu --csv --page raw`: talk, a row of names, a row of units, a row a kernel.

    NoNcu where the table or a metric is missing or a unit is unknown, Replayed where a kernel was.
    """
    lines = text.splitlines()
    replayed = [line for line in lines if line.startswith("==PROF==") and "passes" in line]
    if replayed:
        raise Replayed(f"ncu replayed kernels: {replayed[0].strip()}")
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        raise NoNcu(f"ncu printed no table: {text.strip()[-400:]}")
    names, units, *rows = csv.reader(line for line in lines[start:] if line.startswith('"'))
    for metric in metrics:
        if metric not in names:
            raise NoNcu(f"ncu has no column {metric}")
    at = {name: place for place, name in enumerate(names)}

    def value(row: Sequence[str], metric: str) -> float:
        unit, said = units[at[metric]], row[at[metric]]
        if unit not in UNITS:
            raise NoNcu(f"ncu gives {metric} in {unit!r}")
        try:
            return float(said.replace(",", "")) * UNITS[unit]
        except ValueError as error:
            raise NoNcu(f"ncu gives {metric} as {said!r}") from error

    return [
        Profiled(row[at["Kernel Name"]], {metric: value(row, metric) for metric in metrics})
        for row in rows
    ]


def shared_out(wanted: Sequence[Wanted], rows: Sequence[Profiled]) -> list[Seen]:
    """Give each Wanted its rows, in order; NoNcu where their number or a name is another."""
    count = sum(each.count for each in wanted)
    if len(rows) != count:
        raise NoNcu(f"ncu profiled {len(rows)} kernels, the child launched {count}")
    left = iter(rows)
    return [_seen(each, [next(left) for _ in range(each.count)]) for each in wanted]


def _seen(wanted: Wanted, rows: Iterable[Profiled]) -> Seen:
    rows = list(rows)
    for row in rows:
        if wanted.kernel not in row.name:
            raise NoNcu(f"ncu profiled {row.name!r} where {wanted.kernel!r} was launched")
    times_s = tuple(row.values[TIME] for row in rows)
    read, written = ([row.values[metric] for row in rows] for metric in (READ, WRITTEN))
    middle = statistics.median
    return Seen(wanted, middle(times_s), middle(read), middle(written), times_s)
