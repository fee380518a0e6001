"""`solkit gpus`: the spec files, listed, shown and held to their rules."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from solkit import units
from solkit.cli.console import heading, say, show, show_json, table
from solkit.errors import BadInput
from solkit.report.plain import counted, line

if TYPE_CHECKING:
    from solkit.gpu import Gpu

app = typer.Typer(help="Spec files: list them, show one, check them all.")
Folder = Annotated[
    Optional[Path],  # noqa: UP045  # typer reads annotations at run time
    typer.Option("--specs", help="Another folder of spec files."),
]
_WIDE = 80  # columns that the fields of a source are folded to
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.callback(invoke_without_command=True)
def listed(ctx: typer.Context, specs: Folder = None, as_json: AsJson = False) -> None:
    """List the cards there are spec files for."""
    if ctx.invoked_subcommand is None:
        _list(specs, as_json=as_json)


@app.command("list")
def list_again(specs: Folder = None, as_json: AsJson = False) -> None:
    """List the cards there are spec files for."""
    _list(specs, as_json=as_json)


@app.command("show")
def shown(
    gpu: Annotated[str, typer.Argument(help="An id, NVML name, alias or family.")],
    specs: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Show every number of one card, with its source."""
    from solkit.plan.specs import find, gpu_document, load_specs

    card, note = find(gpu, load_specs(specs))
    if note:
        say(note)
    if as_json:
        show_json(gpu_document(card))
    else:
        show(_card(card))


@app.command("lint")
def linted(
    place: Annotated[
        Optional[Path],  # noqa: UP045  # typer reads annotations at run time
        typer.Argument(help="A folder of spec files; the bundled ones by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every peak and hold every file to the rules; exit 2 where one is broken."""
    from dataclasses import asdict

    from solkit.plan.lint import lint
    from solkit.plan.specs import load_specs

    specs = load_specs(place)
    findings = lint(specs)
    if as_json:
        show_json({"cards": len(specs), "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            show(f"{finding.gpu}: {finding.where}: {finding.message} [{finding.rule}]")
            show(f"  remedy: {finding.remedy}")
        if not findings:
            peaks = sum(len(gpu.pipes) for gpu in specs.values())
            show(f"{counted(len(specs), 'card')}, {counted(peaks, 'peak')}: all well")
    if findings:
        raise BadInput(
            f"{counted(len(findings), 'finding')} in the spec files", remedy="see the list above"
        )


def _list(place: Path | None, *, as_json: bool) -> None:
    from solkit.plan.specs import gpus_document, load_specs

    specs = load_specs(place)
    if as_json:
        show_json(gpus_document(specs))
        return
    rows = [
        (
            gpu.id,
            gpu.compute_capability,
            str(gpu.sm_count),
            units.capacity(gpu.dram_bytes),
            units.bandwidth(gpu.dram_bytes_per_s),
            _rate(gpu, "fp32"),
            _rate(gpu, "bf16_tensor"),
        )
        for gpu in specs.values()
    ]
    headers = ("id", "CC", "SMs", "memory", "bandwidth", "fp32", "bf16 tensor")
    show(table(headers, rows, right=range(2, 7)))
    say("fp32, bf16 tensor: dense peaks in FLOP/s")


def _rate(gpu: "Gpu", pipe: str) -> str:
    found = gpu.pipes.get(pipe)
    return units.flop_rate(found.flop_per_s).removesuffix("FLOP/s") if found else "-"


def _sources(gpu: "Gpu") -> list[str]:
    """Return each source once: its title and mark, its address, what it is the source of."""
    import textwrap

    fields: dict[tuple[str, str], list[str]] = {}
    for name, source in sorted(gpu.sources.items()):
        title = f"{line(source.title)} ({source.accessed}, {source.mark})"
        fields.setdefault((title, line(source.url, 400)), []).append(line(name))
    written = []
    for (title, url), names in fields.items():
        told = textwrap.wrap(", ".join(names), _WIDE - 4, break_long_words=False)
        written += [f"  {title}", f"    {url}", *(f"    {text}" for text in told)]
    return written


def _card(gpu: "Gpu") -> str:
    facts = [
        ("compute capability", gpu.compute_capability),
        ("SMs", str(gpu.sm_count)),
        ("memory", units.capacity(gpu.dram_bytes)),
        ("bandwidth", units.bandwidth(gpu.dram_bytes_per_s)),
        ("L2", units.capacity(gpu.l2_bytes)),
        ("highest clock", units.frequency(gpu.max_clock_hz)),
        ("power limit", units.power(gpu.power_w) if gpu.power_w else "unknown"),
        ("also known as", ", ".join(map(line, gpu.aliases)) or "-"),
    ]
    peaks = [
        (
            name,
            units.pipe_rate(name, pipe.flop_per_s),
            units.digits(pipe.flop_per_clock_per_sm, 6).rstrip("0").rstrip("."),
            units.frequency(pipe.clock_hz),
        )
        for name, pipe in gpu.pipes.items()
    ]
    parts = [
        f"{heading(line(gpu.name))}  {gpu.id}",
        "\n".join(f"  {name:<20}{value}" for name, value in facts),
        table(("dense peak", "rate", "per clock, SM", "at"), peaks, right=(1, 2, 3)),
        "\n".join([heading("sources"), *_sources(gpu)]),
        *(f"note: {line(note, 400)}" for note in gpu.notes),
    ]
    return "\n\n".join(parts)
