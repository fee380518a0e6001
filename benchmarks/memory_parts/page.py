"""The recorded runs as the memory-bound section of benchmarks/README.md. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence

from accuracy_parts.page import WORDS, table
from memory_parts import prose
from memory_parts.bars import LARGE_BYTES, PEER_BAR, Bar, Held, judged, mean_verdict, told
from memory_parts.segments import SEGMENTS
from memory_parts.standing import COMPILED, Standing, mean_gain, standings

from solkit import units
from solkit.model import Case, Run
from solkit.report.markdown import safe, unbroken
from solkit.report.plain import counted
from solkit.stats import median, quantile

NONE = ""
QUARTERS = (0.25, 0.5, 0.75)
HEAD = (
    *("shape", "dtype", "moved", "solkit", "bandwidth", "SOL", "SOL@measured"),
    *("peer", "its time", "x", "launch: solkit", "peer"),
)


def render(runs: Sequence[Run], versions: Mapping[str, str]) -> str:
    """Return the section in Markdown: the same runs give the same bytes."""
    if not runs:
        return "Nothing was measured yet.\n"
    shapes = standings(runs)
    found = judged(shapes)
    sections = [
        _environment(runs, versions),
        prose.INTRO,
        prose.SUMMARY + "\n" + _summary(found, shapes),
        prose.OPERATORS + "\n" + _operators(found, shapes),
        prose.LAUNCH + "\n" + _launches(shapes),
        prose.MISSED + "\n" + _missed(found),
        prose.READING,
        prose.ABSENT + "\n" + _absent(shapes),
        prose.TABLES + "\n" + "\n".join(_tables(shapes)),
    ]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _environment(runs: Sequence[Run], versions: Mapping[str, str]) -> str:
    base = runs[0]
    cards = {run.facts.uuid for run in runs}
    power_w = base.facts.power_limit_w
    power = f", power limit {units.power(power_w)}" if power_w else ""
    held = {name: base.versions[name] for name in ("solkit", "cupti") if name in base.versions}
    packages = ", ".join(f"{name} {text}" for name, text in {**held, **versions}.items())
    ends = sum(run.ended == "complete" for run in runs)
    planned = sum(run.planned_count or len(run.outcomes) for run in runs)
    text = (
        f"Measured on {base.created[:10]}: {base.facts.name}, driver {base.facts.driver}{power}, "
        f"timed by {base.method}, cold L2, seed {base.seed}; {packages}. "
        f"{sum(len(run.outcomes) for run in runs):,} of {planned:,} cases, in "
        f"{counted(len(runs), 'segment')} ([h200/memory](h200/memory)), {ends} of them whole.\n"
    )
    if len(cards) > 1:
        text += f"\n**The segments are from {len(cards)} cards of this model.**\n"
    reached = {outcome.case.operator for run in runs for outcome in run.outcomes}
    swept = [operator for operators in SEGMENTS.values() for operator in operators]
    if absent := [operator for operator in swept if operator not in reached]:
        text += f"\n**Nothing is recorded yet of {', '.join(absent)}.**\n"
    return text


def _summary(found: Sequence[Held], shapes: Sequence[Standing]) -> str:
    verdicts = [*(each.verdict_by(_told) for each in found), mean_verdict(shapes)]
    rows = [(each.test, each.limit, each.figure, WORDS[each.passed]) for each in verdicts]
    kept = sum(each.passed is True for each in verdicts)
    text = table(("class of shapes", "bar", "measured", ""), rows, words=4)
    return f"{kept} of {len(verdicts)} are kept.\n\n{text}"


def _operators(found: Sequence[Held], shapes: Sequence[Standing]) -> str:
    beside = next(each for each in found if each.bar is PEER_BAR)
    slower = Counter(shape.case.operator for shape in beside.missed)
    rows = []
    for operator, members in by_operator(shapes).items():
        compiled = [shape for shape in members if shape.compiled]
        wins = Counter(shape.fastest.outcome.case.kernel for shape in members if shape.fastest)
        rows.append(
            (
                operator,
                ", ".join(f"{name} {count}" for name, count in wins.most_common()),
                str(len(members)),
                _large(members),
                _mean(members),
                str(slower[operator]) if wins else NONE,
                str(len(compiled)) if compiled else NONE,
                _mean(compiled),
            )
        )
    head = ("operator", "fastest peer, in shapes", "shapes", "SOL@measured, from 200 MB", "x")
    return table((*head, "slower", f"with {COMPILED}", "their x"), rows, words=2)


def _large(shapes: Sequence[Standing]) -> str:
    """Write the least and the most that large shapes reach of the measured roof."""
    reached = sorted(
        shape.ours.sol_measured
        for shape in shapes
        if shape.ours is not None
        and shape.ours.sol_measured is not None
        and shape.ours.outcome.work.traffic_bytes >= LARGE_BYTES
    )
    if not reached:
        return NONE
    return " to ".join(map(units.percent, dict.fromkeys((reached[0], reached[-1]))))


def _mean(shapes: Sequence[Standing]) -> str:
    mean, _ = mean_gain(shapes)
    return NONE if mean is None else f"{mean:.2f}"


def _launches(shapes: Sequence[Standing]) -> str:
    """Return the host's time to enqueue a call, kernel by kernel: what a small shape may cost."""
    found: dict[str, list[float]] = {}
    for shape in shapes:
        for item in (shape.ours, *shape.peers):
            if item is not None and item.outcome.launch_s is not None:
                found.setdefault(item.outcome.case.kernel, []).append(item.outcome.launch_s)
    if not found:
        return "It was not measured.\n"
    rows = [
        (name, str(len(times)), *(units.seconds(quantile(sorted(times), at)) for at in QUARTERS))
        for name, times in sorted(found.items(), key=lambda each: median(each[1]))
    ]
    return table(("kernel", "cases", "lower quarter", "median", "upper quarter"), rows)


def _missed(found: Sequence[Held]) -> str:
    parts = []
    for each in found:
        if each.missed:
            lines = [f"- {shape.where}: {_told(each.bar, shape)}" for shape in each.missed]
            title = f"{each.bar.title}: {len(lines)} of {len(each.shapes)} ({each.bar.limit})"
            parts.append(_folded(title, "\n".join(lines) + "\n"))
    return "\n".join(parts) or "Nothing that was measured did.\n"


def _told(bar: Bar, shape: Standing) -> str:
    """Return a figure, or a kernel's or compiler's words, which may hold any sign."""
    said = told(bar, shape)
    return said if shape.ours is not None else safe(said)


def _absent(shapes: Sequence[Standing]) -> str:
    counts = Counter(
        (shape.case.operator, each.kernel, "failed" if each.failed else "left out", each.reason)
        for shape in shapes
        for each in shape.absent
    )
    if not counts:
        return "All had one.\n"
    rows = [
        (operator, kernel, str(count), safe(f"{how}: {reason}"))
        for (operator, kernel, how, reason), count in counts.items()
    ]
    return _folded(
        f"{sum(counts.values())} cases",
        table(("operator", "kernel", "cases", "why"), rows, words=2).replace("---: |\n", "--- |\n"),
    )


def _tables(shapes: Sequence[Standing]) -> list[str]:
    parts = []
    for operator, members in by_operator(shapes).items():
        axes = " x ".join(members[0].case.shape)
        title = f"<b>{operator}</b>, {axes}: {len(members)} shapes"
        rows = [tuple(map(unbroken, _row(shape))) for shape in members]
        parts.append(_folded(title, table(HEAD, rows, words=2)))
    return parts


def _folded(title: str, text: str) -> str:
    """Return Markdown that a reader opens: lists of many lines would bury what follows."""
    return f"<details><summary>{title}</summary>\n\n{text}\n</details>\n"


def by_operator(shapes: Sequence[Standing]) -> dict[str, list[Standing]]:
    """Return the shapes of each operator, in the order in which they were measured."""
    found: dict[str, list[Standing]] = {}
    for shape in shapes:
        found.setdefault(shape.case.operator, []).append(shape)
    return found


def _row(shape: Standing) -> tuple[str, ...]:
    ours = shape.ours
    where = (_shape(shape.case), shape.case.dtype)
    if ours is None:
        moved = units.traffic(shape.traffic_bytes) if shape.traffic_bytes else NONE
        return (*where, moved, "no time", NONE, NONE, NONE, *_peer(shape))
    return (
        *where,
        units.traffic(ours.outcome.work.traffic_bytes),
        units.seconds(ours.median_s),
        units.bandwidth(ours.outcome.work.traffic_bytes / ours.median_s),
        _percent(ours.sol_score),
        _percent(ours.sol_measured),
        *_peer(shape),
    )


def _peer(shape: Standing) -> tuple[str, ...]:
    launch = _launch(shape.ours.outcome.launch_s) if shape.ours else NONE
    if shape.fastest is None:
        return (NONE, NONE, NONE, launch, NONE)
    gain, change = NONE, shape.against
    if change is not None:
        low, high = 1 / change.ratio_high_fraction, 1 / change.ratio_low_fraction
        gain = f"{1 / change.ratio_fraction:.2f} ({low:.2f} to {high:.2f})"
    peer = shape.fastest.outcome
    return (
        peer.case.kernel,
        units.seconds(shape.fastest.median_s),
        gain,
        launch,
        _launch(peer.launch_s),
    )


def _shape(case: Case) -> str:
    extents = " x ".join(map(str, case.shape.values()))
    return ", ".join((extents, *(str(case.params[name]) for name in sorted(case.params))))


def _percent(fraction: float | None) -> str:
    return NONE if fraction is None else units.percent(fraction)


def _launch(launch_s: float | None) -> str:
    return NONE if launch_s is None else units.seconds(launch_s)
