"""One plain sentence on what would help a case, from its limiter and regime: no counters needed."""

from solkit.judge.score import Scored
from solkit.units import digits, seconds

AT_THE_ROOF = 0.90  # what the best streaming and matrix kernels reach of a data sheet
BUSY = 0.60  # below this share of the roof too little is in flight (the threshold of ncu's rule)


def advice(scored: Scored, *, on_cpu: bool = False) -> str:
    """Return what holds the case back and what would help, in one or two sentences."""
    if scored.status == "invalid":
        return f"Not a result: {scored.invalid_reason}."
    if scored.regime.word == "latency":
        return _latency(scored.regime.floors_count, on_cpu=on_cpu)
    pipe, estimate_s = max(
        scored.bound.estimate_s.items(), key=lambda item: item[1], default=("", 0.0)
    )
    if estimate_s > scored.bound.sol_s:
        return (
            f"Its {pipe} work is estimated at {seconds(estimate_s)}, longer than the bound of "
            f"{seconds(scored.bound.sol_s)}: the arithmetic may be what holds it, not the bytes."
        )
    if scored.bound.near_ridge:
        return "Memory and compute limits are within 10 %: gaining on one alone helps little."
    reached = scored.sol_measured if scored.sol_measured is not None else scored.raw_fraction
    if scored.bound.limiter == "memory":
        return _memory(reached, on_cpu=on_cpu)
    return _compute(reached, scored.bound.limiter.partition(":")[2], on_cpu=on_cpu)


def _latency(floors_count: float, *, on_cpu: bool) -> str:
    if on_cpu:
        return f"Fixed cost dominates ({digits(floors_count)} empty calls long): batch the work."
    return (
        f"Fixed cost dominates ({digits(floors_count)} empty launches long): fuse it with a "
        "neighbour, batch it, or replay it from a graph."
    )


def _memory(reached: float, *, on_cpu: bool) -> str:
    if reached >= AT_THE_ROOF:
        return "At the memory roof: only fewer bytes help (fuse, or store a narrower dtype)."
    if on_cpu:
        return "Memory is the limit: fewer passes over the data and no temporaries would help."
    if reached >= BUSY:
        return (
            "Memory-bound: what is left is full-line accesses, no second read, an even last wave."
        )
    return (
        "Memory is the limit, but too little is in flight: wider loads, more of them, more blocks."
    )


def _compute(reached: float, pipe: str, *, on_cpu: bool) -> str:
    if reached >= AT_THE_ROOF:
        return f"At the roof of the {pipe} pipe: only fewer operations or a faster dtype help."
    if on_cpu:
        return f"Bound by {pipe} arithmetic: a shape that fills every core would help."
    if reached >= BUSY:
        return (
            f"Compute-bound on {pipe}: what is left is tile shape, instructions and the last wave."
        )
    return (
        f"The {pipe} pipe waits for data most of the time: deeper pipelining, larger tiles or more "
        "blocks."
    )
