"""cublasLt itself, as its strongest users call it: with a 64 MiB workspace, C and D apart."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a declaration is loaded by path, not as a package

from peers.parts.peer import later, peer

from solkit import Case

DTYPES = ("bf16", "fp16")
WAYS = {
    "cublaslt": ("first", "cublasLt's own choice of algorithm, {how}"),
    "cublaslt_best": ("best", "the fastest of the eight algorithms that cublasLt proposes, {how}"),
}
HOWS = {
    "matmul": "nothing added",
    "matmul_bias": "the bias in its epilogue",
    "matmul_bias_gelu": "bias and GELU in its epilogue",
    "matmul_add": "the residual as C with beta",
    "matmul_add_bias": "the residual as C with beta, the bias in its epilogue",
}


def _tanh(case: Case) -> str | None:
    return "cublasLt's GELU has the tanh form alone" if case.params["form"] != "tanh" else None


KERNELS = tuple(
    peer(
        name,
        operator,
        later("cublaslt_calls", way),
        dtypes=DTYPES,
        refuse=_tanh if operator == "matmul_bias_gelu" else None,
        summary=summary.format(how=how),
    )
    for name, (way, summary) in WAYS.items()
    for operator, how in HOWS.items()
)
