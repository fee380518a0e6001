"""A judged run in words: numbers become text here and in the modules it calls, nowhere after.

A renderer turns the `View` into a format and does no arithmetic. What each number means is in
docs/numbers.md.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from solkit import units
from solkit.judge.score import Judged, Scored, valid
from solkit.model import Failed, Run, Skipped
from solkit.report import trouble
from solkit.report.advice import advice
from solkit.report.facts import FactGroup, caveats, facts
from solkit.report.plain import counted, isolated, line
from solkit.report.provenance import Ceiling, Peak, ceilings, peaks
from solkit.report.table import Column, Row, ratio, table
from solkit.report.trouble import CaseLink, Trouble, case_link
from solkit.stats import quantile

RANKED_MOST = 10
BEST_MOST = 5
BIN_COUNT = 20  # bars of 5 % each, and one more for scores above 100 %


@dataclass(frozen=True, slots=True)
class Tile:
    """One big number: what it is, the number, a remark, and the case it belongs to (or none)."""

    label: str
    value: str
    aside: str
    case: CaseLink | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that is not a result: sign and count, and the section that lists it."""

    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of the distribution of scores: its range, count, height (0 to 100) and axis label."""

    label: str
    count: str
    cases: str
    height: str
    tick: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """One case in a ranking: its score and bar (0 to 100), its time, what it costs, and advice."""

    case: CaseLink
    score: str
    bar: str
    time: str
    cost: str
    advice: str


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One kernel of an operator at one dtype, over its valid cases."""

    kernel: str
    dtype: str
    cases: str
    median: str
    bar: str
    span: str
    rate: str
    trouble: str


@dataclass(frozen=True, slots=True)
class OperatorView:
    """One operator: its anchor, a sentence, and a line for each kernel and dtype.

    `name` is its own name as declared, the key of its charts; `title` is safe to print.
    """

    name: str
    title: str
    anchor: str
    sentence: str
    kernels: tuple[KernelLine, ...]


@dataclass(frozen=True, slots=True)
class View:
    """The whole report as strings, in the order in which a reader needs them."""

    title: str
    kicker: str
    verdict: str
    summary: str
    banner: str
    roof: str
    tiles: tuple[Tile, ...]
    alerts: tuple[Alert, ...]
    bins: tuple[Bin, ...]
    caveats: tuple[str, ...]
    facts: tuple[FactGroup, ...]
    costly: tuple[Ranked, ...]
    costly_note: str
    lowest: tuple[Ranked, ...]
    best: tuple[Ranked, ...]
    operators: tuple[OperatorView, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    case_count: str
    invalid: tuple[Trouble, ...]
    failures: tuple[Trouble, ...]
    skips: tuple[Trouble, ...]
    peaks: tuple[Peak, ...]
    ceilings: tuple[Ceiling, ...]


def view(run: Run, judged: Sequence[Judged]) -> View:
    """Put a judged run into words. `judged` is in the order of `run.outcomes`."""
    places = {id(item): index for index, item in enumerate(judged)}
    good = valid(judged)
    scores = sorted(item.raw_fraction for item in good)
    device = isolated(run.facts.name)
    ranked = _Ranking(good, places, on_cpu=run.device == "cpu")
    columns, rows = table(judged)
    return View(
        title=f"{line(run.facts.name)}: {_headline(scores)}",
        kicker=f"{device} · {line(run.created)}",
        verdict=_verdict(run, scores, device),
        summary=_summary(judged, good),
        banner=_banner(run),
        roof=good[0].roof if good else ("spec" if run.gpu else "measured"),
        tiles=_tiles(good, scores, places),
        alerts=_alerts(judged, good),
        bins=_bins(scores),
        caveats=caveats(run, judged),
        facts=facts(run, judged),
        costly=ranked.costly(),
        costly_note=ranked.costly_note(),
        lowest=ranked.lowest(),
        best=ranked.best(),
        operators=_operators(judged),
        columns=columns,
        rows=rows,
        case_count=counted(len(judged), "case"),
        invalid=trouble.invalid(judged),
        failures=trouble.failures(judged),
        skips=trouble.skips(judged),
        peaks=peaks(run.gpu) if run.gpu else (),
        ceilings=ceilings(run.ceilings),
    )


def _headline(scores: Sequence[float]) -> str:
    return f"median SOL {units.percent(quantile(scores, 0.5))}" if scores else "nothing measured"


def _verdict(run: Run, scores: Sequence[float], device: str) -> str:
    if not scores:
        return "No case was measured, so there is no score."
    middle = units.percent(quantile(scores, 0.5))
    subject = "The one case runs" if len(scores) == 1 else "The median case runs"
    if run.gpu is None and run.device == "cpu":
        return f"{subject} at {middle} of what this CPU was measured to reach."
    if run.gpu is None:
        return f"{subject} at {middle} of what this card was measured to reach."
    return f"{subject} at {middle} of the speed of light of the {device}."


def _summary(judged: Sequence[Judged], good: Sequence[Scored]) -> str:
    parts = [f"{len(good):,} of {counted(len(judged), 'case')} measured"]
    counts = _counts(judged, good)
    parts += [f"{count:,} {word}" for word, count in counts if count]
    if not any(count for _, count in counts):
        parts.append("none invalid, failed or skipped")
    latency = sum(1 for item in good if item.regime.word == "latency")
    if latency:
        parts.append(f"{latency:,} dominated by launch latency")
    return ", ".join(parts) + "."


def _counts(judged: Sequence[Judged], good: Sequence[Scored]) -> list[tuple[str, int]]:
    failed = sum(isinstance(item, Failed) for item in judged)
    skipped = sum(isinstance(item, Skipped) for item in judged)
    return [
        ("invalid", len(judged) - len(good) - failed - skipped),
        ("failed", failed),
        ("skipped", skipped),
    ]


def _banner(run: Run) -> str:
    if run.device != "cpu":
        return ""
    return (
        "CPU run. The NumPy references were timed on this host and scored against ceilings measured "
        "on this same host. Nothing here says anything about a GPU."
    )


def _tiles(good: Sequence[Scored], scores: Sequence[float], places: dict[int, int]) -> tuple[Tile, ...]:
    if not good:
        return (Tile("Median SOL", "—", "nothing was measured"),)
    lowest = min(good, key=lambda item: item.raw_fraction)
    highest = max(good, key=lambda item: item.raw_fraction)
    total_s = sum(item.median_s for item in good)
    bound_s = sum(item.bound.sol_s for item in good)
    quartiles = f"{quantile(scores, 0.25) * 100:.0f}–{quantile(scores, 0.75) * 100:.0f} %"
    return (
        Tile("Median SOL", units.percent(quantile(scores, 0.5)), f"middle half {quartiles}"),
        Tile(
            "Whole run",
            units.percent(bound_s / total_s),
            f"{units.seconds(bound_s)} of bound in {units.seconds(total_s)}",
        ),
        Tile(
            "Best",
            units.percent(highest.raw_fraction),
            "▲ above published" if highest.above_published else "",
            case_link(highest, places[id(highest)]),
        ),
        Tile(
            "Lowest",
            units.percent(lowest.raw_fraction),
            "launch latency" if lowest.regime.word == "latency" else "",
            case_link(lowest, places[id(lowest)]),
        ),
        Tile("Measured", f"{len(good):,}", "cases, each checked against its reference"),
    )


def _alerts(judged: Sequence[Judged], good: Sequence[Scored]) -> tuple[Alert, ...]:
    signs = {"invalid": "✕", "failed": "✕", "skipped": "○"}
    made = [
        Alert(f"{signs[word]} {count:,} {word}", word)
        for word, count in _counts(judged, good)
        if count
    ]
    above = sum(1 for item in good if item.above_published)
    if above:
        made.append(Alert(f"▲ {above:,} above published", "cases"))
    return tuple(made)


def _bins(scores: Sequence[float]) -> tuple[Bin, ...]:
    if not scores:
        return ()
    counts = [0] * (BIN_COUNT + 1)
    for score in scores:
        # exactly 100 % belongs to the last bar below the roof, not above it
        place = BIN_COUNT if score > 1 else min(BIN_COUNT - 1, int(score * BIN_COUNT))
        counts[place] += 1
    if not counts[-1]:
        counts.pop()
    step = 100 // BIN_COUNT
    labels = [f"{index * step}–{(index + 1) * step} %" for index in range(BIN_COUNT)] + ["above 100 %"]
    ticks = {place: f"{place * step} %" for place in range(0, BIN_COUNT, 5)} | {BIN_COUNT: ">100 %"}
    tallest = max(counts)
    return tuple(
        Bin(
            label=labels[place],
            count=f"{count:,}" if count else "",
            cases=counted(count, "case"),
            height=str(-(-count * 100 // tallest)),
            tick=ticks.get(place, ""),
        )
        for place, count in enumerate(counts)
    )


class _Ranking:
    """The three short lists: what costs the run most, the lowest and the highest scores."""

    def __init__(self, good: Sequence[Scored], places: dict[int, int], *, on_cpu: bool) -> None:
        self.good = good
        self.places = places
        self.on_cpu = on_cpu
        # weight x (1 - SOL) with time as the weight: the time spent above the bound
        self.lost_s = {id(item): item.median_s - item.bound.sol_s for item in good}
        self.all_lost_s = sum(max(0.0, lost) for lost in self.lost_s.values())

    def costly(self) -> tuple[Ranked, ...]:
        items = [item for item in self.good if self.lost_s[id(item)] > 0]
        return self._first(items, lambda item: -self.lost_s[id(item)], RANKED_MOST)

    def costly_note(self) -> str:
        if not self.all_lost_s:
            return ""
        first = sorted(self.lost_s.values(), reverse=True)[:RANKED_MOST]
        share = sum(max(0.0, lost) for lost in first) / self.all_lost_s
        return (
            f"All measured cases together spend {units.seconds(self.all_lost_s)} above their bounds; "
            f"{'these' if len(first) > 1 else 'this one'} {units.percent(share)} of it."
        )

    def lowest(self) -> tuple[Ranked, ...]:
        return self._first(self.good, lambda item: item.raw_fraction, BEST_MOST)

    def best(self) -> tuple[Ranked, ...]:
        return self._first(self.good, lambda item: -item.raw_fraction, BEST_MOST)

    def _first(
        self, items: Iterable[Scored], key: Callable[[Scored], float], most: int
    ) -> tuple[Ranked, ...]:
        ordered = sorted(items, key=lambda item: (key(item), self.places[id(item)]))
        return tuple(self._ranked(item) for item in ordered[:most])

    def _ranked(self, item: Scored) -> Ranked:
        lost_s = self.lost_s[id(item)]
        share = f" ({units.percent(lost_s / self.all_lost_s)})" if lost_s > 0 else ""
        mark = "▲ " if item.above_published else ""
        return Ranked(
            case=case_link(item, self.places[id(item)]),
            score=f"{mark}{units.percent(item.raw_fraction)}",
            bar=_bar(item.raw_fraction),
            time=units.seconds(item.median_s),
            cost=f"{units.seconds(lost_s)}{share}" if lost_s > 0 else "none",
            advice=advice(item, on_cpu=self.on_cpu),
        )


def _bar(fraction: float) -> str:
    return str(max(0, min(100, round(fraction * 100))))


def _operators(judged: Sequence[Judged]) -> tuple[OperatorView, ...]:
    groups: dict[str, list[Judged]] = {}
    for item in judged:
        case = item.outcome.case if isinstance(item, Scored) else item.case
        groups.setdefault(case.operator, []).append(item)
    return tuple(
        OperatorView(name, line(name), f"op{number}", _sentence(items), _kernels(items))
        for number, (name, items) in enumerate(groups.items())
    )


def _sentence(items: Sequence[Judged]) -> str:
    good = valid(items)
    if not good:
        return f"{counted(len(items), 'case')}, none measured."
    scores = sorted(item.raw_fraction for item in good)
    parts = [
        f"{len(good):,} of {counted(len(items), 'case')} measured",
        f"median SOL {units.percent(quantile(scores, 0.5))}",
    ]
    memory = sum(1 for item in good if item.bound.limiter == "memory")
    parts.append(_split(memory, len(good), "bound by memory", "bound by compute"))
    if latency := sum(1 for item in good if item.regime.word == "latency"):
        parts.append(f"{latency:,} dominated by launch latency")
    gains = sorted(item.fusion_gain for item in good if item.fusion_gain)
    if gains:
        low, high = ratio(gains[0]), ratio(gains[-1])
        parts.append(f"fusing gains {low if low == high else f'{low} to {high}'} at the bound")
    return "; ".join(parts) + "."


def _split(first: int, total: int, one: str, other: str) -> str:
    if first in (0, total):
        return f"all {one if first else other}"
    return f"{first:,} {one}, {total - first:,} {other}"


def _kernels(items: Sequence[Judged]) -> tuple[KernelLine, ...]:
    groups: dict[tuple[str, str], list[Judged]] = {}
    for item in items:
        case = item.outcome.case if isinstance(item, Scored) else item.case
        groups.setdefault((case.kernel, case.dtype), []).append(item)
    return tuple(_kernel(kernel, dtype, group) for (kernel, dtype), group in groups.items())


def _kernel(kernel: str, dtype: str, items: Sequence[Judged]) -> KernelLine:
    good = valid(items)
    bad = ", ".join(f"{count:,} {word}" for word, count in _counts(items, good) if count)
    if not good:
        return KernelLine(line(kernel), line(dtype), "0", "—", "0", "—", "—", bad)
    scores = sorted(item.raw_fraction for item in good)
    bytes_per_s = max(item.outcome.work.traffic_bytes / item.median_s for item in good)
    flop_per_s = max(sum(item.outcome.work.flop.values()) / item.median_s for item in good)
    rates = [units.bandwidth(bytes_per_s)]
    if flop_per_s:
        rates.append(units.flop_rate(flop_per_s))
    return KernelLine(
        kernel=line(kernel),
        dtype=line(dtype),
        cases=f"{len(good):,}",
        median=units.percent(quantile(scores, 0.5)),
        bar=_bar(quantile(scores, 0.5)),
        span=f"{scores[0] * 100:.0f}–{scores[-1] * 100:.0f} %",
        rate=", ".join(rates),
        trouble=bad or "none",
    )
