"""A trend as Markdown (bounded, for a job's summary) and as one JSON document (everything)."""

import json
from collections.abc import Sequence
from typing import Any

from solkit.entry import Entry
from solkit.history import History
from solkit.judge.trend import Step, Trend
from solkit.report.markdown import BYTES_MOST, safe
from solkit.report.plain import counted
from solkit.report.trend import TrendView
from solkit.report.trend_rows import StepRow

SCHEMA = "solkit.trend/1"
ROWS_MOST = 50


def markdown(view: TrendView) -> str:
    """Write the verdict and the steps: at most 60 kB of UTF-8, whole rows, worst and newest first.

    Every case but those that stepped is left to the page and the JSON.
    """
    head = [f"## {safe(view.verdict)}", "", safe(view.summary), "", safe(view.conditions), ""]
    head += [f"- {safe(each)}" for each in view.notes]
    head += [""] if view.notes else []
    if not view.steps:
        return "\n".join(head).rstrip("\n") + "\n"
    head += [
        "| step | case | began at | time | runs | what else changed then |",
        "|--:|---|---|--:|--:|---|",
    ]
    size = len("\n".join(head).encode()) + 200  # of the last line
    rows: list[str] = []
    for step in view.steps[:ROWS_MOST]:
        row = _row(step)
        size += len(row.encode()) + 1
        if size > BYTES_MOST:
            break
        rows.append(row)
    left = len(view.steps) - len(rows)
    said = [f"{counted(left, 'more step')} left out here.", ""] if left else []
    more = [view.steps_more, ""] if view.steps_more else []
    return "\n".join([*head, *rows, "", *said, *map(safe, more)]).rstrip("\n") + "\n"


def _row(step: StepRow) -> str:
    cells = (
        f"{step.size}, {step.state}",
        step.case,
        f"{step.at}, {step.when}",
        f"{step.before} \u2192 {step.after}",
        step.runs,
        step.moved,
    )
    return f"| {' | '.join(map(safe, cells))} |"


def as_json(history: History, found: Sequence[Trend], verdict: str) -> str:
    """Write every run (without its cases), every case with its points and steps; SI units.

    It is ASCII, so that no name in it can act on a terminal.
    """
    return json.dumps(document(history, found, verdict), indent=1, allow_nan=False) + "\n"


def document(history: History, found: Sequence[Trend], verdict: str) -> dict[str, Any]:
    """Return the document as plain data."""
    return {
        "schema": SCHEMA,
        "verdict": verdict,
        "problems": list(history.problems),
        "notes": list(history.notes),
        "runs": [_run(entry) for entry in history.entries],
        "cases": [_case(trend, history.entries) for trend in found],
    }


def _run(entry: Entry) -> dict[str, Any]:
    names = ("id", "created", "commit", "branch", "gpu_id", "device_name", "driver", "spec_hash")
    more = ("device_uuid", "power_limit_w", "solkit", "method", "settle", "seed")
    return {name: getattr(entry, name) for name in (*names, *more)}


def _case(trend: Trend, entries: Sequence[Entry]) -> dict[str, Any]:
    case, conditions, last = trend.case, trend.conditions, trend.last
    runs = [entry.id for entry in entries if entry.gpu_id == conditions.gpu_id]
    return {
        "operator": case.operator,
        "kernel": case.kernel,
        "dtype": case.dtype,
        "shape": case.shape,
        "params": case.params,
        "cache_mode": case.cache_mode,
        "gpu_id": conditions.gpu_id,
        "method": conditions.method,
        "settle": conditions.settle,
        "seed": conditions.seed,
        "cache": conditions.cache or case.cache_mode,
        "last_status": last.status,
        "last_run": runs[trend.last_run],
        "sol_score": last.sol_score,
        "change_fraction": trend.change_fraction,
        "noise_fraction": trend.noise_fraction,
        "runs": [runs[point.run] for point in trend.points],
        "median_s": [point.median_s for point in trend.points],
        "low_s": [point.low_s for point in trend.points],
        "high_s": [point.high_s for point in trend.points],
        "steps": [_step(step) for step in trend.steps],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "run": step.entry.id,
        "commit": step.entry.commit,
        "created": step.entry.created,
        "size_fraction": step.size_fraction,
        "before_s": step.before_s,
        "after_s": step.after_s,
        "before_count": step.before_count,
        "after_count": step.after_count,
        "undone": step.undone,
        "moved": [
            {"what": what, "before": before, "after": after} for what, before, after in step.moved
        ],
    }
