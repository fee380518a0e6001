"""`solkit ceilings`: measure what this device reaches at best, show it, keep it for runs."""

import os
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from solkit.cli.console import say, show, show_json
from solkit.cli.options import AsJson, TimerName
from solkit.errors import BadInput, NoDevice

if TYPE_CHECKING:
    from solkit.gpu import Gpu
    from solkit.measure.bench import Bench
    from solkit.measure.probe import Choice
    from solkit.model import Ceilings


def command(
    device: Annotated[
        str, typer.Option("--device", help="auto, cuda[:N], cpu, or a card's name.")
    ] = "auto",
    timer: TimerName = "auto",
    as_json: AsJson = False,
    out: Annotated[
        Optional[str],  # noqa: UP045  # typer reads annotations at run time; Path("") is Path(".")
        typer.Option("--out", help="Write what was measured into this file, too.", metavar="FILE"),
    ] = None,
) -> None:
    """Measure the roof of this device: streams, L2, matrix products, empty kernels."""
    from solkit.cli import outputs
    from solkit.measure.bench import Bench, Settings
    from solkit.measure.manner import Manner, timer_named
    from solkit.measure.probe import choose

    manner = Manner(timer=timer_named(timer))
    if out is not None and not out:
        raise BadInput("--out names no file", remedy="name one, e.g. --out ceilings.json")
    choice = choose(device)
    if out is not None:
        outputs.prove_writable(Path(out))
    say(f"device: {choice.why}")
    os.environ.update(choice.environment)  # for the worker: CUDA sees the chosen card alone
    settings = Settings(choice.kind, choice.cuda_index, manner=manner, facts=choice.facts)
    with Bench(settings) as bench:
        found, path = measured(bench, choice)
        method, notes = bench.method, bench.notes
    for note in (*notes, *found.notes):
        say(f"note: {note}")
    _tell(found, choice, method, path, out=out, as_json=as_json)


def current(bench: "Bench", choice: "Choice") -> "Ceilings":
    """Return the ceilings that a run is scored against, without their samples.

    Those stored of this very card, driver and timing method, else a set measured now and stored.
    """
    from solkit.measure import ceilings_file
    from solkit.measure.ceilings import without_samples

    if choice.kind == "cuda":
        stored = ceilings_file.load(choice.facts, bench.method, say=say)
        if stored is not None:
            say(f"ceilings of {when(stored)} (solkit ceilings measures anew)")
            return without_samples(stored)
    return without_samples(measured(bench, choice)[0])


def measured(bench: "Bench", choice: "Choice") -> "tuple[Ceilings, Path | None]":
    """Measure the ceilings now; return them and, of a card, the file that keeps them.

    A host's are never stored: they belong to the load of the moment. Where a card's can't be
    written, that is told, and they serve this time.
    """
    from datetime import UTC, datetime

    from solkit.measure import ceilings_file

    method = bench.method  # opens the device: a timer it lacks is refused before anything is said
    takes = "some seconds" if choice.kind == "cpu" else "up to a minute"
    say(f"measuring the ceilings of the device, which takes {takes}")
    started_s = monotonic()
    now = datetime.now(tz=UTC)
    found = ceilings_file.stamped(bench.ceilings(_Steps()), choice.facts, now)
    say(f"ceilings measured in {monotonic() - started_s:.0f} s")
    if choice.kind == "cpu":
        return found, None
    try:
        return found, ceilings_file.save(found, choice.facts, method)
    except NoDevice as error:
        say(f"{error.message} ({error.remedy})")
        return found, None


def when(ceilings: "Ceilings") -> str:
    """Return the minute at which ceilings were measured, in UTC."""
    return f"{ceilings.created[:16].replace('T', ' ')} UTC"


def _tell(
    found: "Ceilings",
    choice: "Choice",
    method: str,
    path: "Path | None",
    *,
    out: str | None,
    as_json: bool,
) -> None:
    """Write the file that was asked for, and show what was measured; path: where it is kept."""
    from solkit.cli import outputs
    from solkit.cli.ceiling_table import text
    from solkit.measure import ceilings_file

    unwritten: NoDevice | None = None
    if out is not None:
        try:
            outputs.write(Path(out), ceilings_file.text(found, choice.facts, method))
            path = Path(out)
        except NoDevice as error:  # a disk that is full by now: what was measured is told first
            unwritten = error
    if as_json:
        document = ceilings_file.document(found, choice.facts, method)
        show_json({**document, "path": None if path is None else str(path)})
    else:
        show(text(found, choice.facts, _card(choice)))
        if path is not None:
            show(f"\n{path}")
    if unwritten is not None:
        raise unwritten


class _Steps:
    """Says each step once, as it begins."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, step: str) -> None:
        if step != self._last:
            say(f"  {step}")
        self._last = step


def _card(choice: "Choice") -> "Gpu | None":
    """Return the card's spec, where it has a file."""
    from solkit.plan.match import match
    from solkit.plan.specs import load_specs

    if choice.kind == "cpu":
        return None
    gpu = match(choice.facts, load_specs()).gpu
    return gpu if gpu.vendor != "derived" else None
