"""The measured roof of a CUDA device: what its best streaming and matrix kernels reach."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from solkit.declare.operator import Operator
from solkit.declare.registry import Registry, bundled
from solkit.errors import SolkitError
from solkit.measure import buffers, load
from solkit.measure.device.base import Call, Device, Program
from solkit.model import Case, Ceilings, DramCeiling
from solkit.stats import median

STREAMS = ("read", "triad", "copy", "write")
TRAFFIC_BYTES = tuple(2**power for power in range(16, 31))  # 64 KiB to 1 GiB
# Columns of `read`, in fp32: rows of 1 KiB, two 16-byte loads a lane of a warp. 64 KiB are then 64
# warps (rows of 4 KiB would leave 16 for the whole card), and the sums are 0.4 % of the bytes.
READ_COLS = 256
STREAM_COUNT, STREAM_WARM = 41, 5
LEAST_SETS = 2  # with a single one, calls would find their own lines in the cache
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Workshop:
    """What streams are measured with: the declarations, shared headers, the seed of the inputs."""

    registry: Registry
    include: Path
    seed: int = 0


def cuda_ceilings(device: Device, include: Path, *, seed: int, say: Say) -> Ceilings:
    """Measure this card by the device's own method; `say` hears each step as it begins.

    In order: what an empty kernel reads by each method; DRAM streams, cold, over traffic; reads of
    the L2; fp32 FMA; matrix products from rest, and bf16 sustained, which heats the chip, last.
    """
    from solkit.measure.device.cuda import gemm, rates  # noqa: PLC0415  # CuPy, on a CUDA device alone

    notes: list[str] = []
    say("empty kernels")
    floors_s = device.floors_s()
    workshop = Workshop(bundled(), include, seed)
    dram = dram_ceilings(device, workshop, say=say)
    kernels = rates.load_rates()
    rest = load.Rests(device)
    say("L2 reads")
    l2 = rates.l2_ceiling(device, kernels, rest)
    say("fp32 FMA")
    fp32 = rates.fp32_ceiling(device, kernels, rest)
    products = gemm.product_ceilings(device, kernels, rest, say, notes.append)
    return Ceilings(
        f"{device.method}, cold",
        dram,
        (fp32, *products),
        l2=(l2,),
        floors_s=floors_s,
        notes=tuple(notes),
    )


def dram_ceilings(
    device: Device,
    workshop: Workshop,
    *,
    say: Say,
    traffic_bytes: Sequence[int] = TRAFFIC_BYTES,
) -> tuple[DramCeiling, ...]:
    """Return the best kernel's time of each stream at each traffic that the device has room for."""
    _compile_ahead(device, workshop, traffic_bytes, say)
    points: list[DramCeiling] = []
    for stream in STREAMS:
        for traffic in traffic_bytes:
            say(f"DRAM {stream}")
            point = best_stream(device, workshop, stream, traffic)
            if point is not None:
                points.append(point)
    return tuple(points)


def best_stream(
    device: Device, workshop: Workshop, stream: str, traffic_bytes: int
) -> DramCeiling | None:
    """Return the fastest of a stream's kernels by median, cold; None without the room for it.

    They run on the same buffers, one after the other. Their outputs are checked as any others'
    when they are cases; here they are only timed. A kernel that can't be had on this card is left
    out.
    """
    operator = workshop.registry.operators[stream]
    names = workshop.registry.kernel_names(stream, "cuda")
    cases = [_case(operator, name, traffic_bytes) for name in names]
    footprint = sum(arg.nbytes(cases[0]) for arg in operator.args_of(cases[0]))
    if LEAST_SETS * footprint > buffers.MEMORY_FRACTION * device.free_bytes():
        return None
    sets = buffers.make(device, operator, cases[0], workshop.seed)
    if sets.cache != "cold":
        return None
    best: DramCeiling | None = None
    failed: SolkitError | None = None
    for case in cases:
        try:
            program = device.prepare(
                workshop.registry.kernels[stream, case.kernel], operator, case, workshop.include
            )
        except SolkitError as error:
            failed = error
            continue
        work = operator.work(case)
        times_s = _cold_times_s(device, program, sets)
        point = DramCeiling(
            stream, work.read_bytes, work.write_bytes, median(times_s), case.kernel, times_s
        )
        best = point if best is None or point.median_s < best.median_s else best
    if best is None and failed is not None:
        raise failed
    return best


def _cold_times_s(device: Device, program: Program, sets: buffers.BufferSets) -> tuple[float, ...]:
    """Return the times of calls that rotate over all buffer sets.

    The first of a batch may find someone else's lines in the cache. A graph repeats its calls, so
    it has to hold the whole rotation.
    """
    lead = device.lead_count

    def times_s(count: int) -> list[float]:
        numbers = sets.next(device, min(count, device.most_calls))
        calls: list[Call] = [program.bind(sets.buffers(number)) for number in numbers]
        return [sample.time_s for sample in device.time(calls, mode="cold")[lead:]]

    if device.whole_rotation:
        return tuple(times_s(max(STREAM_COUNT, sets.count)))
    buffers.settle(device, sets, program.bind)
    times_s(STREAM_WARM + lead)
    found: list[float] = []
    while len(found) < STREAM_COUNT:
        found += times_s(STREAM_COUNT - len(found) + lead)
    return tuple(found)


def read_case(kernel: str, read_bytes: int) -> Case:
    """Return the fp32 case of `read` that reads so many bytes, in whole rows of READ_COLS."""
    rows = max(1, read_bytes // (4 * READ_COLS))
    return Case("read", kernel, {"rows": rows, "cols": READ_COLS}, "fp32")


def _case(operator: Operator, kernel: str, traffic_bytes: int) -> Case:
    """Return the fp32 case of a stream whose traffic is about so many bytes."""
    if operator.name == "read":
        return read_case(kernel, traffic_bytes)
    one = operator.work(Case(operator.name, kernel, {"elements": 2**20}, "fp32"))
    streams = max(1, round(one.traffic_bytes / 2**22))
    elements = max(1, traffic_bytes // (4 * streams) // 1024) * 1024
    return Case(operator.name, kernel, {"elements": elements}, "fp32")


def _compile_ahead(
    device: Device, workshop: Workshop, traffic_bytes: Sequence[int], say: Say
) -> None:
    registry = workshop.registry
    say("compiling the streams")
    pairs = [
        (
            registry.kernels[stream, name],
            _case(registry.operators[stream], name, traffic_bytes[-1]),
        )
        for stream in STREAMS
        for name in registry.kernel_names(stream, "cuda")
    ]
    device.compile_ahead(pairs, workshop.include, lambda _index: say("compiling the streams"))


def without_samples(ceilings: Ceilings) -> Ceilings:
    """Return ceilings as a run's header holds them: the samples stay where they were stored."""
    return replace(
        ceilings,
        dram=tuple(replace(point, times_s=()) for point in ceilings.dram),
        l2=tuple(replace(point, times_s=()) for point in ceilings.l2),
        pipes=tuple(replace(pipe, times_s=()) for pipe in ceilings.pipes),
    )
