"""`solkit plan`: bytes, flop, intensity and bound of every case, for any card, with no GPU."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from solkit import units
from solkit.cli.catalogs import opened
from solkit.cli.console import heading, room, say, show, show_json, table
from solkit.cli.left_out import left_out
from solkit.cli.options import AsJson, CaseWords, Dtype, Load, MaxCases, Only, Shapes
from solkit.errors import BadInput, CasesFailed
from solkit.report.plain import counted, line

if TYPE_CHECKING:
    from solkit.gpu import Gpu
    from solkit.plan.jobs import Job, Plan

DEFAULT_GPU = "h200_sxm"


def command(  # noqa: PLR0917  # typer passes options by name
    case: CaseWords = None,
    shapes: Shapes = None,
    dtype: Dtype = "",
    gpu: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--gpu", help="An id, NVML name or family, e.g. h200. Default: this machine's."
        ),
    ] = None,
    load: Load = [],  # noqa: B006  # typer copies it
    only: Only = "",
    max_cases: MaxCases = 10_000,
    as_json: AsJson = False,
) -> None:
    """Work out bytes, flop, intensity and bound of every case, with no GPU."""
    from solkit.plan.jobs import plan, plan_document
    from solkit.plan.only import parse_only
    from solkit.plan.sweep import case_by_hand, read_sweep

    words = case or []
    if (shapes is not None) == bool(words) or (shapes is not None and dtype):
        raise BadInput(
            "give a sweep (--shapes FILE) or a case by hand, which --dtype belongs to",
            remedy="e.g. solkit plan matmul_add M=8192 N=2560 K=2560 --dtype bf16 --gpu h200",
        )
    card = chosen(gpu)
    with opened(load) as catalog:
        if shapes is not None:
            sweep = read_sweep(shapes, catalog, device="cuda", max_cases=max_cases)
        else:
            operator, *rest = words
            sweep = case_by_hand(operator, rest, catalog, dtype=dtype or None, max_cases=max_cases)
        for note in sweep.notes:
            say(f"note: {note}")
        cases = sweep.cases
        if only:
            cases = parse_only(only).select(cases, catalog.operators)
        planned = plan(cases, catalog, device="cuda", gpu=card)
    if as_json:
        show_json(plan_document(planned, card))
    else:
        show(_text(planned, card))
    if planned.failed:
        raise CasesFailed(
            f"of {len(cases)} cases {len(planned.failed)} could not be planned",
            remedy=planned.failed[0].remedy,
        )


def chosen(name: str | None) -> "Gpu":
    """Return the card that is named, else this machine's, else the default; say which."""
    from solkit.plan.specs import find, load_specs

    specs = load_specs()
    if name is not None:
        card, note = find(name, specs)
        if note:
            say(note)
        return card
    from solkit.measure.probe import cuda_devices

    found = cuda_devices()
    if found.devices:
        from solkit.plan.match import match

        matched = match(found.devices[0], specs)
        say(f"planning for this machine's card, {line(matched.gpu.name)}")
        return matched.gpu
    say(f"planning for {DEFAULT_GPU} (no card here; name another with --gpu)")
    return find(DEFAULT_GPU, specs)[0]


def _text(planned: "Plan", card: "Gpu") -> str:
    by_operator: dict[str, dict[object, Job]] = {}
    for job in planned.jobs:  # the bound is the same whatever the kernel
        by_operator.setdefault(job.case.operator, {}).setdefault(job.case.group_key, job)
    parts = [_table(list(jobs.values())) for jobs in by_operator.values()]
    parts.append(
        f"{counted(len(planned.jobs), 'case')} on {line(card.name)}: "
        f"{units.bandwidth(card.dram_bytes_per_s)}"
    )
    return "\n\n".join([*parts, *left_out(planned)])


def _table(jobs: "Sequence[Job]") -> str:
    case = jobs[0].case
    names = " x ".join(line(axis) for axis in case.shape)
    held = sorted(case.params.items())
    params = ", ".join(line(name) for name, value in held if isinstance(value, str))
    headers = ("shape", "dtype", "bytes", "work", "FLOP/B", "memory", "compute", "bound", "by")
    rows = [_row(job) for job in jobs]
    text = table(headers, rows, right=range(2, 8))
    columns = room()
    if columns and max(map(len, text.splitlines())) > columns:  # the bound is one of the two
        kept = [index for index, name in enumerate(headers) if name not in ("memory", "compute")]
        narrow = [[row[index] for index in kept] for row in rows]
        text = table([headers[index] for index in kept], narrow, right=range(2, 6))
    title = f"{heading(line(case.operator))}  {names}" + (f", {params}" if params else "")
    return f"{title}\n{text}"


def _row(job: "Job") -> tuple[str, ...]:
    case, work, bound = job.case, job.work, job.bound
    extents = "x".join(map(str, case.shape.values()))
    params = " ".join(map(line, case.params_words))
    exact = sum(work.flop.values())
    return (
        f"{extents} {params}".strip(),
        case.dtype,
        units.traffic(work.traffic_bytes),
        units.flop_count(exact) if exact else "-",
        units.digits(work.intensity_flop_per_byte),
        units.seconds(bound.memory_s),
        units.seconds(max(bound.compute_s.values())) if bound.compute_s else "-",
        units.seconds(bound.sol_s),
        bound.limiter.removeprefix("compute:") + (" ~" if bound.near_ridge else ""),
    )
