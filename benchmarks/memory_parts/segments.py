"""The sweep in segments: each is one `solkit run`, of some operators, with a file of its own. Pure.

A kernel and its peers are always of one segment, so they are measured together.
"""

from collections.abc import Sequence
from pathlib import Path

SEGMENTS: dict[str, tuple[str, ...]] = {
    "norms": ("rmsnorm", "add_rmsnorm", "add_layernorm", "quant_fp8"),
    "elementwise": (
        *("swiglu", "geglu", "bias_gelu", "rope", "adamw", "embedding"),
        *("copy", "read", "write", "triad"),
    ),
    "rows": ("softmax", "cross_entropy", "moe_topk", "attention_decode", "dequant_gemv"),
}
SHAPES, PEERS = Path("benchmarks/sweeps/memory.yaml"), Path("benchmarks/peers")
# Of sampling a case: all but the noisiest reach their precision in less.
BUDGET_S = 0.15
# Of silence before a case's worker is stopped: a peer's compiler may think for so long.
TIMEOUT_S = 90.0


def command(
    segment: str, out: Path, *, device: str, budget_s: float, shapes: Path = SHAPES
) -> list[str]:
    """Return what measures a segment, as arguments of `solkit`; it runs in the repository root."""
    return [
        "run",
        *("--shapes", str(shapes), "--only", f"operator={'|'.join(SEGMENTS[segment])}"),
        *("--load", str(PEERS), "--out", str(out), "--device", device),
        *("--budget", f"{budget_s:g}", "--timeout", f"{TIMEOUT_S:g}"),
    ]


def finish(out: Path) -> list[str]:
    """Return what measures the rest of a segment that was cut, as arguments of `solkit`."""
    return ["run", "--resume", str(out), "--timeout", f"{TIMEOUT_S:g}"]


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the segments named, in their order; raise ValueError naming a stranger."""
    strangers = [name for name in names if name not in SEGMENTS]
    if strangers or not names:
        message = (
            f"no segment is called {', '.join(strangers) or 'nothing'}; "
            f"known: {', '.join(SEGMENTS)}"
        )
        raise ValueError(message)
    return tuple(name for name in SEGMENTS if name in names)
