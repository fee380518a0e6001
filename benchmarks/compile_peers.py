"""Compile ahead what the peers compile for a sweep, in several processes side by side.

    python benchmarks/compile_peers.py --shapes benchmarks/sweeps/memory.yaml --processes 16

torch.compile, Triton (its own and Liger's) and quack compile at the first call of a case: for
seconds each, and one after the other in a run. Here they fill their caches, which the run finds:
give both the same TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR and QUACK_CACHE_DIR. Each process takes
its share of the cases and calls each once, on arrays of zeros. Needs the GPU; nothing is measured,
and what Inductor and quack timed to choose between configurations is forgotten: the processes share
the card, and the run, which has it alone, chooses again.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from solkit import Case
from solkit.declare import registry
from solkit.declare.catalog import LocalCatalog
from solkit.plan.sweep import read_sweep

if TYPE_CHECKING:
    import torch

PEERS = Path(__file__).parent / "peers"
EVERY_SHAPE = ("torch_compile", "triton")  # told every extent, or choosing by them what to compile
# What a Triton or CuTe kernel gets at run time.
RUN_TIME_AXES = ("rows", "tokens", "batch", "M", "N", "K")
COMPILING = (*EVERY_SHAPE, "liger", "quack", "quack_tuned")
MOST_CASES = 10_000
CACHE, QUACK_CACHE = "TORCHINDUCTOR_CACHE_DIR", "QUACK_CACHE_DIR"
CHOICES = {CACHE: "*.best_config", QUACK_CACHE: "*.autotune.json"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile a share, or start a process for each; return 1 where a case could not be called."""
    asked = options(arguments)
    if asked.share is not None:
        return compile_share(asked)
    if not os.environ.get(CACHE):
        print(f"set {CACHE}, here and for the run: the folder of Inductor's cache", file=sys.stderr)
        return 2
    started_s = monotonic()
    command = [sys.executable, __file__, "--shapes", str(asked.shapes)]
    command += ["--processes", str(asked.processes)]
    command += [word for path in asked.load for word in ("--load", str(path))]
    shares = [
        subprocess.Popen([*command, "--share", str(share)]) for share in range(asked.processes)
    ]
    failed = sum(share.wait() != 0 for share in shares)
    for cache, names in CHOICES.items():
        if os.environ.get(cache):
            for choice in Path(os.environ[cache]).rglob(names):
                choice.unlink()
    print(f"{monotonic() - started_s:.0f} s; {failed} of {len(shares)} processes had failing cases")
    return int(failed > 0)


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", type=Path, required=True, help="the sweep's file")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--load", type=Path, action="append", default=[], help="as in solkit run")
    parser.add_argument("--share", type=int, help=argparse.SUPPRESS)  # of a process started here
    return parser.parse_args(arguments)


def compile_share(asked: argparse.Namespace) -> int:
    """Call every `processes`-th case once; return 1 where one raised."""
    declared = registry.bundled()
    for path in (PEERS, *asked.load):
        declared.add(registry.load(path), where=str(path))
    catalog = LocalCatalog(declared)
    sweep = read_sweep(asked.shapes, catalog, device="cuda", max_cases=MOST_CASES)
    wanted = [case for case in sweep.cases if case.kernel in COMPILING]
    facts = zip(wanted, catalog.describe(wanted), strict=True)
    taken = [case for case, fact in facts if fact.refusal is None and fact.problem is None]
    failed = 0
    for case in distinct(taken)[asked.share :: asked.processes]:
        started_s = monotonic()
        try:
            call(declared, case)
            said = "compiled"
        except Exception as error:  # noqa: BLE001  # the run says what is wrong with the case
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            failed += 1
        print(f"{monotonic() - started_s:5.1f} s  {case}: {said}", flush=True)
    return int(failed > 0)


def distinct(cases: Iterable[Case]) -> list[Case]:
    """Return the cases that compile to something of their own, the smallest of those alike."""
    found: dict[tuple[object, ...], Case] = {}
    for case in sorted(cases, key=_rows):
        own = case.kernel in EVERY_SHAPE
        axes = tuple(
            (axis, n) for axis, n in case.shape.items() if own or axis not in RUN_TIME_AXES
        )
        params = tuple(case.params.items())
        found.setdefault((case.operator, case.kernel, case.dtype, axes, params), case)
    return list(found.values())


def _rows(case: Case) -> tuple[int, ...]:
    return tuple(case.shape.get(axis, 0) for axis in RUN_TIME_AXES)


def call(declared: registry.Registry, case: Case) -> None:
    """Call a case's peer on zeros, which are indices and labels, too."""
    import torch  # noqa: PLC0415  # a share needs it, its parent does not

    operator = declared.operators[case.operator]
    tensors: dict[str, Any] = {
        arg.name: torch.zeros(
            arg.stored_shape(case), dtype=_dtype(torch, arg.dtype_of(case)), device="cuda"
        )
        for arg in operator.args_of(case)
    }
    kernel = declared.kernels[case.operator, case.kernel]
    if kernel.function is not None:
        kernel.function(**tensors, **kernel.taken(operator.completed(case).params))
    torch.cuda.synchronize()


def _dtype(torch: Any, name: str) -> "torch.dtype":  # noqa: ANN401  # the module
    return {
        "fp32": torch.float32,
        "fp16": torch.float16,
        "bf16": torch.bfloat16,
        "int32": torch.int32,
        "int8": torch.int8,
        "uint8": torch.uint8,
        "fp8_e4m3": torch.uint8,  # as it travels
    }[name]


if __name__ == "__main__":
    sys.exit(main())
