"""The kernels of a run, a row each, the lowest median score first: for summaries, notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass

from solkit import units
from solkit.judge.score import Judged, valid
from solkit.report.plain import isolated, percent_span
from solkit.report.ranking import bar
from solkit.report.trouble import case_of, counts_of, hot_count
from solkit.stats import quantile

NONE = "—"


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel of an operator, over its dtypes and shapes. bar: from 0 to 100; empty: no score.

    trouble: how many cases are invalid, failed, skipped or hot, in words; empty where none is.
    """

    kernel: str
    cases: str
    median: str
    bar: str
    span: str
    trouble: str


def kernel_rows(judged: Sequence[Judged]) -> list[KernelRow]:
    """Return a row for each kernel of each operator; those without a score come first."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for item in judged:
        case = case_of(item)
        groups.setdefault((case.operator, case.kernel), []).append(item)
    rows = [_row(operator, kernel, items) for (operator, kernel), items in groups.items()]
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _row(operator: str, kernel: str, items: Sequence[Judged]) -> tuple[float, KernelRow]:
    """Return the rank of a kernel and its row."""
    scores = sorted(item.raw_fraction for item in valid(items))
    counts = [("hot", hot_count(items)), *counts_of(items)]
    row = KernelRow(
        kernel=f"{isolated(operator)}/{isolated(kernel)}",
        cases=f"{len(items):,}",
        median=units.percent(quantile(scores, 0.5)) if scores else NONE,
        bar=bar(quantile(scores, 0.5)) if scores else "",
        span=percent_span(scores[0], scores[-1]) if scores else NONE,
        trouble=", ".join(f"{count:,} {word}" for word, count in counts if count),
    )
    return (quantile(scores, 0.5) if scores else -1.0), row
