"""The cases that the gate is tried on, and how much of a delay is planted in each. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from accuracy_parts import sweeps

from solkit.model import Case, Measured, Param, Run

# The run that is the base of every comparison, the same again, then a change of so much.
FRACTIONS: dict[str, float] = {
    "a": 0.0,
    "a2": 0.0,
    "p1": 0.01,
    "p2": 0.02,
    "p5": 0.05,
    "p10": 0.10,
}
OPERATORS = ("copy", "softmax", "add_rmsnorm", "swiglu", "read", "bias_gelu")
# Written out, since a delay is found by the whole name of its case.
PARAMS: dict[str, dict[str, Param]] = {
    "bias_gelu": {"form": "tanh"},
    "softmax": {"masking": "none", "scale": 1.0},
}
CASES = 224
SHORTEST_S, LONGEST_S = 2e-6, 200e-6
KERNEL = "delayed"  # one name in all runs: a case must be the same case
# The spin kernel watches the GPU's global timer, which moves in steps of 32 ns on an H200. Every
# run spins for the base time, so that all calls have one shape; both are whole steps, so that what
# is planted is what passes.
STEP_NS = 32
BASE_NS = 32 * STEP_NS

Delays = Mapping[str, int]  # what is planted in each case, in ns, by the case's name


def points(count: int = CASES) -> list[sweeps.Point]:
    """Return `count` memory-bound cases of six operators, from 2 us to 200 us without the delay."""
    found = sweeps.spread(count, SHORTEST_S, LONGEST_S, OPERATORS)
    return [replace(point, params=PARAMS.get(point.operator, {})) for point in found]


def name_of(case: Case) -> str:
    """Return how delays.json names a case: all of its identity but the kernel's name."""
    return f"{case.operator} {case.shape_text} {case.dtype}"


def measured(run: Run) -> dict[str, float]:
    """Return each measured case's median in seconds, by the case's name, in the run's order."""
    return {
        name_of(outcome.case): outcome.median_s
        for outcome in run.outcomes
        if isinstance(outcome, Measured)
    }


def without_delay(names: Iterable[str]) -> dict[str, int]:
    """Return the delays of a run in which nothing is planted."""
    return dict.fromkeys(names, 0)


def planted(medians_s: Mapping[str, float], fraction: float) -> dict[str, int]:
    """Return a share of each median as a delay in ns, to the nearest step of the timer."""
    return {
        name: STEP_NS * round(fraction * median_s * 1e9 / STEP_NS)
        for name, median_s in medians_s.items()
    }


def kept(count: int, names: Iterable[str]) -> list[sweeps.Point]:
    """Return the points of the sweep whose cases have these names."""
    wanted = set(names)
    return [point for point in points(count) if name_of(point.case(KERNEL)) in wanted]
