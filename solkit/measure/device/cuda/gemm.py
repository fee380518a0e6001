"""Matrix-product ceilings of a CUDA device: what cuBLAS reaches on random data, in a burst."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from cupy.cuda.device import get_cublas_handle

from solkit.declare.operator import Arg, Array
from solkit.dtypes import DTYPES
from solkit.measure.device.base import Device
from solkit.model import Case, PipeCeiling
from solkit.stats import median

_WARM, _COUNT = 3, 12
_EXTENTS = {"fp32": (4096,), "fp16": (4096, 8192), "bf16": (4096, 8192)}
_CUDA_TYPE = {"fp32": 0, "fp16": 2, "bf16": 14}  # cudaDataType: CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF


def gemm_ceilings(device: Device) -> Iterator[PipeCeiling]:
    """Yield the median rate of cuBLAS on square matrices, per pipe and extent (fp32 accumulation).

    Without cuBLAS (an optional wheel) there is nothing to yield: the pipes stay without a ceiling.
    """
    try:
        from cupy_backends.cuda.libs import cublas  # noqa: PLC0415  # loads the library on import
    except ImportError:
        return
    for dtype, extents in _EXTENTS.items():
        for extent in extents:
            case = Case("gemm", "cublas", {"rows": extent, "cols": extent}, dtype)
            left, right, out = (
                device.allocate(Arg(name, "rows cols"), case, 1, seed=0)[0]
                for name in ("left", "right", "out")
            )
            call = functools.partial(_gemm, cublas, left, right, out, extent, _CUDA_TYPE[dtype])
            device.time([call] * _WARM)
            seen = [sample.time_s for sample in device.time([call] * _COUNT)]
            yield PipeCeiling(
                DTYPES[dtype].matmul_pipe,
                2 * extent**3,
                median(seen),
                f"cuBLAS {dtype} {extent}^3, burst",
            )


def _gemm(cublas: Any, left: Array, right: Array, out: Array, extent: int, kind: int) -> None:  # noqa: ANN401  # a module
    one, zero = np.ones(1, dtype=np.float32), np.zeros(1, dtype=np.float32)
    plain = cublas.CUBLAS_OP_N
    left_at, right_at, out_at = (array.data.ptr for array in (left, right, out))
    # Column-major: the product of the transposes, which is what row-major arrays hold.
    shape = (extent, extent, extent)
    operands = (right_at, kind, extent, left_at, kind, extent)
    how = (cublas.CUBLAS_COMPUTE_32F, cublas.CUBLAS_GEMM_DEFAULT)
    handle = get_cublas_handle()
    cublas.gemmEx(
        handle,
        plain,
        plain,
        *shape,
        one.ctypes.data,
        *operands,
        zero.ctypes.data,
        out_at,
        kind,
        extent,
        *how,
    )
