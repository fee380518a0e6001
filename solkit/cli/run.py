"""`solkit run`: the main job. Measure a sweep, or one case by hand, score it, write the report."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from solkit.cli.options import (
    Allow,
    Baseline,
    CacheModes,
    CaseWords,
    Dtype,
    GateFile,
    Load,
    MaxCases,
    MinEffect,
    Only,
    RoofName,
    Shapes,
    TimerName,
    names,
)
from solkit.errors import BadInput
from solkit.model import Settle

# What --resume goes by, too: the rest of a run is as it was begun.
_BESIDE_RESUME = {
    *("resume", "device", "timeout", "roof", "baseline"),
    *("fail_under", "gate", "against", "min_effect", "allow"),
    *("junit", "summary", "annotations", "assets", "history", "commit"),
}


def command(  # noqa: PLR0917  # typer passes options by name
    context: typer.Context,
    case: CaseWords = None,
    shapes: Shapes = None,
    dtype: Dtype = "",
    kernel: Annotated[
        list[str], typer.Option("--kernel", help="Kernel of a case by hand; repeat for more.")
    ] = [],  # noqa: B006  # typer copies it
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="The run's folder; default solkit-out/<run id>."),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="auto, cuda[:N], cpu, or a card's name.")
    ] = "auto",
    load: Load = [],  # noqa: B006  # typer copies it
    only: Only = "",
    baseline: Baseline = "",
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of the inputs.")
    ] = 0,
    timer: TimerName = "auto",
    cache: CacheModes = ["cold"],  # noqa: B006  # typer copies it
    budget: Annotated[
        float, typer.Option("--budget", help="Seconds of sampling a case may take.")
    ] = 0.5,
    precision: Annotated[
        float, typer.Option("--precision", help="Stop at this half interval over the median.")
    ] = 0.005,
    settle: Annotated[
        Settle, typer.Option("--settle", help="Rest between batches, or run until clocks settle.")
    ] = "burst",
    energy: Annotated[
        bool, typer.Option("--energy", help="Measure energy per call, too (a second a case).")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds a case may go on without a word.")
    ] = 60.0,
    roof: Annotated[
        Optional[RoofName],  # noqa: UP045
        typer.Option("--roof", help="The roof of the summary and of --fail-under."),
    ] = None,
    fail_under: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--fail-under", help="Exit 1 where a score is below, e.g. 0.8."),
    ] = None,
    gate: GateFile = None,
    against: Annotated[
        list[Path], typer.Option("--against", help="Compare with this run; repeat for more.")
    ] = [],  # noqa: B006  # typer copies it
    min_effect: MinEffect = None,
    allow: Allow = "",
    junit: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--junit", help="Write JUnit XML to this file, too."),
    ] = None,
    summary: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--summary", help="Append a Markdown summary to this file."),
    ] = None,
    annotations: Annotated[
        bool, typer.Option("--annotations", help="Print ::error and ::warning lines for CI.")
    ] = False,
    assets: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--assets", help="Write the report as a folder, too (Jenkins)."),
    ] = None,
    history: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--history", help="Add the run to this folder, and write its trend page."),
    ] = None,
    commit: Annotated[
        str, typer.Option("--commit", help="The code measured; default CI's or git's.")
    ] = "",
    max_cases: MaxCases = 10_000,
    resume: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--resume", help="Finish the run in this folder."),
    ] = None,
) -> None:
    """Measure every case, score it against the card's limits, write run.jsonl and report.html."""
    from solkit.cli.extras import Extras
    from solkit.cli.gating import Gating
    from solkit.cli.session import Request, finish_cut, measure_new
    from solkit.measure.manner import Manner, modes_named, timer_named

    if (shapes is not None) + bool(case) + (resume is not None) != 1:
        raise BadInput(
            "give one of: a sweep (--shapes FILE), a case by hand, a run to finish (--resume DIR)",
            remedy="e.g. solkit run matmul_add M=8192 N=2560 K=2560 --dtype bf16",
        )
    given = _given(context)
    if resume is not None:
        _refuse_beside_resume(given)
    request = Request(
        shapes=shapes,
        case=tuple(case or ()),
        dtype=dtype or None,
        kernels=tuple(kernel),
        out=out,
        device=device,
        loads=tuple(load),
        only=only,
        baseline=baseline or None,
        manner=Manner(
            timer=timer_named(timer),
            modes=modes_named(",".join(cache)),
            budget_s=budget,
            precision_fraction=precision,
            settle=settle,
            energy=energy,
            timeout_s=timeout,
            seed=seed,
        ),
        roof=roof,
        gating=Gating(
            fail_under=fail_under,
            gate=gate,
            against=tuple(against),
            min_effect_fraction=min_effect,
            allow=names(allow),
        ),
        extras=Extras(
            junit=junit,
            summary=summary,
            annotations=annotations,
            assets=assets,
            history=history,
            commit=commit,
        ),
        max_cases=max_cases,
    )
    if resume is not None:
        finish_cut(resume, request, timeout_s=timeout if "timeout" in given else None)
    else:
        measure_new(request)


def _given(context: typer.Context) -> set[str]:
    """Return the options that were given, even where they say what is the default."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name != "DEFAULT"}


def _refuse_beside_resume(given: set[str]) -> None:
    """Refuse what a run that is finished can't follow any more, rather than drop it."""
    strange = sorted(f"--{name.replace('_', '-')}" for name in given - _BESIDE_RESUME)
    if strange:
        raise BadInput(
            f"{', '.join(strange)} can't be changed by --resume",
            remedy="leave it out: the run goes on as it was begun; or measure anew",
        )
