"""The CPU device: NumPy references timed on this host, a true run for machines without a GPU."""

import functools
import os
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solkit.declare import fp8
from solkit.declare.arg import Arg, Array
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.errors import NoDevice
from solkit.measure.device.base import (
    Buffers,
    Call,
    Program,
    Sample,
    Timer,
    tells_unwritten,
)
from solkit.measure.device.elapsed import elapsed_s
from solkit.measure.device.filled import filled
from solkit.measure.pace import AHEAD_S
from solkit.measure.probe import cpu_facts
from solkit.measure.returned import CPU_KIND, claimed, on_device, same_form
from solkit.model import CacheMode, Case, Clocks
from solkit.stats import median

# 8-bit floats travel as their codes.
_NUMPY: dict[str, Any] = {
    "fp64": np.float64,
    "fp32": np.float32,
    "fp16": np.float16,
    "fp8_e4m3": np.uint8,
    "int32": np.int32,
    "int8": np.int8,
    "uint8": np.uint8,
}
_FLOOR_COUNT = 1001
_LINE_BYTES = 4096
LEAST_CACHE_BYTES = 2**27


class CpuDevice:
    """NumPy on this host. Cold means rotation over buffer sets of twice the last-level cache."""

    kind = "cpu"
    method = unblocked_method = "perf_counter"
    most_calls = 1_000_000
    lead_count = 0
    whole_rotation = cleans = False
    max_clock_hz: float | None = None
    power_limit_w: float | None = None

    def __init__(self, timer: Timer = "auto") -> None:
        if timer != "auto":
            raise NoDevice(
                f"the timer {timer} needs a CUDA device; a CPU has perf_counter alone",
                remedy="leave --timer out, or take --device cuda",
            )
        facts = cpu_facts()
        # Twice this is what calls rotate over, and ceilings too. A cache that does not evict the
        # oldest line first keeps some of a rotation only twice its size (copies read 10 % faster).
        self._cache_bytes = max(facts.l2_bytes or 0, LEAST_CACHE_BYTES)
        self._flushed: Array | None = None
        self._tick_s = max(time.get_clock_info("perf_counter").resolution, 1e-9)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the last-level cache."""
        return self._cache_bytes

    @property
    def tick_s(self) -> float:
        """The resolution of the host's performance counter."""
        return self._tick_s

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing to tell."""
        return ()

    def versions(self) -> dict[str, str]:
        """Return NumPy's version and the BLAS behind it."""
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        threads = os.environ.get("OMP_NUM_THREADS", "all cores")
        return {
            "numpy": np.__version__,
            "blas": f"{blas['name']} {blas['version']}, threads: {threads}",
        }

    def free_bytes(self) -> int:
        """Return the host memory that is available now."""
        return cpu_facts().dram_free_bytes or 2**30

    def prepare(self, kernel: Kernel, operator: Operator, case: Case, include: Path) -> Program:  # noqa: ARG002  # the protocol's
        """Return the Python callable, ready to be bound to buffers."""
        function = kernel.function
        if function is None:
            message = f"kernel {kernel.name!r} has no Python function"
            raise TypeError(message)
        args = operator.args_of(case)
        axes = {axis: np.arange(case.shape[axis]) for axis in operator.reference_axes}
        rest = kernel.taken({**operator.completed(case).params, **axes})
        kernel.refuse_call(case, [*(arg.name for arg in args), *rest])

        def bind(buffers: Buffers) -> Call:
            arrays = {arg.name: logical(buffers[arg.name], arg, case) for arg in args}
            if kernel.take is not None:
                arrays = {name: kernel.take(array) for name, array in arrays.items()}
            return functools.partial(function, **arrays, **rest)

        return Program(bind, adopt=functools.partial(_adopt, operator, case))

    def compile_ahead(
        self, pairs: Sequence[tuple[Kernel, Case]], include: Path, done: Callable[[int], None]
    ) -> None:
        """Nothing to compile."""

    def allocate(self, arg: Arg, case: Case, set_count: int, seed: int) -> Sequence[Array]:
        """Return `set_count` copies in one arena: inputs random and all alike, outputs poisoned."""
        shape = arg.stored_shape(case)
        arena = np.empty((set_count, *shape), dtype=_NUMPY[arg.dtype_of(case)])
        if arg.role == "out":
            self.poison(arena)
        else:
            arena[0] = filled(arg, case, seed, arena.dtype)
            arena[1:] = arena[0]
        # The ellipsis keeps an array without axes an array, not a scalar that nobody can write to.
        return [arena[number, ...] for number in range(set_count)]

    def poison(self, array: Array) -> None:
        """Set every bit of an output: a NaN that NumPy does not make, -1 for an integer."""
        _bits(array).fill(_ones(array))

    def copy(self, source: Array, target: Array) -> None:
        """Copy an array."""
        target[...] = source

    def copy_all(self, source: Array, targets: Sequence[Array]) -> None:
        """Copy an array to each of an argument's copies."""
        for target in targets:
            self.copy(source, target)

    def fetch(self, array: Array, dtype: str, index: Sequence[Any]) -> Array:
        """Return the entries at the product of `index`, in float64."""
        for axis, entries in enumerate(index):
            if entries is not None:
                array = np.take(array, entries, axis=axis)
        return fp8.decoded(array) if dtype == fp8.NAME else array.astype(np.float64)

    def unwritten_count(self, array: Array, dtype: str) -> int:
        """Return how many entries still hold the poison; 0 for 8-bit integers, which can't tell."""
        if not tells_unwritten(dtype):
            return 0
        return int(np.count_nonzero(_bits(array) == _ones(array)))

    def non_finite_count(self, array: Array, dtype: str) -> int:
        """Return how many entries are NaN (the poison among them) or infinite."""
        return int(array.size - np.count_nonzero(_finite(array, dtype)))

    def first_non_finite(self, array: Array, dtype: str) -> int:
        """Return the place of the first such entry in memory order, 0 where there is none."""
        return int(_finite(array, dtype).reshape(-1).argmin())

    def checksum(self, array: Array) -> int:
        """Return a CRC over the sums of 4 KiB lines and those of their columns.

        It sees any one entry change and entries change places, at 13 GB/s where a CRC over all
        bytes does 4.
        """
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        even = flat.size // _LINE_BYTES * _LINE_BYTES
        lines = flat[:even].view(np.uint64).reshape(-1, _LINE_BYTES // 8)
        seen = zlib.crc32(flat[even:].data)
        for axis in (0, 1):
            seen = zlib.crc32(lines.sum(axis=axis).data, seen)
        return seen

    def synchronize(self) -> None:
        """Nothing to wait for: NumPy returns when it is done."""

    def time(
        self,
        calls: Sequence[Call],
        *,
        mode: CacheMode = "cold",
        blocked: bool = True,  # noqa: ARG002  # a CPU queues nothing
        ahead: Sequence[Call] = (),
    ) -> list[Sample]:
        """Return one sample of each call."""
        samples = []
        started_s = time.monotonic()
        while ahead and time.monotonic() - started_s < AHEAD_S:
            for call in ahead:
                call()
        for call in calls:
            if mode in ("clean", "zeroed"):
                self._flush(mode)
            samples.append(Sample(elapsed_s(call)))
        return samples

    def _flush(self, mode: CacheMode) -> None:
        """Read or zero twice the last-level cache."""
        if self._flushed is None:
            # Ones: memory that nobody wrote is a single page of zeros, and stays in the cache.
            self._flushed = np.ones(2 * self._cache_bytes // 8)
        if mode == "zeroed":
            self._flushed.fill(0.0)
        else:
            self._flushed.sum()

    def settle_cache(self, calls: Sequence[Call]) -> None:
        """Leave that to warming up: a call here takes longer than its lines' way to memory."""

    def launch_s(self, calls: Sequence[Call]) -> float | None:  # noqa: ARG002  # the protocol's
        """Return None: nothing is enqueued, a call is the work itself."""
        return None

    def read_s(self, mode: CacheMode, nbytes: int) -> float:
        """Return the median of sums over so many bytes, in a cache mode."""
        count = -(-3 * self._cache_bytes // nbytes) if mode == "cold" else 1
        arrays = np.ones((count, nbytes // 8))
        calls = [functools.partial(arrays[place % count].sum) for place in range(8)]
        return median([sample.time_s for sample in self.time(calls, mode=mode)[1:]])

    def stray_work(self, call: Call, outputs: Sequence[tuple[Array, str]]) -> str:  # noqa: ARG002  # the protocol's
        """Return nothing: a call is over when it returns."""
        return ""

    def floor_s(self) -> float:
        """Return what an empty call reads."""
        return median([elapsed_s(_nothing) for _ in range(_FLOOR_COUNT)])

    def floors_s(self) -> dict[str, float]:
        """Return the floor of the one method there is."""
        return {self.method: self.floor_s()}

    def conditions(self) -> Clocks:
        """Return nothing known: a host's clock changes per core and per moment."""
        return Clocks()

    def energy_per_call_j(self, calls: Sequence[Call]) -> float | None:  # noqa: ARG002  # the protocol's
        """Return None: a host's counters are not for everyone to read."""
        return None

    def other_process_count(self) -> int:
        """Return 0: a host always has others, and no list of them would help."""
        return 0

    def release(self) -> None:
        """Memory goes back by itself."""


def logical(array: Array, arg: Arg, case: Case) -> Array:
    """View an array that is held in stored order in the logical order of its axes."""
    return array.transpose(arg.stored_places(case.params))


def _adopt(operator: Operator, case: Case, result: object, buffers: Buffers) -> None:
    """Copy what a function returned into the buffers of its outputs; see Program."""
    targets = {arg.name: logical(buffers[arg.name], arg, case) for arg in operator.outputs_of(case)}
    taken = {}
    for name, returned in claimed(result, targets).items():
        array = np.asarray(returned) if isinstance(returned, np.generic) else returned
        if not isinstance(array, np.ndarray):
            array = on_device(name, array, np.from_dlpack, kinds=(CPU_KIND,), where="this host")
        same_form(name, array, targets[name])
        taken[name] = array.copy()  # it may be another output, turned round
    for name, array in taken.items():
        targets[name][...] = array


def _finite(array: Array, dtype: str) -> Array:
    return np.isfinite(fp8.decoded(array) if dtype == fp8.NAME else array)


def _bits(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


def _ones(array: Array) -> int:
    return int(2 ** (8 * array.itemsize) - 1)


def _nothing() -> None:
    pass
