"""cublasLt itself, as its strongest users call it: with a 64 MiB workspace, C and D apart."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a declaration is loaded by path, not as a package

from peers.parts.peer import later, peer

DTYPES = ("bf16", "fp16")
WAYS = {
    "cublaslt": ("first", "cublasLt's own choice of algorithm, the residual as C with beta"),
    "cublaslt_best": ("best", "the fastest of the eight algorithms that cublasLt proposes"),
}
KERNELS = tuple(
    peer(name, "matmul_add", later("cublaslt_calls", way), dtypes=DTYPES, summary=summary)
    for name, (way, summary) in WAYS.items()
)
