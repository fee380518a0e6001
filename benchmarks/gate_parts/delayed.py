"""What a measured run loads: each bundled kernel with a delay behind it, as files in a folder.

A call is two launches: the bundled kernel as it is, then one thread that waits. How long is read
from delays.json beside the declaration, so the compiled code is the same in every run.
"""

import json
from pathlib import Path

from gate_parts.sweep import BASE_NS, KERNEL, OPERATORS, Delays

from solkit.resources import folder

DECLARATION, DELAYS = "delayed.py", "delays.json"
ENTRY = "planted_delay"

# Appended to a copy of the bundled source: both functions are then of one compilation. The thread
# watches a clock that does not follow the SM's, so the delay is the same at every SM clock.
SPIN = """
namespace {
__device__ __forceinline__ unsigned long long planted_now_ns() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
}  // namespace

__global__ void planted_delay(long long ns) {
  const unsigned long long start = planted_now_ns();
  while (planted_now_ns() - start < static_cast<unsigned long long>(ns)) {
  }
}
"""

TEXT = '''"""Each kernel of the sweep with a delay behind it; delays.json says how long."""

import json
from dataclasses import replace
from pathlib import Path

from solkit import Launch
from solkit.declare.registry import bundled

HELD = json.loads((Path(__file__).parent / "delays.json").read_text(encoding="utf-8"))


def delayed(kernel):
    """Return a kernel that launches what the given one does, then the thread that waits."""

    def launches(case, card):
        planted_ns = HELD["planted_ns"][f"{case.operator} {case.shape_text} {case.dtype}"]
        wait_ns = HELD["base_ns"] + planted_ns
        spin = Launch("planted_delay", grid=(1, 1, 1), block=(1, 1, 1), args=(wait_ns,))
        return (*kernel.launches_on(case, card), spin)

    return replace(
        kernel,
        name=HELD["kernel"],
        operator=kernel.operator_name,
        source=f"{kernel.operator_name}.cu",
        launches=launches,
    )


KERNELS = tuple(
    delayed(kernel)
    for kernel in bundled().kernels.values()
    if kernel.operator_name in HELD["operators"] and kernel.name == "solkit"
)
'''


def write(at: Path) -> Path:
    """Write the declaration and its sources into a folder; return the declaration's path."""
    for operator in OPERATORS:
        source = (folder("kernels") / operator / f"{operator}.cu").read_text(encoding="utf-8")
        (at / f"{operator}.cu").write_text(source + SPIN, encoding="utf-8")
    (at / DECLARATION).write_text(TEXT, encoding="utf-8")
    return at / DECLARATION


def write_delays(at: Path, planted_ns: Delays) -> None:
    """Write what the declaration in a folder plants from now on, by the names of its cases."""
    held = {
        "kernel": KERNEL,
        "operators": list(OPERATORS),
        "base_ns": BASE_NS,
        "planted_ns": dict(planted_ns),
    }
    (at / DELAYS).write_text(json.dumps(held, indent=0), encoding="utf-8")
