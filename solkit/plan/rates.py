"""What one SM completes per clock, by compute capability and market segment: dense, FMA = 2 FLOP.

The rates are those of each unit's best instruction (wgmma on 9.0, block-scaled FP4 on 12.x). A
compute capability alone gives no tensor rate: GeForce halves fp32 accumulation on the dies that
professional cards run at full rate, and export parts are cut. Where sources disagree or none is
known, a pipe is missing here: a spec file that gives it must say why it believes the number.
"""

from solkit.gpu import Gpu

Rates = dict[str, tuple[float, ...]]

TENSOR_PIPES = (
    "tf32_tensor",
    "fp16_tensor",
    "bf16_tensor",
    "fp8_tensor",
    "fp4_tensor",
    "int8_tensor",
)
SFU = 16.0  # ex2, lg2, rcp, rsqrt, sin, cos on every NVIDIA card here; 10.0 measured 16.00 for ex2
FP32_MOST = 256.0  # no card has more than 128 fused multiply-adds in fp32 per SM and clock

# What each kind of pipe accumulates in: fp16 accumulation is another, faster number on GeForce.
ACCUMULATE = {
    "fp64_tensor": "fp64",
    "tf32_tensor": "fp32",
    "fp16_tensor": "fp32",
    "bf16_tensor": "fp32",
    "fp8_tensor": "fp32",
    "fp4_tensor": "fp32",
    "int8_tensor": "int32",
}


def _rates(  # noqa: PLR0913  # one column of the vendor's table each
    *,
    fp64: float | None,
    fp32: float = 256,
    fp16: float | None,
    tf32: float | None = None,
    half: float | None = None,
    bf16: bool = True,
    fp8: float | None = None,
    fp4: float | None = None,
    int8: float | None = None,
    fp64_tensor: float | None = None,
    sfu: float | None = SFU,
) -> Rates:
    table = {
        "fp64": fp64,
        "fp32": fp32,
        "fp16": fp16,
        "sfu": sfu,
        "fp64_tensor": fp64_tensor,
        "tf32_tensor": tf32,
        "fp16_tensor": half,
        "bf16_tensor": half if bf16 else None,
        "fp8_tensor": fp8,
        "fp4_tensor": fp4,
        "int8_tensor": int8,
    }
    return {pipe: (float(rate),) for pipe, rate in table.items() if rate is not None}


_HOPPER = _rates(fp64=128, fp16=512, fp64_tensor=256, tf32=2048, half=4096, fp8=8192, int8=8192)
_ADA = _rates(fp64=4, fp16=256, tf32=512, half=1024, fp8=2048, int8=2048)
_ADA_GEFORCE = _rates(fp64=4, fp16=256, tf32=256, half=512, fp8=1024, int8=2048)

# Keyed by compute capability and whether the card is sold as GeForce ("geforce"), cut for export
# ("export") or neither ("full").
RATES: dict[tuple[str, str], Rates] = {
    ("7.0", "full"): _rates(fp64=64, fp32=128, fp16=256, half=1024, bf16=False),
    ("7.5", "full"): _rates(fp64=4, fp32=128, fp16=256, half=1024, bf16=False, int8=2048),
    ("8.0", "full"): _rates(
        fp64=64, fp32=128, fp16=512, fp64_tensor=128, tf32=1024, half=2048, int8=4096
    ),
    ("8.6", "full"): _rates(fp64=4, fp16=256, tf32=512, half=1024, int8=2048),
    ("8.6", "geforce"): _rates(fp64=4, fp16=256, tf32=256, half=512, int8=2048),
    ("8.7", "full"): _rates(fp64=4, fp16=512, half=2048, int8=4096),
    ("8.9", "full"): _ADA,
    ("8.9", "geforce"): _ADA_GEFORCE,
    ("9.0", "full"): _HOPPER,
    # H20: a quarter of the tensor rate; H800: fp64 alone is cut.
    ("9.0", "export"): _HOPPER
    | {
        "fp64": (4.0, 6.0),
        "fp64_tensor": (4.0, 6.0),
        "tf32_tensor": (512.0, 2048.0),
        "fp16_tensor": (1024.0, 4096.0),
        "bf16_tensor": (1024.0, 4096.0),
        "fp8_tensor": (2048.0, 8192.0),
        "int8_tensor": (2048.0, 8192.0),
    },
    ("10.0", "full"): _rates(
        fp64=128, fp16=256, fp64_tensor=128, tf32=4096, half=8192, fp8=16384, fp4=32768, int8=16384
    ),
    ("10.3", "full"): _rates(
        fp64=4, fp16=256, tf32=4096, half=8192, fp8=16384, fp4=49152, int8=512
    ),
    ("11.0", "full"): _rates(fp64=None, fp16=None, half=8192, fp8=16384, fp4=32768),
    ("12.0", "full"): _rates(fp64=4, fp16=256, tf32=512, half=1024, fp8=2048, fp4=4096, int8=2048),
    ("12.0", "geforce"): _rates(
        fp64=4, fp16=256, tf32=256, half=512, fp8=1024, fp4=4096, int8=2048
    ),
    ("12.1", "full"): _rates(fp64=4, fp16=256, fp4=4096),
    ("gfx942", "full"): _rates(
        fp64=128, fp16=None, fp64_tensor=256, tf32=1024, half=2048, fp8=4096, int8=4096, sfu=None
    ),
}

# Units a chip does not have. Entering one, be it as 0, would let a case be planned for nothing.
ABSENT: dict[str, frozenset[str]] = {
    "7.0": frozenset(
        {"fp64_tensor", "tf32_tensor", "bf16_tensor", "fp8_tensor", "fp4_tensor", "int8_tensor"}
    ),
    "7.5": frozenset({"fp64_tensor", "tf32_tensor", "bf16_tensor", "fp8_tensor", "fp4_tensor"}),
    "8.0": frozenset({"fp8_tensor", "fp4_tensor"}),
    "8.6": frozenset({"fp64_tensor", "fp8_tensor", "fp4_tensor"}),
    "8.7": frozenset({"fp64_tensor", "fp8_tensor", "fp4_tensor"}),
    "8.9": frozenset({"fp64_tensor", "fp4_tensor"}),
    "9.0": frozenset({"fp4_tensor"}),
    "10.0": frozenset(),
    "10.3": frozenset({"fp64_tensor"}),
    "11.0": frozenset({"fp64_tensor"}),
    "12.0": frozenset({"fp64_tensor"}),
    "12.1": frozenset({"fp64_tensor"}),
    "gfx942": frozenset({"fp4_tensor"}),
}

# Shared memory: KiB per SM, and what one block may take (1 KiB less from 8.0 on).
SHARED_KIB: dict[str, tuple[int, int]] = {
    "7.0": (96, 96),
    "7.5": (64, 64),
    "8.0": (164, 163),
    "8.6": (100, 99),
    "8.7": (164, 163),
    "8.9": (100, 99),
    "9.0": (228, 227),
    "10.0": (228, 227),
    "10.3": (228, 227),
    "11.0": (228, 227),
    "12.0": (100, 99),
    "12.1": (100, 99),
    "gfx942": (64, 64),
}

# Cards whose tensor peaks are quoted at a clock of their own, below the highest.
OWN_TENSOR_CLOCK = frozenset({"9.0", "10.0", "10.3"})


def grade(gpu: Gpu) -> str:
    """Return which row of RATES a card's segment reads: `geforce`, `export` or `full`."""
    return gpu.segment if gpu.segment in {"geforce", "export"} else "full"


def allowed(gpu: Gpu) -> Rates | None:
    """Return the rates a card's pipes may have, or None for a compute capability nobody entered."""
    return RATES.get((gpu.compute_capability, grade(gpu)))
