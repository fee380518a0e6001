"""Rules for one peak: its rate, its clock, and SMs x rate x clock, the usual mistakes named."""

import math

from solkit.gpu import Gpu, Pipe
from solkit.plan.magnitudes import out_of_range
from solkit.plan.rates import (
    ABSENT,
    ACCUMULATE,
    FP32_MOST,
    OWN_TENSOR_CLOCK,
    RATES,
    TENSOR_PIPES,
    allowed,
    grade,
)

EXACT = 0.02  # SMs x rate x clock against the published peak
EXCUSED = 0.15  # the most that a written reason may explain
LEAST_TENSOR_CLOCK = 0.85  # of the highest clock; the lowest known is 0.866 (NVL cards, by power)
SPARSE_MOST = 2.05  # structured sparsity doubles a peak at most
LEAST_REASON = 12  # letters: "see above" is no reason

Problem = tuple[str, str, str] | None


def pipe_problem(gpu: Gpu, name: str, pipe: Pipe) -> Problem:
    """Return the first rule that a pipe breaks, with message and remedy, or None."""
    if name in ABSENT.get(gpu.compute_capability, frozenset()):
        return (
            "absent-pipe",
            f"compute capability {gpu.compute_capability} has no {name}",
            f"remove pipes.{name} and list it in absent_pipes",
        )
    if out_of_range("flop_per_s", pipe.flop_per_s) or out_of_range("clock_hz", pipe.clock_hz):
        return None  # the rule of magnitudes says it
    return (
        _rate(gpu, name, pipe)
        or _clock(gpu, name, pipe)
        or _product(gpu, name, pipe)
        or _accumulate(name, pipe)
        or _sparse(pipe)
    )


def _rate(gpu: Gpu, name: str, pipe: Pipe) -> Problem:
    """Hold the rate per clock and SM to what this capability and segment have."""
    rates = allowed(gpu)
    known = rates.get(name) if rates else None
    rate = pipe.flop_per_clock_per_sm
    if known is None:
        if len(pipe.reason) >= LEAST_REASON:
            return None
        return (
            "rate-unknown",
            f"no rate of {name} is known for {gpu.compute_capability} ({grade(gpu)})",
            "say in the pipe's reason where the rate comes from, or leave the pipe out",
        )
    if any(math.isclose(rate, one, rel_tol=1e-3) for one in known):
        return None
    listed = " or ".join(f"{one:g}" for one in known)
    if any(math.isclose(2 * rate, one, rel_tol=1e-3) for one in known):
        return (
            "mac-as-flop",
            f"{rate:g} per clock and SM is half of {listed}: multiply-adds counted, not FLOP",
            "a fused multiply-add is 2 FLOP: double the rate (and the peak, if it is halved too)",
        )
    full = RATES.get((gpu.compute_capability, "full"), {}).get(name, ())
    if grade(gpu) == "geforce" and rate in full:
        return (
            "geforce-half-rate",
            (
                f"{rate:g} per clock and SM is the professional card's rate; GeForce has {listed}"
                " with fp32 accumulation"
            ),
            "take the peak with fp32 accumulate, not the one with fp16 accumulate",
        )
    return (
        "rate",
        f"{rate:g} per clock and SM; {gpu.compute_capability} ({grade(gpu)}) has {listed}",
        "take the rate of this chip and segment, never that of a neighbour",
    )


def _clock(gpu: Gpu, name: str, pipe: Pipe) -> Problem:
    """Hold the clock behind a peak to the card's range, and tensor clocks to their own."""
    ratio = pipe.clock_hz / gpu.max_clock_hz
    own = gpu.compute_capability in OWN_TENSOR_CLOCK and name in TENSOR_PIPES
    if own and ratio > 0.995 and not pipe.reason:  # noqa: PLR2004  # the nearest real one is 0.974
        return (
            "tensor-clock",
            (
                f"{pipe.clock_hz / 1e6:.0f} MHz is the card's highest clock;"
                " its tensor peak is quoted at a lower one"
            ),
            "use the clock behind the data sheet's tensor peak: peak / (SMs x rate)",
        )
    if pipe.reason:
        return None
    low = gpu.base_clock_hz or 0.0
    if not low <= pipe.clock_hz <= 1.05 * gpu.max_clock_hz:
        return (
            "clock-range",
            (
                f"{pipe.clock_hz / 1e6:.0f} MHz is outside {low / 1e6:.0f} to"
                f" {gpu.max_clock_hz / 1e6:.0f} MHz (+5 %)"
            ),
            "take the clock that the source quotes this peak at",
        )
    if pipe.clock_mark == "derived" and not LEAST_TENSOR_CLOCK <= ratio <= 1.001:  # noqa: PLR2004
        return (
            "derived-clock",
            (
                f"a clock solved from the peak is {ratio:.3f} of the highest clock; 0.85 to 1 is"
                " believable"
            ),
            "the peak is probably sparse, halved or of another card; else write a reason",
        )
    return None


def _product(gpu: Gpu, name: str, pipe: Pipe) -> Problem:
    """Recompute SMs x rate x clock, and name the usual mistake behind the usual factor."""
    product = gpu.sm_count * pipe.flop_per_clock_per_sm * pipe.clock_hz
    ratio = pipe.flop_per_s / product
    count = pipe.source_gpu_count
    if count > 1 and (_near(ratio, count) or _near(ratio, 1 / count)):
        times = "not divided" if ratio > 1 else "divided twice"
        return (
            "per-gpu",
            f"the source's {count} GPUs are {times}: {ratio:g} x the product",
            "divide the source's number by source_gpu_count once",
        )
    if _near(ratio, 2):
        return (
            "sparse-as-dense",
            (
                "the peak is twice SMs x rate x clock: a figure with sparsity, or with fp16"
                " accumulation, or of two GPUs"
            ),
            "take the dense figure; the sparse one belongs in sparse_flop_per_s",
        )
    if _near(ratio, 0.5):
        return (
            "halved-twice",
            "the peak is half of SMs x rate x clock: a dense figure was halved again",
            "this source prints dense figures: take them as they are",
        )
    if name == "fp32" and ratio > 1 + EXCUSED:
        most = gpu.sm_count * FP32_MOST * gpu.max_clock_hz
        return (
            "tf32-as-fp32",
            f"{ratio:.2f} x what fp32 units can do (at most {most:.4g} FLOP/s): a TF32 figure?",
            "take the non-tensor fp32 figure; TF32 belongs in tf32_tensor",
        )
    off = abs(ratio - 1)
    if off <= EXACT or (off <= EXCUSED and len(pipe.reason) >= LEAST_REASON):
        return None
    return (
        "product",
        f"SMs x rate x clock = {product:.5g}, the file says {pipe.flop_per_s:.5g} ({ratio:.3f} x)",
        "mend peak, rate, clock or SM count; up to 15 % may stand with a written reason",
    )


def _near(ratio: float, factor: float) -> bool:
    return abs(ratio / factor - 1) <= 0.03  # noqa: PLR2004  # a rounded figure, doubled


def _accumulate(name: str, pipe: Pipe) -> Problem:
    wanted = ACCUMULATE.get(name)
    if wanted is None or pipe.accumulate == wanted:
        return None
    return (
        "accumulate",
        f"accumulates in {pipe.accumulate}; the pipe {name} means {wanted}",
        f'take the figure with {wanted} accumulation and write accumulate = "{wanted}"',
    )


def _sparse(pipe: Pipe) -> Problem:
    sparse = pipe.sparse_flop_per_s
    if sparse is None or 1 <= sparse / pipe.flop_per_s <= SPARSE_MOST:
        return None
    return (
        "sparse-ratio",
        f"the sparse figure is {sparse / pipe.flop_per_s:.2f} x the dense one; 1 to 2 is possible",
        "check which of the two the source prints",
    )
