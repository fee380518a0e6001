"""The recorded runs, judged by the rule that judges a change, as the figures of one JSON. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gate_parts import sweep
from gate_parts.runs import BASE

from solkit.judge.changes import CaseChange, compare_runs
from solkit.judge.compare import false_alarm_interval
from solkit.model import Run
from solkit.stats import quantile

Record = dict[str, Any]

LENGTHS = ("under 5 us", "5 to 10 us", "10 to 20 us", "20 to 50 us", "50 to 100 us", "over 100 us")
EDGES_S = (5e-6, 10e-6, 20e-6, 50e-6, 100e-6)
LONG_S = 10e-6  # from here on a change of 5 % must be found
SHOWN = 20


@dataclass(frozen=True, slots=True)
class _Case:
    """A case of a comparison with what was planted in it."""

    change: CaseChange
    base_s: float
    planted_ns: int

    @property
    def word(self) -> str:
        return self.change.word

    @property
    def shift_ns(self) -> float | None:
        change = self.change.change
        return (change.head.median_s - change.base.median_s) * 1e9 if change else None


def judged(runs: Mapping[str, Run], noted: Mapping[str, Mapping[str, Any]]) -> Record:
    """Return the figures of all recorded runs; of those that are missing there are none."""
    if BASE not in runs:
        return {}
    base = runs[BASE]
    facts = base.facts
    record: Record = {
        "environment": {
            "card": facts.name,
            "uuid": facts.uuid,
            "driver": facts.driver,
            "power_limit_w": facts.power_limit_w,
            "date": base.created[:10],
            "method": base.method,
            "versions": dict(base.versions),
        },
        "base_ns": sweep.BASE_NS,
        "step_ns": sweep.STEP_NS,
        "runs": {name: _said(run) for name, run in runs.items()},
    }
    medians_s = sweep.measured(base)
    comparisons = {}
    for name, run in runs.items():
        if name == BASE:
            continue
        planted_ns = noted.get(name, {}).get("planted_ns", {})
        cases = [
            _Case(change, medians_s[key], planted_ns.get(key, 0))
            for change in compare_runs([base], [run]).changes
            if (key := sweep.name_of(change.case)) in medians_s
        ]
        comparisons[name] = _counted(sweep.FRACTIONS[name], cases)
    record["comparisons"] = comparisons
    return record


def _said(run: Run) -> Record:
    return {
        "id": run.id,
        "card": run.facts.uuid,
        "planned": run.planned_count,
        "measured": len(sweep.measured(run)),
        "duration_s": run.duration_s,
        "ended": run.ended or "cut",
    }


def _counted(fraction: float, cases: Sequence[_Case]) -> Record:
    long = [case for case in cases if case.base_s >= LONG_S]
    wrong = "FASTER", "SLOWER"
    marked = [case for case in cases if case.word in wrong] if not fraction else _missed(long)
    found: Record = {
        "planted_fraction": fraction,
        "cases": len(cases),
        "words": _words(cases),
        "by_length": {
            name: _words(held)
            for place, name in enumerate(LENGTHS)
            if (held := [case for case in cases if _length(case.base_s) == place])
        },
        "over_10_us": _words(long),
        "marked": [_told(case) for case in marked[:SHOWN]],
        "marked_count": len(marked),
        "medians_us": [_row(case) for case in cases],
    }
    alarms = sum(case.word in wrong for case in cases)
    if fraction:
        found["found"] = _share(sum(case.word == "SLOWER" for case in cases), len(cases))
        found["found_over_10_us"] = _share(sum(case.word == "SLOWER" for case in long), len(long))
        found["faster"] = sum(case.word == "FASTER" for case in cases)
        found["off_ns"] = _off_ns(cases)
    else:
        found["alarms"] = _share(alarms, len(cases))
    return found


def _missed(cases: Sequence[_Case]) -> list[_Case]:
    return [case for case in cases if case.word != "SLOWER"]


def _words(cases: Sequence[_Case]) -> dict[str, int]:
    return dict(sorted(Counter(case.word for case in cases).items()))


def _length(seconds: float) -> int:
    return sum(seconds >= edge for edge in EDGES_S)


def _share(count: int, of: int) -> Record:
    """Return a rate and its exact 95 % interval."""
    low, high = false_alarm_interval(count, of) if of else (0.0, 1.0)
    return {"count": count, "of": of, "low": round(low, 5), "high": round(high, 5)}


def _off_ns(cases: Sequence[_Case]) -> Record:
    """Return how far the measured steps are from the planted ones: what there was to be found."""
    off = sorted(case.shift_ns - case.planted_ns for case in cases if case.shift_ns is not None)
    if not off:
        return {}
    return {
        name: round(quantile(off, at)) for name, at in (("p05", 0.05), ("p50", 0.5), ("p95", 0.95))
    }


def _told(case: _Case) -> Record:
    step = case.shift_ns
    return {
        "case": sweep.name_of(case.change.case),
        "word": case.word,
        "reason": case.change.reason,
        "base_us": round(case.base_s * 1e6, 3),
        "planted_ns": case.planted_ns,
        "step_ns": None if step is None else round(step),
    }


def _row(case: _Case) -> list[Any]:
    """Return a case in a line: its name, base and head in us, what was planted in ns, its word."""
    change = case.change.change
    head_us = None if change is None else round(change.head.median_s * 1e6, 3)
    name = sweep.name_of(case.change.case)
    return [name, round(case.base_s * 1e6, 3), head_us, case.planted_ns, case.word]
