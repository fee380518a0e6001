"""`solkit new shapes`: a commented file to start from."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from solkit.cli.console import say, show
from solkit.errors import BadInput, NoDevice

app = typer.Typer(no_args_is_help=True, help="Write a file to start from.")


@app.callback()
def group() -> None:
    """Write a file to start from."""


@app.command("shapes")
def shapes(
    output: Annotated[
        Optional[Path],  # noqa: UP045  # typer reads annotations at run time
        typer.Option("--output", "-o", help="Write to this new file, not to stdout."),
    ] = None,
) -> None:
    """Write a commented starter shapes.yaml to stdout (or a new file)."""
    from solkit.plan.starter import SHAPES

    if output is None:
        show(SHAPES.rstrip("\n"))
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(SHAPES)
    except FileExistsError as error:
        raise BadInput(
            f"{output}: exists already", remedy="name another file, or delete it"
        ) from error
    except OSError as error:
        raise NoDevice(
            f"{output}: can't be written: {error.strerror or error}", remedy="name another file"
        ) from error
    say(f"wrote {output}; next: solkit plan --shapes {output}")
