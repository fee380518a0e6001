"""The end of a run on the terminal: where the time is lost, what failed, the counts."""

from collections import Counter
from collections.abc import Sequence

from solkit import units
from solkit.cli.console import heading, table
from solkit.errors import BadInput, CasesFailed, GateSaysNo, SolkitError
from solkit.judge.score import Judged, RoofName, Scored, valid
from solkit.model import Failed, Run, Skipped
from solkit.report.manner import UNBLOCKED
from solkit.report.plain import block, line
from solkit.report.timing import timing_doubts
from solkit.report.verdicts import VERDICT_WORDS
from solkit.stats import median

SHOWN_MOST = 10
FAILED_MOST = 5
MESSAGE_LINES, LINE_MOST = 12, 200  # of a failure: a compiler's log has its first error there


def score_of(item: Scored, roof: RoofName) -> float | None:
    """Return the score under a roof; None where there is none (see the report for the reason)."""
    if roof == item.roof:
        return item.sol_score
    return {"spec": None, "clock": item.sol_clock, "measured": item.sol_measured}[roof]


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
    judged: Sequence[Judged], *, roof: RoofName, fail_under: float | None
) -> SolkitError | None:
    """Return what the run ends with: below the floor, cases failed or invalid, or nothing."""
    if fail_under is not None:
        below = _below(judged, roof, fail_under)
        if below:
            return GateSaysNo(below, remedy="see the worst cases above and the report's advice")
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


def _below(judged: Sequence[Judged], roof: RoofName, floor: float) -> str:
    """Say which cases are below the floor with the upper end of their interval, too."""
    scores = [(score_of(item, roof), item) for item in valid(judged)]
    known = [(score, item) for score, item in scores if score is not None]
    if not known:
        return f"--fail-under {floor:g}: no case has a score under the {roof} roof"
    low = [(score, item) for score, item in known if score * item.median_s / item.low_s < floor]
    if not low:
        return ""
    worst, item = min(low, key=lambda pair: pair[0])
    return (
        f"{len(low)} of {len(known)} cases are below {units.percent(floor)}; the lowest is "
        f"{line(str(item.outcome.case))} at {units.percent(worst)}"
    )


def _row(score: float, item: Scored, *, named: bool) -> tuple[str, ...]:
    """Return a row; the kernel is named where there are others, or where it is none of ours."""
    case = item.outcome.case
    extents = "x".join(map(str, case.shape.values()))
    mode = [] if case.cache_mode == "cold" else [case.cache_mode]
    params = " ".join([*(str(value) for _, value in sorted(case.params.items())), *mode])
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
