"""The same kernels by every common tool, in one process, size by size.

solkit, Triton's do_bench and do_bench_cudagraph, cupyx.profiler, nvbench (the package cuda-bench),
and Nsight Compute beside them. Every tool is handed the same call: one compiled function on the
same buffers. CUPTI records only while solkit measures, since a record costs the host some 40 us of
a launch. nvbench runs a process's benchmarks in one go, so the other tools take their turn inside
its callback, just before it measures the same size itself.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import cupy as cp
from accuracy_parts import ncu, pipeline
from accuracy_parts.parts import Save
from accuracy_parts.streams import KERNELS, SIZES, Stream, median_us, quantiles_us, unrecorded

from solkit.measure.device.base import Call
from solkit.measure.device.cuda.device import CudaDevice

CUPYX_CALLS = 200
NVBENCH_LIMIT_S = 0.8  # of wall time a point; by itself it would take up to 15 s for a short one

Row = dict[str, Any]


class Tools:
    """All tools but nvbench and ncu: a row of times for one kernel and size."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}
        self.device = CudaDevice(0, timer="cupti")
        self._others: dict[str, Callable[[Call], Sequence[float]]] = {"cupyx": by_cupyx}
        try:
            import triton.testing  # noqa: F401, PLC0415  # a tool that may be missing
        except ImportError as error:
            reason = f"triton can't be imported: {error}"
            self.missing |= {"copy/do_bench": reason, "copy/do_bench_cudagraph": reason}
        else:
            self._others = {
                "do_bench": by_do_bench,
                "do_bench_cudagraph": by_do_bench_cudagraph,
                **self._others,
            }

    def row(self, kernel: str, buffer_bytes: int) -> tuple[Row, Stream]:
        """Measure with every tool; the stream comes back, for nvbench to go on with."""
        stream = Stream(self.device, kernel, buffer_bytes)
        times_us = {"solkit": stream.times_us("cold")}
        stream.settle("hot")
        with unrecorded(self.device):
            for name, measured_us in self._others.items():
                try:
                    times_us[name] = list(measured_us(stream.same()))
                except Exception as error:  # noqa: BLE001  # recorded: the other tools go on
                    self.missing[f"copy/{name}"] = f"{type(error).__name__}: {error}"
        row: Row = {"kernel": kernel, "buffer_bytes": buffer_bytes, "quantiles_us": {}}
        for name, taken_us in times_us.items():
            add(row, name, taken_us)
        return row, stream


def add(row: Row, name: str, times_us: Sequence[float]) -> None:
    """Put a tool's median into a row, and its quantiles beside it."""
    row[f"{name}_us"] = median_us(times_us)
    row["quantiles_us"][name] = quantiles_us(times_us)


def by_do_bench(call: Call) -> Sequence[float]:
    """Return do_bench's samples in us: event pairs, a 256 MB memset before each call."""
    from triton.testing import do_bench  # noqa: PLC0415  # a tool that may be missing

    return [time_ms * 1e3 for time_ms in do_bench(call, return_mode="all")]


def by_do_bench_cudagraph(call: Call) -> Sequence[float]:
    """Return do_bench_cudagraph's ten means in us: one graph of many calls, nothing flushed."""
    import torch  # noqa: PLC0415  # a tool that may be missing
    from triton.testing import do_bench_cudagraph  # noqa: PLC0415

    def on_torchs_stream() -> None:  # which it captures from
        with cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            call()

    return [time_ms * 1e3 for time_ms in do_bench_cudagraph(on_torchs_stream, return_mode="all")]


def by_cupyx(call: Call) -> Sequence[float]:
    """Return cupyx.profiler.benchmark's GPU times in us: event pairs, a wait after each call."""
    from cupyx.profiler import benchmark  # noqa: PLC0415  # imported where it is used

    found = benchmark(call, n_repeat=CUPYX_CALLS, name="call")
    return [float(time_s) * 1e6 for time_s in found.gpu_times[0]]


class Table:
    """The rows so far, in the order of kernels and sizes; each is saved as soon as it is there."""

    def __init__(self, save: Save) -> None:
        self.tools = Tools()
        self.rows: dict[tuple[str, int], Row] = {}
        self._save = save

    def measure(self, kernel: str, buffer_bytes: int) -> Stream:
        """Measure a row with every tool but nvbench and ncu."""
        row, stream = self.tools.row(kernel, buffer_bytes)
        self.rows[kernel, buffer_bytes] = row
        shown = {name: value for name, value in row.items() if name.endswith("_us")}
        shown.pop("quantiles_us")
        print(f"  {kernel} {buffer_bytes:>10} B  {shown}", flush=True)
        self.keep()
        return stream

    def measure_rest(self) -> None:
        """Measure what nvbench did not come to."""
        for kernel in KERNELS:
            for buffer_bytes in SIZES:
                if (kernel, buffer_bytes) not in self.rows:
                    self.measure(kernel, buffer_bytes).free()

    def keep(self) -> None:
        """Save the rows as they are."""
        parts = {
            kernel: [self.rows[kernel, size] for size in SIZES if (kernel, size) in self.rows]
            for kernel in KERNELS
        }
        self._save({**parts, "missing": self.tools.missing})


def measure(save: Save, *, nvbench: bool = True) -> None:
    """Save a row of every tool's time for each kernel and size; absent tools with their reason."""
    table = Table(save)
    if nvbench:
        try:
            _within_nvbench(table)
        except Exception as error:  # noqa: BLE001  # recorded: the rest of the table goes on
            table.tools.missing["copy/nvbench"] = f"{type(error).__name__}: {error}"
    else:
        table.tools.missing["copy/nvbench"] = "it ended the process that measured with it"
    table.measure_rest()
    with unrecorded(table.tools.device):
        _add_runs(table)
        _add_profiles(table)
    table.keep()


def _add_runs(table: Table) -> None:
    """Add what `solkit run` says of the same kernels, as a person would measure them."""
    try:
        for place, time_us in pipeline.streamed_us(KERNELS, SIZES).items():
            table.rows[place]["run_us"] = time_us
    except Exception as error:  # noqa: BLE001  # recorded: the table stands without the column
        table.tools.missing["copy/run"] = f"{type(error).__name__}: {error}"


def _add_profiles(table: Table) -> None:
    """Add Nsight Compute's times, from a process of its own."""
    wanted = [ncu.Wanted(kernel, size, "cold", ncu.profiles(size)) for kernel, size in table.rows]
    try:
        for found in ncu.profile(wanted):
            row = table.rows[found.wanted.kernel, found.wanted.buffer_bytes]
            add(row, "ncu", [time_s * 1e6 for time_s in found.times_s])
    except Exception as error:  # noqa: BLE001  # recorded: the table stands without the column
        table.tools.missing["copy/ncu"] = f"{type(error).__name__}: {error}"


def _within_nvbench(table: Table) -> None:
    """Run the table inside nvbench's own run, and read its times from the file it leaves."""
    from cuda import bench  # noqa: PLC0415  # a tool that may be missing

    def streams(state: Any) -> None:  # noqa: ANN401  # bench.State
        stream = table.measure(state.get_string("kernel"), state.get_int64("bytes"))
        call = stream.same()
        on = cp.cuda.ExternalStream(state.get_stream().addressof())

        def launch(_launch: Any) -> None:  # noqa: ANN401  # bench.Launch
            with on:
                call()

        with unrecorded(table.tools.device):
            started = perf_counter()
            try:
                state.exec(launch, batched=False)
            except Exception as error:  # noqa: BLE001  # recorded: the other sizes go on
                table.tools.missing["copy/nvbench"] = f"{type(error).__name__}: {error}"
            row = table.rows[state.get_string("kernel"), state.get_int64("bytes")]
            row["nvbench_wall_s"] = round(perf_counter() - started, 2)
        stream.free()

    registered = bench.register(streams)
    registered.add_string_axis("kernel", list(KERNELS))
    registered.add_int64_axis("bytes", list(SIZES))
    registered.set_timeout(NVBENCH_LIMIT_S)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nvbench.json"
        bench.run_all_benchmarks(["accuracy", "--devices", "0", "--jsonbin", str(path)])
        for kernel, buffer_bytes, times_us in nvbench_times_us(path):
            add(table.rows[kernel, buffer_bytes], "nvbench", times_us)


def nvbench_times_us(path: Path) -> Iterator[tuple[str, int, list[float]]]:
    """Yield kernel, bytes and sample times in us of each state in nvbench's file.

    Where the samples themselves are missing, the mean it prints stands for them.
    """
    from cuda.bench.results import BenchmarkResult  # noqa: PLC0415  # a tool that may be missing

    for results in BenchmarkResult.from_json(path).values():
        for state in results:
            named = {axis["name"]: axis.get("value") for axis in state.axis_values}
            samples = list(state.samples or [])
            mean = state.summaries.get("nv/cold/time/gpu/mean")
            if not samples and mean is not None and mean.value is not None:
                samples = [float(mean.value)]
            if samples:
                times_us = [float(sample) * 1e6 for sample in samples]
                yield str(named["kernel"]), int(named["bytes"]), times_us
