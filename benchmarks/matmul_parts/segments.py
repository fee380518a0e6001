"""The sweep of matmul_add, in segments by the number of tokens. Pure."""

from pathlib import Path

from beside_parts.sweep import Sweep

SMALL, LARGE = 64, 2048  # small: up to; large: from
SWEEP = Sweep(
    segments={
        "large": f"M>={LARGE}",
        "medium": f"M>{SMALL},M<{LARGE}",
        "small": f"M<={SMALL}",
    },
    shapes=Path("benchmarks/sweeps/matmul_add.yaml"),
    # Large products reach the power limit and never the precision asked for: some 20 calls then.
    budget_s=0.06,
    packages=(
        *("torch", "triton", "quack-kernels", "nvidia-cutlass-dsl"),
        *("nvidia-cublas", "nvidia-cublas-cu12", "cupy-cuda13x", "cupy-cuda12x"),
    ),
)
