"""The words that every benchmark of kernels beside their peers has on its page."""

INTRO = """\
### What was measured

Each kernel of solkit and each peer is a kernel of the same operator: it gets the same inputs, is
checked against the same NumPy reference, and is timed in the same run. The kernels of a shape are
measured in turn, a batch of each and then the next, so clocks and heat are shared. A time is the
GPU's own time from the start of a call's first launch to the end of its last, at the median, with
all inputs coming from DRAM (calls rotate over more buffers than the L2 holds). What Python needs to
enqueue a call is no part of it; it stands beside it as `launch`.

- **SOL**: the least time by the data sheet over the time taken; see
  [docs/numbers.md](../docs/numbers.md).
- **SOL@measured**: the same against what the best streaming kernels reach on this very card, for as
  many bytes with the same share of reads, ramp and launch included.
- **peer**: the fastest of all peers with a right result in that shape; **x**: its time over
  solkit's, so above 1 solkit is the faster one, with the 95 % interval of the ratio.
"""

LAUNCH = """\
### Launch cost

The host's time to enqueue one call from Python, which is no part of the times above, over all
shapes. It counts where a program launches kernel after kernel and the GPU waits; inside a CUDA
graph it is gone.
"""

MISSED = """\
### What missed its bar
"""

ABSENT = """\
### Kernels without a time

A kernel that fails, or that a library refuses, is left out of its shape; the others are measured.
"""

READING = """\
### What a reader may conclude

- The figures of a shape are of one card, one hour and these versions. Another H200 may be some
  percent off.
- A factor within 3 % of 1 is a tie.
- Small shapes are bound by the launch and by latency: there the factor is one of microseconds, and
  in a program that launches from Python the launch cost beside it may well be what counts.
- Peers are called as their documentation has it, with what they choose by default. Someone who
  tunes one by hand may find a better time.
"""
