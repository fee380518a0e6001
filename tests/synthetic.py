"""An invented card and runs on it, for tests alone: every time follows from a formula."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from solkit.bound import bound, measured_roof, spec_roof
from solkit.gpu import DeviceFacts, Gpu, Pipe, Source
from solkit.model import (
    Case,
    Ceilings,
    Check,
    Clocks,
    Compiled,
    DramCeiling,
    Failed,
    Measured,
    Outcome,
    PipeCeiling,
    Run,
    Skipped,
    SlowMode,
    Step,
    Work,
)
from solkit.stats import median

SHEET = Source(
    "Example GPU 100 data sheet, p. 2", "https://example.com/ds", date(2026, 1, 31), "read"
)
PAPER = Source(
    "Architecture paper, table 4",
    "https://example.com/wp",
    date(2026, 1, 31),
    "derived",
    "from the rate",
)
GPU = Gpu(
    id="example_100",
    name="Example GPU 100",
    vendor="nvidia",
    compute_capability="9.0",
    sm_count=100,
    dram_bytes=80 * 2**30,
    dram_published_bytes_per_s=2.0e12,
    dram_pin_bytes_per_s=2.04e12,
    bus_bits=5120,
    l2_bytes=32 * 2**20,
    max_clock_hz=1.8e9,
    power_w=500.0,
    pipes={
        "bf16_tensor": Pipe(614.4e12, 4096, 1.5e9, "fp32"),
        "fp16_tensor": Pipe(614.4e12, 4096, 1.5e9, "fp32"),
        "fp32": Pipe(46.08e12, 256, 1.8e9),
        "sfu": Pipe(2.88e12, 16, 1.8e9),
    },
    sources={
        "dram_published_bytes_per_s": SHEET,
        "pipes.bf16_tensor": SHEET,
        "pipes.fp16_tensor": SHEET,
        "pipes.fp32": PAPER,
        "l2_bytes": SHEET,
    },
)
FLOOR_S = 2.1e-6
STREAMS = (2**16, 2**20, 2**24, 2**27, 2**30)
CEILINGS = Ceilings(
    method="events",
    dram=tuple(
        DramCeiling(
            kernel, int(size * share), size - int(size * share), size / (rate * 2e12) + 1.5e-6
        )
        for kernel, share, rate in (("read", 1.0, 0.95), ("copy", 0.5, 0.9), ("write", 0.0, 0.92))
        for size in STREAMS
    ),
    pipes=(PipeCeiling("bf16_tensor", 2 * 8192**3, 2 * 8192**3 / 500e12, "8192^3 matrix product"),),
)


def wobble(*parts: object) -> float:
    """Return a number in [0, 1) that looks random and depends on the parts alone."""
    # the usual cache mode is left out: the numbers are older than the modes, and tests know them
    text = repr(parts).replace(", cache_mode='cold'", "")
    return math.modf(abs(math.sin(sum(map(ord, text)) * 12.9898)) * 43758.5453)[0]


def measured(
    case: Case, work: Work, *, time_s: float, unfused: Sequence[Step] = (), gpu: Gpu | None = GPU
) -> Measured:
    """Build a measured case whose median is `time_s`, with eleven samples around it."""
    spread = 0.002 + 0.01 * wobble(case, "spread")
    times = tuple(round(time_s * (1 + spread * (place - 5) / 5), 10) for place in range(11))
    roof = spec_roof(gpu) if gpu else measured_roof(CEILINGS)
    made = Measured(
        case=case,
        work=work,
        unfused=tuple(unfused),
        bound=bound(work, roof),
        times_s=times,
        sample_count=11,
        quantiles_s={"p05": times[0], "p95": times[-1]},
        median_s=times[5],
        low_s=times[2],
        high_s=times[8],
        floor_s=FLOOR_S if gpu else 2e-7,
        method="cupti" if gpu else "perf_counter",
        cache=case.cache_mode,
        clocks=Clocks(),
        check=Check(
            round(0.05 + 0.5 * wobble(case), 3), 65536, "sampled rows", "2 ulp", 0, "normal (0, 1)"
        ),
        compiled=(Compiled(case.operator, 40 + len(case.operator), 0, 0),) if gpu else (),
        ended="precision reached" if spread < 0.01 else "time budget of 0.5 s used",
    )
    return clocked(made) if gpu else made


def clocked(outcome: Measured) -> Measured:
    """Give a case the clocks of its samples; products of 4096 rows and more reach the power cap."""
    heavy = outcome.case.operator == "matmul_add" and outcome.case.shape["M"] >= 4096
    falls = [0.0 if place < 4 else 0.03 * min(place - 3, 4) for place in range(11)]
    hz = tuple(
        round(1.5e9 * (1.04 - falls[place] * heavy + 0.004 * wobble(outcome.case, place)), -6)
        for place in range(11)
    )
    reasons = ("software power cap",) if heavy else ()
    clocks = Clocks(median(hz), min(hz), max(hz), 1.6e9, 52.0, 340.0, reasons, min(hz) - 15e6)
    return replace(
        outcome, clocks=clocks, sample_hz=hz, throttled_count=sum(each < 1.5e9 for each in hz)
    )


def remarkable(made: Sequence[Outcome]) -> list[Outcome]:
    """Return outcomes with something to say of how single cases were timed, by their shapes."""
    changed: dict[tuple[str, str, str], dict[str, object]] = {
        ("softmax", "solkit", "rows=1024;cols=4096"): {"slow_mode": SlowMode(15.2e-6, 0.18)},
        ("softmax", "torch", "rows=16384;cols=4096"): {"launch_count": 3, "busy_s": 173e-6},
        ("bias_gelu", "torch", "rows=1;cols=4096"): {"method": "event_unblocked"},
        ("bias_gelu", "torch", "rows=4096;cols=4096"): {"other_process_count": 2},
        ("swiglu", "torch", "rows=64;cols=4096"): {
            "cache": "unknown",
            "notes": ("1 buffer set fits in memory, so calls can't rotate",),
        },
        ("matmul_add", "solkit", "M=8192;N=2560;K=2560;weight=kn"): {"energy_j": 0.0812},
        ("copy", "solkit", "elements=134217728"): {"energy_j": 0.104},
    }
    launches_s = {"solkit": 4.2e-6, "torch": 11.3e-6}
    return [
        replace(  # the synthetic host takes as long to launch whatever the shape
            item,
            launch_s=launches_s[item.case.kernel] if item.case.operator == "softmax" else None,
            **changed.get(_place(item.case), {}),  # type: ignore[arg-type]
        )
        if isinstance(item, Measured)
        else item
        for item in made
    ]


def _place(case: Case) -> tuple[str, str, str]:
    return case.operator, case.kernel, case.shape_text


def hot_outcomes() -> list[Outcome]:
    """Return copies of two sizes, cold and hot: the small one is faster from the L2."""
    made: list[Outcome] = []
    for elements, gain in ((2**22, 1.7), (2**27, 1.0)):
        for mode in ("cold", "hot"):
            case = Case("copy", "solkit", {"elements": elements}, "bf16", cache_mode=mode)
            work, _ = elementwise("copy", inputs=1, sfu=False, steps=0, case=case)
            time_s = bound(work, spec_roof(GPU)).sol_s / 0.9 / (gain if mode == "hot" else 1.0)
            made.append(measured(case, work, time_s=time_s))
    return made


def elementwise(
    operator: str, *, inputs: int, sfu: bool, steps: int, case: Case
) -> tuple[Work, tuple[Step, ...]]:
    """Return the work of an elementwise operator and of its unfused steps."""
    count = math.prod(case.shape.values())
    size = count * case.item_bytes
    work = Work(inputs * size, size, {}, {"fp32": 6 * count, **({"sfu": count} if sfu else {})})
    return work, tuple(Step(f"{operator} step {step}", Work(size, size)) for step in range(steps))


def outcomes(gpu: Gpu | None = GPU) -> list[Outcome]:
    """Return about seventy outcomes: six operators, every status, scores to above 100 %."""
    made: list[Outcome] = []
    for operator, inputs, sfu, steps in (
        ("copy", 1, False, 0),
        ("add_rmsnorm", 2, False, 3),
        ("swiglu", 2, True, 2),
        ("bias_gelu", 1, True, 2),
        ("softmax", 1, True, 3),
    ):
        for kernel, skill in (("solkit", 0.93), ("torch", 0.71)):
            for rows in (1, 64, 1024, 4096, 16384, 32768):
                shape = (
                    {"elements": rows * 4096}
                    if operator == "copy"
                    else {"rows": rows, "cols": 4096}
                )
                case = Case(operator, kernel, shape, "fp32" if gpu is None else "bf16")
                if operator == "copy" and kernel == "torch":
                    continue
                work, unfused = elementwise(
                    operator, inputs=inputs, sfu=sfu, steps=steps, case=case
                )
                roof = spec_roof(gpu) if gpu else measured_roof(CEILINGS)
                good = skill - 0.12 * wobble(case)
                time_s = bound(work, roof).sol_s / good + (1.8e-6 if gpu else 3e-7)
                made.append(measured(case, work, time_s=time_s, unfused=unfused, gpu=gpu))
    made += products(gpu)
    return remarkable(made) if gpu else made


def products(gpu: Gpu | None) -> list[Outcome]:
    """Return matrix products: good, above the sheet, too fast to be true, failed, skipped."""
    made: list[Outcome] = []
    for size, weight in [(m, w) for m in (16, 256, 1024, 4096, 8192) for w in ("kn", "nk")]:
        case = Case(
            "matmul_add", "solkit", {"M": size, "N": 2560, "K": 2560}, "bf16", {"weight": weight}
        )
        read, write = 2 * (size * 2560 + 2560 * 2560 + size * 2560), 2 * size * 2560
        work = Work(read, write, {"bf16_tensor": 2 * size * 2560 * 2560})
        if gpu is None:
            made.append(Skipped(case, "NumPy has no bf16 arithmetic: sweep fp32 here"))
            continue
        good = {16: 0.55, 256: 0.48, 1024: 0.72, 4096: 0.86, 8192: 1.06 if weight == "nk" else 0.9}[
            size
        ]
        time_s = bound(work, spec_roof(gpu)).sol_s / good
        if (size, weight) == (1024, "kn"):
            time_s /= 2.6
        step = Step("residual", Work(2 * size * 2560 * 2, 2 * size * 2560))
        made.append(
            measured(case, work, time_s=time_s, unfused=(Step("product", work), step), gpu=gpu)
        )
    log = (
        'matmul.cu(41): error: identifier "WIDTH" is undefined\n'
        "    float lane[WIDTH];\n               ^\n1 error detected"
    )
    broken = Case(
        "matmul_add", "wide<256, 8>", {"M": 8192, "N": 2560, "K": 2560}, "fp16", {"weight": "kn"}
    )
    made.append(
        Failed(broken, "compile", log, "Fix matmul.cu at line 41 and run again with --resume.")
    )
    wrong = Case("softmax", "fast", {"rows": 4096, "cols": 4096}, "fp16")
    made.append(
        Failed(
            wrong,
            "check",
            "3,112 of 65,536 values differ by more than allowed (worst 41 x)",
            "Compare against the reference.",
            verdict="wrong_values",
        )
    )
    made += [
        Skipped(
            Case("swiglu", "solkit", {"rows": rows, "cols": 4099}, "bf16"),
            "cols must be a multiple of 8",
        )
        for rows in (1, 1024, 4096)
    ]
    return made


def synthetic_run(made: Sequence[Outcome] | None = None, *, gpu: Gpu | None = GPU) -> Run:
    """Return a finished run of the invented card, or of an invented CPU where `gpu` is None."""
    facts = (
        DeviceFacts(
            "cuda",
            "Example GPU 100",
            compute_capability="9.0",
            driver="600.12",
            cuda_driver="13.1",
            ecc=True,
            sm_count=100,
            dram_bytes=80 * 2**30,
            l2_bytes=32 * 2**20,
            max_clock_hz=1.8e9,
            power_limit_w=450.0,
            power_default_w=500.0,
        )
        if gpu
        else DeviceFacts("cpu", "Example CPU", core_count=8, dram_bytes=32 * 2**30, l2_bytes=2**25)
    )
    ceilings = (
        CEILINGS
        if gpu
        else replace(CEILINGS, pipes=(PipeCeiling("fp32", 10**12, 1.0, "2048^3 product"),))
    )
    found = tuple(outcomes(gpu) if made is None else made)
    return Run(
        id="20260131-120000",
        created="2026-01-31T12:00:00Z",
        device="cuda" if gpu else "cpu",
        facts=facts,
        gpu=gpu,
        ceilings=ceilings,
        versions={
            "solkit": "0.1.0",
            "numpy": "2.3.0",
            "python": "3.11.9",
            **({"cupy": "14.2"} if gpu else {}),
        },
        seed=0,
        method="cupti" if gpu else "perf_counter",
        cache="cold",
        cache_proof_s={"cold": 17.1e-6, "hot": 9.8e-6} if gpu else {},
        outcomes=found,
        planned_count=len(found),
        command="solkit run --shapes examples/shapes.yaml",
        ended="2026-01-31T12:00:41Z",
        duration_s=41.0,
    )
