"""One operator in words: a sentence, and a line for each of its kernels and dtypes."""

from collections.abc import Sequence
from dataclasses import dataclass

from solkit import units
from solkit.judge.score import Judged, valid
from solkit.report.plain import counted, line, named, percent_span
from solkit.report.ranking import bar
from solkit.report.table import ratio
from solkit.report.trouble import case_of, counts_of, hot_count
from solkit.stats import quantile


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One kernel of an operator at one dtype, over its valid cases."""

    kernel: str
    dtype: str
    cases: str
    median: str
    bar: str
    span: str
    rate: str
    trouble: str


@dataclass(frozen=True, slots=True)
class OperatorView:
    """One operator: its anchor, a sentence, and a line for each kernel and dtype with a result.

    `name` is its own name as declared, the key of its charts; `title` is safe to print.
    """

    name: str
    title: str
    anchor: str
    sentence: str
    kernels: tuple[KernelLine, ...]


def operators(judged: Sequence[Judged]) -> tuple[OperatorView, ...]:
    """Return the operators of a run in the order in which they first appear."""
    groups: dict[str, list[Judged]] = {}
    for item in judged:
        case = case_of(item)
        groups.setdefault(case.operator, []).append(item)
    return tuple(
        OperatorView(name, named(name), f"op{number}", _sentence(items), _kernels(items))
        for number, (name, items) in enumerate(groups.items())
    )


def _sentence(items: Sequence[Judged]) -> str:
    good = valid(items)
    bad = [f"{count:,} {word}" for word, count in counts_of(items) if count]
    if hot := hot_count(items):
        bad.insert(0, f"{hot:,} hot")
    if not good:
        return f"{counted(len(items), 'case')}, none measured: {', '.join(bad)}."
    scores = sorted(item.raw_fraction for item in good)
    parts = [
        ", ".join([f"{len(good):,} of {counted(len(items), 'case')} measured", *bad]),
        f"median SOL {units.percent(quantile(scores, 0.5))}",
    ]
    memory = sum(1 for item in good if item.bound.limiter == "memory")
    parts.append(_split(memory, len(good), "bound by memory", "bound by compute"))
    if latency := sum(1 for item in good if item.regime.word == "latency"):
        parts.append(f"{latency:,} dominated by launch latency")
    gains = sorted(item.fusion_gain for item in good if item.fusion_gain)
    if gains:
        low, high = ratio(gains[0]), ratio(gains[-1])
        parts.append(f"fusion gain {low if low == high else f'{low} to {high}'}")
    return "; ".join(parts) + "."


def _split(first: int, total: int, one: str, other: str) -> str:
    if first in (0, total):
        return f"all {one if first else other}"
    return f"{first:,} {one}, {total - first:,} {other}"


def _kernels(items: Sequence[Judged]) -> tuple[KernelLine, ...]:
    groups: dict[tuple[str, str], list[Judged]] = {}
    for item in items:
        case = case_of(item)
        groups.setdefault((case.kernel, case.dtype), []).append(item)
    return tuple(
        _kernel(kernel, dtype, group) for (kernel, dtype), group in groups.items() if valid(group)
    )


def _kernel(kernel: str, dtype: str, items: Sequence[Judged]) -> KernelLine:
    good = valid(items)
    bad = ", ".join(f"{count:,} {word}" for word, count in counts_of(items) if count)
    scores = sorted(item.raw_fraction for item in good)
    bytes_per_s = max(item.outcome.work.traffic_bytes / item.median_s for item in good)
    flop_per_s = max(sum(item.outcome.work.flop.values()) / item.median_s for item in good)
    rates = [units.bandwidth(bytes_per_s)]
    if flop_per_s:
        rates.append(units.flop_rate(flop_per_s))
    return KernelLine(
        kernel=named(kernel),
        dtype=line(dtype),
        cases=f"{len(good):,}",
        median=units.percent(quantile(scores, 0.5)),
        bar=bar(quantile(scores, 0.5)),
        span=percent_span(scores[0], scores[-1]),
        rate=", ".join(rates),
        trouble=bad or "none",
    )
