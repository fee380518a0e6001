"""Measured cases from nothing but their samples, and runs of them, for tests of comparing."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from synthetic import synthetic_run

from solkit.model import Bound, CacheMode, Case, Check, Clocks, Measured, Outcome, Run, Work
from solkit.stats import spread, widened

MEMORY, COMPUTE = "memory", "compute:bf16_tensor"


def timed(  # noqa: PLR0913  # a case is timed in many ways
    times_s: Sequence[float],
    *,
    clocks_hz: Sequence[float | None] | float | None = None,
    held_hz: float | None = None,
    event_reasons: tuple[str, ...] = (),
    limiter: str = COMPUTE,
    method: str = "cupti",
    cache: str = "cold",
    cache_mode: CacheMode = "cold",
    seed: int = 0,
    kernel: str = "solkit",
    rows: int = 1,
    read_bytes: int = 1,
    place_fraction: float = 0.0,
) -> Measured:
    """Return a case of one row and one byte, unless told otherwise."""
    seen = widened(spread(times_s), place_fraction)
    hz = [clocks_hz] * len(times_s) if isinstance(clocks_hz, float | None) else clocks_hz
    return Measured(
        case=Case("scale", kernel, {"rows": rows}, "bf16", cache_mode=cache_mode),
        work=Work(read_bytes, 1),
        unfused=(),
        bound=Bound(1e-6, {}, 1e-6, limiter, near_ridge=False),
        times_s=tuple(times_s),
        sample_count=len(times_s),
        quantiles_s={},
        median_s=seen.median_s,
        low_s=seen.low_s,
        high_s=seen.high_s,
        floor_s=1e-6,
        method=method,
        cache=cache,
        clocks=Clocks(sm_hz=held_hz, event_reasons=event_reasons),
        check=Check(0.5, 100, "whole", "exact", seed),
        sample_hz=tuple(hz) if clocks_hz is not None else (),
        place_fraction=place_fraction,
    )


def around(median_s: float, *, width: float = 0.001, count: int = 20) -> list[float]:
    """Return samples spread evenly over `width` of the median to either side."""
    return [median_s * (1 + width * (2 * place / (count - 1) - 1)) for place in range(count)]


def run_of(*outcomes: Outcome, name: str = "a") -> Run:
    """Return a whole run of these outcomes."""
    return replace(synthetic_run(outcomes), id=name, ended="complete")


def noisy_run(
    seed: int,
    cases: Iterable[float],
    *,
    within: float,
    between: float,
    counts: tuple[int, int] = (30, 64),
    place_fraction: float = 0.0,
) -> Run:
    """Return a run of cases with these times and normal noise, within a run and between runs.

    within: one standard deviation of a sample, between: of the ratio of two runs of a case.
    """
    random = Random(seed)  # noqa: S311  # noise, not a secret
    return run_of(
        *(
            timed(
                [
                    time_s * (1 + moved + random.gauss(0, within))
                    for _ in range(random.randint(*counts))
                ],
                limiter=MEMORY,
                rows=row,
                place_fraction=place_fraction,
            )
            for row, time_s in enumerate(cases, 1)
            for moved in (random.gauss(0, between / 2**0.5),)
        ),
        name=f"run {seed}",
    )
