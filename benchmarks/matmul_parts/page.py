"""The recorded runs as the section of benchmarks/README.md on MatMul + residual. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence

from accuracy_parts.page import WORDS, table
from beside_parts import page
from beside_parts import prose as common
from beside_parts.page import NONE
from beside_parts.standing import Standing, standings
from matmul_parts import prose
from matmul_parts.bars import CLASSES, OPERATOR, Line, judged, kernel_mean, lines

from solkit import units
from solkit.judge.score import Scored
from solkit.model import Run
from solkit.report.markdown import unbroken

# The order of the columns; others that a run holds come after them.
PEERS = (
    *("cublaslt_best", "cublaslt", "torch", "torch_eager", "cupy", "quack"),
    *("torch_compile", "triton", "quack_tuned"),
)
REACHED = {True: "yes", False: "no", None: NONE}


def render(runs: Sequence[Run], versions: Mapping[str, str]) -> str:
    """Return the section in Markdown: the same runs give the same bytes."""
    if not runs:
        return "Nothing was measured yet.\n"
    shapes = standings(runs)
    sections = [
        page.environment(runs, versions, "h200/matmul_add"),
        prose.SUMMARY + "\n" + _summary(lines(shapes)),
        prose.PEERS + "\n" + _peers(_of_operator(shapes)),
        common.LAUNCH + "\n" + page.launches(_of_operator(shapes)),
        common.MISSED + "\n" + page.missed(judged(shapes)),
        common.ABSENT + "\n" + page.absent(shapes),
        prose.TABLES + "\n" + "\n".join(_tables(_of_operator(shapes))),
    ]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _of_operator(shapes: Sequence[Standing]) -> list[Standing]:
    return [shape for shape in shapes if shape.case.operator == OPERATOR]


def _summary(found: Sequence[Line]) -> str:
    rows = [
        (
            line.shapes,
            line.figure,
            line.measured,
            line.bar,
            WORDS[line.kept] if line.bar else NONE,
            line.stretch,
            REACHED[line.reached],
        )
        for line in found
    ]
    bars = [line.kept for line in found if line.bar]
    head = ("shapes", "figure", "measured", "bar", "kept", "stretch", "reached")
    text = table(head, rows, words=len(head))
    return f"{sum(each is True for each in bars)} of {len(bars)} bars are kept.\n\n{text}"


def _peers(shapes: Sequence[Standing]) -> str:
    counts = Counter(peer.outcome.case.kernel for shape in shapes for peer in shape.peers)
    wins = Counter(shape.fastest.outcome.case.kernel for shape in shapes if shape.fastest)
    rows = [
        (
            name,
            str(counts[name]),
            str(wins[name]),
            *(_ratio(kernel_mean(name, filter(each.takes, shapes))) for each in CLASSES),
        )
        for name in _columns(shapes)
    ]
    return table(("peer", "shapes", "fastest in", *(each.title for each in CLASSES)), rows)


def _ratio(mean: float | None) -> str:
    return NONE if mean is None else f"{mean:.3f} x"


def _columns(shapes: Sequence[Standing]) -> list[str]:
    """Return the peers that have a time somewhere, in the order of the page."""
    timed = {peer.outcome.case.kernel for shape in shapes for peer in shape.peers}
    return [*(name for name in PEERS if name in timed), *sorted(timed - {*PEERS})]


def _tables(shapes: Sequence[Standing]) -> list[str]:
    parts = []
    for each in CLASSES:
        members = [shape for shape in shapes if each.takes(shape)]
        if members:
            columns = _columns(members)
            head = ("M x N x K", "w", "dtype", "solkit", "rate", "SOL@measured", "x", *columns)
            rows = [tuple(map(unbroken, _row(shape, columns))) for shape in members]
            title = f"<b>{each.title}</b>: {len(members)} shapes"
            parts.append(page.folded(title, table(head, rows, words=3)))
    return parts


def _row(shape: Standing, columns: Sequence[str]) -> tuple[str, ...]:
    extents = " x ".join(str(shape.case.shape[axis]) for axis in ("M", "N", "K"))
    peers = {peer.outcome.case.kernel: peer for peer in shape.peers}
    return (
        extents,
        str(shape.case.params["weight"]),
        shape.case.dtype,
        *_ours(shape.ours),
        _against(shape),
        *(_time(peers.get(name), fastest=shape.fastest) for name in columns),
    )


def _ours(ours: Scored | None) -> tuple[str, str, str]:
    if ours is None:
        return ("no time", NONE, NONE)
    flop = sum(ours.outcome.work.flop.values())
    return (
        units.seconds(ours.median_s),
        units.flop_rate(flop / ours.median_s),
        page.percent(ours.sol_measured),
    )


def _against(shape: Standing) -> str:
    change = shape.against
    if change is None:
        return NONE
    low, high = change.ratio_low_fraction, change.ratio_high_fraction
    return f"{change.ratio_fraction:.3f} ({low:.3f} to {high:.3f})"


def _time(peer: Scored | None, *, fastest: Scored | None) -> str:
    if peer is None:
        return NONE
    said = units.seconds(peer.median_s)
    return f"**{said}**" if peer is fastest else said
