"""The options that several commands take, each written once: their words and their help."""

from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

RoofName = Literal["spec", "clock", "measured"]

CaseWords = Annotated[
    Optional[list[str]],  # noqa: UP045  # typer reads annotations at run time
    typer.Argument(
        help="One case by hand: OPERATOR AXIS=SIZE ... [PARAM=VALUE ...]", metavar="CASE"
    ),
]
Shapes = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--shapes", help="The sweep: a shapes.yaml (see `solkit new shapes`)."),
]
Dtype = Annotated[str, typer.Option("--dtype", help="Dtype of a case by hand; several: a,b")]
Load = Annotated[
    list[Path], typer.Option("--load", help="A .py file or folder with kernels of yours.")
]
Only = Annotated[str, typer.Option("--only", help="Cases that match, e.g. 'rows>=64'.")]
MaxCases = Annotated[int, typer.Option("--max-cases", min=1, help="Refuse a sweep of more cases.")]
Baseline = Annotated[
    str, typer.Option("--baseline", help="The kernel that gap scores are taken against.")
]
TimerName = Annotated[
    str,
    typer.Option("--timer", help="auto, cupti, event_blocked, event_unblocked or graph."),
]
CacheModes = Annotated[
    list[str], typer.Option("--cache", help="cold, clean, zeroed, hot; several: cold,hot")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
MinEffect = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option("--min-effect", help="The least change that counts; default 0.02, 2 %."),
]
Allow = Annotated[
    str,
    typer.Option(
        "--allow",
        help="Conditions that may differ: card, driver, method, power, seed, settle, spec or all; "
        "several: a,b",
    ),
]
GateFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--gate", help="A gate.toml: floors, least effects, what may differ."),
]


def names(text: str) -> tuple[str, ...]:
    """Return the names of `a,b`."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))
