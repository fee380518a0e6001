"""Every bundled CUDA kernel against its reference, on values, on a real device."""

from collections.abc import Iterator

import pytest

from solkit.declare.registry import Registry, bundled
from solkit.measure import buffers, check
from solkit.model import Case, Param
from solkit.resources import folder

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

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
MATMUL_SHAPES = [
    {"M": rows, "N": cols, "K": depth}
    for rows, cols, depth in (
        (1, 8, 8),
        (1, 2560, 2560),
        (16, 2560, 2560),
        (63, 136, 72),
        (64, 4096, 1024),
        (127, 264, 520),
        (128, 128, 128),
        (129, 2560, 2568),
        (512, 2560, 2560),
        (586, 1000, 1000),
        (1024, 4096, 4096),
        (2049, 2560, 2560),
    )
]


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Return the bundled declarations."""
    return bundled()


@pytest.fixture(scope="module")
def device(registry: Registry) -> CudaDevice:
    """Return the first CUDA device, every kernel compiled for it (several at a time)."""
    first = CudaDevice(0)
    pairs = [(registry.kernels[case.operator, case.kernel], case) for case in cases()]
    first.compile_ahead(pairs, folder("kernels") / "include", lambda _index: None)
    return first


def shapes_of(operator: str) -> list[dict[str, int]]:
    if operator == "matmul_add":
        return MATMUL_SHAPES
    if operator == "read":
        return [*ROW_SHAPES, *READ_SHAPES]
    return STREAM_SHAPES if operator in ("copy", "write", "triad") else ROW_SHAPES


def variants(params: dict[str, tuple[Param, ...]]) -> Iterator[dict[str, Param]]:
    """Yield every combination of params (operators have one at most)."""
    if not params:
        yield {}
    for name, values in params.items():
        for value in values:
            yield {name: value}


def cases() -> list[Case]:
    registry = bundled()
    return [
        Case(owner, name, shape, dtype, params)
        for (owner, name), kernel in registry.kernels.items()
        if kernel.device == "cuda"
        for shape in shapes_of(owner)
        for dtype in DTYPES
        for params in variants(dict(registry.operators[owner].params))
        if not kernel.refusal(Case(owner, name, shape, dtype, params))
    ]


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


@pytest.mark.parametrize("operator", ["copy", "add_rmsnorm", "matmul_add"])
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
        {name: values[0] for name, values in declared.params.items()},
    )
    kernel = registry.kernels[operator, "solkit"]
    sets = buffers.make(device, declared, case, 0)
    arrays = sets.buffers(0)
    before = {arg.name: arrays[arg.name].copy() for arg in declared.inputs}
    device.prepare(kernel, declared, case, folder("kernels") / "include").bind(arrays)()
    device.synchronize()
    for name, array in before.items():
        assert bool((array.view(cupy.uint8) == arrays[name].view(cupy.uint8)).all()), name
