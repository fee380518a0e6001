"""Runs for the tests of pictures, their times from a formula; nothing of this enters a run file."""

from dataclasses import replace
from datetime import date

from solkit.bound import bound, measured_roof, spec_roof
from solkit.gpu import DeviceFacts, Gpu, Pipe, Source
from solkit.model import (
    Case,
    Ceilings,
    Check,
    Clocks,
    DramCeiling,
    Failed,
    Measured,
    Outcome,
    PipeCeiling,
    Run,
    Skipped,
    Work,
)

SOURCE = Source("an invented card", "https://example.com/sheet", date(2026, 1, 31), "read")
FLOOR_S = 2.3e-6


def card(gpu_id: str = "h200_test", name: str = "NVIDIA H200", scale: float = 1.0) -> Gpu:
    """Return a card of the size of an H200."""

    def pipe(peak: float, rate: float, clock_hz: float) -> Pipe:
        return Pipe(peak * scale, rate * scale, clock_hz)

    return Gpu(
        id=gpu_id,
        name=name,
        vendor="nvidia",
        compute_capability="9.0",
        sm_count=132,
        dram_bytes=150_754_820_096,
        dram_published_bytes_per_s=4.8e12 * scale,
        dram_pin_bytes_per_s=4.9e12 * scale,
        l2_bytes=62_914_560,
        max_clock_hz=1.98e9,
        pipes={
            "fp32": pipe(66.9e12, 256, 1.98e9),
            "tf32_tensor": pipe(494.7e12, 2048, 1.83e9),
            "fp16_tensor": pipe(989.4e12, 4096, 1.83e9),
            "bf16_tensor": pipe(989.4e12, 4096, 1.83e9),
            "fp8_tensor": pipe(1978.9e12, 8192, 1.83e9),
        },
        sources={"dram_published_bytes_per_s": SOURCE},
    )


def ceilings() -> Ceilings:
    """Return what such a card's best kernels reach: a floor, a ramp, 91 % of the bandwidth."""
    sizes = [2**power for power in range(16, 31)]
    return Ceilings(
        "events",
        tuple(
            DramCeiling(
                kernel, round(size * share), size - round(size * share), FLOOR_S + size / 4.37e12
            )
            for size in sizes
            for kernel, share in (("read", 1.0), ("copy", 0.5), ("write", 0.0))
        ),
        (
            PipeCeiling("bf16_tensor", 10**12, 10**12 / 802e12, "library GEMM 8192^3"),
            PipeCeiling("fp16_tensor", 10**12, 10**12 / 780e12, "library GEMM 8192^3"),
            PipeCeiling("fp32", 10**12, 10**12 / 51.2e12, "library GEMM 4096^3"),
        ),
    )


ITEM_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
MATMUL_PIPE = {"fp32": "fp32", "bf16": "bf16_tensor", "fp16": "fp16_tensor"}


def work_of(case: Case) -> Work:
    """Return the work of the operators used here."""
    size, item = case.shape, ITEM_BYTES[case.dtype]
    if case.operator == "matmul_add":
        m, n, k = size["M"], size["N"], size["K"]
        return Work(
            item * (m * k + k * n + m * n), item * m * n, {MATMUL_PIPE[case.dtype]: 2 * m * n * k}
        )
    if case.operator == "copy":
        return Work(size["elements"] * item, size["elements"] * item)
    count = size["rows"] * size["cols"]
    reads = 1 if case.operator == "softmax" else 2
    return Work(reads * count * item, count * item, {}, {"fp32": 6 * count, "sfu": count})


def measured(
    case: Case, efficiency_fraction: float, *, floor_s: float = FLOOR_S, gpu: Gpu | None = None
) -> Measured:
    """Return a case that took the floor plus its bound at an efficiency, with a spread of 2 %."""
    roof = spec_roof(gpu) if gpu else measured_roof(ceilings())
    work = work_of(case)
    limit = bound(work, roof)
    median_s = floor_s + limit.sol_s / efficiency_fraction
    times_s = tuple(median_s * (1 + 0.02 * ((step * 7) % 21 - 10) / 10) for step in range(21))
    ordered = sorted(times_s)
    return Measured(
        case=case,
        work=work,
        unfused=(),
        bound=limit,
        times_s=times_s,
        sample_count=21,
        quantiles_s={"0.5": ordered[10]},
        median_s=ordered[10],
        low_s=ordered[5],
        high_s=ordered[15],
        floor_s=floor_s,
        method="events",
        cache="cold",
        clocks=Clocks(sm_hz=1.755e9),
        check=Check(0.1, 1000, "all", "2e-2", 0),
    )


def a_run(
    outcomes: tuple[Outcome, ...], *, gpu: Gpu | None = None, with_ceilings: bool = True
) -> Run:
    """Return a run on that card, or without one on a CPU."""
    facts = (
        DeviceFacts("cuda", "NVIDIA H200", l2_bytes=62_914_560)
        if gpu
        else DeviceFacts("cpu", "A processor", l2_bytes=33_554_432)
    )
    return Run(
        id="20260131-120000",
        created="2026-01-31T12:00:00Z",
        device="cuda" if gpu else "cpu",
        facts=facts,
        gpu=gpu,
        ceilings=ceilings() if with_ceilings else None,
        versions={},
        seed=0,
        method="events",
        cache="cold",
        outcomes=outcomes,
    )


def cases(kernel: str = "solkit") -> list[Case]:
    """Return 70 cases: a copy, three row-wise operators, a GEMM over decades of intensity."""
    found = [
        Case("copy", kernel, {"elements": 4**power}, dtype)
        for power in range(8, 15)
        for dtype in ("fp32", "bf16")
    ]
    found += [
        Case(operator, kernel, {"rows": 4**power, "cols": 4096}, dtype)
        for operator in ("add_rmsnorm", "softmax", "swiglu")
        for power in range(8)
        for dtype in (("bf16", "fp16") if operator == "add_rmsnorm" else ("bf16",))
    ]
    found += [
        Case("matmul_add", kernel, {"M": 4**power, "N": 2560, "K": 2560}, dtype, {"weight": weight})
        for power in range(8)
        for dtype in ("bf16", "fp32")
        for weight in ("kn", "nk")
        if dtype == "bf16" or weight == "kn"
    ]
    return found


def efficiency(case: Case) -> float:
    """Return how good a kernel is at a case, by a formula that varies like real ones do."""
    place = sum(case.shape.values()) % 97 / 97
    return {"matmul_add": 0.42, "copy": 0.9}.get(case.operator, 0.72) + 0.1 * (place - 0.5)


def big_run() -> Run:
    """Return 70 measured cases, one of them faster than light, a failed and a skipped one."""
    gpu = card()
    outcomes: list[Outcome] = [measured(case, efficiency(case), gpu=gpu) for case in cases()]
    light = measured(Case("softmax", "solkit", {"rows": 65536, "cols": 4096}, "bf16"), 1.0, gpu=gpu)
    fast = tuple(time_s / 1.45 for time_s in light.times_s)
    outcomes.append(replace(light, times_s=fast, median_s=light.median_s / 1.45))
    outcomes.append(
        Failed(
            Case("softmax", "solkit", {"rows": 3, "cols": 7}, "bf16"),
            "check",
            "wrong values",
            "look",
        )
    )
    outcomes.append(Skipped(Case("copy", "solkit", {"elements": 4}, "fp16"), "not a multiple of 8"))
    return a_run(tuple(outcomes), gpu=gpu)


def cpu_run() -> Run:
    """Return a run on a processor, whose only roof is the measured one."""
    chosen = [case for case in cases("numpy") if case.dtype == "fp32"]
    chosen += [
        Case("softmax", "numpy", {"rows": 4**power, "cols": 1024}, "fp32") for power in range(7)
    ]
    return a_run(tuple(measured(case, 0.5, floor_s=4e-7) for case in chosen))
