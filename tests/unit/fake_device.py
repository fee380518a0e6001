"""A device for tests alone: NumPy arrays, and times that come from a formula."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.measure.device.base import Buffers, Call, DeviceLost, Program, Sample, Unblockable
from solkit.measure.device.cpu import CpuDevice
from solkit.measure.pace import AHEAD_S
from solkit.model import CacheMode, Case, Clocks

MIB = 2**20


class FakeDevice(CpuDevice):
    """Runs kernels as the CPU does, but a call takes what `time_of(kernel, its calls)` says.

    `ran` holds the kernel of every timed call in order, `copied` counts copies between arrays.
    Steady work goes over its calls twice, with `working` set.
    A kernel that raises DeviceLost takes the device with it.
    """

    method = "formula"
    unblocked_method = "formula_unblocked"
    most_calls = 64

    def __init__(
        self,
        time_of: Callable[[str, int], float] = lambda _kernel, _calls: 1e-3,
        *,
        cache_bytes: int = 0,
        free_bytes: int = 64 * MIB,
        sm_hz: Callable[[str, int], float | None] = lambda _kernel, _calls: None,
        unblockable: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self._cache_bytes = cache_bytes
        self._tick_s = 1e-9
        self._free_bytes = free_bytes
        self._time_of, self._sm_hz, self._unblockable = time_of, sm_hz, unblockable
        self.ran: list[str] = []
        self.called = ""
        self.working = False
        self.worked_s = 0.0
        self.modes: list[CacheMode] = []
        self.allocated: list[tuple[str, int, int]] = []
        self.copied = 0
        self.lost_after = -1

    def free_bytes(self) -> int:
        """Return what the test gave it."""
        return self._free_bytes

    def prepare(self, kernel: Kernel, operator: Operator, case: Case, include: Path) -> Program:
        """Mark each call with its kernel's name."""
        program = super().prepare(kernel, operator, case, include)

        def bind(buffers: Buffers) -> Call:
            call = program.bind(buffers)

            def named() -> object:
                self.called = kernel.name
                return call()

            return named

        return Program(bind, adopt=program.adopt)

    def allocate(self, arg: Any, case: Case, set_count: int, seed: int) -> list[Any]:
        """Note what was asked for."""
        self.allocated.append((arg.name, set_count, seed))
        return super().allocate(arg, case, set_count, seed)

    def copy(self, source: Any, target: Any) -> None:
        """Count the copy."""
        self.copied += 1
        if self.copied == self.lost_after:
            message = "an illegal memory access was encountered"
            raise DeviceLost(message)
        super().copy(source, target)

    def time(
        self,
        calls: Sequence[Call],
        *,
        mode: CacheMode = "cold",
        blocked: bool = True,
        ahead: Sequence[Call] = (),
    ) -> list[Sample]:
        """Run each call; its time is the formula's."""
        samples = []
        self.working = True
        for call in (*ahead, *ahead):
            call()
        self.working = False
        self.worked_s += AHEAD_S if ahead else 0.0
        self.modes.append(mode)
        for call in calls:
            call()
            name = self.called
            if blocked and name in self._unblockable:
                message = "the call waits for the device itself"
                raise Unblockable(message)
            self.ran.append(name)
            count = self.ran.count(name)
            samples.append(Sample(self._time_of(name, count), self._sm_hz(name, count)))
        return samples

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing to tell."""
        return ()

    def conditions(self) -> Clocks:
        """Return a temperature that rises with every call."""
        reason = "software power cap" if self.ran else "idle"
        return Clocks(
            memory_hz=1e9, temperature_c=30.0 + len(self.ran), power_w=99.0, event_reasons=(reason,)
        )


class CleaningDevice(FakeDevice):
    """Settles its cache as a card does: cleans it, then runs the calls.

    `settled` holds how many calls each settling ran; none of them is a timed one.
    """

    cleans = True

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.settled: list[int] = []

    def settle_cache(self, calls: Sequence[Call]) -> None:
        """Note the cleaning; run the calls."""
        self.settled.append(len(calls))
        for call in calls:
            call()
