"""The words of the memory-bound section of benchmarks/README.md."""

SUMMARY = """\
### Bars and results

A bar's figure is the number of shapes that keep it, and the one that is furthest from keeping it.
"""

OPERATORS = """\
### Operator by operator

`x` is the geometric mean, over all shapes, of the fastest peer's time over solkit's; `slower`
counts the shapes that miss the bar beside the peer. torch.compile compiles for every shape anew and
is measured in a part of the shapes. Where nothing but eager torch stands beside a kernel the factor
is a large one, so the last two columns count the shapes with torch.compile alone.
"""

TABLES = """\
### Every shape

`moved` is what the operator must read and write at least, each tensor once. `launch`: the host's
time to enqueue one call, solkit's and the peer's.
"""
