"""The words everyone shares: a case, its work and bound, what became of it, and a run of them."""

from dataclasses import dataclass, field
from typing import Literal

from solkit.dtypes import DTYPES
from solkit.gpu import DeviceFacts, Gpu

Param = str | int | float | bool
CaseKey = tuple[str, str, str, tuple[tuple[str, int], ...], tuple[tuple[str, Param], ...]]


@dataclass(frozen=True, slots=True)
class Case:
    """Operator + kernel + shape + dtype + params: all five are its identity everywhere."""

    operator: str
    kernel: str
    shape: dict[str, int]
    dtype: str
    params: dict[str, Param] = field(default_factory=dict)

    @property
    def item_bytes(self) -> int:
        """Bytes of one element of the case's dtype."""
        return DTYPES[self.dtype].item_bytes

    @property
    def ctype(self) -> str:
        """The CUDA C++ type of the case's dtype, e.g. `__nv_bfloat16`."""
        return DTYPES[self.dtype].ctype

    @property
    def key(self) -> CaseKey:
        """The whole identity, hashable."""
        return (self.operator, self.kernel, self.dtype, *self._where)

    @property
    def group_key(self) -> CaseKey:
        """The identity without the kernel: cases that share it are measured together."""
        return (self.operator, "", self.dtype, *self._where)

    @property
    def _where(self) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, Param], ...]]:
        return tuple(sorted(self.shape.items())), tuple(sorted(self.params.items()))

    @property
    def shape_text(self) -> str:
        """Shape and params as people and CSV files read them: `M=1;N=2;weight=kn`."""
        return ";".join(
            f"{name}={value}" for name, value in (*self.shape.items(), *sorted(self.params.items()))
        )

    def __str__(self) -> str:
        """Write the case in one line."""
        return f"{self.operator}/{self.kernel} {self.shape_text.replace(';', ' ')} {self.dtype}"


@dataclass(frozen=True, slots=True)
class Work:
    """What a case must at least do. `flop` is exact (matrix products), the rest is an estimate.

    Bytes count each tensor once, at its own width; flop and estimated_flop are keyed by pipe.
    """

    read_bytes: int
    write_bytes: int
    flop: dict[str, int] = field(default_factory=dict)
    estimated_flop: dict[str, int] = field(default_factory=dict)

    @property
    def traffic_bytes(self) -> int:
        """Bytes read plus bytes written."""
        return self.read_bytes + self.write_bytes

    @property
    def intensity_flop_per_byte(self) -> float:
        """Exact FLOP per byte of traffic; where nothing is exact, the estimate serves."""
        counted = sum(self.flop.values()) or self.estimated_flop.get("fp32", 0)
        return counted / self.traffic_bytes if self.traffic_bytes else 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel of the unfused form, by its name and work."""

    name: str
    work: Work


@dataclass(frozen=True, slots=True)
class Bound:
    """The least time a case can take under one roof.

    sol_s is the larger of memory_s and the exact compute times; estimate_s (elementwise and
    transcendental work per pipe) is shown beside it and is never part of it.
    """

    memory_s: float
    compute_s: dict[str, float]
    sol_s: float
    limiter: str
    near_ridge: bool
    estimate_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Clocks and conditions around and during a case's samples; None where unknown.

    sm_hz is the median of the per-sample SM clocks, sm_low_hz and sm_high_hz their extremes.
    """

    sm_hz: float | None = None
    sm_low_hz: float | None = None
    sm_high_hz: float | None = None
    memory_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    event_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """How an outcome was compared with its reference.

    error_fraction is the largest error over its allowance (1.0 = just allowed), over all outputs.
    """

    error_fraction: float
    compared_count: int
    way: str
    tolerance: str
    seed: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the compiler said of one kernel function."""

    name: str
    register_count: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """A case that ran, was right, and was timed.

    ended: which rule ended the sampling. set_count: the buffer sets that calls rotated over.
    notes: what a reader must know to trust the numbers; usually nothing.
    """

    case: Case
    work: Work
    unfused: tuple[Step, ...]
    bound: Bound
    times_s: tuple[float, ...]
    sample_count: int
    quantiles_s: dict[str, float]
    median_s: float
    low_s: float
    high_s: float
    floor_s: float
    method: str
    cache: str
    clocks: Clocks
    check: Check
    compiled: tuple[Compiled, ...] = ()
    launch_count: int = 1
    ended: str = ""
    set_count: int = 1
    notes: tuple[str, ...] = ()


Stage = Literal["describe", "compile", "allocate", "launch", "check", "time", "worker"]


@dataclass(frozen=True, slots=True)
class Failed:
    """A case that could not be measured: at which stage, what was said, and the remedy."""

    case: Case
    stage: Stage
    message: str
    remedy: str = ""
    compiled: tuple[Compiled, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A case that this device or kernel does not take, with the reason."""

    case: Case
    reason: str


Outcome = Measured | Failed | Skipped


@dataclass(frozen=True, slots=True)
class DramCeiling:
    """The best time of a streaming kernel for so many bytes: one point of the measured roof."""

    kernel: str
    read_bytes: int
    write_bytes: int
    median_s: float

    @property
    def traffic_bytes(self) -> int:
        """Bytes read plus bytes written."""
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True, slots=True)
class PipeCeiling:
    """The best rate seen on one pipe, and how it was had."""

    pipe: str
    flop: int
    median_s: float
    how: str


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The measured roof of one device: what its best streaming and matrix kernels reach."""

    method: str
    dram: tuple[DramCeiling, ...]
    pipes: tuple[PipeCeiling, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its file holds it: a header, its outcomes, and how it ended (None: cut short)."""

    id: str
    created: str
    device: Literal["cuda", "cpu"]
    facts: DeviceFacts
    gpu: Gpu | None
    ceilings: Ceilings | None
    versions: dict[str, str]
    seed: int
    method: str
    cache: str
    outcomes: tuple[Outcome, ...] = ()
    planned_count: int | None = None
    notes: tuple[str, ...] = ()
    command: str = ""
    ended: str | None = None
    duration_s: float | None = None
