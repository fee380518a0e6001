"""The CUDA device: CuPy for memory, launches and events. CuPy is imported in this folder alone.

Everything runs on the default stream, which Python callables (CuPy, torch, Triton) use as well.
"""

import ctypes
import hashlib
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda import driver
from cupy.cuda.function import Module

from solkit.declare import fp8
from solkit.declare.arg import Arg, Array, Bits, Indices, Normal, Uniform
from solkit.declare.card import Card
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.dtypes import DTYPES
from solkit.errors import NoDevice, words
from solkit.measure.device import nvrtc
from solkit.measure.device.base import Call, DeviceLost, Program, Sample, Timer
from solkit.measure.device.cuda import clusters, memory, program
from solkit.measure.device.cuda.arena import Copies
from solkit.measure.device.cuda.entries import BITS, ENTRIES, MARKED
from solkit.measure.device.cuda.timing import Timing
from solkit.measure.device.cuda.watch import Watch
from solkit.measure.indexed import shuffled
from solkit.measure.remedies import kills_context
from solkit.model import CacheMode, Case, Clocks

_MOST_COMPILERS = 8
# The newest instructions of a Hopper or Blackwell part belong to its architecture-specific target.
_SPECIFIC = {
    90: "sm_90a",
    100: "sm_100a",
    103: "sm_103a",
    110: "sm_110a",
    120: "sm_120a",
    121: "sm_121a",
}


class CudaDevice:
    """One CUDA device, and one way of taking times on it."""

    kind = "cuda"

    def __init__(self, index: int, timer: Timer = "auto") -> None:
        self._uuid = _uuid(index)
        self._watch = Watch(self._uuid)
        try:
            self._device = cp.cuda.Device(index)
            self._device.use()
            self._attributes = self._device.attributes
            properties = cp.cuda.runtime.getDeviceProperties(index)
        except Exception as error:
            raise NoDevice(
                f"CUDA device {index} can't be used: {error}", remedy="run: solkit doctor"
            ) from error
        self._watch.recognise_own()
        self.index = index
        self.compute_capability = int(self._device.compute_capability)
        self._sm_count = int(properties["multiProcessorCount"])
        self._instruments = self._load_instruments()
        self.card = self._card()
        self._timing = Timing(
            self._instruments, wanted=timer, sm_count=self._sm_count, l2_bytes=self.cache_bytes
        )
        memory.reserve()
        self.spin, self.empty = self._timing.spin, self._timing.empty
        self.flush = self._timing.l2.flush

    @property
    def method(self) -> str:
        """The name of the way times are taken."""
        return self._timing.timer.method

    @property
    def unblocked_method(self) -> str:
        """The name of the way for calls that wait for the device themselves."""
        return self._timing.timer.unblocked_method

    @property
    def most_calls(self) -> int:
        """The most calls of one batch."""
        return self._timing.timer.most_calls

    @property
    def whole_rotation(self) -> bool:
        """Whether a batch is one graph."""
        return self._timing.timer.method == "graph"

    @property
    def cleans(self) -> bool:
        """Whether the L2 can be cleaned between calls, which a graph's can't."""
        return not self.whole_rotation

    @property
    def lead_count(self) -> int:
        """The calls at the head of a batch that are no samples."""
        return self._timing.timer.lead_count

    @property
    def arch(self) -> str:
        """The compiler target of this device."""
        return _SPECIFIC.get(self.compute_capability, f"sm_{self.compute_capability}")

    @property
    def cache_bytes(self) -> int:
        """Bytes of the L2."""
        return int(self._attributes["L2CacheSize"])

    @property
    def tick_s(self) -> float:
        """The finest step of the method's clock."""
        return self._timing.timer.tick_s

    @property
    def max_clock_hz(self) -> float | None:
        """The highest SM clock."""
        return float(self._attributes["ClockRate"]) * 1e3 or None

    @property
    def power_limit_w(self) -> float | None:
        """The power limit in force, where NVML tells it."""
        return self._watch.power_limit_w()

    def versions(self) -> dict[str, str]:
        """Return the versions of CuPy, CUPTI's binding, the CUDA runtime, the driver and NVRTC."""
        cupti = {"cupti": version("cupti-python")} if self.method.startswith("cupti") else {}
        return {
            **cupti,
            "cupy": cp.__version__,
            "cuda_runtime": _dotted(cp.cuda.runtime.runtimeGetVersion()),
            "cuda_driver": _dotted(cp.cuda.runtime.driverGetVersion()),
            "nvrtc": nvrtc.version(),
            "numpy": np.__version__,
        }

    def free_bytes(self) -> int:
        """Return what can still be allocated, the pool's own unused memory included."""
        return memory.free_bytes()

    def prepare(self, kernel: Kernel, operator: Operator, case: Case, include: Path) -> Program:
        """Compile (or take from the cache) and load a kernel for one case."""
        return program.prepare(
            kernel, operator, case, arch=self.arch, include=include, card=self.card
        )

    def compile_ahead(
        self, pairs: Sequence[tuple[Kernel, Case]], include: Path, done: Callable[[int], None]
    ) -> None:
        """Fill the cache of compiled code, one compiler process a core (eight at most)."""
        cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        with ThreadPoolExecutor(min(cores, _MOST_COMPILERS)) as pool:
            waiting = {
                pool.submit(
                    program.compile_quietly, kernel, case, self.arch, include, self.card
                ): index
                for index, (kernel, case) in enumerate(pairs)
                if kernel.function is None
            }
            for future in as_completed(waiting):
                future.result()
                done(waiting[future])

    def allocate(self, arg: Arg, case: Case, set_count: int, seed: int) -> Sequence[Array]:
        """Return `set_count` copies in one arena: inputs random and all alike, outputs poisoned."""
        copies = Copies(arg, case, set_count)
        if arg.role == "out":
            self.poison(copies.whole)
            return copies
        self._fill(copies[0], arg, case, seed)
        copies.repeat()
        return copies

    def _fill(self, array: Array, arg: Arg, case: Case, seed: int) -> None:
        ctype = DTYPES[arg.dtype_of(case)].ctype
        named = hashlib.blake2b(f"{seed}:{arg.name}".encode(), digest_size=8).digest()
        mixed = np.int64(int.from_bytes(named, "little") >> 2)
        match arg.init:
            case Normal(std=std, fan_in=axis):
                scale = np.float32(std / math.sqrt(case.shape[axis] if axis else 1))
                self._over(array, f"fill_normal<{ctype}>", (mixed, scale))
            case Uniform(low=low, high=high):
                ends = (np.float32(low), np.float32(high))
                self._over(array, f"fill_uniform<{ctype}>", (mixed, *ends))
            case Bits():
                self._over(array.reshape(-1).view(cp.uint8), "fill_bits", (mixed,))
            case Indices():  # few: they are made on the host, and uploaded once
                array.set(shuffled(arg, arg.init, case, seed))

    def _over(self, array: Array, name: str, rest: tuple[Any, ...]) -> None:
        function = self._instruments[name]
        blocks = max(1, min(-(-array.size // 256), self._sm_count * 16))
        function((blocks, 1, 1), (256, 1, 1), (array, np.int64(array.size), *rest))

    def poison(self, array: Array) -> None:
        """Set every bit of an output: a NaN that no arithmetic here makes, -1 for an integer."""
        array.data.memset_async(0xFF, array.nbytes)

    def copy(self, source: Array, target: Array) -> None:
        """Copy an array on the device."""
        target[...] = source

    def copy_all(self, source: Array, targets: Sequence[Array]) -> None:
        """Copy an array to each of an argument's copies on the device."""
        if isinstance(targets, Copies):
            targets[0][...] = source
            targets.repeat()
            return
        for target in targets:
            target[...] = source

    def fetch(self, array: Array, dtype: str, index: Sequence[Any]) -> Array:
        """Return the entries at the product of `index`, in float64 on the host."""
        chosen = {axis: entries for axis, entries in enumerate(index) if entries is not None}
        # The axis that leaves least comes first: a cache of keys may not fit a second time.
        for axis in sorted(chosen, key=lambda axis: len(chosen[axis]) / array.shape[axis]):
            array = cp.take(array, cp.asarray(chosen[axis]), axis=axis)
        host = cp.asnumpy(array)
        if dtype == "bf16":
            host = (host.astype(np.uint32) << 16).view(np.float32)
        return fp8.decoded(host) if dtype == fp8.NAME else host.astype(np.float64)

    def unwritten_count(self, array: Array, dtype: str) -> int:
        """Return how many entries still hold the poison; 0 for 8-bit integers, which can't tell."""
        return self._marks(array, dtype)[0]

    def non_finite_count(self, array: Array, dtype: str) -> int:
        """Return how many entries are NaN (the poison among them) or infinite."""
        return self._marks(array, dtype)[1]

    def first_non_finite(self, array: Array, dtype: str) -> int:
        """Return the place of the first such entry in memory order, 0 where there is none."""
        missing_from_end = self._marks(array, dtype)[2]
        return array.size - missing_from_end if missing_from_end else 0

    def _marks(self, array: Array, dtype: str) -> list[int]:
        if dtype not in MARKED:
            return [0, 0, 0]
        totals = cp.zeros(3, dtype=cp.uint64)
        self._over(array, f"count_marks<{MARKED[dtype]}>", (totals,))
        return [int(count) for count in totals.get()]

    def checksum(self, array: Array) -> int:
        """Return a sum over bits and places, which any changed or moved entry changes."""
        total = cp.zeros(1, dtype=cp.uint64)
        self._over(array, f"checksum<{BITS[array.itemsize]}>", (total,))
        return int(total.get()[0])

    def synchronize(self) -> None:
        """Wait for the whole device; DeviceLost when it can't go on in this process."""
        try:
            cp.cuda.runtime.deviceSynchronize()
        except cp.cuda.runtime.CUDARuntimeError as error:
            raise lost_or_same(error) from error

    def time(
        self,
        calls: Sequence[Call],
        *,
        mode: CacheMode = "cold",
        blocked: bool = True,
        ahead: Sequence[Call] = (),
    ) -> list[Sample]:
        """Return samples of the calls, in order; see Device."""
        try:
            return self._timing.time(calls, mode=mode, blocked=blocked, ahead=ahead)
        except (cp.cuda.runtime.CUDARuntimeError, driver.CUDADriverError) as error:
            raise lost_or_same(error) from error

    def settle_cache(self, calls: Sequence[Call]) -> None:
        """Clean the L2 of others' dirty lines, then run the calls, untimed and unrecorded."""
        try:
            self._timing.settle_cache(calls)
        except (cp.cuda.runtime.CUDARuntimeError, driver.CUDADriverError) as error:
            raise lost_or_same(error) from error

    def launch_s(self, calls: Sequence[Call]) -> float | None:
        """Return the median of the host's time to enqueue one of the calls, unrecorded."""
        try:
            return self._timing.launch_s(calls)
        except (cp.cuda.runtime.CUDARuntimeError, driver.CUDADriverError) as error:
            raise lost_or_same(error) from error

    def read_s(self, mode: CacheMode, nbytes: int) -> float:
        """Return the median of a plain read of so many bytes, in a cache mode."""
        return self._timing.read_s(mode, nbytes)

    def stray_work(self, call: Call, outputs: Sequence[tuple[Array, str]]) -> str:
        """Say what of a call's work escapes its stream, or nothing; outputs: poisoned ones."""

        def unwritten() -> list[int]:
            return [self.unwritten_count(array, dtype) for array, dtype in outputs]

        try:
            return self._timing.stray_work(call, unwritten)
        except (cp.cuda.runtime.CUDARuntimeError, driver.CUDADriverError) as error:
            raise lost_or_same(error) from error

    def floor_s(self) -> float:
        """Return what the method reads on an empty kernel."""
        return self._timing.floor_s()

    def floors_s(self) -> dict[str, float]:
        """Return what each method that works here reads on an empty kernel."""
        return self._timing.floors_s()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: another timer than wished, why conditions are not read."""
        return (*self._timing.notes, *self._watch.notes)

    def conditions(self) -> Clocks:
        """Return NVML's clocks, power, temperature and event reasons of this very card."""
        return self._watch.conditions()

    def energy_per_call_j(self, calls: Sequence[Call]) -> float | None:
        """Return the energy of a call, by the card's own counter; None where it has none."""
        try:
            return self._timing.energy_per_call_j(calls, self._watch.energy_j)
        except (cp.cuda.runtime.CUDARuntimeError, driver.CUDADriverError) as error:
            raise lost_or_same(error) from error

    def other_process_count(self) -> int:
        """Return how many other processes have a context on the card."""
        return self._watch.other_process_count()

    def release(self) -> None:
        """Give unused memory back to the driver, where it is much."""
        memory.give_back()

    def _card(self) -> Card:
        """Return what of this card launches may depend on."""
        card = Card(
            self.compute_capability,
            self._sm_count,
            int(self._attributes["MaxSharedMemoryPerBlockOptin"]),
            self.cache_bytes,
        )
        # A function of its own: the one that floors are read on stays as it was loaded.
        asked = self._load_instruments()["empty"]
        return replace(card, most_cluster_blocks=clusters.most_blocks(asked.ptr, card))

    def _load_instruments(self) -> dict[str, Any]:
        path = Path(__file__).with_name("instruments.cu")
        compilation = nvrtc.compile_source(
            path.read_text(encoding="utf-8"), name=path.name, entries=ENTRIES, arch=self.arch
        )
        module = Module()
        module.load(compilation.cubin)
        return {entry: module.get_function(compilation.lowered[entry]) for entry in ENTRIES}


def lost_or_same(error: Exception) -> Exception:
    """Return DeviceLost for an error that poisons the context, else the error itself."""
    return DeviceLost(words(error)) if kills_context(getattr(error, "status", 0)) else error


def _uuid(index: int) -> str:
    """Ask the driver itself: CuPy's copy of the 16 bytes ends at the first that is zero."""
    raw = (ctypes.c_ubyte * 16)()
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    if library.cuInit(0) or library.cuDeviceGetUuid_v2(raw, ctypes.c_int(index)):
        return ""
    digits = bytes(raw).hex()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
