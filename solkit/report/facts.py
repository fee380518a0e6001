"""What a run was made on and how: what a reader needs to trust and repeat it, as words."""

from collections import Counter
from collections.abc import Sequence

from solkit import units
from solkit.bound import measured_roof
from solkit.judge.score import Judged, Scored
from solkit.model import Run
from solkit.report.fact import UNKNOWN, Fact, FactGroup, between, present
from solkit.report.plain import counted, isolated, line, listed
from solkit.report.timing import clock_facts, clocked, timing_doubts, timing_facts

FEW_SAMPLES = 6  # below six samples the 95 % interval is the whole range
NOTES_MOST = 12
CUT_REMEDY = "Finish it with --resume."


def facts(run: Run, judged: Sequence[Judged]) -> tuple[FactGroup, ...]:
    """Return the device, the conditions it held, and the method, in this order."""
    scored = [item for item in judged if isinstance(item, Scored)]
    return (
        FactGroup("Device", _device(run)),
        FactGroup("Conditions", _conditions(run, scored)),
        FactGroup("Method", timing_facts(run, scored)),
        FactGroup("Provenance", _provenance(run)),
    )


def conditions_line(run: Run, judged: Sequence[Judged]) -> str:
    """Return what decides a comparison on one line: card, clock, power, method, cache, date."""
    scored = [item for item in judged if isinstance(item, Scored)]
    held = _held(scored)
    parts = [isolated(run.facts.name)]
    if held:
        parts.append(f"SM clock {between(held, units.frequency)}")
    if run.facts.power_limit_w:
        parts.append(f"power limit {units.power(run.facts.power_limit_w)}")
    if run.facts.driver:
        parts.append(f"driver {line(run.facts.driver)}")
    parts += [line(run.method), f"{line(run.cache)} cache"]
    if clocked(scored):
        parts.append(line(run.settle))
    parts.append(line(run.created))
    return " · ".join(parts)


def roof_text(run: Run) -> str:
    """Say which limits the SOL score is taken against."""
    if run.gpu:
        return f"spec: {units.bandwidth(run.gpu.dram_bytes_per_s)} DRAM and the dense peaks below"
    if run.device == "cpu":
        return "measured: the ceilings of this very host"
    return "measured: the ceilings of this very card"


def _device(run: Run) -> tuple[Fact, ...]:
    device, gpu = run.facts, run.gpu
    processors = (
        counted(device.core_count, "core")
        if device.kind == "cpu" and device.core_count
        else f"{counted(device.sm_count, 'SM')}, capability {line(device.compute_capability)}"
        if device.sm_count
        else ""
    )
    memory = units.capacity(device.dram_bytes) if device.dram_bytes else UNKNOWN
    ecc = {True: "ECC on", False: "ECC off", None: ""}[device.ecc]
    cache = device.l2_bytes or (gpu.l2_bytes if gpu else None)
    made = [Fact("Card" if run.device == "cuda" else "Processor", line(device.name), processors)]
    if device.mig_profile:
        made.append(Fact("MIG", line(device.mig_profile), "a slice of the card"))
    made.append(Fact("Memory", memory, ecc))
    if cache:
        made.append(
            Fact("L2" if run.device == "cuda" else "Last-level cache", units.capacity(cache))
        )
    if run.device == "cuda":
        made += [
            Fact("Driver", line(device.driver) or UNKNOWN),
            Fact("CUDA", line(device.cuda_driver) or UNKNOWN, "highest the driver supports"),
        ]
    return tuple(made)


def _conditions(run: Run, scored: Sequence[Scored]) -> tuple[Fact, ...]:
    clocks = [item.outcome.clocks for item in scored]
    held = _held(scored)
    memory = present(each.memory_hz for each in clocks)
    warmth = present(each.temperature_c for each in clocks)
    drawn = present(each.power_w for each in clocks)
    most_hz = run.facts.max_clock_hz or (run.gpu.max_clock_hz if run.gpu else None)
    limit_w = run.facts.power_limit_w
    usual_w = run.facts.power_default_w or (run.gpu.power_w if run.gpu else None)
    of_most = (
        f"medians of the cases; the card's highest is {units.frequency(most_hz)}"
        if held and most_hz
        else ""
    )
    made = [
        Fact(
            "SM clock held" if run.device == "cuda" else "Clock",
            between(held, units.frequency),
            of_most,
        )
    ]
    made += clock_facts(run, scored)
    if memory:
        made.append(Fact("Memory clock", between(memory, units.frequency)))
    if run.device == "cuda":
        made.append(
            Fact(
                "Power limit",
                units.power(limit_w) if limit_w else UNKNOWN,
                f"default {units.power(usual_w)}" if usual_w else "",
            )
        )
        if drawn:
            made.append(
                Fact(
                    "Power read",
                    between(drawn, units.power),
                    "the highest of the driver's readings between batches, one each 0.1 s: pauses "
                    "are in it, so kernels draw more",
                )
            )
        made.append(Fact("Temperature", between(warmth, lambda value: f"{value:.0f} °C")))
        reasons = Counter(reason for each in clocks for reason in each.event_reasons)
        made.append(
            Fact(
                "Clock events",
                listed([line(name) for name in sorted(reasons)]) or "none seen",
                f"in {counted(sum(1 for each in clocks if each.event_reasons), 'case')}"
                if reasons
                else "",
            )
        )
    if company := sum(1 for item in scored if item.outcome.other_process_count):
        made.append(Fact("Other processes", "on the device", f"during {counted(company, 'case')}"))
    return tuple(made)


def _provenance(run: Run) -> tuple[Fact, ...]:
    versions = [f"{line(name)} {line(version)}" for name, version in sorted(run.versions.items())]
    spec = (
        Fact("Spec file", line(run.gpu.id), "recorded in the run")
        if run.gpu
        else Fact("Spec file", "none", "this device has no published peaks here")
    )
    made = [spec, Fact("SOL taken against", roof_text(run))]
    if run.ceilings:
        best = measured_roof(run.ceilings, settle=run.settle)
        pipes = [f"{name} {units.flop_rate(rate)}" for name, rate in best.pipes_flop_per_s.items()]
        made.append(
            Fact(
                "Measured here",
                listed([units.bandwidth(best.dram_bytes_per_s), *pipes]),
                "best of each",
            )
        )
    made.append(Fact("Versions", ", ".join(versions) or UNKNOWN))
    took = f"took {units.duration(run.duration_s)}" if run.duration_s is not None else ""
    made.append(Fact("Recorded", line(run.created), took))
    if run.command:
        made.append(Fact("Command", line(run.command, 400)))
    return tuple(made)


def caveats(run: Run, judged: Sequence[Judged]) -> tuple[str, ...]:
    """Return everything that limits what the numbers mean; a reader sees them all, never folded."""
    scored = [item for item in judged if isinstance(item, Scored)]
    found: list[str] = []
    if cut := cut_short(run):
        found.append(f"{cut} {CUT_REMEDY}")
    if run.gpu and run.gpu.vendor == "derived":
        found.append(
            "No spec file describes this card: its limits are derived from what the driver says. "
            "Add a file to hardware_specs/ for sourced peaks."
        )
    found += [line(note, 400) for note in run.facts.notes]
    found += timing_doubts(scored)
    found += _doubts(run, scored)
    said = (line(note, 400) for item in scored for note in item.outcome.notes)
    notes = Counter(filter(None, said))
    ranked = sorted(notes.items(), key=lambda item: (-item[1], item[0]))
    found += [f"{note} ({counted(count, 'case')})" for note, count in ranked[:NOTES_MOST]]
    if len(ranked) > NOTES_MOST:
        found.append(
            f"{counted(len(ranked) - NOTES_MOST, 'more note')} on single cases: see the run file."
        )
    return tuple(each for each in dict.fromkeys(found) if each not in notices(run))


def cut_short(run: Run) -> str:
    """Say that a run ended before its end, and how much of it there is; nothing of a whole run."""
    if run.ended not in (None, "interrupted"):
        return ""
    planned = f" of {run.planned_count:,} planned" if run.planned_count is not None else ""
    return f"The run was cut short: {counted(len(run.outcomes), 'case')}{planned} are here."


def notices(run: Run) -> tuple[str, ...]:
    """Return what was not as asked for, such as a timer that fell back: said before any number."""
    return tuple(dict.fromkeys(line(note, 400) for note in run.notes))


def _doubts(run: Run, scored: Sequence[Scored]) -> list[str]:
    found = []
    if few := sum(1 for item in scored if item.outcome.sample_count < FEW_SAMPLES):
        found.append(
            f"{counted(few, 'case')} with fewer than {FEW_SAMPLES} samples: "
            "the interval is the whole range."
        )
    if stale := sum(1 for item in scored if item.above_measured):
        found.append(
            f"{counted(stale, 'case')} beat the ceilings measured at the start (marked ▲ "
            "under SOL@measured): those ceilings are too low for them."
        )
    hot = [
        reason
        for item in scored
        for reason in item.outcome.clocks.event_reasons
        if "thermal" in reason.lower() or "hw" in reason.lower().replace("hardware", "hw")
    ]
    if hot:
        found.append(f"The card slowed itself down ({listed(sorted(set(map(line, hot))))}).")
    limit_w, usual_w = run.facts.power_limit_w, run.facts.power_default_w
    if limit_w and usual_w and limit_w < usual_w:
        found.append(
            f"The power limit is {units.power(limit_w)}, below the card's default of "
            f"{units.power(usual_w)}."
        )
    return found


def _held(scored: Sequence[Scored]) -> list[float]:
    """Return each case's median SM clock: one sample of a short kernel is off by 1 to 2 %."""
    return present(item.outcome.clocks.sm_hz for item in scored)
