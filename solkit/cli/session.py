"""A run from request to report, in small steps: choose, read, plan, measure, judge, tell."""

import os
import shlex
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from solkit import __version__, record
from solkit.bound import Roof, measured_roof, spec_roof
from solkit.cli import outputs
from solkit.cli.catalogs import opened
from solkit.cli.ceilings import current
from solkit.cli.console import say
from solkit.cli.ending import tell
from solkit.cli.extras import Extras, prove_writable
from solkit.cli.gating import Gating, Held, read, unsure
from solkit.cli.intent import Intent, read_intent
from solkit.cli.left_out import left_out
from solkit.cli.progress import Progress
from solkit.declare.catalog import Catalog
from solkit.errors import BadInput, NoDevice, unknown
from solkit.gpu import Gpu
from solkit.judge.score import RoofName
from solkit.measure.bench import Bench, Settings
from solkit.measure.device.base import TIMERS
from solkit.measure.manner import Manner
from solkit.measure.probe import Choice, choose
from solkit.model import Case, Run
from solkit.plan.jobs import Plan, plan
from solkit.plan.match import match
from solkit.plan.only import parse_only
from solkit.plan.specs import load_specs
from solkit.plan.sweep import MOST_CASES, case_by_hand, read_sweep
from solkit.report.plain import counted, line

# Before a host's ceilings are measured: enough to tell what can run, never what is scored against.
UNMEASURED = Roof("measured", 1.0, {})


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked for; `case` is OPERATOR AXIS=SIZE ... where there is no `shapes`."""

    shapes: Path | None = None
    case: tuple[str, ...] = ()
    dtype: str | None = None
    kernels: tuple[str, ...] = ()
    out: Path | None = None
    device: str = "auto"
    loads: tuple[Path, ...] = ()
    only: str = ""
    baseline: str | None = None
    manner: Manner = field(default_factory=Manner)
    roof: RoofName | None = None
    gating: Gating = field(default_factory=Gating)
    extras: Extras = field(default_factory=Extras)
    max_cases: int = MOST_CASES


def measure_new(request: Request) -> None:
    """Measure a sweep or a case by hand into a new folder."""
    _check(request)
    start_s = monotonic()
    choice = _chosen(request)
    say(f"device: {choice.why}")
    with _bench(choice, request.loads, request.manner) as bench:
        cases, notes = read_cases(request, bench.catalog, choice.kind)
        _check_baseline(request.baseline, bench.catalog)
        is_part = bool(request.only or request.case)
        held = _held(request, bench.catalog.operators, cases if is_part else None)
        gpu, card_notes = _card(choice)
        roof = spec_roof(gpu) if gpu else UNMEASURED
        first = plan(
            cases, bench.catalog, device=choice.kind, gpu=gpu, roof=roof, facts=choice.facts
        )
        for text in left_out(first):
            say(text)
        began = datetime.now(tz=UTC)
        name = outputs.run_id(gpu.id if gpu else "cpu", began)
        folder = outputs.make_folder(request.out, name)
        if request.out is None:  # another run that began in the same second has taken the name
            name = folder.name
        try:
            run = _header(name, began, choice, gpu, bench, len(cases))
            held.refuse_other(run)
            run = replace(run, ceilings=current(bench, choice) if first.jobs else None)
        except BaseException:
            outputs.forget(folder, made_here=request.out is None)
            raise
        run = replace(run, notes=(*notes, *card_notes, *run.notes))
        for note in run.notes:
            say(f"note: {note}")
        loads = tuple(str(path.resolve()) for path in request.loads)
        intent = Intent(cases, loads, request.baseline, request.manner, is_part)
        outputs.write(folder / outputs.RESUME_FILE, record.to_json(intent).decode())
        planned = _planned(run, cases, bench.catalog)
        spent_s = monotonic() - start_s  # the ceilings are most of a short run
        writer = record.Writer(folder / outputs.RUN_FILE, run, spent_s=spent_s)
        error = _measure(bench, planned, writer)
        error = error or _measure_unsure(bench, folder, held)
    if request.out is None and planned.jobs:  # what measured nothing is nobody's latest run
        outputs.link_latest(folder)
    tell(folder, request.extras, held, error, roof=request.roof, baseline=request.baseline)


def finish_cut(folder: Path, request: Request, *, timeout_s: float | None = None) -> None:
    """Measure what is missing of a run that was cut, in its own file.

    Of the manner, it is the run's own that counts; timeout_s: in place of the run's, if not None.
    """
    _check(request)
    run = record.read(folder / outputs.RUN_FILE)
    intent = read_intent(folder / outputs.RESUME_FILE)
    operators = {case.operator for case in intent.cases}
    held = _held(request, operators, intent.cases if intent.is_part else None)
    if any(run.id == each.id and run.facts.uuid == each.facts.uuid for each in held.base):
        raise BadInput(
            f"--against: {line(run.id)} is the run itself, and nothing could differ",
            remedy="name the run before it",
        )
    held.refuse_other(run)
    missing = record.missing(run, intent.cases)
    say(f"{folder}: {len(missing)} of {len(intent.cases)} cases are missing")
    request = replace(request, baseline=request.baseline or intent.baseline)
    error = None
    is_whole = not missing and run.ended == "complete"
    if not is_whole or _again_cut(folder, held):
        choice = _same_device(run, request)
        loads = tuple(Path(path) for path in intent.loads)
        with _bench(choice, loads, _same_manner(run, intent.manner, timeout_s)) as bench:
            planned = _planned(run, missing, bench.catalog)
            for text in left_out(planned):
                say(text)
            for note in bench.notes if planned.jobs else ():  # a held card is refused here
                say(f"note: {note}")
            if not is_whole:
                writer = record.Writer(folder / outputs.RUN_FILE, run, append=True)
                error = _measure(bench, planned, writer)
            error = error or _measure_unsure(bench, folder, held)
    tell(folder, request.extras, held, error, roof=request.roof, baseline=request.baseline)


def read_cases(
    request: Request, catalog: Catalog, device: str
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the cases of the sweep or of the command line, filtered, and what to say of them."""
    if request.shapes is not None:
        sweep = read_sweep(request.shapes, catalog, device=device, max_cases=request.max_cases)
    else:
        sweep = case_by_hand(
            request.case[0],
            request.case[1:],
            catalog,
            dtype=request.dtype,
            kernels=request.kernels,
            device=device,
            max_cases=request.max_cases,
        )
    chosen = sweep.cases
    if request.only:
        chosen = parse_only(request.only).select(chosen, catalog.operators)
    modes = request.manner.modes
    return tuple(replace(case, cache_mode=mode) for case in chosen for mode in modes), sweep.notes


def _held(request: Request, operators: Collection[str], part: Collection[Case] | None) -> Held:
    """Read what the run is held to, and say what of it can't be.

    part: the cases, where they are not a whole sweep: BASE may hold others that nobody asked for.
    """
    held = read(request.gating, operators)
    if idle := held.idle_options(request.gating):
        say(f"note: {idle}")
    if part is None or not held.base:
        return held
    say("note: a part of a sweep is measured, so no other case of BASE is MISSING")
    return held.of(part)


def _again_cut(folder: Path, held: Held) -> bool:
    """Say whether a second measurement was begun, is not finished, and is wanted."""
    path = folder / outputs.AGAIN_FILE
    return bool(held.base) and path.is_file() and record.read(path).ended != "complete"


def _check(request: Request) -> None:
    prove_writable(request.extras)
    if request.shapes is not None and (request.dtype or request.kernels):
        raise BadInput(
            "--dtype and --kernel belong to a case by hand",
            remedy="write dtype: and kernels: into the sweep, or filter with --only dtype=bf16",
        )


def _chosen(request: Request) -> Choice:
    """Choose the device; bad input in the sweep is told first, since its exit code comes first."""
    try:
        return choose(request.device)
    except NoDevice:
        with opened(request.loads) as catalog:
            read_cases(request, catalog, "cuda")
        raise


def _same_device(run: Run, request: Request) -> Choice:
    wanted = request.device
    if wanted == "auto":
        wanted = "cpu" if run.device == "cpu" else run.facts.uuid or f"cuda:{run.facts.index}"
    choice = choose(wanted)
    if (choice.kind, choice.facts.name) != (run.device, run.facts.name):
        raise BadInput(
            f"the run was begun on {line(run.facts.name)}, this is {line(choice.facts.name)}",
            remedy="finish it on the same card, or measure anew",
        )
    say(f"device: {choice.why}")
    return choice


def _same_manner(run: Run, manner: Manner, timeout_s: float | None) -> Manner:
    """Return the manner in which a cut run is finished: the method that was begun with."""
    timer = run.method if run.method in TIMERS else "auto"
    limit_s = manner.timeout_s if timeout_s is None else timeout_s
    return replace(manner, timer=timer, timeout_s=limit_s)


def _bench(choice: Choice, loads: Sequence[Path], manner: Manner) -> Bench:
    # The worker inherits these: CUDA then sees the chosen card alone, whatever its number.
    os.environ.update(choice.environment)
    settings = Settings(choice.kind, choice.cuda_index, tuple(loads), manner, choice.facts)
    return Bench(settings)


def _check_baseline(baseline: str | None, catalog: Catalog) -> None:
    names = {kernel.name for kernel in catalog.kernels}
    if baseline is not None and baseline not in names:
        raise unknown("kernel for --baseline", baseline, names)


def _card(choice: Choice) -> tuple[Gpu | None, tuple[str, ...]]:
    if choice.kind == "cpu":
        return None, ()
    matched = match(choice.facts, load_specs())
    return matched.gpu, matched.notes


def _header(
    name: str,
    began: datetime,
    choice: Choice,
    gpu: Gpu | None,
    bench: Bench,
    count: int,
) -> Run:
    """Return the run as its header holds it, before the ceilings are known."""
    return Run(
        id=name,
        created=f"{began:%Y-%m-%dT%H:%M:%SZ}",
        device=choice.kind,
        facts=choice.facts,
        gpu=gpu,
        ceilings=None,
        versions={
            "solkit": __version__,
            "python": ".".join(map(str, sys.version_info[:3])),
            **bench.versions,
        },
        seed=bench.settings.manner.seed,
        method=bench.method,
        cache=", ".join(bench.settings.manner.modes),
        settle=bench.settings.manner.settle,
        precision_fraction=bench.settings.manner.precision_fraction,
        cache_proof_s=bench.cache_proof_s,
        planned_count=count,
        notes=(*choice.facts.notes, *bench.notes),
        command=shlex.join(["solkit", *sys.argv[1:]]),
    )


def _planned(run: Run, cases: Sequence[Case], catalog: Catalog) -> Plan:
    if run.gpu is not None:
        roof = spec_roof(run.gpu)
    else:
        roof = measured_roof(run.ceilings, settle=run.settle) if run.ceilings else UNMEASURED
    planned = plan(cases, catalog, device=run.device, gpu=run.gpu, roof=roof, facts=run.facts)
    if planned.jobs and roof is UNMEASURED:  # nothing could run when it was begun
        raise BadInput("the run has neither a card nor ceilings", remedy="measure anew")
    return planned


def _measure(bench: Bench, planned: Plan, writer: record.Writer) -> BaseException | None:
    """Measure and record; whatever ends it early is returned, for the report comes first."""
    try:
        with writer, Progress(len(planned.jobs)) as progress:
            writer.add([*planned.skipped, *planned.failed])
            for outcomes in bench.measure(planned.groups(), progress.at):
                writer.add(outcomes)
                progress.finished(outcomes)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # raised again after the report
        return error
    return None


def _measure_unsure(bench: Bench, folder: Path, held: Held) -> BaseException | None:
    """Measure once more, into a file of their own, the cases that are not sure against BASE.

    Whatever ends it early is returned: the run itself is whole, and its report comes first.
    """
    try:
        run = record.read(folder / outputs.RUN_FILE)
        cases = unsure(held.compared([run]))
        if not cases:
            return None
        told = counted(len(cases), "case is", "cases are")
        say(f"{told} not sure against BASE: measured once more")
        again = replace(run, id=f"{run.id}-again", outcomes=(), planned_count=0, ended=None)
        (folder / outputs.AGAIN_FILE).unlink(missing_ok=True)
        writer = record.Writer(folder / outputs.AGAIN_FILE, again)
        return _measure(bench, _planned(run, cases, bench.catalog), writer)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # raised again after the report
        return error
