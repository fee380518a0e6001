"""`solkit roofline`: the roofline of cards, of a run, or of this machine."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Optional

import typer

from solkit.cli.console import coloured, say, show
from solkit.errors import BadInput

if TYPE_CHECKING:
    from solkit.gpu import Gpu
    from solkit.judge.score import Judged
    from solkit.model import Run

DEFAULT_FILE = Path("roofline.svg")


class Subject(NamedTuple):
    """What is drawn: cards, and a run with its judged points (or with its ceilings alone)."""

    gpus: "tuple[Gpu, ...]"
    run: "Run | None"
    judged: "tuple[Judged, ...]"


def command(
    gpu: Annotated[list[str], typer.Option("--gpu", help="A card; repeat to compare.")] = [],  # noqa: B006  # typer copies it
    run: Annotated[
        Optional[Path],  # noqa: UP045  # typer reads annotations at run time
        typer.Option("--run", help="A run whose cases are drawn; default the latest."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: .svg or .png.")
    ] = DEFAULT_FILE,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Draw on the terminal instead.")
    ] = False,
) -> None:
    """Draw a roofline: of cards, of a run, else of this machine's card or CPU."""
    if output.suffix.lower() not in (".svg", ".png"):
        raise BadInput(f"{output}: is no picture's name", remedy="end it in .svg or .png")
    subject = subject_of(gpu, run)
    if terminal:
        show(_text(subject))
        return
    from solkit.report.roofline import draw

    draw(output, gpus=subject.gpus, run=subject.run, judged=subject.judged)
    show(str(output))


def _text(subject: Subject) -> str:
    import shutil

    from solkit.report.terminal import draw

    size = shutil.get_terminal_size()
    return draw(
        gpus=subject.gpus,
        run=subject.run,
        judged=subject.judged,
        width=size.columns,
        height=max(16, min(size.lines - 2, 40)),
        color=coloured(sys.stdout),
        unicode="utf" in (sys.stdout.encoding or "").lower(),
    )


def subject_of(names: list[str], path: Path | None) -> Subject:
    """Return what to draw: what is named, else the latest run, else this machine's device."""
    from solkit.cli.outputs import latest_run

    cards = _cards(names)
    if path is None and not cards:
        path = latest_run()
        if path is not None:
            say(f"the latest run: {path}")
    if path is not None:
        from solkit import record
        from solkit.cli.sides import segments
        from solkit.judge.score import score

        run = record.read(segments([path]))
        return Subject(cards, run, score(run))
    return Subject(cards, None, ()) if cards else _this_machine()


def _cards(names: list[str]) -> "tuple[Gpu, ...]":
    if not names:
        return ()
    from solkit.plan.specs import find, load_specs

    specs = load_specs()
    cards: dict[str, Gpu] = {}
    for name in names:
        card, note = find(name, specs)
        if note:
            say(note)
        cards[card.id] = card
    return tuple(cards.values())


def _this_machine() -> Subject:
    """Return this machine's card, else its CPU with ceilings measured now."""
    from solkit.measure.probe import cuda_devices

    found = cuda_devices()
    if found.devices:
        from solkit.plan.match import match
        from solkit.plan.specs import load_specs

        card = match(found.devices[0], load_specs()).gpu
        say(f"this machine's card: {card.name}")
        return Subject((card,), None, ())
    say(f"{found.reason}; measuring the CPU's ceilings")
    return Subject((), cpu_run(), ())


def cpu_run() -> "Run":
    """Measure the ceilings of this host's CPU; the run holds nothing else."""
    from datetime import UTC, datetime

    from solkit.measure.bench import Bench, Settings
    from solkit.measure.probe import cpu_facts
    from solkit.model import Run

    with Bench(Settings(device="cpu")) as bench:
        ceilings = bench.ceilings()
        return Run(
            id="ceilings",
            created=f"{datetime.now(tz=UTC):%Y-%m-%dT%H:%M:%SZ}",
            device="cpu",
            facts=cpu_facts(),
            gpu=None,
            ceilings=ceilings,
            versions=bench.versions,
            seed=0,
            method=bench.method,
            cache="cold",
        )
