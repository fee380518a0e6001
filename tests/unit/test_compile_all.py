"""Every launch of every kernel compiles for every generation, without a GPU."""

import functools
import os
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from cards import CARDS

from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.declare.registry import Registry, bundled, load
from solkit.declare.tensor_map import TensorMap
from solkit.measure.device import nvrtc
from solkit.measure.device.cuda import rate_forms
from solkit.model import Case
from solkit.resources import folder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.name == "nt" or os.uname().sysname != "Linux", reason="NVRTC's wheels are for Linux"
    ),
]

ARCHS = tuple(CARDS)
ELEMENTS = ({"elements": 1_000_000},)
# Several rows a warp; a warp a row, of four, seven and eight chunks; a block a row, of two chunks
# and of four, asked for together and one by one; blocks of 2, 7 and 14 warps, of which an SM's four
# parts don't get equally many; a cluster for few rows and for more; too long for registers.
NORMS = tuple(
    {"rows": rows, "cols": cols}
    for rows, cols in (
        (65536, 128),
        (6000, 1000),
        (512, 1600),
        (4096, 2000),
        (8192, 2560),
        (8192, 4096),
        (8192, 8192),
        (8192, 16384),
        (512, 32768),
        (512, 832),
        (2048, 3584),
        (2048, 7168),
        (16, 16384),
        (2048, 16384),
        (8, 131072),
    )
)
# Many tiles; one row; few rows; then what else the choices among tiles and forms come to.
PRODUCTS = tuple(
    {"M": m, "K": k, "N": n}
    for m, k, n in (
        (8192, 2560, 2560),
        (512, 2560, 2560),
        (64, 2560, 2560),
        (1, 4096, 4096),
        (16, 4096, 8192),
        (4, 4096, 2560),
        (64, 4096, 4096),
        (1, 2560, 2560),
    )
)
# Few shapes, but every template and every shape of a tile or row layout that is often taken.
SHAPES: dict[str, tuple[dict[str, int], ...]] = {
    "copy": ELEMENTS,
    "read": tuple(
        {"rows": rows, "cols": cols}
        for rows, cols in ((2**20, 256), (64, 4096), (33, 1000), (1, 128_257))
    ),
    "write": ELEMENTS,
    "triad": ELEMENTS,
    "swiglu": ({"rows": 8192, "cols": 11008}, {"rows": 7, "cols": 33}),
    "geglu": ({"rows": 8192, "cols": 11008}, {"rows": 7, "cols": 33}),
    "bias_gelu": ({"rows": 8192, "cols": 11008}, {"rows": 7, "cols": 33}),
    "adamw": ELEMENTS,
    "rope": tuple(
        {"tokens": tokens, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
        for tokens, heads, kv_heads, head_dim in (
            (8192, 32, 8, 128),
            (16, 32, 8, 128),
            (7, 3, 1, 34),
        )
    ),
    "rmsnorm": NORMS,
    "add_rmsnorm": NORMS,
    "add_layernorm": NORMS,
    "quant_fp8": (*NORMS, {"rows": 3, "cols": 4097}),
    "softmax": tuple(
        {"rows": rows, "cols": cols}
        for rows, cols in (
            (8192, 256),
            (8192, 2560),
            (7, 7680),
            (4096, 65536),
            (4096, 50257),
            (64, 262144),
            (7, 4097),
            (8, 2**21),
        )
    ),
    "cross_entropy": tuple(
        {"tokens": tokens, "vocab": vocab}
        for tokens, vocab in ((8192, 256), (8192, 4096), (512, 128256), (64, 50257), (7, 17))
    ),
    "attention_decode": tuple(
        {
            "batch": batch,
            "heads": heads,
            "kv_heads": kv_heads,
            "head_dim": head_dim,
            "kv_len": kv_len,
        }
        for batch, heads, kv_heads, head_dim, kv_len in (
            (64, 32, 8, 128, 4096),
            (2, 16, 1, 128, 1024),
            (2, 8, 2, 64, 1024),
            (2, 8, 2, 256, 1024),
        )
    ),
    # An even and an odd number of groups; rows for small and large blocks; few and many tokens.
    "dequant_gemv": tuple(
        {"tokens": tokens, "rows": rows, "cols": cols}
        for tokens in (1, 8)
        for rows, cols in ((28672, 8192), (8192, 28672), (4096, 4096), (3, 384))
    ),
    "moe_topk": tuple(
        {"tokens": 8192, "experts": experts, "top_k": top_k}
        for experts, top_k in ((256, 8), (64, 6), (8, 2), (509, 32))
    ),
    # Rows asked into L2 early, and few; and a row that pieces don't fill.
    "embedding": (
        {"tokens": 8192, "vocab": 128256, "cols": 4096},
        {"tokens": 512, "vocab": 128256, "cols": 4096},
        {"tokens": 2**20, "vocab": 1000, "cols": 4097},  # y has more than 2^32 elements
    ),
    **dict.fromkeys(("matmul_add", "matmul_add_bias"), PRODUCTS),
    # The same kernels with less to do after the product: a shape for each way.
    **dict.fromkeys(("matmul", "matmul_bias", "matmul_bias_gelu"), PRODUCTS[::3]),
    "reglu": ({"rows": 8, "cols": 64},),
}
# A few registers too many cost nothing that can be measured; more is a layout that does not fit.
SPILL_ALLOWANCE_BYTES = 16
# Kernels made of what older cards have, to be tried on newer ones: where alone they are measured.
MEASURED_ON = {"solkit_half": "sm_75"}
DROPPED = ("C7508", "C7509", "C7510", "C7511", "C7517")


def everything() -> Registry:
    registry = bundled()
    example = Path(__file__).parents[2] / "examples" / "my_kernel" / "reglu.py"
    registry.add(load(example), where=str(example))
    return registry


REGISTRY = everything()
KERNELS = [kernel for kernel in REGISTRY.kernels.values() if kernel.source]
POOL = ThreadPoolExecutor(os.cpu_count())


def cases(kernel: Kernel, arch: str) -> Iterator[Case]:
    operator = REGISTRY.operators[kernel.operator_name]
    for shape in SHAPES[operator.name]:
        for dtype in kernel.dtypes:
            variants: list[dict[str, str | int | float | bool]] = [{}]
            for name, values in operator.params.items():
                if name in operator.unnamed_defaults:
                    continue  # factors, which no function is compiled for
                variants = [{**known, name: value} for known in variants for value in values]
            for params in variants:
                case = Case(operator.name, kernel.name, shape, dtype, params)
                if kernel.refusal(case) or (operator.refuse and operator.refuse(case)):
                    continue
                if arch == "sm_75" and "bf16_tensor" in operator.work(case).flop:
                    continue  # such cards have no tensor cores for it: the plan skips these cases
                yield case


def entries_of(kernel: Kernel, arch: str) -> tuple[str, ...]:
    """Return the functions that the shapes above need, each once."""
    card = CARDS[arch]
    named = (
        launch.entry for case in cases(kernel, arch) for launch in kernel.launches_on(case, card)
    )
    return tuple(dict.fromkeys(named))


@functools.cache
def compiling(operator: str, path: Path) -> dict[str, Future[nvrtc.Compilation]]:
    """Begin to compile a source for all architectures, on all cores, a process each.

    With the functions of all kernels of an operator that are in it: several may share some.
    """
    sharing = [
        kernel
        for kernel in KERNELS
        if (kernel.operator_name, kernel.folder / kernel.source) == (operator, path)
    ]
    (options,) = {kernel.options for kernel in sharing}
    return {
        arch: POOL.submit(
            nvrtc.compile_source,
            path.read_text(encoding="utf-8"),
            name=str(path),
            entries=tuple(dict.fromkeys(e for kernel in sharing for e in entries_of(kernel, arch))),
            arch=arch,
            options=options,
            include_dirs=(folder("kernels") / "include", path.parent),
        )
        for arch in ARCHS
    }


def test_every_kernel_has_shapes_here() -> None:
    """A new operator is compiled by this file, or this test says so."""
    assert set(SHAPES) == {kernel.operator_name for kernel in KERNELS}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    "kernel", KERNELS, ids=[f"{kernel.operator_name}-{kernel.name}" for kernel in KERNELS]
)
def test_it_compiles_without_spills_and_dropped_instructions(kernel: Kernel, arch: str) -> None:
    """One compilation a source and architecture; the compiler has nothing to complain about."""
    if int(arch[3:].rstrip("af")) not in nvrtc.targets():
        pytest.skip(f"NVRTC {nvrtc.version()} has no {arch}")
    compiled = compiling(kernel.operator_name, kernel.folder / kernel.source)[arch].result()
    functions = {name: compiled.functions[name] for name in entries_of(kernel, arch)}
    spilled = {
        name: info.spill_bytes
        for name, info in functions.items()
        if info.spill_bytes is None or info.spill_bytes > SPILL_ALLOWANCE_BYTES
    }
    assert {} == spilled or arch != MEASURED_ON.get(kernel.name, arch)
    warnings = [text for info in functions.values() for text in info.warnings]
    assert [] == [text for text in warnings if any(code in text for code in DROPPED)]
    assert [] == warnings


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a", "sm_120a"])
def test_tensor_maps_compile_to_nothing_but_what_a_card_has(arch: str) -> None:
    """The kernels that are tried on a card, by every helper of the header; without a complaint."""
    if int(arch[3:].rstrip("af")) not in nvrtc.targets():
        pytest.skip(f"NVRTC {nvrtc.version()} has no {arch}")
    path = Path(__file__).parents[1] / "gpu" / "tensor_maps.cu"
    entries = (
        "load_boxes<float, 16, 32, 128>",
        "store_boxes<16, 16, 64>",
        "share_boxes<2, 3, 16, 32>",
        "pass_on",
        "compiled_for_two",
    )
    compiled = nvrtc.compile_source(
        path.read_text(encoding="utf-8"),
        name=path.name,
        entries=entries,
        arch=arch,
        include_dirs=(folder("kernels") / "include",),
    )
    assert {0} == {info.spill_bytes for info in compiled.functions.values()}
    assert [] == [text for info in compiled.functions.values() for text in info.warnings]


def test_the_transposition_of_the_docs_compiles(tmp_path: Path) -> None:
    """Every function that its launches name, for the generation it asks for."""
    text = (Path(__file__).parents[2] / "docs" / "write-a-kernel.md").read_text(encoding="utf-8")
    for kind, suffix in (("python", "py"), ("cuda", "cu")):
        (block,) = re.findall(rf"```{kind}\n([^`]*transpose<?[^`]*)```", text)
        (tmp_path / f"transpose.{suffix}").write_text(block, encoding="utf-8")
    operator, kernel = load(tmp_path / "transpose.py")
    assert isinstance(operator, Operator)
    assert isinstance(kernel, Kernel)
    case = Case("transpose", "boxes", {"rows": 67, "cols": 132}, "fp32")
    (launch,) = kernel.launches_on(case, CARDS["sm_90a"])
    assert launch.args is not None
    assert isinstance(launch.args[0], TensorMap)
    assert (67, 132) == launch.args[0].tensor(operator, case).shape
    compiled = nvrtc.compile_source(
        (tmp_path / "transpose.cu").read_text(encoding="utf-8"),
        name="transpose.cu",
        entries=(launch.entry,),
        arch="sm_90a",
        include_dirs=(folder("kernels") / "include",),
    )
    assert [(0, ())] == [(info.spill_bytes, info.warnings) for info in compiled.functions.values()]


@pytest.mark.parametrize("arch", ARCHS)
def test_the_kernels_of_ceilings_compile_without_spills(arch: str) -> None:
    """A spilled chain of multiply-adds would be a memory kernel."""
    if int(arch[3:].rstrip("af")) not in nvrtc.targets():
        pytest.skip(f"NVRTC {nvrtc.version()} has no {arch}")
    result = nvrtc.compile_source(
        rate_forms.SOURCE.read_text(encoding="utf-8"),
        name=rate_forms.SOURCE.name,
        entries=rate_forms.ENTRIES,
        arch=arch,
    )
    assert list(rate_forms.ENTRIES) == list(result.functions)
    assert {0} == {info.spill_bytes for info in result.functions.values()}
    assert [] == [text for info in result.functions.values() for text in info.warnings]
