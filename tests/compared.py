"""Pairs of invented runs, one of each verdict among cases that are the same: for tests alone."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from synthetic import outcomes, synthetic_run

from solkit.model import Case, Failed, Measured, Outcome, Run
from solkit.stats import median

SLOWER = ("add_rmsnorm", "solkit", "rows=16384;cols=4096")
FASTER = ("swiglu", "solkit", "rows=32768;cols=4096")
CLOCKED = ("matmul_add", "solkit", "M=8192;N=2560;K=2560;weight=kn")
NOISY = ("softmax", "torch", "rows=4096;cols=4096")
DOUBLED = ("bias_gelu", "torch", "rows=32768;cols=4096")
GONE = ("copy", "solkit", "elements=16777216")
FRESH = ("bias_gelu", "solkit", "rows=1;cols=4096")
WRONG = ("softmax", "fast", "rows=4096;cols=4096")


def place(case: Case) -> tuple[str, str, str]:
    return case.operator, case.kernel, case.shape_text


def scaled(found: Measured, factor: float, *, clock: float = 1.0, noise: float = 0.0) -> Measured:
    """Return a case that takes `factor` times as long at `clock` times the SM clock.

    noise: how far the samples lie apart beyond their own spread, as a share of the median.
    """
    middle = (len(found.times_s) - 1) / 2
    times = tuple(
        round(time_s * factor * (1 + noise * (at - middle) / middle), 12)
        for at, time_s in enumerate(found.times_s)
    )
    ordered = sorted(times)
    hz = tuple(each and each * clock for each in found.sample_hz)
    known = [each for each in hz if each]
    clocks = replace(found.clocks, sm_hz=median(known)) if known else found.clocks
    return replace(
        found,
        times_s=times,
        median_s=median(times),
        low_s=ordered[2],
        high_s=ordered[-3],
        quantiles_s={"p05": ordered[0], "p95": ordered[-1]},
        sample_hz=hz,
        clocks=clocks,
    )


def changed(item: Outcome) -> Outcome | None:
    """Return what a case of BASE is in HEAD."""
    if not isinstance(item, Measured):
        return item
    case = item.case
    heavier = replace(item.work, read_bytes=2 * item.work.read_bytes + item.work.write_bytes)
    found: dict[tuple[str, str, str], Callable[[], Outcome | None]] = {
        SLOWER: lambda: scaled(item, 1.121),
        FASTER: lambda: scaled(item, 0.88),
        CLOCKED: lambda: scaled(item, 1.061, clock=1 / 1.061),
        NOISY: lambda: scaled(item, 1.05, noise=0.12),
        DOUBLED: lambda: replace(scaled(item, 2.5), work=heavier),
        GONE: lambda: None,
    }
    return found.get(place(case), lambda: item)()


@cache
def pair() -> tuple[Run, Run]:
    """Return BASE and HEAD: of each word at least one case, and all others measured alike."""
    before = [
        item
        for item in outcomes()
        if (case := getattr(item, "case")) and place(case) not in (FRESH, WRONG)  # noqa: B009
    ]
    after = [new for item in outcomes() if (new := changed(item)) is not None]
    base = synthetic_run(before)
    head = replace(synthetic_run(after), id="20260201-090000", created="2026-02-01T09:00:00Z")
    return (
        replace(base, ended="complete"),
        replace(head, ended="complete"),
    )


def renamed(text: str) -> tuple[Run, Run]:
    """Return a pair in which every name and message is the text: one case of each word."""
    base, head = pair()
    keep = (SLOWER, FASTER, NOISY, GONE, FRESH, WRONG)

    def named(run: Run) -> Run:
        found = [item for item in run.outcomes if place(item.case) in keep]
        return replace(
            run,
            id=text,
            facts=replace(run.facts, name=text, driver=text),
            outcomes=tuple(_renamed(item, text) for item in found),
        )

    return named(base), named(head)


def _renamed(item: Outcome, text: str) -> Outcome:
    number = {"value": sum(map(ord, item.case.operator + item.case.shape_text))}
    case = replace(item.case, operator=text, kernel=text, shape=number, params={"weight": text})
    if isinstance(item, Failed):
        return replace(item, case=case, message=text, remedy=text)
    return replace(item, case=case)
