"""`solkit compare`: did anything get slower from BASE to HEAD? No device is needed."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Optional

import typer

from solkit.cli.console import coloured, room, say, show
from solkit.cli.options import Allow, GateFile, MinEffect, names
from solkit.errors import GateSaysNo, SolkitError
from solkit.report.plain import line

if TYPE_CHECKING:
    from solkit.judge.changes import Comparison
    from solkit.judge.gate import Floors

NARROWEST = 40  # columns that the listing needs to be readable


class Ending(NamedTuple):
    """What the command ends with, and the floors that HEAD misses in a sentence."""

    code: int
    missed: str


def command(  # noqa: PLR0917  # typer passes options by name
    base: Annotated[Path, typer.Argument(help="A run.jsonl, or a folder of runs.", metavar="BASE")],
    head: Annotated[Path, typer.Argument(help="What is judged against it.", metavar="HEAD")],
    more_base: Annotated[
        Optional[list[Path]],  # noqa: UP045  # typer reads annotations at run time
        typer.Option("--base", help="More runs of BASE.", metavar="MORE"),
    ] = None,
    more_head: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option("--head", help="More runs of HEAD.", metavar="MORE"),
    ] = None,
    min_effect: MinEffect = None,
    allow: Allow = "",
    gate_file: GateFile = None,
    to: Annotated[
        Literal["terminal", "markdown", "json", "junit", "html", "annotations"],
        typer.Option("--format", help="The format to write."),
    ] = "terminal",
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", help="Write to this file, not to stdout."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List every case, those that are the same, too.")
    ] = False,
) -> None:
    """Compare runs case by case: SAME, FASTER, SLOWER, UNSURE, MISSING, NEW or INVALID.

    Exit 1: slower, missing or nothing compared; 2: can't be compared; 3: invalid.
    """
    from solkit.cli import gating
    from solkit.cli.outputs import prove_writable, write
    from solkit.cli.sides import both_sides
    from solkit.judge.changes import compare_runs, exit_error

    if output is not None:
        prove_writable(output)
    sides = both_sides([base, *(more_base or ())], [head, *(more_head or ())])
    asked = gating.Gating(gate=gate_file, min_effect_fraction=min_effect, allow=names(allow))
    held = gating.read(asked, sides.operators)
    comparison = compare_runs(
        sides.base,
        sides.head,
        min_effect_fraction=held.min_effect_fraction,
        operators_min_effect_fraction=held.gate.operators_min_effect_fraction,
        allow=held.allow,
    )
    comparison = replace(comparison, notes=(*sides.notes, *comparison.notes))
    for note in (*comparison.differences, *comparison.notes):
        say(f"note: {line(note, 400)}")
    error, low = exit_error(comparison), _below(comparison, held.gate.floors)
    if low:
        error = _both(error, low)
    ending = Ending(error.exit_code if error else 0, f"HEAD misses a floor: {low}" if low else "")
    text = _text(comparison, to, ending, everything=everything, to_stdout=output is None)
    if output is not None:
        write(output, text)
        say(f"wrote {output}")
    elif text:
        show(text.rstrip("\n"))
    if error:
        raise error


def _below(comparison: "Comparison", floors: "Floors") -> str:
    """Say which cases of HEAD miss the gate's floors, or that a floor could not be held."""
    from solkit.cli.summary import verdict

    if not floors:
        return ""
    judged = [item.head for item in comparison.changes if item.head is not None]
    roof = floors.roof or ("spec" if comparison.head.gpu else "measured")
    error = verdict(judged, roof=roof, floors=floors)
    return error.message if isinstance(error, GateSaysNo) else ""


def _both(error: SolkitError | None, low: str) -> GateSaysNo:
    """Join what the comparison says and a missed floor: both are exit 1, which wins over 3."""
    said = f"{error.message}; {low}" if error else low
    return GateSaysNo(said, remedy="the cases are listed above, the floors are in the gate file")


def _text(
    comparison: "Comparison", to: str, ending: Ending, *, everything: bool, to_stdout: bool
) -> str:
    from solkit.report.changes_renderers import RENDERERS

    if to != "terminal":
        return RENDERERS[to](comparison, ending.code, missed=ending.missed)
    from solkit.report.changes import view
    from solkit.report.changes_terminal import WIDTH, render

    seen = view(comparison, missed=ending.missed)
    width = max(NARROWEST, room() or WIDTH) if to_stdout else WIDTH
    color = to_stdout and coloured(sys.stdout)
    return render(seen, everything=everything, color=color, width=width)
