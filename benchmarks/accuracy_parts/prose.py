"""The words of docs/accuracy.md: what each part measures, and how to read its table."""

INTRO = """\
# How exact solkit's times are

Every figure on this page was measured by a script of this repository. The limits stand in the
script and were set before the measurement; one that is missed is shown as missed. The raw
figures, with quantiles of the samples behind each, are in
[benchmarks/h200/accuracy.json](../benchmarks/h200/accuracy.json). To make both again, on a machine
with a GPU:

```sh
python benchmarks/accuracy.py                    # everything, then this page
python benchmarks/accuracy.py --only spin,copy   # some parts; the others stay as they were
python benchmarks/accuracy.py --docs             # this page alone, from the JSON; no GPU
```

It needs `pip install 'solkit[cuda13,cupti]'`, and for the other tools torch, triton, cuda-bench and
Nsight Compute (`ncu`, allowed to read counters). What is absent is left out, with the reason.
"""

SPIN = """\
## Kernels of known length

A spin kernel watches the GPU's global timer until so many nanoseconds have passed, so its length is
known. What a method reads on it, less what the same method reads on an empty kernel (its *floor*),
must be that length. The floor is part of every time that solkit prints: it is subtracted here only,
to see what error is left. Medians, in µs.
"""

COPY = """\
## A copy kernel against Nsight Compute

solkit's bf16 copy kernel, cold. Nsight Compute (`gpu__time_duration.sum`, clocks and caches left
alone) makes the same calls on the same rotation of buffers, in a process of its own. On short
kernels its reading carries about a microsecond that is not the kernel's, so the limit holds from
256 MiB up; below, the two stand side by side.
"""

TOOLS = """\
## Every tool on the same kernel

One process, one compiled function, the same buffers; the tools take turns, size by size, and CUPTI
records only during solkit's turn. Each tool is used as its documentation says, so each has its own
idea of the cache:

- solkit and Nsight Compute rotate over buffer sets of at least three times the L2 (cold), after one
  whole rotation that is not timed; `solkit run` is what the command prints for the same shapes;
- `triton.testing.do_bench` (median) zeroes 256 MB before each call, nvbench zeroes its L2 flush
  buffer (the package `cuda-bench`; 0.8 s of wall time a point, median of its samples);
- `triton.testing.do_bench_cudagraph` (median) and `cupyx.profiler.benchmark` (median) repeat the
  call on the same buffers and flush nothing, so what fits into the L2 is read from there.

A difference is therefore the tool's overhead *and* its cache state: what its user would have
believed.
"""

CACHE = """\
## The four cache modes, with the DRAM's own counters

Times are solkit's, by CUPTI. Bytes are Nsight Compute's count of what the same calls read from DRAM
and wrote to it, over the kernel's input and output.

- **cold** rotates over buffer sets of at least three times the L2: all input comes from DRAM, and
  while one call's output goes into the L2, the output of earlier calls leaves it.
- **clean** first reads other data through the L2: the kernel's last writes leave after its end, and
  nobody is charged for them.
- **zeroed** first writes zeros through the L2, as most tools do: the kernel is charged for their
  way to DRAM. That is the *overcharge*, over cold.
- **hot** repeats the call on the same buffers.
"""

AA = """\
## One kernel measured as two

The same code under two names, measured by `solkit run` and compared by the rule that judges a
change (least effect 2 %). Every FASTER and SLOWER is a false alarm.
"""

ORDER = """\
## Order

The same cases forwards, backwards and shuffled, each order a run of its own. Two medians agree when
their 95 % intervals meet or when they lie within 3 ticks of the GPU's clock (96 ns); a case agrees
when every two of its runs do.
"""

SPEED = """\
## Cases a second

A sweep of short cases with default options; code compiled and ceilings stored beforehand. The
seconds are those of the whole process: start-up, the check of every case against its reference, the
report.
"""

NOT_COVERED = """\
## What this page does not show

- Other cards. The step of the clock, the L2 and the floors are another card's own: run the script
  there.
- Calls of several kernels, on several streams, or that wait for the device. Every call here is one
  kernel.
- Settled clocks. All figures are of short bursts; a long matrix product ends at a lower clock,
  which `--settle sustained` measures.
- Your inputs. They are random here and the seed is recorded; through power, the values can move the
  time of a matrix kernel.
- An error that the GPU's global timer and CUPTI's records have in common.
"""
