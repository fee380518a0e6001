"""A product in Triton, written here after its tutorials (parts/triton_calls.py)."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a declaration is loaded by path, not as a package

from peers.parts.peer import later, peer

KERNEL = peer(
    "triton",
    "matmul_add",
    later("triton_calls", "tuned"),
    needs=("torch", "triton"),
    dtypes=("bf16", "fp16"),
    summary="persistent, TMA descriptors, the residual in the epilogue; the fastest of its tiles",
    by_name_only=True,  # it compiles and times its tiles in every shape: sweeps say in which
)
