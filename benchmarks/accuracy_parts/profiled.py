"""The child that Nsight Compute profiles: it only makes calls. See ncu.py.

    ncu ... python benchmarks/accuracy_parts/profiled.py WANTED.json

Buffers, rotation and flushes are those of solkit's own timing. Nothing is blocked here, and no time
is taken: ncu runs each launch by itself.
"""

import json
import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1]))

import cupy as cp
from accuracy_parts.ncu import Wanted
from accuracy_parts.streams import Stream

from solkit.measure.device.cuda.device import CudaDevice


def main() -> None:
    """Make every call that is wanted, between profilerStart and profilerStop."""
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    wanted = [Wanted(**each) for each in asked]
    device = CudaDevice(0, timer="event_unblocked")
    for (kernel, buffer_bytes), each in groupby(wanted, lambda w: (w.kernel, w.buffer_bytes)):
        stream = Stream(device, kernel, buffer_bytes)
        for one in each:
            profiled(device, stream, one)
        stream.free()


def profiled(device: CudaDevice, stream: Stream, wanted: Wanted) -> None:
    """Bring the cache to where timed calls find it, then make the calls that are to be profiled."""
    stream.settle(wanted.mode)
    calls, flush = stream.calls(wanted.mode, wanted.count), device.flush(wanted.mode)
    device.synchronize()
    cp.cuda.runtime.profilerStart()
    for call in calls:
        if flush is not None:
            flush()
        call()
    device.synchronize()
    cp.cuda.runtime.profilerStop()


if __name__ == "__main__":
    main()
