"""How far two runs of the same code differ: the noise that no sample of one run can show.

Buffers lie in other places of the memory, the chip is at another temperature: medians move by more
than the interval of their samples says. Noise is one standard deviation of a median's logarithm.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from solkit.judge.compare import sampling_error
from solkit.judge.score import seen
from solkit.model import Measured

# Of the ratio of two runs of a case, one standard deviation. Measured on an H200, over 100 cases in
# three orders four times: 28 to 46 ns up to 25 us, 0.16 to 0.24 % beyond (furthest 1.3 %). Calls of
# two launches also move together from run to run, by 100 to 140 ns: the gap between the launches.
RUN_NOISE_FRACTION = 0.004
LAUNCH_NOISE_S, GAP_NOISE_S = 40e-9, 70e-9
# A host shares cores and memory with whatever else it runs: of 24 cases in three runs beside other
# work, medians of two runs were 19 % apart in the middle, furthest a factor of 4.7. So this is no
# bound, and times of a host show large steps at best.
HOST_NOISE_FRACTION = 0.10
# Of the ratio, in addition, between two cards of one model: medians of 100 cases in the records of
# two H200s lay 1.1 % apart (one standard deviation, furthest 4.3 %; sampling had changed a little).
CARD_NOISE_FRACTION = 0.012
# So many degrees of freedom the constants count for beside what several runs of a side show. With
# two runs a side a case has two of its own, and a t-test of two finds nothing that is rare enough
# (one in 10,000) below a hundred standard errors.
PRIOR_COUNT = 20


@dataclass(frozen=True, slots=True)
class Repeats:
    """One case in the runs of one side.

    medians_s: of each run. errors_fraction: the standard error each has from its own samples.
    even_count: how many runs of equal weight the pooled samples are worth.
    """

    medians_s: tuple[float, ...]
    errors_fraction: tuple[float, ...]
    even_count: float

    @staticmethod
    def of(outcomes: Sequence[Measured]) -> "Repeats":
        """Read them off the outcomes of one case, one of each run."""
        if len(outcomes) == 1:  # nothing between runs: spare 10,000 cases the sorting
            return Repeats((outcomes[0].median_s,), (0.0,), 1.0)
        times = [seen(outcome) for outcome in outcomes]
        errors = [
            sampling_error(outcome, each, between_runs=True)
            for outcome, each in zip(outcomes, times, strict=True)
        ]
        counts = [len(outcome.times_s) for outcome in outcomes]
        even = sum(counts) ** 2 / sum(count * count for count in counts)
        return Repeats(tuple(each.median_s for each in times), tuple(errors), even)

    @property
    def freedom_count(self) -> int:
        """Degrees of freedom between the runs."""
        return len(self.medians_s) - 1

    @property
    def squares(self) -> float:
        """Sum of the squared distances of the medians' logarithms from their mean."""
        logs = [math.log(median_s) for median_s in self.medians_s]
        middle = math.fsum(logs) / len(logs)
        return math.fsum((each - middle) ** 2 for each in logs)


def prior_fraction(outcome: Measured, *, host: bool) -> float:
    """Return the noise of one run's median where no other run of its side tells."""
    if host:
        return HOST_NOISE_FRACTION
    gap_s = GAP_NOISE_S if outcome.launch_count > 1 else 0.0
    of_ratio = math.hypot(
        max(RUN_NOISE_FRACTION, outcome.place_fraction),
        math.hypot(LAUNCH_NOISE_S, gap_s) / outcome.median_s,
    )
    return of_ratio / math.sqrt(2)


def excess_fraction(cases: Iterable[tuple[float, Sequence[Repeats]]]) -> float:
    """Return how many times the noise between runs is what the constants say; 1 at least.

    cases: each case's prior and its two sides. Over all cases the squares between the runs of a
    side are set against what prior and samples explain; the prior counts for 20 more. Never below
    1: runs made one after the other don't show what another day changes.
    """
    found, freedom_count = float(PRIOR_COUNT), PRIOR_COUNT
    for prior, sides in cases:
        for side in sides:
            if side.freedom_count:
                error = math.fsum(each * each for each in side.errors_fraction)
                explained = prior * prior + error / len(side.errors_fraction)
                found += side.squares / explained
                freedom_count += side.freedom_count
    return max(1.0, math.sqrt(found / freedom_count))


def ratio_noise(prior: float, excess: float, base: Repeats, head: Repeats) -> float:
    """Return the noise of the ratio of two sides: it falls with the square root of their runs.

    A case that scatters more than all others do has the scatter of its own runs, where that is
    larger: with few runs that estimate is itself unsure, so it is never taken to be smaller.
    """
    freedom_count = base.freedom_count + head.freedom_count
    own = math.sqrt((base.squares + head.squares) / freedom_count) if freedom_count else 0.0
    return max(prior * excess, own) * math.sqrt(1 / base.even_count + 1 / head.even_count)
