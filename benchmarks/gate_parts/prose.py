"""The words of docs/gate.md: what was tried, and how to read the tables."""

INTRO = """\
# How far the gate can be trusted

`solkit compare` and `solkit run --against` say of every case whether it became faster or slower.
This page shows how often they say so wrongly, and how small a change they find, on runs recorded
on a real card. Every figure is made from those runs by the rule that judges any other run; the
limits stand in the script and were set before the measurement, and one that is missed is shown as
missed. To make it again, on a machine with a GPU:

```sh
python benchmarks/gate.py                 # measure all runs, judge them, write this page
python benchmarks/gate.py --only p5,p10   # some runs; the others stay as they were
python benchmarks/gate.py --docs          # judge the recorded runs again, write this page; no GPU
```

It needs `pip install 'solkit[cuda13,cupti]'`. The runs are in
[benchmarks/h200/gate](../benchmarks/h200/gate), the figures behind the tables in
[benchmarks/h200/gate.json](../benchmarks/h200/gate.json).
"""

METHOD = """\
## What was tried

A sweep of memory-bound cases (copy, softmax, add_rmsnorm, swiglu, read, bias_gelu; bf16, cold L2)
is measured again and again by `solkit run`, each time a process of its own, as a CI job does it. A
timed call is two launches: the bundled kernel, and one thread that waits. In every run it waits for
{base} ns; in a run with a planted change it waits for a share of the case's median in the base run
more. The thread watches the GPU's global timer, which moves in steps of {step} ns, so the delay is
known and does not depend on the SM clock. Lengths below are those of the whole call in the base
run, both launches and what lies between them.
"""

SAME = """\
## The same code twice

The base run against the same sweep measured once more. Nothing changed, so FASTER and SLOWER are
false alarms. UNSURE is none: it does not fail a gate, and it says that the noise of one of the two
measurements is as large as the least effect that matters (2 %).
"""

PLANTED = """\
## Planted changes

The base run against runs in which every case is slower by a known share of its time. Found means
SLOWER. A change of 1 % is below the least effect (2 %), so SAME is the right word for it; one of
2 % lies on the edge, where nothing but UNSURE is right.
"""

TRUTH = """\
## Was it there to be found?

What the medians say, less what was planted, in ns over all cases: the 5 % quantile, the median, the
95 % quantile. It holds the noise of two runs.
"""

NOT_COVERED = """\
## What this page does not show

- Two cards. Both runs of a comparison are from one card, minutes apart; another card of the same
  model may differ by more than the least effect, see [ci.md](ci.md) on keeping a baseline.
- A busy card or host. Nothing else ran there.
- A rule that never saw these runs. What is taken for the noise between runs, see
  [numbers.md](numbers.md), comes from other sweeps, and was last set with the base run and its
  repetition in view. The verdicts above are today's rule on recorded runs.
- Changes of matrix products. They hold another clock when they draw more power; the rule asks for
  the change in cycles, too, see [numbers.md](numbers.md).
"""
