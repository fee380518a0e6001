"""What would help a case, in a plain sentence, from its limiter and regime alone.

Nothing is counted inside the kernel, so what holds a case far from its roof is only probable.
"""

from typing import NamedTuple

from solkit.judge.score import Scored
from solkit.units import digits, seconds

AT_THE_ROOF = 0.90  # what the best streaming and matrix kernels reach of a data sheet
BUSY = 0.60  # below this share of the roof too little is in flight (the threshold of ncu's rule)


class Advice(NamedTuple):
    """What holds a case back and what would help; `brief` stands for it where it was just said."""

    text: str
    brief: str


def advice(scored: Scored, *, on_cpu: bool = False) -> Advice:
    """Return what holds the case back and what would help, in one or two sentences."""
    if scored.status == "invalid":
        return Advice(f"Not a result: {scored.invalid_reason}.", "not a result")
    if scored.regime.word == "latency":
        return _latency(scored.regime.floors_count, on_cpu=on_cpu)
    pipe, estimate_s = max(
        scored.bound.estimate_s.items(), key=lambda item: item[1], default=("", 0.0)
    )
    if estimate_s > scored.bound.sol_s:
        return Advice(
            f"Its {pipe} work is estimated at {seconds(estimate_s)}, longer than the bound of "
            f"{seconds(scored.bound.sol_s)}: the arithmetic may be what holds it, not the bytes.",
            f"the {pipe} work may hold it, not the bytes",
        )
    if scored.bound.near_ridge:
        return Advice(
            "Memory and compute limits are within 10 %: gaining on one alone helps little.",
            "memory and compute limits are within 10 %",
        )
    reached = scored.sol_measured if scored.sol_measured is not None else scored.raw_fraction
    if scored.bound.limiter == "memory":
        return _memory(reached, on_cpu=on_cpu)
    return _compute(reached, scored.bound.limiter.partition(":")[2], on_cpu=on_cpu)


def _latency(floors_count: float, *, on_cpu: bool) -> Advice:
    if on_cpu:
        return Advice(
            f"Fixed cost dominates ({digits(floors_count)} empty calls long): batch the work.",
            "fixed cost dominates",
        )
    return Advice(
        f"Fixed cost dominates ({digits(floors_count)} empty launches long): fuse it with a "
        "neighbour, batch it, or replay it from a graph.",
        "fixed cost dominates",
    )


def _memory(reached: float, *, on_cpu: bool) -> Advice:
    if reached >= AT_THE_ROOF:
        return Advice(
            "At the memory roof: only fewer bytes help (fuse, or store a narrower dtype).",
            "at the memory roof",
        )
    if on_cpu:
        return Advice(
            "Memory is the limit: fewer passes over the data and no temporaries would help.",
            "memory is the limit",
        )
    if reached >= BUSY:
        return Advice(
            "Memory-bound: what is left is full-line accesses, no second read, an even last wave.",
            "memory-bound",
        )
    return Advice(
        "Memory is the limit, but probably too little is in flight: wider loads, more of them, "
        "more blocks.",
        "probably too few bytes in flight",
    )


def _compute(reached: float, pipe: str, *, on_cpu: bool) -> Advice:
    if reached >= AT_THE_ROOF:
        return Advice(
            f"At the roof of the {pipe} pipe: only fewer operations or a faster dtype help.",
            f"at the roof of the {pipe} pipe",
        )
    if on_cpu:
        return Advice(
            f"Bound by {pipe} arithmetic: a shape that fills every core would probably help.",
            f"bound by {pipe} arithmetic",
        )
    if reached >= BUSY:
        return Advice(
            f"Compute-bound on {pipe}: what is left is tile shape, instructions and the last wave.",
            f"compute-bound on {pipe}",
        )
    return Advice(
        f"The {pipe} pipe probably waits for data most of the time: deeper pipelining, larger "
        "tiles or more blocks.",
        "its pipe probably waits for data",
    )
