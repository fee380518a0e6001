"""The sweep of the memory-bound operators, in segments. Pure."""

from pathlib import Path

from beside_parts.sweep import Sweep

SEGMENTS: dict[str, tuple[str, ...]] = {
    "norms": ("rmsnorm", "add_rmsnorm", "add_layernorm", "quant_fp8"),
    "elementwise": (
        *("swiglu", "geglu", "bias_gelu", "rope", "adamw", "embedding"),
        *("copy", "read", "write", "triad"),
    ),
    "rows": ("softmax", "cross_entropy", "moe_topk", "attention_decode", "dequant_gemv"),
}
SWEEP = Sweep(
    segments={name: f"operator={'|'.join(held)}" for name, held in SEGMENTS.items()},
    shapes=Path("benchmarks/sweeps/memory.yaml"),
    budget_s=0.15,  # all but the noisiest cases reach their precision in less
    packages=(
        *("torch", "triton", "liger-kernel", "quack-kernels"),
        *("nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cutlass-dsl"),
    ),
)
