"""Matrix-product ceilings of a CUDA device: what cuBLAS and cublasLt reach on random data."""

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda.device import get_cublas_handle

from solkit.declare.arg import Arg, Array
from solkit.errors import NoDevice
from solkit.measure.device.base import Call, Device, Sample
from solkit.measure.device.cuda import cublaslt
from solkit.measure.device.cuda.rates import Rates
from solkit.measure.load import Rest, burst, clock_hz, sustained
from solkit.model import Case, PipeCeiling, Settle
from solkit.stats import median

MOST_CALL_S = 0.03  # a larger product would take longer than it could teach
_FP8_LEAST = 89
_FP64_TENSOR = (80, 90, 100)  # where fp64 products run on tensor cores of full rate
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Product:
    """One kind of square product of cublasGemmEx.

    kind, out_kind: cudaDataType of the operands and the result; compute: cublasComputeType_t;
    scalar: NumPy's name for the type of alpha and beta. least: the oldest compute capability.
    """

    pipe: str
    dtype: str
    kind: int
    out_kind: int
    compute: int
    scalar: str
    least: int
    extents: tuple[int, ...]
    how: str = ""

    @property
    def is_int8(self) -> bool:
        """Whether the operands are int8: a format no operator has yet."""
        return self.scalar == "int32"


BF16 = Product("bf16_tensor", "bf16", 14, 14, 68, "float32", 80, (4096, 8192, 16384))
PRODUCTS = (
    BF16,
    Product("fp16_tensor", "fp16", 2, 2, 68, "float32", 70, (4096, 8192)),
    Product("tf32_tensor", "fp32", 0, 0, 77, "float32", 80, (4096, 8192), "in TF32"),
    Product("fp64_tensor", "fp64", 1, 1, 70, "float64", 60, (2048, 4096, 8192)),
    Product("int8_tensor", "int8", 3, 10, 72, "int32", 75, (4096, 8192), "int32 sums"),
)
FP8_EXTENTS = (4096, 8192)
SUSTAINED_EXTENTS = (4096, 8192)


def product_ceilings(
    device: Device, rates: Rates, rest: Rest, say: Say, note: Say
) -> list[PipeCeiling]:
    """Return the burst rate of each kind and extent, and bf16 sustained at its best extent.

    say hears what is measured, note why a pipe stays without a ceiling. Without cuBLAS (an optional
    wheel) all of these do.
    """
    try:
        from cupy_backends.cuda.libs import cublas  # noqa: PLC0415  # loads the library on import
    except ImportError as error:
        note(f"no tensor pipe has a ceiling: cuBLAS can't be loaded ({_first_line(error)})")
        return []
    found: list[PipeCeiling] = []
    capability = int(cp.cuda.Device().compute_capability)
    for product in PRODUCTS:
        if capability >= product.least:
            try:
                found += _bursts(device, cublas, product, rates, rest, say)
            except cublas.CUBLASError as error:
                note(f"{product.pipe} has no further ceiling: cuBLAS {product.dtype}: {error}")
    if capability >= _FP8_LEAST:
        found += _fp8(device, rates, rest, say, note)
    rested = {ceiling.flop for ceiling in found if ceiling.pipe == BF16.pipe}
    try:
        found += _sustained(device, cublas, rates, rested, say)
    except cublas.CUBLASError as error:
        note(f"{BF16.pipe} has no further sustained ceiling: cuBLAS {BF16.dtype}: {error}")
    device.release()
    return found


def _sustained(
    device: Device,
    cublas: Any,  # noqa: ANN401  # a module
    rates: Rates,
    rested: Collection[int],
    say: Say,
) -> Iterator[PipeCeiling]:
    """Yield the sustained rate of bf16 at each extent whose burst was measured.

    What had no room, or took too long, from rest has and does so now. A smaller product may leave
    the chip more rest than a larger one: the better of both counts.

    rested: the flop of each product measured from rest.
    """
    for extent in SUSTAINED_EXTENTS:
        if 2 * extent**3 in rested:
            say(f"{BF16.dtype} {extent}^3, sustained")
            call = _bound(device, cublas, BF16, extent, rates)
            yield _ceiling(BF16, extent, sustained(device, call), "sustained")


def _bursts(
    device: Device,
    cublas: Any,  # noqa: ANN401  # a module
    product: Product,
    rates: Rates,
    rest: Rest,
    say: Say,
) -> Iterator[PipeCeiling]:
    rate_flop_per_s = 0.0
    for extent in product.extents:
        flop = 2 * extent**3
        if rate_flop_per_s and flop / rate_flop_per_s > MOST_CALL_S:
            return
        if 3 * 8 * extent**2 > device.free_bytes() // 2:  # no operand is wider than fp64
            return
        say(f"{product.dtype} {extent}^3")
        call = _bound(device, cublas, product, extent, rates)
        ceiling = _ceiling(product, extent, burst(device, call, rest=rest), "burst")
        rate_flop_per_s = flop / ceiling.median_s
        yield ceiling


def _ceiling(
    product: Product, extent: int, samples: Sequence[Sample], settle: Settle
) -> PipeCeiling:
    times_s = tuple(sample.time_s for sample in samples)
    detail = f" {product.how}" if product.how else ""
    capability = int(cp.cuda.Device().compute_capability)
    slow_fp64 = product.pipe == "fp64_tensor" and capability not in _FP64_TENSOR
    return PipeCeiling(
        "fp64" if slow_fp64 else product.pipe,
        2 * extent**3,
        median(times_s),
        f"cuBLAS {product.dtype}{detail} {extent}^3, {settle}",
        settle,
        clock_hz(samples),
        times_s,
    )


def _bound(device: Device, cublas: Any, product: Product, extent: int, rates: Rates) -> Call:  # noqa: ANN401  # a module
    case = Case("gemm", "cublas", {"rows": extent, "cols": extent}, product.dtype)

    def operand(name: str, seed: int) -> Array:
        if product.is_int8:
            array = cp.empty((extent, extent), dtype=cp.int8)
            rates.fill("int8", array, seed)
            return array
        return device.allocate(Arg(name, "rows cols"), case, 1, seed=0)[0]

    left, right = operand("left", 1), operand("right", 2)
    if product.is_int8:
        out = cp.empty((extent, extent), dtype=cp.int32)
    else:
        out = device.allocate(Arg("out", "rows cols"), case, 1, seed=0)[0]
    return functools.partial(multiply, cublas, product, left, right, out)


def multiply(cublas: Any, product: Product, left: Array, right: Array, out: Array) -> None:  # noqa: ANN401  # a module
    """Compute out = left @ right, rows contiguous; int8: out[j, i] = sum of left[i] * right[j].

    Column-major, as cuBLAS is, row-major arrays are their transposes: the product of the right and
    the left. int8 products on tensor cores want the first operand transposed.
    """
    one, zero = np.ones(1, dtype=product.scalar), np.zeros(1, dtype=product.scalar)
    extent = left.shape[0]
    first, second = (left, right) if product.is_int8 else (right, left)
    cublas.gemmEx(
        get_cublas_handle(),
        cublas.CUBLAS_OP_T if product.is_int8 else cublas.CUBLAS_OP_N,
        cublas.CUBLAS_OP_N,
        extent,
        extent,
        extent,
        one.ctypes.data,
        first.data.ptr,
        product.kind,
        extent,
        second.data.ptr,
        product.kind,
        extent,
        zero.ctypes.data,
        out.data.ptr,
        product.out_kind,
        extent,
        product.compute,
        cublas.CUBLAS_GEMM_DEFAULT,
    )


def _fp8(device: Device, rates: Rates, rest: Rest, say: Say, note: Say) -> Iterator[PipeCeiling]:
    try:
        library = cublaslt.load()
        for extent in FP8_EXTENTS:
            arrays = fp8_operands(extent, rates)
            for fast in (True, False):
                sums = "fast" if fast else "fp32"
                say(f"fp8 {extent}^3, {sums} sums")
                with closing(cublaslt.fp8_product(library, extent, fast=fast)) as product:
                    samples = burst(device, bound_fp8(product, arrays), rest=rest)
                times_s = tuple(sample.time_s for sample in samples)
                yield PipeCeiling(
                    "fp8_tensor",
                    2 * extent**3,
                    median(times_s),
                    f"e4m3 {extent}^3 {sums} sums, cublasLt, burst",
                    sm_hz=clock_hz(samples),
                    times_s=times_s,
                )
    except NoDevice as error:
        note(f"fp8_tensor has no further ceiling: {error.message}")


def fp8_operands(extent: int, rates: Rates) -> tuple[Array, Array, Array, Array]:
    """Return random e4m3 operands, room for the bf16 result (as its bits), and the workspace."""
    left, right = (cp.empty((extent, extent), dtype=cp.uint8) for _ in range(2))
    for seed, array in enumerate((left, right), start=1):
        rates.fill("e4m3", array, seed)
    out = cp.empty((extent, extent), dtype=cp.uint16)
    return left, right, out, cp.empty(cublaslt.WORKSPACE_BYTES, dtype=cp.uint8)


def bound_fp8(product: cublaslt.Product, arrays: tuple[Array, Array, Array, Array]) -> Call:
    """Return the call of a product on these arrays, on CuPy's current stream."""
    product.choose()
    operands = cublaslt.Operands(*(array.data.ptr for array in arrays))
    return product.bind(operands, lambda: int(cp.cuda.get_current_stream().ptr))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
