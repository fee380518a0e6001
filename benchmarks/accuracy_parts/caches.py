"""The copy and the read kernel in all four cache modes, with the DRAM's own count of bytes beside.

Times are solkit's (CUPTI), in the process of the benchmark; bytes are Nsight Compute's, from a
child that makes the same calls on the same buffer sets.
"""

from typing import Any

from accuracy_parts import ncu
from accuracy_parts.parts import Save
from accuracy_parts.streams import KERNELS, KIB, MIB, Stream, median_us, quantiles_us, unrecorded

from solkit.measure.device.cuda.device import CudaDevice
from solkit.model import CacheMode

MODES: tuple[CacheMode, ...] = ("cold", "clean", "zeroed", "hot")
# Below, the few hundred bytes of a kernel's code and parameters are a visible share of the counts.
SIZES = (64 * KIB, *(size * MIB for size in (1, 4, 16, 32, 64, 256, 1024)))


def measure(save: Save) -> None:
    """Save a row for each kernel, size and mode: our times first, then the bytes."""
    device = CudaDevice(0, timer="cupti")
    rows: list[dict[str, Any]] = []
    for kernel in KERNELS:
        for buffer_bytes in SIZES:
            stream = Stream(device, kernel, buffer_bytes)
            rows += [_row(stream, kernel, buffer_bytes, mode) for mode in MODES]
            stream.free()
        print(f"  {kernel}: {len(rows)} rows so far", flush=True)
        save({"cache": rows})
    wanted = [
        ncu.Wanted(
            row["kernel"], row["buffer_bytes"], row["mode"], ncu.profiles(row["buffer_bytes"])
        )
        for row in rows
    ]
    try:
        with unrecorded(device):
            seen = ncu.profile(wanted)
    except Exception as error:  # noqa: BLE001  # recorded: the times stand without the bytes
        save({"cache": rows, "missing": {"cache/ncu": f"{type(error).__name__}: {error}"}})
        return
    save({"cache": [row | counted(row, found) for row, found in zip(rows, seen, strict=True)]})


def _row(stream: Stream, kernel: str, buffer_bytes: int, mode: CacheMode) -> dict[str, Any]:
    times_us = stream.times_us(mode)
    return {
        "kernel": kernel,
        "buffer_bytes": buffer_bytes,
        "mode": mode,
        "time_us": median_us(times_us),
        "count": len(times_us),
        "quantiles_us": quantiles_us(times_us),
        "input_bytes": stream.work.read_bytes,
        "output_bytes": stream.work.write_bytes,
        "set_count": stream.sets.count,
    }


def counted(row: dict[str, Any], seen: ncu.Seen) -> dict[str, Any]:
    """Return what ncu adds to a row: bytes, their shares of input and output, and its own time."""
    shares = {"read_fraction": round(seen.read_bytes / row["input_bytes"], 4)}
    if row["kernel"] == "copy":  # `read` writes 4 bytes a row
        shares["write_fraction"] = round(seen.written_bytes / row["output_bytes"], 4)
    return {
        "dram_read_bytes": round(seen.read_bytes),
        "dram_write_bytes": round(seen.written_bytes),
        **shares,
        "ncu_us": round(seen.time_s * 1e6, 3),
    }
