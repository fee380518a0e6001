"""The words everyone shares: a case, its work and bound, what became of it, and a run of them."""

from dataclasses import dataclass, field
from typing import Literal

from solkit.dtypes import DTYPES
from solkit.gpu import DeviceFacts, Gpu

Param = str | int | float | bool
CacheMode = Literal["cold", "clean", "zeroed", "hot"]
Settle = Literal["burst", "sustained"]
_Where = tuple[tuple[tuple[str, int], ...], tuple[tuple[str, Param], ...], CacheMode]
CaseKey = tuple[str, str, str, _Where]


@dataclass(frozen=True, slots=True)
class Case:
    """Operator + kernel + shape + dtype + params, and the cache mode: its identity everywhere.

    cache_mode: the L2 before each timed call. `cold`: rotation over buffer sets, the kernel's own
    steady state; `clean`: other data was read through it; `zeroed`: other data was written through
    it, as a memset flush does; `hot`: the same buffers again.
    """

    operator: str
    kernel: str
    shape: dict[str, int]
    dtype: str
    params: dict[str, Param] = field(default_factory=dict)
    cache_mode: CacheMode = "cold"

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
        return (self.operator, self.kernel, self.dtype, self._where)

    @property
    def group_key(self) -> CaseKey:
        """The identity without the kernel: cases that share it are measured together."""
        return (self.operator, "", self.dtype, self._where)

    @property
    def _where(self) -> _Where:
        shape, params = sorted(self.shape.items()), sorted(self.params.items())
        return tuple(shape), tuple(params), self.cache_mode

    @property
    def shape_text(self) -> str:
        """Shape and params as people and CSV files read them: `M=1;N=2;weight=kn`.

        A cache mode other than the usual one stands behind them: `M=1;N=2;cache=hot`.
        """
        mode = [] if self.cache_mode == "cold" else [("cache", self.cache_mode)]
        parts = (*self.shape.items(), *sorted(self.params.items()), *mode)
        return ";".join(f"{name}={value}" for name, value in parts)

    @property
    def params_words(self) -> tuple[str, ...]:
        """The params for narrow places: a word stands alone, a number beside its name."""
        return tuple(
            value if isinstance(value, str) else f"{name}={value}"
            for name, value in sorted(self.params.items())
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
    """Clocks and conditions before, during and after a case's samples; None where unknown.

    sm_hz is the median of the per-sample SM clocks (cycles over nanoseconds around each call),
    sm_low_hz and sm_high_hz their extremes; driver_sm_hz is the lowest the driver told meanwhile.
    temperature_c and power_w are the highest that were read, event_reasons all that were named.
    """

    sm_hz: float | None = None
    sm_low_hz: float | None = None
    sm_high_hz: float | None = None
    memory_hz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    event_reasons: tuple[str, ...] = ()
    driver_sm_hz: float | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """How an outcome was compared with its reference.

    error_fraction is the largest error over its allowance (1.0 = just allowed), over all outputs.
    way: whole, or on which sampled indices. inputs: the distribution of each input.
    """

    error_fraction: float
    compared_count: int
    way: str
    tolerance: str
    seed: int
    inputs: str = ""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the compiler said of one kernel function."""

    name: str
    register_count: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SlowMode:
    """A second, slower group among the samples: its median and its share of them."""

    median_s: float
    share_fraction: float


@dataclass(frozen=True, slots=True)
class Measured:
    """A case that ran, was right, and was timed.

    cache: the case's cache mode where it is proved, else `unknown`. sample_hz: the SM clock around
    each of times_s. throttled_count: how many of all samples ran at a lowered clock while the
    driver named a reason; they are kept. busy_s: where a call runs several kernels, the median time
    in which at least one of them ran. energy_j: per call, over a second of steady work, where it
    was asked for. other_process_count: strangers on the device meanwhile. place_fraction: the share
    of the median by which buffers at another place of the memory may move it. launch_s: the median
    of the host's time to enqueue a call, which is no part of times_s; None where a call is the work
    itself, or waits for the device.
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
    sample_hz: tuple[float | None, ...] = ()
    throttled_count: int = 0
    slow_mode: SlowMode | None = None
    busy_s: float | None = None
    energy_j: float | None = None
    other_process_count: int = 0
    place_fraction: float = 0.0
    launch_s: float | None = None


Stage = Literal["describe", "compile", "allocate", "launch", "check", "time", "worker"]


Verdict = Literal[
    "",  # the stage and the message say it all
    "wrong_values",
    "non_finite",
    "unwritten",
    "wrong_shape",
    "wrong_dtype",
    "changed_input",
    "other_stream",
    "no_kernel",
    "unaligned",
    "out_of_memory",
    "timeout",
    "crashed",
]


@dataclass(frozen=True, slots=True)
class Failed:
    """A case that could not be measured: at which stage, what was said, and the remedy.

    verdict: the kind of failure in one word that programs can rely on; empty where none fits.
    """

    case: Case
    stage: Stage
    message: str
    remedy: str = ""
    compiled: tuple[Compiled, ...] = ()
    verdict: Verdict = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A case that this device or kernel does not take, with the reason."""

    case: Case
    reason: str


Outcome = Measured | Failed | Skipped


@dataclass(frozen=True, slots=True)
class DramCeiling:
    """The best time of a streaming kernel for so many bytes: one point of the measured roof.

    kernel: the stream (read, write, copy, triad). variant: which of its kernels was the fastest.
    times_s: the samples behind the median.
    """

    kernel: str
    read_bytes: int
    write_bytes: int
    median_s: float
    variant: str = ""
    times_s: tuple[float, ...] = ()

    @property
    def traffic_bytes(self) -> int:
        """Bytes read plus bytes written."""
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True, slots=True)
class PipeCeiling:
    """A rate seen on one pipe, and how it was had.

    settle: `burst` from a rested chip, `sustained` at the clock that steady work leaves it.
    sm_hz: the median SM clock meanwhile. times_s: the samples behind the median.
    """

    pipe: str
    flop: int
    median_s: float
    how: str
    settle: Settle = "burst"
    sm_hz: float | None = None
    times_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The measured roof of one device: what its best streaming and matrix kernels reach.

    method: how times were taken, and the cache state. l2: reads of buffers that stay in the L2.
    floors_s: what an empty kernel reads, by timing method. created, uuid, driver: when and where.
    notes: why a pipe stays without a ceiling.
    """

    method: str
    dram: tuple[DramCeiling, ...]
    pipes: tuple[PipeCeiling, ...] = ()
    l2: tuple[DramCeiling, ...] = ()
    floors_s: dict[str, float] = field(default_factory=dict)
    created: str = ""
    uuid: str = ""
    driver: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its file holds it: a header, its outcomes, and how it ended (None: cut short).

    cache_proof_s: what a read of half the L2 took in each cache mode, which proves their names.
    """

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
    settle: Settle = "burst"
    precision_fraction: float = 0.005
    cache_proof_s: dict[str, float] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """Show the run in a notebook, judged."""
        # the package's public door, which loads what stands behind a name when it is asked for
        from solkit import Report  # noqa: PLC0415

        return Report.of(self)._repr_html_()

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show it with one line as its plain form, where IPython would print every sample."""
        from solkit import Report  # noqa: PLC0415  # as above

        return {"text/plain": repr(Report.of(self)), "text/html": self._repr_html_()}
