"""`solkit doctor`: can this machine measure, how well, and what to do about it."""

from pathlib import Path
from typing import Annotated

import typer

from solkit.cli.console import room, show, show_json
from solkit.report.plain import block


def command(
    device: Annotated[
        str, typer.Option("--device", help="auto, cuda[:N], cpu, or a card's name.")
    ] = "auto",
    out: Annotated[Path, typer.Option("--out", help="The folder that runs would go to.")] = Path(
        "solkit-out"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Examine driver, CUDA, compiler, GPU and memory; exit 4 where measuring can't work."""
    from solkit.measure.doctor import document, examine, exit_code, lines

    findings = examine(device=device, out=out)
    if as_json:
        show_json(document(findings))
    else:
        # a pipe gets a line a check, for grep
        width = room() or 0
        show(block("\n".join(lines(findings, width=width)), 100_000))
    code = exit_code(findings)
    if code:
        raise typer.Exit(code)
