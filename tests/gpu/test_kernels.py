"""Every bundled CUDA kernel against its reference, on values, on a real device."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from solkit.declare.operator import Operator
from solkit.declare.registry import Registry, bundled
from solkit.measure import buffers, check
from solkit.model import Case, Param
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from compiling import compile_all  # noqa: E402  # needs CuPy

from solkit.measure.device.cuda.device import CudaDevice  # noqa: E402  # needs CuPy

pytestmark = pytest.mark.gpu
DTYPES = ("fp32", "fp16", "bf16")
SEEDS = (0, 1)

STREAM_SHAPES = [{"elements": elements} for elements in (1, 7, 1024, 4096 + 3, 10_000_019)]
ROW_SHAPES = [
    {"rows": rows, "cols": cols}
    for rows, cols in (
        (1, 8),
        (1, 2560),
        (3, 64),
        (17, 1000),
        (33, 2560),
        (257, 4096),
        (129, 5120),
        (64, 11008),
        (5, 14336),
        (9, 16384),
        (2, 32768),
        (1, 128256),
        (2050, 2560),
    )
]
# Rows that end within a warp, a block, four rows at once; odd ones, one item a load; one of 10 M.
READ_SHAPES = [
    {"rows": rows, "cols": cols}
    for rows, cols in (
        (1, 1),
        (7, 1),
        (64, 256),
        (4099, 256),
        (135_171, 256),
        (1057, 33),
        (19, 128_257),
        (1, 10_000_019),
    )
]
ODD_SHAPES = [
    {"rows": rows, "cols": cols}
    for rows, cols in ((1, 1), (3, 3), (1, 17), (17, 17), (1, 4097), (3, 4097), (1025, 33))
]
# Rows of clusters of 4 and of 2 blocks, of a cluster though they are many, whose last vectors lie
# beyond the end; so many that their chunks are asked for one by one.
NORM_SHAPES = [
    *ROW_SHAPES,
    *ODD_SHAPES,
    *(
        {"rows": rows, "cols": cols}
        for rows, cols in ((20, 8192), (50, 8192), (300, 15_000), (4100, 4096), (4100, 8192))
    ),
]
# One token, one head; heads that fill no block; heads of 2, 6, 34 items; a thread with many heads.
ROPE_SHAPES = [
    {"tokens": tokens, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    for tokens, heads, kv_heads, head_dim in (
        (1, 1, 1, 2),
        (3, 1, 1, 6),
        (17, 3, 1, 34),
        (1, 32, 8, 128),
        (64, 32, 8, 128),
        (4097, 32, 8, 128),
        (1030, 64, 8, 64),
        (1031, 17, 17, 96),
        (513, 24, 4, 256),
        (5, 2, 1, 2046),
    )
]
# One key; keys that fill no tile, no page, no block; groups of 1 to 23; one split and many.
ATTENTION_SHAPES = [
    {"batch": batch, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "kv_len": kv_len}
    for batch, heads, kv_heads, head_dim, kv_len in (
        (1, 1, 1, 64, 1),
        (1, 4, 1, 128, 3),
        (3, 14, 2, 64, 17),
        (17, 4, 2, 128, 48),
        (4, 12, 6, 64, 512),
        (1, 23, 1, 128, 1040),
        (3, 16, 2, 256, 1008),
        (2, 32, 8, 128, 4097),
        (5, 16, 1, 128, 4112),
        (2, 12, 1, 64, 2000),
        (1, 8, 8, 256, 513),
        (1, 32, 8, 128, 32768),
        (300, 8, 4, 128, 160),
    )
]
# A warp, a block, two to sixteen blocks a row, rows that fit into no cluster; ends of rows
# within 16 bytes of each other; more rows than columns, as a causal mask starts anew.
SOFTMAX_SHAPES = [
    {"rows": rows, "cols": cols}
    for rows, cols in (
        (1, 1),
        (5, 3),
        (41, 17),
        (1025, 33),
        (600, 256),
        (33, 4097),
        (1, 4096),
        (300, 4096),
        (65, 16384),
        (3, 32000),
        (40, 50257),
        (9, 128256),
        (2, 262143),
        (2, 600_011),
        (300, 32000),  # so many that every thread holds eight vectors of them
        (300, 32001),
        (20, 201),  # a row's first whole vector is the ninth of its line (bf16: row 7)
        (20, 101),  # (fp32: row 19)
    )
]
CROSS_ENTROPY_SHAPES = [
    {"tokens": shape["rows"], "vocab": shape["cols"]}
    for shape in (*SOFTMAX_SHAPES, {"rows": 1200, "cols": 4096})
]
# Rows and tokens that fill no tile, a row's groups odd in number, rows that end within a stage of
# a warp; more rows than a block has, more columns than all warps hold at once; so many rows of as
# many columns as a block holds that it walks down them, whole tiles and not.
GEMV_SHAPES = [
    {"tokens": tokens, "rows": rows, "cols": cols}
    for tokens, rows, cols in (
        (1, 1, 16),
        (1, 1, 128),
        (3, 3, 48),
        (8, 17, 384),
        (2, 33, 4096),
        (5, 64, 1040),
        (7, 1003, 256),
        (4, 129, 8192),
        (1, 4097, 4096),
        (8, 300, 14336),
        (6, 31, 28672),
        (8, 8192, 28672),
        (1, 28672, 8192),
        (3, 16_901, 8192),
        (8, 16_896, 8192),
    )
]
# Fewer experts than lanes, as many, a lane's vectors partly beyond the end; all of them chosen.
ROUTING_SHAPES = [
    {"tokens": tokens, "experts": experts, "top_k": top_k}
    for tokens, experts, top_k in (
        (1, 1, 1),
        (3, 3, 2),
        (17, 8, 8),
        (33, 17, 3),
        (4097, 32, 32),
        (129, 64, 6),
        (1030, 100, 1),
        (5, 160, 31),
        (2050, 256, 8),
        (77, 384, 6),
        (9, 509, 32),
        (64, 512, 10),
    )
]
# Rows shorter than a load, of 2, 4, 8 and 16 bytes a load; more tokens than rows, and fewer; many.
EMBEDDING_SHAPES = [
    {"tokens": tokens, "vocab": vocab, "cols": cols}
    for tokens, vocab, cols in (
        (1, 1, 1),
        (3, 17, 3),
        (17, 4097, 17),
        (4097, 3, 8),
        (1000, 100, 4097),
        (33, 1000, 2560),
        (1, 5, 16384),
        (257, 129, 4098),
        (64, 2000, 4100),
        (4097, 1000, 2048),
    )
]
# Tiles that M, N and K fill, and don't, of every size; one row; a step along K of 8 items.
MATMUL_SHAPES = [
    {"M": rows, "N": cols, "K": depth}
    for rows, cols, depth in (
        (1, 8, 8),
        (1, 2560, 2560),
        (16, 2560, 2560),
        (17, 8200, 136),
        (63, 136, 72),
        (63, 3464, 1032),
        (64, 4096, 1024),
        (127, 264, 520),
        (128, 128, 128),
        (129, 2560, 2568),
        (512, 2560, 2560),
        (586, 1000, 1000),
        (1024, 4096, 4096),
        (2049, 2568, 2568),
        # few rows, small weights: one row, those that tensor cores take as 8, 16, 32 and 64
        (1, 264, 1032),
        (1, 200, 2056),
        (5, 136, 520),
        (9, 200, 520),
        (17, 264, 1032),
        (33, 72, 1032),
        # as many columns as fill the card
        (1, 4096, 72),
        (9, 4096, 72),
        (33, 4096, 72),
        # as few items as make the larger tiles worth while
        (17, 3464, 72),
        (712, 264, 72),
        (712, 520, 72),
    )
]
# Of these, for the kernels that other cards than this one take, and for factors: one a tile.
FEW_MATMUL_SHAPES = [
    {"M": rows, "N": cols, "K": depth}
    for rows, cols, depth in (
        (1, 8, 8),
        (17, 8200, 136),
        (63, 3464, 1032),
        (586, 1000, 1000),
        (2049, 2568, 2568),
        (17, 3464, 72),
        (712, 264, 72),
        (712, 520, 72),
    )
]
PRODUCTS = ("matmul", "matmul_bias", "matmul_bias_gelu", "matmul_add", "matmul_add_bias")


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Return the bundled declarations."""
    return bundled()


@pytest.fixture(scope="module")
def device(registry: Registry) -> CudaDevice:
    """Return the first CUDA device, every kernel compiled for it (several at a time)."""
    first = CudaDevice(0)
    pairs = [(registry.kernels[case.operator, case.kernel], case) for case in cases()]
    compile_all(first, pairs)
    return first


OWN_SHAPES = {
    **dict.fromkeys(PRODUCTS, MATMUL_SHAPES),
    **dict.fromkeys(("rmsnorm", "add_rmsnorm", "add_layernorm", "quant_fp8"), NORM_SHAPES),
    "read": [*ROW_SHAPES, *READ_SHAPES],
    "attention_decode": ATTENTION_SHAPES,
    "rope": ROPE_SHAPES,
    "dequant_gemv": GEMV_SHAPES,
    "moe_topk": ROUTING_SHAPES,
    "embedding": EMBEDDING_SHAPES,
    "softmax": SOFTMAX_SHAPES,
    "cross_entropy": CROSS_ENTROPY_SHAPES,
    **dict.fromkeys(("copy", "write", "triad", "adamw"), STREAM_SHAPES),
}


def shapes_of(operator: str, kernel: str = "solkit") -> list[dict[str, int]]:
    if operator in PRODUCTS and kernel != "solkit":
        return FEW_MATMUL_SHAPES
    return OWN_SHAPES.get(operator, [*ROW_SHAPES, *ODD_SHAPES])


def variants(operator: Operator) -> Iterator[dict[str, Param]]:
    """Yield every combination of params, those left at their default that cases need not name."""
    named = {
        name: values
        for name, values in operator.params.items()
        if name not in operator.unnamed_defaults
    }
    for values in itertools.product(*named.values()):
        yield dict(zip(named, values, strict=True))


def factors(operator: Operator) -> Iterator[dict[str, Param]]:
    """Yield every combination of the params that cases need not name, but for all defaults."""
    every = (operator.params[name] for name in operator.unnamed_defaults)
    for values in itertools.islice(itertools.product(*every), 1, None):
        yield dict(zip(operator.unnamed_defaults, values, strict=True))


def cases() -> list[Case]:
    registry = bundled()
    plain = [
        Case(owner, name, shape, dtype, params)
        for (owner, name), kernel in registry.kernels.items()
        if kernel.device == "cuda"
        for shape in shapes_of(owner, name)
        for dtype in DTYPES
        for params in variants(registry.operators[owner])
    ]
    scaled = [
        replace(case, params=case.params | factor)
        for case in plain
        if case.operator in PRODUCTS and case.shape in FEW_MATMUL_SHAPES
        for factor in factors(registry.operators[case.operator])
    ]
    return [
        case
        for case in (*plain, *scaled)
        if not (
            registry.kernels[case.operator, case.kernel].refusal(case)
            or refused(registry.operators[case.operator], case)
        )
    ]


def refused(operator: Operator, case: Case) -> bool:
    """Whether the operator is not defined for the shape."""
    return bool(operator.refuse and operator.refuse(case))


@pytest.mark.parametrize("case", cases(), ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_kernel_computes_what_its_reference_says(
    device: CudaDevice, registry: Registry, case: Case, seed: int
) -> None:
    """All outputs are written and equal the float64 reference within the operator's tolerance."""
    operator = registry.operators[case.operator]
    kernel = registry.kernels[case.operator, case.kernel]
    program = device.prepare(kernel, operator, case, folder("kernels") / "include")
    sets = buffers.make(device, operator, case, seed)
    expected = check.expect(device, operator, case, sets.buffers(0), seed)
    for number in {0, sets.count - 1}:
        sets.poison(device, number)
        program.bind(sets.buffers(number))()
        device.synchronize()
        seen = check.compare(device, operator, case, sets.buffers(number), expected)
        assert 0 <= seen.error_fraction <= 1
        assert seen.compared_count > 0


@pytest.mark.parametrize("operator", ["copy", "add_rmsnorm", *PRODUCTS])
def test_inputs_are_left_as_they_were(
    device: CudaDevice, registry: Registry, operator: str
) -> None:
    """A kernel writes its outputs and nothing else."""
    declared = registry.operators[operator]
    case = Case(
        operator,
        "solkit",
        shapes_of(operator)[5 if operator != "copy" else 3],
        "fp16",
        next(variants(declared)),
    )
    kernel = registry.kernels[operator, "solkit"]
    sets = buffers.make(device, declared, case, 0)
    arrays = sets.buffers(0)
    before = {arg.name: arrays[arg.name].copy() for arg in declared.inputs}
    device.prepare(kernel, declared, case, folder("kernels") / "include").bind(arrays)()
    device.synchronize()
    for name, array in before.items():
        assert bool((array.view(cupy.uint8) == arrays[name].view(cupy.uint8)).all()), name
