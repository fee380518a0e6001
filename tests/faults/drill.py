"""What drills share: a real solkit in a process group of its own, and how it is hit.

Used by the tests beside this file (on the CPU) and by benchmarks/faults.py (on a card).
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from solkit import record
from solkit.model import CaseKey, Run

ROOT = Path(__file__).parents[2]
# Where drills run in the background of a shell, SIGINT is ignored unless it is restored.
_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from solkit.cli.main import main; main()"
)
_LIMIT_S = 300.0
_GONE_S = 30.0


class DrillFailed(AssertionError):
    """A drill did not get as far as what it should show."""


@dataclass(slots=True)
class Running:
    """A solkit at work on the run in `folder`, in a process group of its own."""

    process: subprocess.Popen[str]
    folder: Path

    def until_finished(self, count: int) -> None:
        """Wait until so many outcomes are on disk."""
        path = self.folder / "run.jsonl"
        until_s = time.monotonic() + _LIMIT_S
        while time.monotonic() < until_s:
            if path.exists() and path.read_bytes().count(b'"record":"outcome"') >= count:
                return
            if self.process.poll() is not None:
                raise DrillFailed(f"it ended early: {self.process.communicate()}")
            time.sleep(0.01)
        self.process.kill()
        raise DrillFailed(
            f"no {count} outcomes within {_LIMIT_S:g} s: {self.process.communicate()}"
        )

    def worker(self) -> int:
        """Return the process id of the worker."""
        found = [
            int(place.name)
            for place in Path("/proc").iterdir()
            if place.name.isdigit() and _parent(place) == self.process.pid
        ]
        if len(found) != 1:
            raise DrillFailed(f"there is no one worker, but {found}")
        return found[0]

    def end(self) -> tuple[int, str, str]:
        """Wait for the end: exit code, what was printed, what was said; never a traceback."""
        out, errors = self.process.communicate(timeout=_LIMIT_S)
        if "Traceback" in out + errors:
            raise DrillFailed(errors)
        return self.process.returncode, out, errors


def _parent(place: Path) -> int:
    try:
        return int((place / "stat").read_text(encoding="utf-8").rpartition(") ")[2].split()[1])
    except OSError:  # it ended meanwhile
        return 0


def begin(
    folder: Path,
    words: Sequence[str],
    *,
    device: str = "cpu",
    before: Callable[[], None] | None = None,
) -> Running:
    """Start `solkit run` on a device; before: what its process does first (limits)."""
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": paths}
    if device == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
    process = subprocess.Popen(
        (sys.executable, "-c", _PROGRAM, "run", "--device", device, *words),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=before,  # noqa: PLW1509  # limits alone, in a child that has no threads yet
    )
    return Running(process, folder)


def resume(
    folder: Path, *, device: str = "cpu", before: Callable[[], None] | None = None
) -> Running:
    """Start `solkit run --resume`."""
    return begin(folder, ("--resume", str(folder)), device=device, before=before)


def gone(process_id: int) -> bool:
    """Say whether a process ends within some seconds; a zombie has."""
    status = Path(f"/proc/{process_id}/stat")
    until_s = time.monotonic() + _GONE_S
    while time.monotonic() < until_s:
        try:
            if status.read_text(encoding="utf-8").rpartition(") ")[2].startswith("Z"):
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


def keys(run: Run | Path) -> set[CaseKey]:
    """Return the identities of the cases that have an outcome."""
    held = run if isinstance(run, Run) else record.read(run)
    return {outcome.case.key for outcome in held.outcomes}


def fill(place: Path) -> Path:
    """Fill a disk to its last block with one file; return it."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for _ in range(1 << 20):
            try:
                file.write(bytes(1024))
            except OSError:
                return filler
    raise DrillFailed(f"{place} did not fill up")


def mount(place: Path, size: str) -> bool:
    """Mount a disk of a size, or give the one that is mounted there another; False: may not."""
    how = f"remount,size={size}" if place.is_mount() else f"size={size}"
    place.mkdir(exist_ok=True)
    words = ("mount", "-t", "tmpfs", "-o", how, "none", str(place))
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:  # no mount here
        return False


def unmount(place: Path) -> None:
    """Take the disk away again."""
    subprocess.run(("umount", "-l", str(place)), check=True)
