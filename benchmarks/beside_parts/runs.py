"""The recorded runs: measured by solkit's own command line within a time, kept a segment a file.

`solkit run` writes a group of cases as it ends, so what a segment has is on disk when it is cut.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic

from beside_parts.sweep import Sweep, finish

from solkit.errors import SolkitError
from solkit.model import Failed, Measured, Run
from solkit.record import read

ROOT = Path(__file__).parents[2]
VERSIONS = "versions.json"  # of the peers' packages: a run's header has solkit's own
GRACE_S = 25.0  # for the report, once a run was told to stop
LEAST_S = 30.0  # a segment needs as long to begin: the peers' imports, the ceilings
CASES_FAILED, INTERRUPTED = 3, 130  # exit codes of `solkit run` that a segment may end with

Talk = Callable[[Sequence[str], Path, float], str]  # arguments, log, seconds -> how it ended


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured, where it is made and kept, and how long it may take in all.

    names: of the sweep's segments. work: folders of `solkit run`, one a segment. kept: the files
    that are judged. resume: go on with what is in `work`, where it was cut.
    """

    sweep: Sweep
    names: tuple[str, ...]
    kept: Path
    work: Path
    seconds: float
    device: str = "cuda"
    resume: bool = False


def measure(plan: Plan, talk: Talk | None = None) -> list[str]:
    """Measure segment by segment until the time is over; return what went wrong or was not done."""
    for folder in (plan.kept, plan.work):
        folder.mkdir(parents=True, exist_ok=True)
    ends_s, problems = monotonic() + plan.seconds, []
    for name in plan.names:
        began_s = monotonic()
        problem = _measure_one(name, plan, ends_s - began_s, talk or _talk)
        print(f"{name}: {problem or 'done'} ({monotonic() - began_s:.0f} s)", flush=True)
        problems += [f"{name}: {problem}"] if problem else []
    return problems


def _measure_one(name: str, plan: Plan, left_s: float, talk: Talk) -> str:
    out = plan.work / name
    record, known = out / "run.jsonl", _ended(out / "run.jsonl") if plan.resume else None
    if known == "complete":
        _keep(name, plan, record)
        return ""
    if left_s < LEAST_S:
        return f"not begun: {left_s:.0f} s are left"
    if known is not None:
        arguments = finish(out)
    else:
        shutil.rmtree(out, ignore_errors=True)
        arguments = plan.sweep.command(name, out, device=plan.device)
    how = talk(arguments, plan.work / f"{name}.log", left_s)
    if not record.exists():
        return f"it left no run: {how}"
    return "; ".join(filter(None, (_keep(name, plan, record), how)))


def _talk(arguments: Sequence[str], log: Path, seconds: float) -> str:
    """Run solkit, and stop it in time; return what there is to say of its end."""
    command = [sys.executable, "-m", "solkit", *arguments]
    places = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs behind it:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a child would be deaf to it, too
    with log.open("w", encoding="utf-8") as said:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its workers end with it
        )
        status = _ending(process, seconds)
    if status in (0, CASES_FAILED):
        return ""
    if status is None or status == INTERRUPTED:
        return f"cut after {seconds - GRACE_S:.0f} s: go on with --resume"
    words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"status {status}: {' / '.join(words[-3:])[-400:]}"


def _ending(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    """Wait for a process, in time told to stop, at last killed; return its status, if it had one.

    An interrupt is what solkit understands: it records what it has, and writes its report.
    """
    try:
        return process.wait(max(1.0, seconds - GRACE_S))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    try:
        return process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def _keep(name: str, plan: Plan, record: Path) -> str:
    """Copy a segment's file, without places of this machine; say what it lacks."""
    text = record.read_text(encoding="utf-8")
    for place in (plan.work, ROOT, Path(tempfile.gettempdir())):
        text = text.replace(f"{place}{os.sep}", "")
    (plan.kept / f"{name}.jsonl").write_text(text, encoding="utf-8")
    versions = json.dumps(_versions(plan.sweep.packages), indent=1)
    (plan.kept / VERSIONS).write_text(f"{versions}\n", encoding="utf-8")
    try:
        run = read(plan.kept / f"{name}.jsonl")
    except SolkitError as error:
        return error.message
    counts = [sum(isinstance(each, kind) for each in run.outcomes) for kind in (Measured, Failed)]
    print(
        f"{name}: {counts[0]} of {run.planned_count} cases measured, {counts[1]} failed", flush=True
    )
    lost = (run.planned_count or 0) - len(run.outcomes)
    return f"{lost} of {run.planned_count} cases were not reached" if lost > 0 else ""


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _ended(record: Path) -> str | None:
    """Return how a run ended, `cut` where it has no end, None where there is no run to go on."""
    if not record.is_file():
        return None
    try:
        return read(record).ended or "cut"
    except SolkitError:  # without a header nothing can be finished
        return None


def load(kept: Path, sweep: Sweep) -> list[Run]:
    """Return the recorded runs, in the order of the segments; others in a folder come after them.

    One that can't be read is as good as none, and is said.
    """
    order = [f"{name}.jsonl" for name in sweep.segments]
    paths = sorted(
        kept.glob("*.jsonl"),
        key=lambda path: (order.index(path.name) if path.name in order else len(order), path.name),
    )
    found = []
    for path in paths:
        try:
            found.append(read(path))
        except SolkitError as error:
            print(f"{path.name}: {error.message}", file=sys.stderr)
    return found


def versions_in(kept: Path) -> dict[str, str]:
    """Return the versions of the peers' packages; nothing where they were not kept."""
    path = kept / VERSIONS
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
