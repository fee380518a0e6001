"""A card as its spec file states it, and a device as its driver reports it."""

from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar, Literal

# How sure a number is: read in the source named, taken from another's copy of it, computed from
# numbers that have sources, or not yet checked against any document.
Mark = Literal["read", "second_hand", "derived", "unverified"]

PIPES = (
    "fp64",
    "fp32",
    "fp16",
    "sfu",
    "fp64_tensor",
    "tf32_tensor",
    "fp16_tensor",
    "bf16_tensor",
    "fp8_tensor",
    "fp4_tensor",
    "int8_tensor",
)

_STRICT: dict[str, Any] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class Source:
    """Where a number was read: title, URL and the day it was accessed."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    title: str
    url: str
    accessed: date
    mark: Mark
    note: str = ""


@dataclass(frozen=True, slots=True)
class Pipe:
    """The dense peak of one kind of arithmetic unit, over the whole card.

    flop_per_s: the published peak (fused multiply-add = 2 FLOP; for `sfu`, results per second).
    flop_per_clock_per_sm: what one SM (CU) completes per clock with that unit's best instruction.
    clock_hz: the clock the published peak holds at; SMs x rate x clock = peak within 2 %.
    reason: why the product misses the peak by more than 2 %, where it does.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    flop_per_s: float
    flop_per_clock_per_sm: float
    clock_hz: float
    accumulate: Literal["fp16", "fp32", "fp64", "int32", "none"] = "none"
    clock_mark: Literal["published", "derived"] = "published"
    sparse_flop_per_s: float | None = None
    source_gpu_count: int = 1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A link to other devices, counted in one direction."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    bytes_per_s_per_direction: float
    kind: str


@dataclass(frozen=True, slots=True)
class MigProfile:
    """One MIG slice: compute follows SMs, bandwidth follows memory slices."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    sm_count: int
    dram_bytes: int | None = None
    dram_slice_fraction: float | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One spec file. SI units; memory in whole bytes as a device reports it, with ECC as stated.

    dram_published_bytes_per_s: the data sheet; dram_pin_bytes_per_s: bus bits x data rate / 8.
    Scores use the lesser of both (`dram_bytes_per_s`).
    memory_clock_hz: as NVML counts it, half the data rate: pin = 2 x clock x bus bits / 8.
    pci_ids: PCI device ids in upper-case hex, with `:SUBSYSTEM` where that is not enough.
    family, family_default: the short name that several cards share, and which of them it means.
    segment: market segment, which sets rates on the same die (GeForce halves fp32 accumulation).
    dram_shared: the memory is the CPU's too, so what a driver reports of its size varies.
    reasons: why a rule of `solkit gpus lint` does not hold here, keyed by field or rule.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    id: str
    name: str
    vendor: Literal["nvidia", "amd", "derived"]
    compute_capability: str
    sm_count: int
    dram_bytes: int
    dram_published_bytes_per_s: float
    l2_bytes: int
    max_clock_hz: float
    pipes: dict[str, Pipe]
    sources: dict[str, Source]
    family: str = ""
    family_default: bool = False
    segment: Literal["data_center", "professional", "geforce", "embedded", "export"] = "data_center"
    aliases: tuple[str, ...] = ()
    pci_ids: tuple[str, ...] = ()
    ecc: bool = False
    dram_shared: bool = False
    base_clock_hz: float | None = None
    boost_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    bus_bits: int | None = None
    dram_pin_bytes_per_s: float | None = None
    shared_bytes_per_sm: int | None = None
    shared_bytes_per_block: int | None = None
    power_w: float | None = None
    links: dict[str, Link] = field(default_factory=dict)
    mig: dict[str, MigProfile] = field(default_factory=dict)
    absent_pipes: tuple[str, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def dram_bytes_per_s(self) -> float:
        """The bandwidth a score is taken against: the lesser of data sheet and pin rate."""
        if self.dram_pin_bytes_per_s is None:
            return self.dram_published_bytes_per_s
        return min(self.dram_published_bytes_per_s, self.dram_pin_bytes_per_s)


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the driver (or, for the CPU, the operating system) says of one device.

    Unknown is None, never 0. `kind` is `cuda` or `cpu`.
    """

    kind: Literal["cuda", "cpu"]
    name: str
    index: int = 0
    uuid: str = ""
    pci_bus_id: str = ""
    pci_device_id: str = ""
    pci_subsystem_id: str = ""
    compute_capability: str = ""
    driver: str = ""
    cuda_driver: str = ""
    mig_profile: str = ""
    ecc: bool | None = None
    sm_count: int | None = None
    core_count: int | None = None
    dram_bytes: int | None = None
    dram_free_bytes: int | None = None
    l2_bytes: int | None = None
    bus_bits: int | None = None
    memory_clock_hz: float | None = None
    max_clock_hz: float | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    notes: tuple[str, ...] = ()
