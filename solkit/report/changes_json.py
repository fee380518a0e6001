"""A comparison as one JSON document: every number of both sides, raw, for scripts."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from solkit.judge.changes import WORDS, CaseChange, Comparison
from solkit.judge.compare import Change
from solkit.judge.score import Judged, Scored
from solkit.model import Failed, Run

SCHEMA = "solkit.compare/1"


def render(comparison: Comparison, *, exit_code: int, missed: str = "") -> str:
    """Write the document: SI units, a line for each case in the comparison's order.

    Samples are those that the run files keep. A number that is not there is null. Names are as
    they were recorded, and the text is ASCII, so that none of them can act on a terminal.
    """
    made = document(comparison, exit_code=exit_code, missed=missed)
    cases = [json.dumps(case, allow_nan=False) for case in made.pop("cases")]
    head = json.dumps(made, indent=1, allow_nan=False).removesuffix("\n}")
    return "".join((head, ',\n "cases": [\n', ",\n".join(cases), "\n ]\n}\n"))


def document(comparison: Comparison, *, exit_code: int, missed: str = "") -> dict[str, Any]:
    """Return the comparison as plain data.

    exit_code: what the command ends with, since a reader of a file has no other way to know.
    missed: the sentence that says which floors HEAD misses.
    """
    counts = Counter(item.word for item in comparison.changes)
    return {
        "schema": SCHEMA,
        "overall": comparison.overall,
        "exit_code": exit_code,
        "missed_floors": missed or None,
        "min_effect_fraction": comparison.min_effect_fraction,
        "operators_min_effect_fraction": dict(comparison.operators_min_effect_fraction),
        "counts": {word: counts[word] for word in WORDS},
        "base": _run(comparison.base, comparison.base_count),
        "head": _run(comparison.head, comparison.head_count),
        "differences": list(comparison.differences),
        "notes": list(comparison.notes),
        "cases": [_case(item) for item in comparison.changes],
    }


def _run(run: Run, count: int) -> dict[str, Any]:
    return {
        "run_count": count,
        "id": run.id,
        "created": run.created,
        "ended": run.ended,
        "device": run.device,
        "card": run.facts.name,
        "uuid": run.facts.uuid,
        "driver": run.facts.driver,
        "power_limit_w": _finite(run.facts.power_limit_w),
        "spec": run.gpu.id if run.gpu else None,
        "method": run.method,
        "cache": run.cache,
        "settle": run.settle,
        "seed": run.seed,
        "versions": run.versions,
    }


def _case(item: CaseChange) -> dict[str, Any]:
    case = item.case
    return {
        "operator": case.operator,
        "kernel": case.kernel,
        "shape": case.shape,
        "dtype": case.dtype,
        "params": case.params,
        "cache_mode": case.cache_mode,
        "word": item.word,
        "cause": item.cause,
        "reason": item.reason,
        "change": _change(item.change),
        "base": _side(item.base),
        "head": _side(item.head),
    }


def _change(change: Change | None) -> dict[str, Any] | None:
    """Return the numbers that decide; medians and intervals of the sides stand with the sides."""
    if change is None:
        return None
    return {
        name: _finite(value) if isinstance(value, float) else value
        for name, value in asdict(change).items()
        if name not in ("word", "reason", "base", "head")
    }


def _side(side: Judged | None) -> dict[str, Any] | None:
    if side is None:
        return None
    if not isinstance(side, Scored):
        if isinstance(side, Failed):
            said = {"stage": side.stage, "verdict": side.verdict, "message": side.message}
            return {"status": "failed", **said}
        return {"status": "skipped", "reason": side.reason}
    outcome = side.outcome
    return {
        "status": side.status,
        "invalid_reason": side.invalid_reason,
        "median_s": side.median_s,
        "low_s": side.low_s,
        "high_s": side.high_s,
        "sol_s": _finite(side.bound.sol_s),
        "sol_score": _finite(side.sol_score),
        "sol_clock": _finite(side.sol_clock),
        "sol_measured": _finite(side.sol_measured),
        "limiter": side.bound.limiter,
        "read_bytes": outcome.work.read_bytes,
        "write_bytes": outcome.work.write_bytes,
        "flop": outcome.work.flop,
        "method": outcome.method,
        "cache": outcome.cache,
        "sm_hz": _finite(outcome.clocks.sm_hz),
        "event_reasons": list(outcome.clocks.event_reasons),
        "throttled_count": outcome.throttled_count,
        "sample_count": outcome.sample_count,
        "times_s": list(outcome.times_s),
        "sample_hz": _clocks(outcome.sample_hz),
    }


def _clocks(sample_hz: Sequence[float | None]) -> list[float | None]:
    return [_finite(each) for each in sample_hz]


def _finite(value: float | None) -> float | None:
    """Return a number that JSON can hold; what overflowed is no number anybody can use."""
    return value if value is not None and math.isfinite(value) else None
