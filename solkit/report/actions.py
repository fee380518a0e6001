"""What to do next: the few things that would move a run most, each with the case to start at."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solkit import units
from solkit.judge.score import Judged, Scored, valid
from solkit.model import CaseKey, Run
from solkit.report.advice import AT_THE_ROOF, advice
from solkit.report.budget import REGIMES, RegimeWord, by_regime, spent
from solkit.report.facts import cut_short
from solkit.report.plain import counted, isolated, line, listed
from solkit.report.trouble import CaseLink, case_link, counts_of
from solkit.stats import median

ACTIONS_MOST = 3
# A gain below a hundredth of the run is nobody's next step.
_LEAST_GAIN_FRACTION = 0.01

RULED: dict[RegimeWord, str] = {
    "memory": "memory",
    "compute": "compute",
    "latency": "launch latency",
}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do: where, what, what it would bring, and the case or section to start at.

    subject: the operator (or empty). case is None where `anchor` names a section to go to instead.
    """

    subject: str
    what: str
    gain: str
    case: CaseLink | None = None
    anchor: str = ""
    anchor_text: str = ""


@dataclass(frozen=True, slots=True)
class Why:
    """One reason for the distance to the limit: which cases, how near they are, what they lose."""

    name: str
    detail: str
    cases: str
    score: str
    loss: str
    share: str


def goal_s(item: Scored) -> float:
    """Return the time that kernels here can be expected to reach: that of the measured roof.

    The published bound where nothing was measured for it. Never above the time itself.
    """
    reached = item.sol_measured
    goal = item.bound.sol_s if reached is None else reached * item.median_s
    return min(goal, item.median_s)


def actions(run: Run, judged: Sequence[Judged]) -> tuple[Action, ...]:
    """Return at most three next steps: first what is no result, then what would gain most."""
    good = valid(judged)
    repairs = _repairs(run, judged)
    gains = _gains(good, judged, on_cpu=run.device == "cpu")
    if good and not gains:
        gains = [_nothing_left(good)]
    return tuple([*repairs, *gains][:ACTIONS_MOST])


def _repairs(run: Run, judged: Sequence[Judged]) -> list[Action]:
    """Return what must be put right before any number of the run is the last word."""
    made = []
    bad = [(word, count) for word, count in counts_of(judged) if count and word != "skipped"]
    if bad:
        counts = ", ".join(f"{count:,} {word}" for word, count in bad)
        made.append(
            Action(
                "",
                f"Look at what is not a result: {counts}.",
                "They count in no number of this page.",
                anchor=bad[0][0],
                anchor_text="See the causes",
            )
        )
    if cut := cut_short(run):
        made.append(Action("", "Finish the run with --resume.", cut))
    return made


def _gains(good: Sequence[Scored], judged: Sequence[Judged], *, on_cpu: bool) -> list[Action]:
    """Return the causes of lost time that hold the most: of one operator, else over all of them.

    A run of very many operators loses little in each, and yet much to one cause. Cases at their
    roof have no step: only less work helps them.
    """
    fastest = _fastest(good)
    whose = "the run's" if len(fastest) == len(good) else "the fastest kernels'"
    whole_s = sum(item.median_s for item in fastest)
    briefs = [advice(item, on_cpu=on_cpu).brief for item in fastest]
    own = [(item.outcome.case.operator, brief) for item, brief in zip(fastest, briefs, strict=True)]
    places = {id(item): index for index, item in enumerate(judged)}
    for keys in (own, briefs):
        causes: dict[object, list[Scored]] = {}
        for item, key in zip(fastest, keys, strict=True):
            if not _at_the_roof(item):
                causes.setdefault(key, []).append(item)
        ranked = sorted(causes.values(), key=lambda items: (-_gain_s(items), places[id(items[0])]))
        if made := _worth_it(ranked, places, (whose, whole_s), on_cpu=on_cpu):
            return made
    return []


def _worth_it(
    ranked: Sequence[Sequence[Scored]],
    places: Mapping[int, int],
    whole: tuple[str, float],
    *,
    on_cpu: bool,
) -> list[Action]:
    """Write the first causes as actions, as far as they hold enough of the whole: whose, and s."""
    whose, whole_s = whole
    made = []
    for items in ranked[:ACTIONS_MOST]:
        gain_s = _gain_s(items)
        if gain_s < _LEAST_GAIN_FRACTION * whole_s:
            break
        first = max(items, key=lambda item: (item.median_s - goal_s(item), -places[id(item)]))
        operators = {item.outcome.case.operator for item in items}
        made.append(
            Action(
                isolated(first.outcome.case.operator)
                if len(operators) == 1
                else f"{len(operators):,} operators",
                advice(first, on_cpu=on_cpu).text,
                f"Up to {units.seconds(gain_s)} of {whose} {units.seconds(whole_s)} "
                f"({units.percent(gain_s / whole_s)}) is to be had in "
                f"{counted(len(items), 'case')}{_pipes_text(items)} {_goal_text(items)}.",
                case=case_link(first, places[id(first)]),
            )
        )
    return made


def _fastest(good: Sequence[Scored]) -> list[Scored]:
    """Return of each group its fastest kernel: what a slower one loses is won already."""
    best: dict[CaseKey, Scored] = {}
    for item in good:
        key = item.outcome.case.group_key
        if key not in best or item.median_s < best[key].median_s:
            best[key] = item
    return list(best.values())


def _at_the_roof(item: Scored) -> bool:
    reached = item.raw_fraction if item.sol_measured is None else item.sol_measured
    return reached >= AT_THE_ROOF


def _nothing_left(good: Sequence[Scored]) -> Action:
    best = _fastest(good)
    part = _gain_s(best) / sum(item.median_s for item in best)
    gain = (
        "Less than 1 % of the run is to be had"
        if part < _LEAST_GAIN_FRACTION
        else f"Beyond the cases at their roof no cause holds 1 % of the run, and "
        f"{units.percent(part)} of it is to be had"
    )
    return Action(
        "",
        "Leave the kernels as they are: at these sizes only less work helps "
        "(fuse steps, store a narrower dtype, launch less often).",
        f"{gain} {_goal_text(good)}.",
        anchor="costly",
        anchor_text="See the costliest cases",
    )


def _gain_s(items: Sequence[Scored]) -> float:
    return sum(item.median_s - goal_s(item) for item in items)


def _pipes_text(items: Sequence[Scored]) -> str:
    """Name the pipes, where one cause is found on several."""
    pipes = Counter(pipe_of(item) for item in items)
    names = [line(pipe) for pipe, _ in pipes.most_common()]
    return f" ({listed(names)})" if len(names) > 1 else ""


def pipe_of(item: Scored) -> str:
    """Return what bounds a case in a word: `memory` or the pipe."""
    return item.bound.limiter.removeprefix("compute:")


def _goal_text(items: Sequence[Scored]) -> str:
    if all(item.sol_measured is not None for item in items):
        return "before they meet the ceilings measured here"
    return "before they meet the limits they are scored against"


def whys(good: Sequence[Scored]) -> tuple[Why, ...]:
    """Return what rules the cases, in regimes, with the time each loses above bound and floor."""
    lost_s = spent(good).loss_s
    found = []
    for word, items in by_regime(good).items():
        of = spent(items)
        found.append(
            Why(
                name=REGIMES[word],
                detail=_detail(word, items),
                cases=f"{len(items):,}",
                score=units.percent(median([item.raw_fraction for item in items])),
                loss=units.seconds(of.loss_s),
                share=units.percent(of.loss_s / lost_s) if lost_s else "",
            )
        )
    return tuple(found)


def why_sentence(good: Sequence[Scored]) -> str:
    """Say how much is lost, and in which regime most of it."""
    whole = spent(good)
    if not whole.loss_s:
        return "Nothing is lost above the bounds and the floors of the launches."
    groups = {word: spent(items).loss_s for word, items in by_regime(good).items()}
    word = max(groups, key=lambda each: groups[each])
    part = units.percent(groups[word] / whole.loss_s)
    most = f", {part} of it in cases ruled by {RULED[word]}" if len(groups) > 1 else ""
    return (
        f"{units.seconds(whole.loss_s)} of {units.seconds(whole.time_s)} "
        f"({units.percent(whole.loss_s / whole.time_s)}) is lost above the bounds and the floors "
        f"of the launches{most}."
    )


def _detail(word: RegimeWord, items: Sequence[Scored]) -> str:
    """Count the pipes of compute-bound cases, and who is at the roof already."""
    said = []
    if word == "compute":
        pipes = Counter(line(pipe_of(item)) for item in items)
        said += [f"{pipe} {count:,}" for pipe, count in pipes.most_common(4)]
    near = sum(item.bound.near_ridge for item in items)
    if near:
        said.append(f"{near:,} near the ridge")
    if word != "latency":
        reached = sum(map(_at_the_roof, items))
        said.append(f"{reached:,} at the roof" if reached else "none at the roof")
    return ", ".join(said)
