"""What a device must offer, so that one measurement loop serves them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, get_args

from solkit.declare.arg import Arg, Array
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.dtypes import DTYPES
from solkit.errors import SolkitError
from solkit.model import CacheMode, Case, Clocks, Compiled, Verdict

Buffers = Mapping[str, Array]
# What a Python kernel returns, where it does not write its outputs in place; else None.
Call = Callable[[], object]
Timer = Literal["auto", "cupti", "event_blocked", "event_unblocked", "graph"]
TIMERS: tuple[Timer, ...] = get_args(Timer)


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed call: its time, and the SM clock held around it where the device can tell.

    busy_s: where the call ran several kernels, the time in which at least one of them ran.
    """

    time_s: float
    sm_hz: float | None = None
    busy_s: float | None = None


def tells_unwritten(dtype: str) -> bool:
    """Say whether poison (every bit set) can be told from a value of a dtype.

    It is a NaN of floats that no arithmetic makes, and -1 of int32, which such outputs leave to
    what is missing (they are indices and counts); of 8-bit integers it is a value like any other.
    """
    kind = DTYPES[dtype]
    return kind.number != "int" or kind.item_bytes > 1


def _written_in_place(result: object, buffers: Buffers) -> None:
    """Take nothing over: the call wrote its outputs itself."""


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel made ready for one case: bind(buffers) gives the call that the timing repeats.

    adopt(result, buffers) takes what a checked call returned for its outputs: it copies them into
    the buffers, or raises a CheckFailed where they are not what is declared.
    """

    bind: Callable[[Buffers], Call]
    compiled: tuple[Compiled, ...] = ()
    launch_count: int = 1
    notes: tuple[str, ...] = ()
    adopt: Callable[[object, Buffers], None] = _written_in_place


class Unblockable(SolkitError):
    """A call waited for the device, so it can't be queued behind a blocked stream."""


class NothingRan(SolkitError):
    """A call that should be timed gave the device nothing to do."""

    verdict: ClassVar[Verdict] = "no_kernel"


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
    def unblocked_method(self) -> str:
        """How they are taken of calls that wait for the device themselves."""

    @property
    def most_calls(self) -> int:
        """The most calls that one `time` takes."""

    @property
    def whole_rotation(self) -> bool:
        """Whether a batch is repeated as a whole (a graph), so that it has to go over all sets."""

    @property
    def cleans(self) -> bool:
        """Whether `settle_cache` cleans the cache, so that sets larger than it are used once."""

    @property
    def lead_count(self) -> int:
        """Calls at the head of a batch that are no samples: the caches hold others' lines then."""

    @property
    def max_clock_hz(self) -> float | None:
        """The highest SM clock; None where there is none to tell."""

    @property
    def power_limit_w(self) -> float | None:
        """The power limit in force; None where unknown."""

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
        """Set every bit of an output: a NaN that no arithmetic makes, -1 for an integer."""

    def copy(self, source: Array, target: Array) -> None:
        """Copy an array on the device."""

    def copy_all(self, source: Array, targets: Sequence[Array]) -> None:
        """Copy an array to each of an argument's copies on the device."""

    def fetch(self, array: Array, dtype: str, index: Sequence[Any]) -> Array:
        """Return the float64 entries at the product of `index` (indices or None, per axis).

        8-bit floats are decoded, integers are exact.
        """

    def unwritten_count(self, array: Array, dtype: str) -> int:
        """Return how many entries still hold the poison; 0 where `tells_unwritten` says no."""

    def non_finite_count(self, array: Array, dtype: str) -> int:
        """Return how many entries are NaN (the poison among them) or infinite."""

    def first_non_finite(self, array: Array, dtype: str) -> int:
        """Return the place of the first such entry in memory order, 0 where there is none."""

    def checksum(self, array: Array) -> int:
        """Return a number that differs where any bit or the order of the entries does."""

    def synchronize(self) -> None:
        """Wait for the device; raise DeviceLost when it can't go on."""

    def time(
        self,
        calls: Sequence[Call],
        *,
        mode: CacheMode = "cold",
        blocked: bool = True,
        ahead: Sequence[Call] = (),
    ) -> list[Sample]:
        """Return samples of the calls, in order: one each, or for a graph fewer (means of many).

        mode: `clean` and `zeroed` flush the L2 before each call; the others leave that to the
        caller's choice of buffers. blocked: queue everything before the device may run it; a call
        that waits for the device then raises Unblockable. ahead: keep the device at work with
        these calls for a tenth of a second, and queue the batch right behind them.
        NothingRan where a call ran nothing, RecordsLost where nobody knows.
        """

    def settle_cache(self, calls: Sequence[Call]) -> None:
        """Clean the cache of others' dirty lines, then run the calls, untimed and unrecorded."""

    def launch_s(self, calls: Sequence[Call]) -> float | None:
        """Return the median of the host's time to enqueue one of the calls, unrecorded.

        None where a call is the work itself. The calls are few enough for any launch queue.
        """

    def read_s(self, mode: CacheMode, nbytes: int) -> float:
        """Return the median of a plain read of so many bytes, in a cache mode."""

    def stray_work(self, call: Call, outputs: Sequence[tuple[Array, str]]) -> str:
        """Say what of a call's work escapes its stream, or nothing.

        outputs: the arrays it writes, poisoned, each with its dtype.
        """

    def floor_s(self) -> float:
        """Return what this method reads on an empty call."""

    def floors_s(self) -> dict[str, float]:
        """Return what each method that works here reads on an empty call."""

    def conditions(self) -> Clocks:
        """Return clocks, power, temperature and event reasons as they are now."""

    def energy_per_call_j(self, calls: Sequence[Call]) -> float | None:
        """Return the energy of a call over at least a second of steady work; None: not counted."""

    def other_process_count(self) -> int:
        """Return how many other processes have work or memory on the device."""

    def release(self) -> None:
        """Give unused memory back, where it is much; what that disturbs is over on return."""
