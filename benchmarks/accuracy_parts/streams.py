"""The bundled streaming kernels at one size, called in every cache mode as solkit's timing does."""

import contextlib
import statistics
from collections.abc import Iterator, Sequence

from accuracy_parts import sweeps

from solkit.declare.registry import bundled
from solkit.measure import buffers
from solkit.measure.device.base import Call
from solkit.measure.device.cuda.device import CudaDevice
from solkit.model import CacheMode
from solkit.resources import folder

KIB, MIB = 2**10, 2**20
SIZES = (4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB)
KERNELS = ("copy", "read")
SAMPLES, SETTLING = 160, 64
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

_REGISTRY = bundled()


class Stream:
    """A kernel compiled and bound to its buffer sets: at least three times the L2 in all.

    buffer_bytes: of one array. `copy` reads one and writes one, `read` reads one.
    """

    def __init__(self, device: CudaDevice, kernel: str, buffer_bytes: int) -> None:
        self._device = device
        self.case = sweeps.stream(kernel, buffer_bytes).case("solkit")
        operator = _REGISTRY.operators[kernel]
        declared = _REGISTRY.kernels[kernel, "solkit"]
        self.work = operator.work(self.case)
        self.sets = buffers.make(device, operator, self.case, 0)
        include = folder("kernels") / "include"
        self._program = device.prepare(declared, operator, self.case, include)
        self._bound: dict[int, Call] = {}

    def same(self) -> Call:
        """Return the call on the first set, whoever had it last."""
        return self._on(0)

    def calls(self, mode: CacheMode, count: int) -> list[Call]:
        """Return `count` calls for a cache mode: rotating where it is cold, else on one set."""
        if mode == "cold":
            return [self._on(number) for number in self.sets.next(self._device, count)]
        return [self.same()] * count

    def settle(self, mode: CacheMode) -> None:
        """Leave the L2 as the kernel's own calls do: a whole rotation, or a few calls on one set.

        After allocation it is full of the lines that filled the buffers, which are dirty.
        """
        if mode == "cold" and self.sets.once:  # each set is used once between two cleanings
            buffers.settle(self._device, self.sets, self._program.bind)
            self.calls(mode, 1)[0]()
            self._device.synchronize()
            return
        count = max(2 * self.sets.count, SETTLING) if mode == "cold" else 4
        self._device.settle_cache(self.calls(mode, count))

    def times_us(self, mode: CacheMode, count: int = SAMPLES) -> list[float]:
        """Return `count` times in us, in the order they were taken."""
        self.settle(mode)
        taken: list[float] = []
        while len(taken) < count:
            lead = self._device.lead_count
            batch = self.calls(mode, min(self._device.most_calls, count - len(taken) + lead))
            samples = self._device.time(batch, mode=mode)[lead:]
            taken += [sample.time_s * 1e6 for sample in samples]
        return taken

    def free(self) -> None:
        """Give the buffers back."""
        self._bound.clear()
        del self.sets, self._program
        self._device.release()

    def _on(self, number: int) -> Call:
        if number not in self._bound:
            self._bound[number] = self._program.bind(self.sets.buffers(number))
        return self._bound[number]


@contextlib.contextmanager
def unrecorded(device: CudaDevice) -> Iterator[None]:
    """Let CUPTI record nothing meanwhile: a record costs the host some 40 us of a launch."""
    timer = device._timing.timer  # noqa: SLF001  # only who shares the process with others asks
    timer.stop()
    try:
        yield
    finally:
        timer.start()


def median_us(times_us: Sequence[float]) -> float:
    """Return the median, to the nanosecond."""
    return round(statistics.median(times_us), 3)


def quantiles_us(times_us: Sequence[float]) -> list[float]:
    """Return the quantiles QUANTILES, to the nanosecond."""
    ordered = sorted(times_us)
    last = len(ordered) - 1
    return [round(ordered[round(fraction * last)], 3) for fraction in QUANTILES]
