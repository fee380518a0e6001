"""What a device must offer, so that one measurement loop serves them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from solkit.declare.kernel import Kernel
from solkit.declare.operator import Arg, Array, Operator
from solkit.model import Case, Clocks, Compiled

Buffers = Mapping[str, Array]
Call = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed call: its time, and the SM clock held around it where the device can tell.

    `late`: the host was slower than the delay that hides it, so the time holds host work.
    """

    time_s: float
    sm_hz: float | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel made ready for one case: bind(buffers) gives the call that the timing repeats."""

    bind: Callable[[Buffers], Call]
    compiled: tuple[Compiled, ...] = ()
    launch_count: int = 1
    notes: tuple[str, ...] = ()


class DeviceLost(Exception):  # the device is lost; the message is the driver's
    """The device can't be used again by this process (a sticky CUDA error)."""


class Device(Protocol):
    """A device, as the measurement loop sees it. All times in seconds."""

    @property
    def kind(self) -> str:
        """`cuda` or `cpu`."""

    @property
    def method(self) -> str:
        """How times are taken."""

    @property
    def cache(self) -> str:
        """The cache state that calls are timed in."""

    @property
    def cache_bytes(self) -> int:
        """Bytes of the last cache before memory."""

    @property
    def tick_s(self) -> float:
        """The finest step that this device's clock can tell."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the run should know of this device; usually nothing."""

    def versions(self) -> dict[str, str]:
        """Return the versions of what measures and compiles here."""

    def free_bytes(self) -> int:
        """Return the memory that can still be allocated."""

    def prepare(self, kernel: Kernel, operator: Operator, case: Case, include: Path) -> Program:
        """Compile and load a kernel for a case; what fails raises a SolkitError."""

    def compile_ahead(
        self, pairs: Sequence[tuple[Kernel, Case]], include: Path, done: Callable[[int], None]
    ) -> None:
        """Fill the cache of compiled code, several at a time; a failure shows in prepare."""

    def allocate(self, arg: Arg, case: Case, set_count: int, seed: int) -> Sequence[Array]:
        """Return `set_count` copies of an argument as stored: random inputs, poisoned outputs."""

    def poison(self, array: Array) -> None:
        """Fill an output with NaN."""

    def copy(self, source: Array, target: Array) -> None:
        """Copy an array on the device."""

    def fetch(self, array: Array, dtype: str, index: Sequence[Any]) -> Array:
        """Return the float64 entries at the product of `index` (indices or None, per axis)."""

    def unwritten_count(self, array: Array, dtype: str) -> int:
        """Return how many entries are NaN."""

    def synchronize(self) -> None:
        """Wait for the device; raise DeviceLost when it can't go on."""

    def time(self, calls: Sequence[Call]) -> list[Sample]:
        """Return one sample of each call, in order."""

    def floor_s(self) -> float:
        """Return what this method reads on an empty call."""

    def conditions(self) -> Clocks:
        """Return clocks, power, temperature and event reasons as they are now."""

    def release(self) -> None:
        """Give unused memory back."""
