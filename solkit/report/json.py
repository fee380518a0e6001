"""A judged run as one JSON document, for scripts and dashboards: every number, raw, in SI units.

What the fields mean is in docs/outputs.md; its JSON Schema is made by report/json_schema.py.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from solkit.bound import measured_roof, spec_roof
from solkit.judge.score import Judged, Scored, valid
from solkit.model import Case, Failed, Measured, Run, Skipped
from solkit.report.columns import COLUMNS, NAMES, values
from solkit.report.facts import caveats, notices
from solkit.report.samples import remarks
from solkit.report.trouble import case_of
from solkit.stats import median
from solkit.wire import adapter

SCHEMA = "solkit.report/1"
SCORES = ("sol_score", "sol_clock", "sol_measured")
STATUSES = ("measured", "invalid", "failed", "skipped")
# Of the header: what is large and in the run's file, or stands elsewhere in the document.
ELSEWHERE = ("outcomes", "gpu", "ceilings", "facts")
# Of a judgement: what stands beside it as a column of the case.
CASE_COLUMNS = tuple(column.name for column in COLUMNS if column.name not in (*NAMES, "verdict"))
BESIDE = ("outcome", "status", "median_s", "low_s", "high_s", "gap_score", *SCORES)


def render(run: Run, judged: Sequence[Judged]) -> str:
    """Write the document; cases in the run's order, names as they are in the run's file.

    It is ASCII, so that no name in it can act on a terminal. What isn't known is null.
    """
    return json.dumps(document(run, judged), indent=1, allow_nan=False) + "\n"


def document(run: Run, judged: Sequence[Judged]) -> dict[str, Any]:
    """Return the document as plain data."""
    operators: dict[str, dict[str, list[Judged]]] = {}
    for item in judged:
        case = case_of(item)
        operators.setdefault(case.operator, {}).setdefault(case.kernel, []).append(item)
    header = _plain(Run, run, without=ELSEWHERE)
    return {
        "schema": SCHEMA,
        "run": {**header, "spec": run.gpu.id if run.gpu else None},
        "device": _plain(type(run.facts), run.facts),
        "roofs": _roofs(run),
        "caveats": [*notices(run), *caveats(run, judged)],
        "summary": _summary(judged),
        "operators": [
            {
                "operator": operator,
                **_summary([item for items in kernels.values() for item in items]),
                "kernels": [
                    {"kernel": kernel, **_summary(items)} for kernel, items in kernels.items()
                ],
            }
            for operator, kernels in operators.items()
        ],
        "cases": [_case(item) for item in judged],
    }


def _roofs(run: Run) -> dict[str, Any]:
    roofs = [spec_roof(run.gpu)] if run.gpu else []
    roofs += [measured_roof(run.ceilings, settle=run.settle)] if run.ceilings else []
    return {
        roof.name: {
            "dram_bytes_per_s": roof.dram_bytes_per_s,
            "pipes_flop_per_s": dict(roof.pipes_flop_per_s),
        }
        for roof in roofs
    }


def _summary(judged: Sequence[Judged]) -> dict[str, Any]:
    """Count some cases by status, and take their median scores: measured ones that aren't hot."""
    kinds = Counter(item.status if isinstance(item, Scored) else _kind(item) for item in judged)
    good = valid(judged)
    return {
        "counts": {
            "all": len(judged),
            **{status: kinds[status] for status in STATUSES},
            "in_medians": len(good),
        },
        "medians": {name: _median([getattr(item, name) for item in good]) for name in SCORES},
    }


def _median(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return median(known) if known else None


def _case(item: Judged) -> dict[str, Any]:
    named = _plain(Case, case_of(item))
    if not isinstance(item, Scored):
        said = _plain(type(item), item, without=("case",))
        return {**named, "status": _kind(item), "outcome": said}
    columns = values(item)
    judgement = _plain(Scored, item, without=BESIDE)
    if not math.isfinite(item.regime.floors_count):
        judgement["regime"]["floors_count"] = None  # the method has no floor
    return {
        **named,
        **{name: columns[name] for name in CASE_COLUMNS},
        "judgement": {**judgement, "remarks": list(remarks(item))},
        "outcome": _plain(Measured, item.outcome, without=("case",)),
    }


def _kind(item: Failed | Skipped) -> str:
    return "failed" if isinstance(item, Failed) else "skipped"


def _plain(kind: type, value: object, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return a value of the vocabulary as JSON has it, by the same writer as the run's file."""
    held: dict[str, Any] = adapter(kind, finite=False).dump_python((value,), mode="json")[0]
    return {name: each for name, each in held.items() if name not in without}
