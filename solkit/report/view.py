"""A judged run in words: numbers become text here and in the modules it calls, nowhere after.

A renderer turns the `View` into a format and does no arithmetic. What each number means is in
docs/numbers.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solkit import units
from solkit.judge.score import Judged, Scored, valid
from solkit.model import Run
from solkit.report import trouble
from solkit.report.actions import Action, Why, actions, why_sentence, whys
from solkit.report.budget import BudgetView, budget
from solkit.report.course import CourseView, course
from solkit.report.fact import FactGroup
from solkit.report.facts import caveats, conditions_line, cut_short, facts, notices
from solkit.report.heat import HeatTable, heat_tables
from solkit.report.operators import OperatorView, operators
from solkit.report.plain import DASH, counted, isolated, line, percent_span
from solkit.report.provenance import Ceiling, Peak, ceilings, ceilings_when, peaks
from solkit.report.ranking import Ranked, Ranking, long_enough
from solkit.report.rivals import RivalsView, rivals
from solkit.report.table import Column, Row, table
from solkit.report.trouble import CaseLink, Trouble, case_link, counts_of, hot_count
from solkit.stats import quantile

_DEVICE_MOST = 60  # letters of a card's name in the headline
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
class View:
    """The whole report as strings, in the order in which a reader needs them.

    heats, rivals: by the anchor of the operator's section, where it has one.
    """

    title: str
    conditions: str
    verdict: str
    summary: str
    banner: str
    roof: str
    tiles: tuple[Tile, ...]
    why: str
    whys: tuple[Why, ...]
    actions: tuple[Action, ...]
    alerts: tuple[Alert, ...]
    bins: tuple[Bin, ...]
    notices: tuple[str, ...]
    caveats: tuple[str, ...]
    facts: tuple[FactGroup, ...]
    budget: BudgetView | None
    costly: tuple[Ranked, ...]
    costly_note: str
    lowest: tuple[Ranked, ...]
    lowest_title: str
    best: tuple[Ranked, ...]
    operators: tuple[OperatorView, ...]
    heats: Mapping[str, HeatTable]
    rivals: Mapping[str, RivalsView]
    course: CourseView | None
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    case_count: str
    invalid: tuple[Trouble, ...]
    failures: tuple[Trouble, ...]
    skips: tuple[Trouble, ...]
    peaks: tuple[Peak, ...]
    spec_notes: tuple[str, ...]
    ceilings: tuple[Ceiling, ...]
    ceilings_when: str


def view(run: Run, judged: Sequence[Judged]) -> View:
    """Put a judged run into words. `judged` is in the order of `run.outcomes`."""
    places = {id(item): index for index, item in enumerate(judged)}
    good = valid(judged)
    scores = sorted(item.raw_fraction for item in good)
    ranked = Ranking(good, places, on_cpu=run.device == "cpu")
    columns, rows = table(judged)
    sections = operators(judged)
    heats, rival = heat_tables(judged), rivals(judged)
    verdict, summary, banner = opening(run, judged)
    return View(
        title=f"{line(run.facts.name)}: {_headline(scores)}",
        conditions=conditions_line(run, judged),
        verdict=verdict,
        summary=summary,
        banner=banner,
        roof=good[0].roof if good else ("spec" if run.gpu else "measured"),
        tiles=_tiles(good, scores, places),
        why=why_sentence(good),
        whys=whys(good),
        actions=actions(run, judged),
        alerts=_alerts(judged, good),
        bins=_bins(scores),
        notices=notices(run),
        caveats=caveats(run, judged),
        facts=facts(run, judged),
        budget=budget(judged),
        costly=ranked.costly(),
        costly_note=ranked.costly_note(),
        lowest=ranked.lowest(),
        lowest_title=ranked.lowest_title(),
        best=ranked.best(),
        operators=sections,
        heats={each.anchor: heats[each.name] for each in sections if each.name in heats},
        rivals={each.anchor: rival[each.name] for each in sections if each.name in rival},
        course=course(judged),
        columns=columns,
        rows=rows,
        case_count=counted(len(judged), "case"),
        invalid=trouble.invalid(judged),
        failures=trouble.failures(judged),
        skips=trouble.skips(judged),
        peaks=peaks(run.gpu) if run.gpu else (),
        spec_notes=tuple(line(note, 400) for note in run.gpu.notes) if run.gpu else (),
        ceilings=ceilings(run.ceilings),
        ceilings_when=ceilings_when(run.ceilings),
    )


def opening(run: Run, judged: Sequence[Judged]) -> tuple[str, str, str]:
    """Return the verdict, the summary and the banner alone, where the rest isn't needed."""
    good = valid(judged)
    scores = sorted(item.raw_fraction for item in good)
    return _verdict(run, scores, judged), _summary(run, judged, good), _banner(run)


def _headline(scores: Sequence[float]) -> str:
    return f"median SOL {units.percent(quantile(scores, 0.5))}" if scores else "nothing measured"


def _verdict(run: Run, scores: Sequence[float], judged: Sequence[Judged]) -> str:
    if not scores and hot_count(judged):
        return "Every case that was measured is hot, so there is no score."
    if not scores and any(isinstance(item, Scored) for item in judged):
        return "Every time is faster than light, so there is no score."
    if not scores:
        return "No case was measured, so there is no score."
    middle = units.percent(quantile(scores, 0.5))
    subject = "The one case runs" if len(scores) == 1 else "The median case runs"
    if run.gpu is None and run.device == "cpu":
        return f"{subject} at {middle} of what this CPU was measured to reach."
    if run.gpu is None:
        return f"{subject} at {middle} of what this card was measured to reach."
    device = isolated(line(run.facts.name, _DEVICE_MOST))
    return f"{subject} at {middle} of the speed of light of the {device}."


def _summary(run: Run, judged: Sequence[Judged], good: Sequence[Scored]) -> str:
    missing = max(0, (run.planned_count or 0) - len(judged)) if cut_short(run) else 0
    parts = [f"{len(good):,} of {counted(len(judged) + missing, 'case')} measured"]
    counts = counts_of(judged)
    if hot := hot_count(judged):
        parts.append(f"{hot:,} more hot (in no median)")
    parts += [f"{count:,} {word}" for word, count in counts if count]
    parts += [f"{missing:,} never reached"] if missing else []
    if judged and not missing and not any(count for _, count in counts):
        parts.append("none invalid, failed or skipped")
    latency = sum(1 for item in good if item.regime.word == "latency")
    if latency:
        parts.append(f"{latency:,} dominated by launch latency")
    return ", ".join(parts) + "."


def _banner(run: Run) -> str:
    if run.device != "cpu":
        return ""
    return (
        "The NumPy references were timed on this host and scored against ceilings measured on this "
        "same host. Nothing here says anything about a GPU."
    )


def _tiles(
    good: Sequence[Scored], scores: Sequence[float], places: dict[int, int]
) -> tuple[Tile, ...]:
    if not good:
        return (Tile("Median SOL", "—", "no case has a score"),)
    lowest = min(long_enough(good), key=lambda item: item.raw_fraction)
    highest = max(good, key=lambda item: item.raw_fraction)
    name = "SOL" if lowest.roof == "spec" else f"SOL@{lowest.roof}"
    total_s = sum(item.median_s for item in good)
    bound_s = sum(item.bound.sol_s for item in good)
    quartiles = percent_span(quantile(scores, 0.25), quantile(scores, 0.75))
    return (
        Tile(f"Median {name}", units.percent(quantile(scores, 0.5)), f"middle half {quartiles}"),
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
            "launch latency" if lowest.regime.word == "latency" else _beyond(good),
            case_link(lowest, places[id(lowest)]),
        ),
        Tile("Measured", f"{len(good):,}", "cases, each checked against its reference"),
    )


def _beyond(good: Sequence[Scored]) -> str:
    return "beyond launch latency" if len(long_enough(good)) < len(good) else ""


def _alerts(judged: Sequence[Judged], good: Sequence[Scored]) -> tuple[Alert, ...]:
    signs = {"invalid": "✕", "failed": "✕", "skipped": "○"}
    made = [
        Alert(f"{signs[word]} {count:,} {word}", word) for word, count in counts_of(judged) if count
    ]
    above = sum(1 for item in good if item.above_published)
    if above:
        made.append(Alert(f"▲ {above:,} above published", "cases"))
    outcomes = [item.outcome for item in judged if isinstance(item, Scored)]
    seen = (
        (sum(1 for each in outcomes if each.other_process_count), "not alone on the device"),
        (sum(1 for each in outcomes if each.throttled_count), "throttled"),
        (sum(1 for each in outcomes if each.cache == "unknown"), "with an unproved cache"),
    )
    made += [Alert(f"! {count:,} {words}", "cases") for count, words in seen if count]
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
    labels = [f"{index * step}{DASH}{(index + 1) * step} %" for index in range(BIN_COUNT)] + [
        "above 100 %"
    ]
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
