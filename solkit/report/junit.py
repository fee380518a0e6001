"""A run as JUnit XML: a suite for each operator, a test case for each case of the sweep."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from solkit import units
from solkit.judge.score import Judged, Scored, valid
from solkit.model import Case, CaseKey, Failed, Run, Skipped
from solkit.report.facts import CUT_REMEDY, cut_short
from solkit.report.junit_xml import Entry, Problem, Suite, document
from solkit.report.plain import counted
from solkit.report.samples import remarks
from solkit.report.table import spread_text
from solkit.report.trouble import INVALID_REMEDY, case_of
from solkit.report.verdicts import failure_text
from solkit.stats import median

LINE_END = "\n"
NOTHING_BELOW: Mapping[CaseKey, str] = MappingProxyType({})


def render(
    run: Run, judged: Sequence[Judged], *, below: Mapping[CaseKey, str] = NOTHING_BELOW
) -> str:
    """Write the run as JUnit XML.

    below: the cases that a gate fails (a floor, a run before), each with the sentence that says
    why: these are failures.
    What failed or is INVALID is an error. A run that was cut, or in which nothing was measured,
    has one more error of its own: without it what is missing would pass.
    """
    return document("solkit", suites(run, judged, below=below))


def suites(
    run: Run, judged: Sequence[Judged], *, below: Mapping[CaseKey, str] = NOTHING_BELOW
) -> tuple[Suite, ...]:
    """Return a suite for each operator, in the run's order, after that of the run if it has one."""
    groups: dict[str, list[Judged]] = {}
    for item in judged:
        groups.setdefault(case_of(item).operator, []).append(item)
    known = properties(run, judged)
    made = [
        Suite(
            name,
            tuple(_entry(item, below.get(case_of(item).key, "")) for item in items),
            {**known, **_medians(items)},
            run.created,
        )
        for name, items in groups.items()
    ]
    if lack := _lack(run, judged):
        problem = Problem("error", lack, "incomplete", lack)
        whole = Entry("solkit.run", "the run is complete", problem=problem)
        made.insert(0, Suite("run", (whole,), known, run.created))
    return tuple(made)


def properties(run: Run, judged: Sequence[Judged]) -> dict[str, str]:
    """Return what decides whether two runs can be compared; nothing where it isn't known."""
    roofs = {item.roof for item in judged if isinstance(item, Scored)}
    known = {
        "card": run.facts.name,
        "driver": run.facts.driver,
        "power_limit_w": f"{run.facts.power_limit_w:g}" if run.facts.power_limit_w else "",
        "method": run.method,
        "cache": run.cache,
        "settle": run.settle,
        "seed": str(run.seed),
        "roof": ", ".join(sorted(roofs)),
        "spec": run.gpu.id if run.gpu else "",
        "solkit": run.versions.get("solkit", ""),
        "run": run.id,
    }
    return {name: value for name, value in known.items() if value}


def classname(case: Case) -> str:
    """Return what a case is grouped by in CI: operator.kernel.dtype."""
    return f"{case.operator}.{case.kernel}.{case.dtype}"


def name(case: Case) -> str:
    """Return the rest of its identity: shape, params and any cache mode but cold."""
    return case.shape_text.replace(";", " ")


def _medians(items: Sequence[Judged]) -> dict[str, str]:
    good = valid(items)
    return {"median_sol": f"{median([it.raw_fraction for it in good]):.6g}"} if good else {}


def _lack(run: Run, judged: Sequence[Judged]) -> str:
    if cut := cut_short(run):
        return f"{cut} {CUT_REMEDY}"
    if not any(isinstance(item, Scored) for item in judged):
        return f"Nothing was measured: {counted(len(judged), 'case')}, none with a time."
    return ""


def _entry(item: Judged, shortfall: str) -> Entry:
    case = case_of(item)
    return Entry(
        classname(case),
        name(case),
        item.median_s if isinstance(item, Scored) else 0.0,
        _problem(item, shortfall),
        _numbers(item) if isinstance(item, Scored) else "",
    )


def _problem(item: Judged, shortfall: str) -> Problem | None:
    match item:
        case Skipped(reason=reason):
            if shortfall:  # the run before had its time
                return Problem("failure", shortfall, "gate", f"{shortfall}\n{reason}")
            return Problem("skipped", reason)
        case Failed(stage=stage, message=message, remedy=remedy):
            body = f"{message}\nRemedy: {remedy}" if remedy else message
            said = f"{failure_text(item)}: {message.strip().partition(LINE_END)[0]}"
            return Problem("error", said, item.verdict or stage, body)
        case Scored(status="invalid", invalid_reason=reason):
            said = f"INVALID, {units.percent(item.raw_fraction)} of the speed of light: {reason}"
            return Problem("error", said, "INVALID", f"{said}\nRemedy: {INVALID_REMEDY}")
        case _:
            return Problem("failure", shortfall, "gate", shortfall) if shortfall else None


def _numbers(item: Scored) -> str:
    """Return what a person who opens the case wants to know, a line each."""
    ratios = {"SOL@measured": item.sol_measured, "SOL@clock": item.sol_clock}
    score = units.percent(item.sol_score) if item.sol_score is not None else "none"
    said = [
        f"time {units.seconds(item.median_s)} {spread_text(item)}",
        f"bound {units.seconds(item.bound.sol_s)} ({item.bound.limiter})",
        f"SOL {score} ({item.roof} roof)",
        *(f"{label} {units.percent(ratio)}" for label, ratio in ratios.items() if ratio),
        f"regime {item.regime.word}",
        *remarks(item),
    ]
    return "\n".join(said)
