"""The end of a run on the terminal: where the time is lost, what failed, the counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from solkit import units
from solkit.cli.console import heading, table
from solkit.errors import BadInput, CasesFailed, GateSaysNo, SolkitError
from solkit.judge.gate import Floors, Unheld, held_count, score_of, shortfalls, unheld
from solkit.judge.score import Judged, RoofName, Scored, valid
from solkit.model import Failed, Run, Skipped
from solkit.report.manner import UNBLOCKED
from solkit.report.plain import block, line
from solkit.report.timing import timing_doubts
from solkit.report.verdicts import VERDICT_WORDS
from solkit.stats import median

SHOWN_MOST = 10
FAILED_MOST = 5
NO_FLOORS = Floors()
MESSAGE_LINES, LINE_MOST = 12, 200  # of a failure: a compiler's log has its first error there


def summary(run: Run, judged: Sequence[Judged], roof: RoofName) -> str:
    """Return the text: the costliest cases first, then failures with remedies, then the counts.

    Costly is time above the bound: a tiny case far from light costs nothing, and comes last.
    """
    good = [(score, item) for item in valid(judged) if (score := score_of(item, roof)) is not None]
    good.sort(key=lambda pair: (pair[0] - 1) * pair[1].median_s)
    parts = []
    if good:
        title = f"where the time is lost, against the {roof} roof"
        if len(good) > SHOWN_MOST:
            title += f" ({SHOWN_MOST} of {len(good)} cases)"
        kernels = {(item.outcome.case.operator, item.outcome.case.kernel) for _, item in good}
        rivals = Counter(operator for operator, _ in kernels)
        rows = [
            _row(score, item, named=rivals[item.outcome.case.operator] > 1)
            for score, item in good[:SHOWN_MOST]
        ]
        headers = ("operator", "shape", "dtype", "time", "SOL", "above", "limited by")
        parts.append(f"{heading(title)}\n{table(headers, rows, right=(3, 4, 5))}")
    parts += _troubles(judged)
    doubts = timing_doubts([item for item in judged if isinstance(item, Scored)])
    parts += ["\n".join(f"mind: {each}" for each in doubts)] if doubts else []
    parts.append(counts(run, judged) + _medians([score for score, _ in good], roof))
    return "\n\n".join(parts)


def _medians(scores: Sequence[float], roof: RoofName) -> str:
    if not scores:
        return ""
    label = "SOL" if roof == "spec" else f"SOL@{roof}"
    return f"\nmedian {label} {units.percent(median(scores))}, best {units.percent(max(scores))}"


def counts(run: Run, judged: Sequence[Judged]) -> str:
    """Say how many cases became what, on what device."""
    kinds = Counter(_kind(item) for item in judged)
    told = [
        f"{kinds[kind]} {kind}"
        for kind in ("measured", "hot", "invalid", "failed", "skipped")
        if kinds[kind]
    ]
    name = line(run.facts.name)
    where = f"{name} (CPU)" if run.device == "cpu" else name
    took = f" in {units.duration(run.duration_s)}" if run.duration_s else ""
    cut = "" if run.ended == "complete" else ", the run was cut short"
    return f"{', '.join(told) or 'nothing'} on {where}{took}{cut}"


def verdict(
    judged: Sequence[Judged],
    *,
    roof: RoofName,
    fail_under: float | None = None,
    floors: Floors = NO_FLOORS,
) -> SolkitError | None:
    """Return what the run ends with: below a floor, cases failed or invalid, or nothing.

    fail_under takes the place of the floors' default; operators with a floor of their own keep it.
    """
    if fail_under is not None:
        floors = replace(floors, default_fraction=fail_under)
    if floors:
        below = _below(judged, roof, floors)
        if below:
            return GateSaysNo(below, remedy="see the worst cases above and the report's advice")
        missed = _unheld(judged, roof, floors)
        if missed:
            return GateSaysNo(
                missed, remedy="measure what the floor is for, take another --roof, or drop it"
            )
    bad = Counter(_kind(item) for item in judged)
    if bad["failed"] or bad["invalid"]:
        told = " and ".join(f"{bad[kind]} {kind}" for kind in ("failed", "invalid") if bad[kind])
        return CasesFailed(
            f"of {len(judged)} cases {told}", remedy="the report names causes and remedies"
        )
    if judged and not bad["measured"] and not bad["hot"]:
        return CasesFailed(
            f"nothing was measured: {_all(len(judged))} skipped",
            remedy="the reasons stand above; give the sweep what this device can do",
        )
    return None


def _all(count: int) -> str:
    return "the case was" if count == 1 else f"all {count} cases were"


def check_floor(fail_under: float | None) -> None:
    """Refuse a floor that is no fraction."""
    if fail_under is not None and not 0 < fail_under <= 1:
        raise BadInput(
            f"--fail-under {fail_under:g} is no fraction", remedy="give e.g. 0.8 for 80 %"
        )


def _below(judged: Sequence[Judged], roof: RoofName, floors: Floors) -> str:
    """Say which cases are below their floor with the upper end of their interval, too."""
    low = shortfalls(judged, floors, roof)
    if not low:
        return ""
    worst = low[0]
    told = {units.percent(each.floor_fraction) for each in low}
    floor = told.pop() if len(told) == 1 else "their floors"
    wanted = "" if floor != "their floors" else f", {units.percent(worst.floor_fraction)} wanted"
    return (
        f"{len(low)} of {held_count(judged, floors, roof)} cases are below {floor}; the lowest is "
        f"{line(str(worst.item.outcome.case))} at {units.percent(worst.score_fraction)}{wanted}"
    )


def _unheld(judged: Sequence[Judged], roof: RoofName, floors: Floors) -> str:
    """Say which floors could not be held against what they are for: that is no pass."""
    return "; ".join(_unheld_text(each) for each in unheld(judged, floors, roof)[:FAILED_MOST])


def _unheld_text(each: Unheld) -> str:
    owner = f" of {line(each.operator)}" if each.operator else ""
    floor = f"the floor{owner} of {units.percent(each.floor_fraction)} could not be held"
    if not each.items:
        return f"{floor}: {each.reason}"
    first = line(str(each.items[0].outcome.case))
    count = "1 case has" if len(each.items) == 1 else f"{len(each.items)} cases have"
    return f"{floor}: {count} {each.reason} ({first}{'' if len(each.items) == 1 else ', ...'})"


def _row(score: float, item: Scored, *, named: bool) -> tuple[str, ...]:
    """Return a row; the kernel is named where there are others, or where it is none of ours."""
    case = item.outcome.case
    extents = "x".join(map(str, case.shape.values()))
    mode = [] if case.cache_mode == "cold" else [case.cache_mode]
    params = " ".join([*case.params_words, *mode])
    ours = case.kernel in ("solkit", "numpy") and not named
    name = case.operator if ours else f"{case.operator}/{case.kernel}"
    limiter = item.bound.limiter.removeprefix("compute:")
    return (
        line(name, 24),
        line(f"{extents} {params}", 28),
        case.dtype,
        units.seconds(item.median_s),
        units.percent(score),
        units.seconds(max(0.0, (1 - score) * item.median_s)),
        ", ".join(["latency" if item.regime.word == "latency" else limiter, *_marks(item)]),
    )


def _marks(item: Scored) -> list[str]:
    """Return in a word each what doubts the time of a row; the report says more."""
    outcome = item.outcome
    seen = {
        "host time": outcome.method in UNBLOCKED,
        "cache unknown": outcome.cache == "unknown",
        "not alone": bool(outcome.other_process_count),
        "throttled": bool(outcome.throttled_count),
        "two modes": outcome.slow_mode is not None,
    }
    return [word for word, is_so in seen.items() if is_so]


def _troubles(judged: Sequence[Judged]) -> list[str]:
    failed = [item for item in judged if isinstance(item, Failed)]
    parts = []
    for item in failed[:FAILED_MOST]:
        told = block(item.message).splitlines()
        shown = [each[:LINE_MOST] for each in told[:MESSAGE_LINES]]
        if len(told) > MESSAGE_LINES:
            shown.append(f"... {len(told) - MESSAGE_LINES} more lines: see the report")
        word = VERDICT_WORDS[item.verdict]
        how = f"failed at {item.stage}{f' ({word})' if word else ''}"
        text = "\n  ".join([f"{how}: {line(str(item.case))}", *shown])
        parts.append(text + (f"\n  remedy: {line(item.remedy, 400)}" if item.remedy else ""))
    if len(failed) > FAILED_MOST:
        parts.append(f"... and {len(failed) - FAILED_MOST} more failed (see the report)")
    parts += [
        f"INVALID: {line(str(item.outcome.case))}: {line(item.invalid_reason, 300)}"
        for item in judged
        if isinstance(item, Scored) and item.status == "invalid"
    ][:FAILED_MOST]
    return parts


def _kind(item: Judged) -> str:
    if isinstance(item, Scored):
        return "hot" if item.hot and item.status == "measured" else item.status
    return "skipped" if isinstance(item, Skipped) else "failed"
