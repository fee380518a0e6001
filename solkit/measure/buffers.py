"""Buffer sets: cold means that inputs come from memory, so calls rotate over many sets.

The other cache modes use one set: the device flushes between the calls, or nobody does.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from solkit.declare.arg import Arg, Array
from solkit.declare.operator import Operator
from solkit.errors import NoDevice
from solkit.measure.device.base import Buffers, Call, Device
from solkit.measure.indexed import refuse_outside
from solkit.model import CacheMode, Case, Verdict
from solkit.units import capacity

CACHE_MULTIPLE = {"cuda": 3.0, "cpu": 2.0}  # sets total this many last-level caches
MOST_SETS = 65536  # three L2s of 60 MiB at 4 KiB a set are 46080
MEMORY_FRACTION = 0.5
# Calls that bring the cache into a kernel's own steady state. A copy of 64 KiB needs 480 of them
# on an H200 (and reads 0.13 us less before); the writes of smaller ones weigh less than a tick.
MOST_SETTLING = 512
# A set larger than the cache is used once between two cleanings: an H200 kept 5.6 % of 64 MiB read
# with evict-first loads over a rotation of three sets, since such loads displace each other first.
# Few sets are few places in memory, which differ by 1 to 3 % on an H200 (one standard deviation),
# and a median is taken over them: 33 at least, where 8 GiB hold as many.
PLACES_BYTES, PLACES_COUNT = 2**33, 33
PASSES = 2  # over large sets before their samples: a first pass was 10 % slow on an H200


def set_count(
    *, footprint_bytes: int, cache_bytes: int, free_bytes: int, multiple: float, least: int = 2
) -> int:
    """Return how many sets make every read a cold one; two at least where memory has the room."""
    wanted = max(2, least, math.ceil(multiple * cache_bytes / max(footprint_bytes, 1)))
    room = int(MEMORY_FRACTION * free_bytes / max(footprint_bytes, 1))
    return max(1, min(wanted, room, MOST_SETS))


def cache_label(
    mode: CacheMode, *, footprint_bytes: int, cache_bytes: int, sets: int, multiple: float
) -> str:
    """Return the mode where the footprint proves it, else `unknown`.

    Cold: the other sets displace a set before its turn comes again. Hot: the set fits in half the
    cache (an H200's two halves each keep a copy of what their side reads). A flush is larger than
    the cache whatever the set is.
    """
    if mode == "cold":
        proved = sets * footprint_bytes >= (multiple - 1) * cache_bytes
    else:
        proved = mode != "hot" or footprint_bytes <= cache_bytes // 2
    return mode if proved else "unknown"


class NoRoom(NoDevice):
    """Not even one set of a case's buffers fits."""

    verdict: ClassVar[Verdict] = "out_of_memory"


@dataclass(slots=True)
class BufferSets:
    """The arrays of every argument, `count` times over, handed out in turn."""

    args: tuple[Arg, ...]
    arrays: dict[str, Sequence[Array]]
    pristine: dict[str, Array]
    count: int
    cache: str
    footprint_bytes: int
    once: bool = False
    _next: int = 0
    _fresh: int = 0

    def take(self) -> int:
        """Return the number of the next set in the rotation."""
        self._next = (self._next + 1) % self.count
        return self._next

    def next(self, device: Device, count: int) -> list[int]:
        """Return the numbers of the next sets, `count` of them.

        Where arguments change in place, each set is handed out once and then all are restored, so
        there may be fewer; after that the rotation begins with the sets restored first. So it is
        with sets larger than the cache, which is cleaned then. A last set is left out rather than
        handed out alone: a batch of one would have no call to lead it.
        """
        if not self.pristine and not self.once:
            return [self.take() for _ in range(count)]
        if self.count - self._fresh < min(2, count, self.count):
            self.restore(device)
            if self.once:
                device.settle_cache(())
        first, self._fresh = self._fresh, min(self._fresh + count, self.count)
        return list(range(first, self._fresh))

    def buffers(self, number: int) -> dict[str, Array]:
        """Return one set: an array for every argument."""
        return {name: copies[number] for name, copies in self.arrays.items()}

    def restore(self, device: Device) -> None:
        """Give in-place arguments their first values back, in every set."""
        for name, source in self.pristine.items():
            device.copy_all(source, self.arrays[name])
        self._fresh = 0

    def repair(self, device: Device, case: Case, seed: int) -> None:
        """Give the inputs their first values back, in every set, after a kernel wrote to them."""
        for arg in self.args:
            if arg.role == "in":
                (source,) = device.allocate(arg, case, 1, seed)
                device.copy_all(source, self.arrays[arg.name])

    def poison(self, device: Device, number: int) -> None:
        """Fill the outputs of a set with NaN, so that what a kernel doesn't write shows."""
        for arg in self.args:
            if arg.role == "out":
                device.poison(self.arrays[arg.name][number])


def make(
    device: Device, operator: Operator, case: Case, seed: int, *, most_sets: int = MOST_SETS
) -> BufferSets:
    """Allocate the sets of a case, `most_sets` at most; NoRoom when not even one fits.

    BadInput where an index points outside what is gathered by it.
    """
    args = operator.args_of(case)
    footprint = sum(arg.nbytes(case) for arg in args)
    free = device.free_bytes()
    if footprint > free:
        raise NoRoom(
            f"{case}: its buffers need {capacity(footprint)}, and {capacity(free)} are free",
            remedy="take a smaller shape, or free memory on the device",
        )
    multiple = CACHE_MULTIPLE[device.kind]
    cold = case.cache_mode == "cold"
    once = cold and device.cleans and footprint >= device.cache_bytes
    wanted = set_count(
        footprint_bytes=footprint,
        cache_bytes=device.cache_bytes,
        free_bytes=free,
        multiple=multiple,
        least=min(PLACES_COUNT, PLACES_BYTES // max(footprint, 1)) if cold and device.cleans else 2,
    )
    if device.whole_rotation:
        most_sets = min(most_sets, device.most_calls)
    count = min(wanted, most_sets) if cold else 1
    arrays = {arg.name: device.allocate(arg, case, count, seed) for arg in args}
    refuse_outside(device, operator, case, arrays)
    pristine = {
        arg.name: device.allocate(arg, case, 1, seed)[0] for arg in args if arg.role == "inout"
    }
    label = cache_label(
        case.cache_mode,
        footprint_bytes=footprint,
        cache_bytes=device.cache_bytes,
        sets=count,
        multiple=multiple,
    )
    return BufferSets(args, arrays, pristine, count, label, footprint, once)


def settle(device: Device, sets: BufferSets, bind: Callable[[Buffers], Call]) -> None:
    """Run calls untimed until the cache holds what they leave, and not what filled the buffers.

    Filling leaves the cache full of dirty lines, which would be written back inside the first
    samples; and a kernel's own writes cost nothing until as much as the cache keeps is written.
    Large sets are all gone over: the first calls on memory that is new to the card are slow.
    """
    if sets.once:
        calls = [bind(sets.buffers(number)) for number in range(sets.count)]
        for _ in range(PASSES):
            device.settle_cache(calls)
            sets.restore(device)
        device.settle_cache(())
        return
    numbers = sets.next(device, min(sets.count, MOST_SETTLING))
    device.settle_cache([bind(sets.buffers(number)) for number in numbers])
