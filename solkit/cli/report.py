"""`solkit report`: render a run again, in any format, wherever it was measured."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from solkit.cli.console import say, show
from solkit.cli.options import Baseline
from solkit.errors import BadInput, unknown
from solkit.report.plain import line

if TYPE_CHECKING:
    from solkit.model import Run

NO_RUN = "give a run.jsonl or its folder; `solkit run` writes one into solkit-out/"


def command(
    runs: Annotated[
        Optional[list[Path]],  # noqa: UP045  # typer reads annotations at run time
        typer.Argument(
            help="run.jsonl files or folders, segments of one run; default the latest.",
            metavar="RUN",
        ),
    ] = None,
    to: Annotated[
        Literal["html", "markdown", "csv", "json", "junit", "parquet"],
        typer.Option("--format", help="The format to write; parquet needs -o and the extra."),
    ] = "html",
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", help="Write to this file, not to stdout."),
    ] = None,
    assets: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--assets",
            help="Write the page as a folder, for hosts that forbid styles inside a page.",
            metavar="DIR",
        ),
    ] = None,
    baseline: Baseline = "",
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Judge by today's spec file, not by the recorded one.")
    ] = False,
) -> None:
    """Render a recorded run as html, markdown, csv, json, junit or parquet; no device is needed."""
    from solkit import record
    from solkit.cli.outputs import write
    from solkit.cli.sides import segments
    from solkit.judge.score import score
    from solkit.report.renderers import FILE_RENDERERS, RENDERERS

    if assets is not None and (to != "html" or output is not None):
        raise BadInput("--assets writes html into its folder", remedy="leave --format and -o out")
    if to in FILE_RENDERERS and output is None:
        raise BadInput(f"{to} is no text for a terminal", remedy=f"name a file: -o run.{to}")
    run = record.read(segments(runs or [_latest()]))
    kernels = {outcome.case.kernel for outcome in run.outcomes}
    if baseline and baseline not in kernels:
        raise unknown("kernel for --baseline", baseline, kernels)
    if rescore:
        run = with_todays_spec(run)
    for note in run.notes:
        say(f"note: {line(note, 400)}")
    judged = score(run, baseline=baseline or None)
    if assets is not None:
        from solkit.report.assets import PAGE_NAME, render_folder

        for name, text in render_folder(run, judged).items():
            write(assets / name, text)
        say(f"wrote {assets / PAGE_NAME} and what it needs beside it")
        return
    if output is None:
        show(RENDERERS[to](run, judged).rstrip("\n"))
        return
    made = FILE_RENDERERS[to] if to in FILE_RENDERERS else RENDERERS[to]
    write(output, made(run, judged))
    say(f"wrote {output}")


def _latest() -> Path:
    """Return the latest run here, saying which it is."""
    from solkit.cli.outputs import latest_run

    latest = latest_run()
    if latest is None:
        raise BadInput("no run is named, and there is none here", remedy=NO_RUN)
    say(f"the latest run: {latest}")
    return latest


def with_todays_spec(run: "Run") -> "Run":
    """Return the run with the spec file of its card as it is now."""
    from solkit.plan.specs import load_specs

    if run.gpu is None:
        raise BadInput("a CPU run has no spec file to score by again", remedy="leave --rescore out")
    specs = load_specs()
    if run.gpu.id not in specs:
        raise BadInput(
            f"there is no spec file for {run.gpu.id!r} here",
            remedy=f"add hardware_specs/{run.gpu.id}.toml, or leave --rescore out",
        )
    return replace(run, gpu=specs[run.gpu.id])
