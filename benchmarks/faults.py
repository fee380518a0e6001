"""Every fault drill on a real card, through the real command line; writes what came of each.

    python benchmarks/faults.py [--device cuda] [-o benchmarks/h200/faults.md]
    python benchmarks/faults.py --device cpu -o faults.md    # the drills that need no card

One sweep holds every bad kernel between two good ones, and good cases behind them; solkit is killed
in the middle of it. Each further drill goes on with a copy of that run: it is hit, then completed
with --resume. Exit code 1 when a drill does not show what it should. About three minutes.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

FAULTS = Path(__file__).parents[1] / "tests" / "faults"
sys.path.insert(0, str(FAULTS))
import drill  # noqa: E402  # what it shares with the tests
from fault_plans import PLANS, TIMEOUT_S, Plan  # noqa: E402  # beside this file

from solkit import record  # noqa: E402  # drill says where solkit is
from solkit.measure.lock import lock_path  # noqa: E402
from solkit.model import CaseKey, Failed, Measured, Outcome, Run, Skipped  # noqa: E402

SOME_FAILED, NO_DEVICE, INTERRUPTED = 3, 4, 130  # exit codes
BUSY = "while True: (a @ a).sum().get()"
STRANGER = (
    "import cupy; a = cupy.ones((8192, 8192), cupy.float32); "
    f"(a @ a).sum().get(); print('busy', flush=True)\n{BUSY}"
)

ROOT = Path(__file__).resolve().parents[1]


@dataclass(slots=True)
class Row:
    """A drill's line in the log."""

    name: str
    done: str
    code: str = ""
    recorded: str = ""
    kept: str = ""
    completed: str = ""
    faults: list[str] = field(default_factory=list)

    def demand(self, *, truth: bool, what: str) -> bool:
        """Note what should have been so."""
        if not truth:
            self.faults.append(what)
        return truth

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        verdict = f"**FAIL**: {'; '.join(self.faults)}" if self.faults else "PASS"
        recorded = self.recorded.replace(f"{ROOT}/", "")  # a log speaks of the project alone
        return (self.name, self.done, self.code, recorded, self.kept, self.completed, verdict)


class Drills:
    """All drills on one device, one after the other, in a temporary folder."""

    def __init__(self, plan: Plan, at: Path) -> None:
        self.plan, self.at = plan, at
        self.cut, self.rows = at / "cut", list[Row]()
        self.planned: set[CaseKey] = set()
        self.run: Run | None = None

    def everything(self) -> None:
        """Run every drill that this device has."""
        self.kill_the_parent()
        self.complete_in(self.rows[0], self.cut_copy("parent"))
        self.bad_kernels()
        self.kill_the_worker()
        for name in ("SIGINT", "SIGTERM"):
            self.interrupt(name)
        self.full_disk()
        if self.plan.device == "cuda":
            self.second_solkit()
            self.stranger()

    # -- the sweep that is cut --------------------------------------------------------------------

    def kill_the_parent(self) -> None:
        """Begin the sweep; SIGKILL solkit when the bad kernels and a good group are done."""
        row = self.row("SIGKILL of solkit", "kill -9 of the parent in the middle of the sweep")
        (self.at / "shapes.yaml").write_text(self.plan.sweep(), encoding="utf-8")
        words = ["--shapes", str(self.at / "shapes.yaml"), "--timeout", str(TIMEOUT_S)]
        words += ["--budget", "0.05", "--out", str(self.cut)]
        words += [
            word for name in self.plan.loads for word in ("--load", str(FAULTS / f"{name}.py"))
        ]
        running = drill.begin(self.cut, words, device=self.plan.device)
        with compilers_are_shot():
            running.until_finished(self.plan.bad_count + 2)
        worker = running.worker()
        running.process.kill()
        running.end()
        row.code = "killed"
        row.demand(truth=drill.gone(worker), what="the worker outlived solkit")
        self.run = record.read(self.cut)
        intent = json.loads((self.cut / "resume.json").read_bytes())
        self.planned = {
            record.case_from_json(json.dumps(case).encode()).key for case in intent["cases"]
        }
        held = drill.keys(self.run)
        row.recorded = f"{len(held)} of {len(self.planned)} outcomes, no end"
        row.demand(truth=self.run.ended is None, what=f"the run ended {self.run.ended}")
        row.demand(truth=held < self.planned, what="it was not in the middle")
        row.kept = "yes" if len(held) >= self.plan.bad_count else "no"

    def bad_kernels(self) -> None:
        """Hold every bad kernel's outcome against what it did, and its neighbours'."""
        if self.run is None:
            raise drill.DrillFailed("there is no run")
        found: dict[tuple[int, str], Outcome] = {
            (outcome.case.shape["rows"], outcome.case.kernel): outcome
            for outcome in self.run.outcomes
        }
        for number, bad in enumerate(self.plan.bad):
            row = self.row(bad.kernel, bad.does)
            outcome = found.get((512 + number, bad.kernel))
            row.code, row.completed = "the sweep went on", "see the first row"
            row.recorded = told(outcome)
            if row.demand(truth=isinstance(outcome, Failed), what="it did not fail"):
                assert isinstance(outcome, Failed)  # noqa: S101  # for the type checker
                row.demand(truth=outcome.stage in bad.stages.split(), what=f"not at {bad.stages}")
                verdicts = bad.verdicts.split() or [""]
                row.demand(truth=outcome.verdict in verdicts, what=f"not {bad.verdicts or 'plain'}")
                row.demand(truth=bad.words in outcome.message, what=f"nothing of {bad.words!r}")
                row.demand(truth=bool(outcome.remedy), what="no remedy")
            good = [found.get((512 + number, name)) for name in self.plan.good]
            row.kept = "yes" if all(isinstance(each, Measured) for each in good) else "no"
            row.demand(truth=row.kept == "yes", what=f"a good neighbour: {[told(g) for g in good]}")
        row = self.row("too large", "a shape of 10^12 rows")
        outcome = found.get((10**12, self.plan.good[0]))
        row.code, row.recorded = "the sweep went on", told(outcome)
        row.kept, row.completed = "yes", "see the first row"
        row.demand(truth=isinstance(outcome, Skipped), what="it was not left out")

    # -- what befalls a run that goes on ----------------------------------------------------------

    def kill_the_worker(self) -> None:
        """SIGKILL the worker; the case in hand is lost, the sweep goes on to its end."""
        row = self.row("SIGKILL of the worker", "kill -9 of the worker in the middle of the sweep")
        folder, before = self.cut_copy("worker"), drill.keys(self.cut)
        running = self.resume(folder)
        running.until_finished(len(before) + 1)
        time.sleep(0.1)  # into the next group: between groups nobody would be hit
        os.kill(running.worker(), signal.SIGKILL)
        code, _, errors = running.end()
        run = record.read(folder)
        bad = {each.kernel for each in self.plan.bad}
        hit = [
            outcome
            for outcome in run.outcomes
            if isinstance(outcome, Failed) and outcome.case.kernel not in bad
        ]
        row.code, row.recorded = str(code), "; ".join(told(outcome) for outcome in hit)
        row.demand(truth=code == SOME_FAILED, what=f"exit code {code}: {errors[-300:]}")
        row.demand(
            truth=[(outcome.verdict, "SIGKILL" in outcome.message) for outcome in hit]
            == [("crashed", True)],
            what="not one case was lost",
        )
        self.whole(row, run, before)
        row.completed = "went on to its end"

    def interrupt(self, name: str) -> None:
        """Send a signal to the process group, as a terminal or a batch system does."""
        row = self.row(
            "Ctrl-C" if name == "SIGINT" else name, f"{name} to the process group in the middle"
        )
        folder, before = self.cut_copy(name.lower()), drill.keys(self.cut)
        running = self.resume(folder)
        running.until_finished(len(before) + 2)
        worker = running.worker()
        os.killpg(running.process.pid, getattr(signal, name))
        code, out, errors = running.end()
        row.code = str(code)
        row.demand(truth=code == INTERRUPTED, what=f"exit code {code}: {errors[-300:]}")
        row.demand(truth=out.endswith(f"{folder / 'report.html'}\n"), what="no report")
        row.demand(truth=drill.gone(worker), what="the worker outlived solkit")
        self.cut_short(row, folder, before)
        self.complete_in(row, folder)

    def full_disk(self) -> None:
        """Let the disk fill up while outcomes are recorded, then give it room."""
        disk = self.at / "disk"
        held_bytes = sum(path.stat().st_size for path in self.cut.iterdir())
        mounted = drill.mount(disk, f"{held_bytes // 1024 + 64}k")
        before = drill.keys(self.cut)
        if mounted:
            row = self.row("full disk", "a tmpfs without a free block under the run's folder")
            for name in ("run.jsonl", "resume.json"):
                shutil.copy(self.cut / name, disk)
            folder, filler = disk, drill.fill(disk)
            running = self.resume(folder)
        else:
            row = self.row("full disk", "files limited to 3 kB more (no disk may be mounted here)")
            folder = self.cut_copy("disk")
            most = (folder / "run.jsonl").stat().st_size + 3000
            limit = resource.RLIMIT_FSIZE
            running = self.resume(folder, lambda: resource.setrlimit(limit, (most, most)))
        try:
            code, _, errors = running.end()
            row.code = str(code)
            said = next((line for line in errors.splitlines() if line.startswith("error")), "")
            row.demand(truth=code == NO_DEVICE, what=f"exit code {code}: {errors[-300:]}")
            row.demand(truth="can't be written" in said, what=f"it said {said!r}")
            self.cut_short(row, folder, before)
            row.recorded += f"; {said}"
            if mounted:
                filler.unlink()
                drill.mount(disk, "64m")
            self.complete_in(row, folder)
        finally:
            if mounted:
                drill.unmount(disk)

    def second_solkit(self) -> None:
        """Start a second solkit on the card while one measures."""
        row = self.row("a second solkit", "a second run on the same card while one measures")
        first, second = self.cut_copy("first"), self.cut_copy("second")
        running = self.resume(first)
        self.until_held()
        code, _, errors = self.resume(second).end()
        said = next(
            (line for line in errors.splitlines() if line.startswith("error")), errors[-300:]
        )
        row.code, row.recorded = str(code), said
        row.demand(truth=code == NO_DEVICE, what=f"exit code {code}")
        row.demand(truth=f"process {running.process.pid} " in said, what="it names nobody")
        row.demand(
            truth=drill.keys(second) == drill.keys(self.cut), what="it measured all the same"
        )
        code, _, errors = running.end()
        row.demand(truth=code == SOME_FAILED, what=f"the first ended with {code}: {errors[-300:]}")
        row.kept = "yes" if drill.keys(first) == self.planned else "no"
        self.complete_in(row, second)

    def stranger(self) -> None:
        """Let another program keep the card busy."""
        row = self.row("a busy card", "another process multiplies matrices on the card meanwhile")
        folder, before = self.cut_copy("stranger"), drill.keys(self.cut)
        with subprocess.Popen([sys.executable, "-c", STRANGER], stdout=subprocess.PIPE) as other:
            try:
                row.demand(
                    truth=other.stdout is not None and other.stdout.readline() == b"busy\n",
                    what="the other process did not come up",
                )
                code, _, errors = self.resume(folder).end()
            finally:
                other.kill()
        run = record.read(folder)
        marked = {
            outcome.other_process_count
            for outcome in run.outcomes
            if isinstance(outcome, Measured) and outcome.case.key not in before
        }
        said = next(
            (line for line in errors.splitlines() if "may be disturbed" in line), "no warning"
        )
        row.code, row.recorded = str(code), f"{said}; other_process_count {sorted(marked)}"
        row.demand(truth=said != "no warning", what="no warning")
        row.demand(truth=bool(marked) and 0 not in marked, what="outcomes that are not marked")
        row.demand(truth=code == SOME_FAILED, what=f"exit code {code}")
        self.whole(row, run, before)
        row.completed = "went on to its end"

    # -- what they share --------------------------------------------------------------------------

    def row(self, name: str, done: str) -> Row:
        """Begin a drill, and say so."""
        print(f"[{len(self.rows) + 1}] {name}: {done}", flush=True)
        self.rows.append(Row(name, done))
        return self.rows[-1]

    def cut_copy(self, name: str) -> Path:
        """Return a copy of the run that was cut."""
        return Path(shutil.copytree(self.cut, self.at / name))

    def until_held(self) -> None:
        """Wait until a solkit has the card."""
        if self.run is None:
            raise drill.DrillFailed("there is no run")
        path = lock_path(self.run.facts)
        for _ in range(3000):
            if path.exists() and path.read_bytes():
                return
            time.sleep(0.01)
        raise drill.DrillFailed(f"{path} was not locked")

    def resume(self, folder: Path, before: Callable[[], None] | None = None) -> drill.Running:
        """Go on with a run."""
        return drill.resume(folder, device=self.plan.device, before=before)

    def cut_short(self, row: Row, folder: Path, before: set[CaseKey]) -> None:
        """Note what is on disk after an early end."""
        run = record.read(folder)
        held = drill.keys(run)
        row.recorded = f"{len(held)} of {len(self.planned)} outcomes, {run.ended or 'no end'}"
        row.kept = "yes" if before <= held else "no"
        row.demand(truth=before <= held < self.planned, what="outcomes were lost")
        whole = (folder / "run.jsonl").read_bytes().endswith(b"}\n")
        row.demand(truth=whole, what="half a line is left")

    def complete_in(self, row: Row, folder: Path) -> None:
        """Finish a run with --resume: exactly the planned cases are in it."""
        before = drill.keys(folder)
        code, _, errors = self.resume(folder).end()
        row.demand(truth=code == SOME_FAILED, what=f"--resume ended with {code}: {errors[-300:]}")
        self.whole(row, record.read(folder), before)

    def whole(self, row: Row, run: Run, before: set[CaseKey]) -> None:
        """Note whether a run holds what was planned, and still what it held before."""
        held = drill.keys(run)
        same = held == self.planned and run.ended == "complete"
        row.kept = row.kept or ("yes" if before <= held else "no")
        row.completed = f"{len(held)} of {len(self.planned)}"
        row.demand(truth=same, what="not the same set of cases")
        row.demand(truth=before <= held, what="outcomes were lost")
        bad = {each.kernel for each in self.plan.bad}
        good = [o for o in run.outcomes if o.case.kernel not in bad and o.case.key not in before]
        failed = [told(outcome) for outcome in good if isinstance(outcome, Failed)]
        row.demand(truth=len(failed) <= ("worker" in row.name), what=f"good cases failed: {failed}")


def told(outcome: Outcome | None) -> str:
    """Return an outcome in a line."""
    match outcome:
        case Failed():
            first = outcome.message.splitlines()[0][:150]
            return f"failed at {outcome.stage}, {outcome.verdict or 'no verdict'}: {first}"
        case Skipped():
            return f"skipped: {outcome.reason[:150]}"
        case Measured():
            return f"measured, {outcome.median_s * 1e6:.1f} us"
        case _:
            return "nothing"


@contextlib.contextmanager
def compilers_are_shot() -> Iterator[None]:
    """Send SIGSEGV to every compiler that is at work on the source made for it, meanwhile."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            for place in Path("/proc").iterdir():
                with contextlib.suppress(OSError):  # it ended meanwhile
                    words = (place / "cmdline").read_bytes() if place.name.isdigit() else b""
                    if b"nvrtc_child" in words and b"keeps_the_compiler_busy" in words:
                        os.kill(int(place.name), signal.SIGSEGV)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def document(drills: Drills, began: datetime, spent_s: float) -> str:
    """Return the log in Markdown."""
    run = drills.run
    if run is None:
        raise drill.DrillFailed("there is no run")
    failed = sum(bool(row.faults) for row in drills.rows)
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    heads = ("drill", "what was done", "exit code", "recorded", "kept", "--resume", "")
    what = (
        f"{began:%Y-%m-%d %H:%M} UTC, {spent_s:.0f} s, {len(drills.rows)} drills, {failed} failed"
    )
    lines = [
        f"# Fault drills on {run.facts.name}",
        "",
        f"Written by `python benchmarks/faults.py --device {drills.plan.device}`.",
        "",
        f"- {what}",
        f"- driver {run.facts.driver or 'none'}, method {run.method}; {versions}",
        "- kept: what was finished is on disk; of a bad kernel: the good ones before and behind it",
        "  in its group were measured, by the next worker",
        f"- --resume: the cases in the run when it was completed, of {len(drills.planned)}",
        "",
        f"| {' | '.join(heads)} |",
        f"|{' --- |' * len(heads)}",
    ]
    for row in drills.rows:
        cells = [cell.replace("|", "/").replace(f"{drills.at}/", "") for cell in row.cells()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Drill, write the log; 1 when a drill failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=sorted(PLANS), default="cuda")
    default = Path(__file__).parent / "h200" / "faults.md"
    parser.add_argument("-o", "--output", type=Path, default=default)
    options = parser.parse_args()
    began, start_s = datetime.now(tz=UTC), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        drills = Drills(PLANS[options.device], Path(folder))
        stopped: Exception | None = None
        try:
            drills.everything()
        except (drill.DrillFailed, subprocess.TimeoutExpired) as error:
            stopped = error
            drills.rows[-1].faults.append(f"{type(error).__name__}: {str(error)[:2000]}")
            if drills.run is None:
                raise
        text = document(drills, began, time.monotonic() - start_s)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    print(text)
    return int(stopped is not None or any(row.faults for row in drills.rows))


if __name__ == "__main__":
    sys.exit(main())
