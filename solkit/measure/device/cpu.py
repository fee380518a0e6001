"""The CPU device: NumPy references timed on this host, a true run for machines without a GPU."""

import functools
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solkit.declare.kernel import Kernel
from solkit.declare.operator import Arg, Array, Normal, Operator
from solkit.measure.device.base import Buffers, Call, Program, Sample
from solkit.measure.probe import cpu_facts
from solkit.model import Case, Clocks
from solkit.stats import median

_NUMPY = {"fp64": np.float64, "fp32": np.float32}
_FLOOR_COUNT = 1001
LEAST_CACHE_BYTES = 2**27


class CpuDevice:
    """NumPy on this host. Cold means rotation over buffer sets of twice the last-level cache."""

    kind = "cpu"
    method = "perf_counter"
    cache = "cold"

    def __init__(self) -> None:
        facts = cpu_facts()
        # Twice this is what calls rotate over, and ceilings too. A cache that does not evict the
        # oldest line first keeps some of a rotation only twice its size (copies read 10 % faster).
        self._cache_bytes = max(facts.l2_bytes or 0, LEAST_CACHE_BYTES)
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
        names = [arg.name for arg in operator.args]

        def bind(buffers: Buffers) -> Call:
            arrays = {arg.name: logical(buffers[arg.name], arg, case) for arg in operator.args}
            return functools.partial(
                function, **{name: arrays[name] for name in names}, **_taken(operator, case)
            )

        return Program(bind)

    def compile_ahead(
        self, pairs: Sequence[tuple[Kernel, Case]], include: Path, done: Callable[[int], None]
    ) -> None:
        """Nothing to compile."""

    def allocate(self, arg: Arg, case: Case, set_count: int, seed: int) -> Sequence[Array]:
        """Return `set_count` copies in one arena: the same random values in each, outputs NaN."""
        shape = arg.stored_shape(case)
        arena = np.empty((set_count, *shape), dtype=_NUMPY[arg.dtype_of(case)])
        if arg.role == "out":
            arena.fill(np.nan)
        else:
            arena[0] = _random(arg, case, seed, arena.dtype)
            arena[1:] = arena[0]
        # The ellipsis keeps an array without axes an array, not a scalar that nobody can write to.
        return [arena[number, ...] for number in range(set_count)]

    def poison(self, array: Array) -> None:
        """Fill an output with NaN."""
        array.fill(np.nan)

    def copy(self, source: Array, target: Array) -> None:
        """Copy an array."""
        target[...] = source

    def fetch(self, array: Array, dtype: str, index: Sequence[Any]) -> Array:  # noqa: ARG002  # the protocol's
        """Return the entries at the product of `index`, in float64."""
        for axis, entries in enumerate(index):
            if entries is not None:
                array = np.take(array, entries, axis=axis)
        return array.astype(np.float64)

    def unwritten_count(self, array: Array, dtype: str) -> int:  # noqa: ARG002  # the protocol's
        """Return how many entries are NaN."""
        return int(np.isnan(array).sum())

    def synchronize(self) -> None:
        """Nothing to wait for: NumPy returns when it is done."""

    def time(self, calls: Sequence[Call]) -> list[Sample]:
        """Return one sample of each call."""
        return [Sample(_elapsed_s(call)) for call in calls]

    def floor_s(self) -> float:
        """Return what an empty call reads."""
        return median([_elapsed_s(_nothing) for _ in range(_FLOOR_COUNT)])

    def conditions(self) -> Clocks:
        """Return nothing known: a host's clock changes per core and per moment."""
        return Clocks()

    def release(self) -> None:
        """Memory goes back by itself."""


def logical(array: Array, arg: Arg, case: Case) -> Array:
    """View an array that is held in stored order in the logical order of its axes."""
    stored = arg.stored_axes(case.params)
    if stored == arg.axis_names:
        return array
    return array.transpose([stored.index(axis) for axis in arg.axis_names])


def _taken(operator: Operator, case: Case) -> dict[str, Any]:
    return {name: case.params[name] for name in operator.reference_params}


def _random(arg: Arg, case: Case, seed: int, dtype: np.dtype[Any]) -> Array:
    rng = np.random.default_rng([seed, *arg.name.encode()])
    shape = arg.stored_shape(case)
    kind: Any = np.float32 if dtype == np.float32 else np.float64
    if isinstance(arg.init, Normal):
        fan_in = case.shape[arg.init.fan_in] if arg.init.fan_in else 1
        values = rng.standard_normal(shape, dtype=kind)
        values *= arg.init.std / math.sqrt(fan_in)
        return values
    values = rng.random(shape, dtype=kind)
    values *= arg.init.high - arg.init.low
    values += arg.init.low
    return values


def _elapsed_s(call: Callable[[], None]) -> float:
    started_ns = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started_ns) * 1e-9


def _nothing() -> None:
    pass
