"""The recorded runs as the memory-bound section of benchmarks/README.md. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence

from accuracy_parts.page import WORDS, table
from beside_parts import page
from beside_parts import prose as common
from beside_parts.bars import Held
from beside_parts.page import NONE
from beside_parts.standing import COMPILED, Standing, mean_gain, standings
from memory_parts import prose
from memory_parts.bars import LARGE_BYTES, PEER_BAR, judged, mean_verdict
from memory_parts.segments import SEGMENTS

from solkit import units
from solkit.model import Run
from solkit.report.markdown import unbroken

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
        common.INTRO,
        prose.SUMMARY + "\n" + _summary(found, shapes),
        prose.OPERATORS + "\n" + _operators(found, shapes),
        common.LAUNCH + "\n" + page.launches(shapes),
        common.MISSED + "\n" + page.missed(found),
        common.READING,
        common.ABSENT + "\n" + page.absent(shapes),
        prose.TABLES + "\n" + "\n".join(_tables(shapes)),
    ]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _environment(runs: Sequence[Run], versions: Mapping[str, str]) -> str:
    text = page.environment(runs, versions, "h200/memory")
    reached = {outcome.case.operator for run in runs for outcome in run.outcomes}
    swept = [operator for operators in SEGMENTS.values() for operator in operators]
    if absent := [operator for operator in swept if operator not in reached]:
        text += f"\n**Nothing is recorded yet of {', '.join(absent)}.**\n"
    return text


def _summary(found: Sequence[Held], shapes: Sequence[Standing]) -> str:
    verdicts = [*(each.verdict_by(page.said_of) for each in found), mean_verdict(shapes)]
    rows = [(each.test, each.limit, each.figure, WORDS[each.passed]) for each in verdicts]
    kept = sum(each.passed is True for each in verdicts)
    text = table(("class of shapes", "bar", "measured", ""), rows, words=4)
    return f"{kept} of {len(verdicts)} are kept.\n\n{text}"


def _operators(found: Sequence[Held], shapes: Sequence[Standing]) -> str:
    beside = next(each for each in found if each.bar is PEER_BAR)
    slower = Counter(shape.case.operator for shape in beside.missed)
    rows = []
    for operator, members in page.by_operator(shapes).items():
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


def _tables(shapes: Sequence[Standing]) -> list[str]:
    parts = []
    for operator, members in page.by_operator(shapes).items():
        axes = " x ".join(members[0].case.shape)
        title = f"<b>{operator}</b>, {axes}: {len(members)} shapes"
        rows = [tuple(map(unbroken, _row(shape))) for shape in members]
        parts.append(page.folded(title, table(HEAD, rows, words=2)))
    return parts


def _row(shape: Standing) -> tuple[str, ...]:
    ours = shape.ours
    where = (page.shape_text(shape.case), shape.case.dtype)
    if ours is None:
        moved = units.traffic(shape.traffic_bytes) if shape.traffic_bytes else NONE
        return (*where, moved, "no time", NONE, NONE, NONE, *_peer(shape))
    return (
        *where,
        units.traffic(ours.outcome.work.traffic_bytes),
        units.seconds(ours.median_s),
        units.bandwidth(ours.outcome.work.traffic_bytes / ours.median_s),
        page.percent(ours.sol_score),
        page.percent(ours.sol_measured),
        *_peer(shape),
    )


def _peer(shape: Standing) -> tuple[str, ...]:
    launch = page.seconds(shape.ours.outcome.launch_s) if shape.ours else NONE
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
        page.seconds(peer.launch_s),
    )
