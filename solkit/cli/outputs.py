"""Where a run goes: a folder proved writable before anything is measured, and the latest link."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from solkit.cli.console import say
from solkit.errors import BadInput, NoDevice

ROOT = Path("solkit-out")
RUN_FILE, REPORT_FILE, RESUME_FILE = "run.jsonl", "report.html", "resume.json"
# What was not sure against a run before it and was measured once more; sorted behind run.jsonl.
AGAIN_FILE, COMPARE_FILE = "run_again.jsonl", "compare.html"


def run_id(device_name: str, now: datetime) -> str:
    """Return the name of a run: when it began and on what, e.g. `20260131-120000-h200-sxm`."""
    slug = re.sub(r"[^a-z0-9]+", "-", device_name.casefold()).strip("-")[:40] or "device"
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{slug}"


def make_folder(out: Path | None, name: str) -> Path:
    """Make the folder of a new run and prove that it can be written; without `out`, a new one."""
    folder = out if out is not None else ROOT / name
    if out is not None and (folder / RUN_FILE).exists():
        raise BadInput(
            f"{folder}: holds a run already",
            remedy=f"finish it with --resume {folder}, or take another --out",
        )
    try:
        if out is None:
            folder = _made_anew(folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
        proof = folder / ".writable"
        proof.write_bytes(b"x")
        proof.unlink()
    except OSError as error:
        raise NoDevice(
            f"{folder}: can't be written: {error.strerror or error}",
            remedy="take another folder: --out DIR",
        ) from error
    return folder


def forget(folder: Path, *, made_here: bool) -> None:
    """Take a folder away again that was made for a run which never began."""
    if made_here and not any(folder.iterdir()):
        folder.rmdir()


def write(path: Path, text: str | bytes) -> None:
    """Write a file whole: a reader never sees half of it.

    A link's target is written, not the link; a device or a pipe (/dev/null, `>(command)`) is
    written into, not replaced.
    """
    with _refusals(path):
        if path.exists() and not path.is_file():
            _put(path, text)
        else:
            _put_whole(path.resolve(), text)


def add(path: Path, text: str) -> None:
    """Append to a text file, which may not be there yet: a job's summary has several authors."""
    with _refusals(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)


def prove_writable(path: Path) -> None:
    """Prove that `write` can write a file, before the work for it is done; NoDevice where not.

    Nothing is left behind. A device or a pipe is asked for its rights alone: whoever reads a pipe
    would take one that is opened and closed for the end of the text.
    """
    with _refusals(path):
        if path.exists() and not path.is_file():
            problem = errno.EISDIR if path.is_dir() else errno.EACCES
            if path.is_dir() or not os.access(path, os.W_OK):
                raise OSError(problem, os.strerror(problem))
            return
        target = path.resolve()
        missing = [folder for folder in target.parents if not folder.exists()]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            half = _half(target)
            _put(half, "")
            half.unlink()
        finally:
            for folder in missing:
                with contextlib.suppress(OSError):  # one that somebody uses by now stays
                    folder.rmdir()


@contextlib.contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Tell why a file can't be written."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, until Python 3.13
        why = error.strerror if isinstance(error, OSError) else ""
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise NoDevice(
            f"{path}: can't be written: {why or error}",
            remedy="free some space, or name another file" if full else "name another file",
        ) from error


def _half(path: Path) -> Path:
    return path.with_name(f".{path.name}.half")


def _put_whole(path: Path, text: str | bytes) -> None:
    half = _half(path)
    with contextlib.suppress(FileExistsError):
        path.parent.mkdir(parents=True)
    try:
        _put(half, text)
        half.replace(path)
    except OSError:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            half.unlink()
        raise


def _put(path: Path, text: str | bytes) -> None:
    if isinstance(text, bytes):
        path.write_bytes(text)
    else:
        path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


def link_latest(folder: Path) -> None:
    """Let `solkit-out/latest` mean this run; where links can't be made, say so."""
    link, half = ROOT / "latest", ROOT / ".latest"
    try:
        half.unlink(missing_ok=True)
        half.symlink_to(folder.name, target_is_directory=True)
        half.replace(link)
    except OSError as error:
        say(f"note: {link} was not set: {error.strerror or error}")


def latest_run() -> Path | None:
    """Return the run file of the latest run here, if there is one."""
    path = ROOT / "latest" / RUN_FILE
    return path if path.is_file() else None


def _made_anew(folder: Path) -> Path:
    """Make the folder, with a number behind its name where another run was quicker to take it."""
    candidate, number = folder, 2
    while True:
        try:
            candidate.mkdir(parents=True)
        except FileExistsError:
            candidate, number = folder.with_name(f"{folder.name}-{number}"), number + 1
        else:
            return candidate
