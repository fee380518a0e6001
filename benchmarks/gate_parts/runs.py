"""The recorded runs: measured by solkit's own command line, kept one file each.

Beside them, planted.json says what was planted in each run, and against which base run.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from accuracy_parts import sweeps
from gate_parts import delayed, sweep

from solkit.errors import SolkitError
from solkit.model import Run
from solkit.record import read

ROOT = Path(__file__).parents[2]
PLANTED = "planted.json"
BASE = "a"
TIMEOUT_S = 120.0
BUDGET_S = 0.2  # of sampling a case: all but the noisiest cases reach their precision in less
# What a run took on an H200: 16 cases a second, start-up, and once the compiler and the ceilings.
CASE_S, START_S, FIRST_S = 1 / 16, 4.0, 20.0

Planted = dict[str, dict[str, object]]
Talk = Callable[[Sequence[str], Path], str]  # a command and where it runs -> how it ended


class NoBase(RuntimeError):
    """There is no base run, so there is nothing to plant a share of."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured, and where it is kept."""

    names: tuple[str, ...]
    kept: Path
    count: int = sweep.CASES
    device: str = "cuda"
    budget_s: float = BUDGET_S


def estimate_s(plan: Plan) -> float:
    """Return about how long the card is needed."""
    return FIRST_S + len(plan.names) * (START_S + plan.count * CASE_S)


def measure(plan: Plan, at: Path, talk: Talk | None = None) -> list[str]:
    """Measure each run of a plan, the base first; return what went wrong, run by run.

    at: an empty folder, the same for all runs, so that every function is compiled once. What a run
    left is kept although it failed or was cut; where it left nothing, the file before stays.
    """
    plan.kept.mkdir(parents=True, exist_ok=True)
    delayed.write(at)
    problems = []
    for name in (name for name in sweep.FRACTIONS if name in plan.names):
        began = monotonic()
        print(f"{name}: {sweep.FRACTIONS[name] * 100:g} % planted", flush=True)
        try:
            problem = _measure_one(name, plan, at, talk or _talk)
        except NoBase as missing:
            problem = str(missing)
        print(f"  {problem or 'done'} after {monotonic() - began:.1f} s", flush=True)
        problems += [f"{name}: {problem}"] if problem else []
    return problems


def _measure_one(name: str, plan: Plan, at: Path, talk: Talk) -> str:
    base = None if name == BASE else _recorded(plan.kept, BASE)
    if base is None and name != BASE:
        raise NoBase(f"no base run: measure {BASE} first")
    points, delays = chosen(name, base, plan.count)
    (at / "shapes.yaml").write_text(sweeps.text(points, (sweep.KERNEL,)), encoding="utf-8")
    delayed.write_delays(at, delays)
    # Named from inside the folder: what a run's header says of its command is then no place of
    # this machine.
    command = [sys.executable, "-m", "solkit", "run", "--shapes", "shapes.yaml"]
    command += ["--load", delayed.DECLARATION, "--out", name]
    command += ["--device", plan.device, "--budget", f"{plan.budget_s:g}"]
    how = talk(command, at)
    path = at / name / "run.jsonl"
    if not path.exists():
        return f"it left no run: {how}"
    text = path.read_text(encoding="utf-8")
    (plan.kept / f"{name}.jsonl").write_text(text.replace(f"{at}/", ""), encoding="utf-8")
    run = read(path)
    _note(plan.kept, name, run, base, delays)
    count = len(sweep.measured(run))
    short = "" if count == len(points) else f"{count} of {len(points)} cases measured"
    return "; ".join(filter(None, (short, how)))


def chosen(name: str, base: Run | None, count: int) -> tuple[list[sweeps.Point], dict[str, int]]:
    """Return a run's cases and what is planted in them; all but the base go by its cases."""
    if base is None:
        points = sweep.points(count)
        return points, sweep.without_delay(
            sweep.name_of(point.case(sweep.KERNEL)) for point in points
        )
    medians_s = sweep.measured(base)
    return sweep.kept(count, medians_s), sweep.planted(medians_s, sweep.FRACTIONS[name])


def _talk(command: Sequence[str], at: Path) -> str:
    """Run a command in a folder; return what there is to say of its end, nothing of a good one."""
    places = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=at,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"cut after {TIMEOUT_S:g} s"
    return f"status {done.returncode}: {done.stderr[-600:].strip()}" if done.returncode else ""


def _note(kept: Path, name: str, run: Run, base: Run | None, delays: Mapping[str, int]) -> None:
    """Keep what was planted; a new base makes the runs planted by an older one worthless."""
    noted = noted_in(kept)
    noted[name] = {"run": run.id, "base": (base or run).id, "planted_ns": dict(delays)}
    lines = [
        f"{json.dumps(each)}: {json.dumps(noted[each])}"
        for each in sweep.FRACTIONS
        if each in noted
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (kept / PLANTED).write_text(text, encoding="utf-8")


def noted_in(kept: Path) -> Planted:
    """Return what planted.json says; nothing where there is none."""
    path = kept / PLANTED
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def load(kept: Path) -> dict[str, Run]:
    """Return the recorded runs that belong together: the base, and those measured against it."""
    noted, found = noted_in(kept), {}
    for name in sweep.FRACTIONS:
        note = noted.get(name) or {}
        if name != BASE and (BASE not in found or note.get("base") != found[BASE].id):
            continue
        run = _recorded(kept, name)
        if run is not None:
            found[name] = run
    return found


def _recorded(kept: Path, name: str) -> Run | None:
    """Return a recorded run; one that can't be read is as good as none, and is said."""
    path = kept / f"{name}.jsonl"
    if not path.is_file():
        return None
    try:
        return read(path)
    except SolkitError as error:
        print(f"{path.name}: {error.message}", file=sys.stderr)
        return None
