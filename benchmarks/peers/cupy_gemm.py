"""cuBLAS through CuPy: the residual is copied into the output, and the product added to it."""

from typing import Any

from solkit import Array, Kernel

# cudaDataType and cublasComputeType_t of cuBLAS.
KINDS = {"float16": 2, "bfloat16": 14}
COMPUTE_32F = 68


def matmul_add(
    x: Array,
    w: Array,
    residual: Array,
    out: Array,
    weight: str,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> None:
    """Call cublasGemmEx on out, which holds the residual then: as column-major, out^T = w^T x^T."""
    import cupy  # noqa: PLC0415  # the device has it; whoever plans need not
    import numpy as np  # noqa: PLC0415
    from cupy.cuda.device import get_cublas_handle  # noqa: PLC0415
    from cupy_backends.cuda.libs import cublas  # noqa: PLC0415

    (rows, depth), cols, kind = x.shape, out.shape[-1], KINDS[x.dtype.name]
    transposed = weight == "nk"
    scales: Any = np.array([alpha, beta], dtype=np.float32)
    cupy.copyto(out.view("u2"), residual.view("u2"))
    cublas.gemmEx(
        get_cublas_handle(),
        cublas.CUBLAS_OP_T if transposed else cublas.CUBLAS_OP_N,
        cublas.CUBLAS_OP_N,
        cols,
        rows,
        depth,
        scales.ctypes.data,
        w.data.ptr,
        kind,
        depth if transposed else cols,
        x.data.ptr,
        kind,
        depth,
        scales.ctypes.data + scales.itemsize,
        out.data.ptr,
        kind,
        cols,
        COMPUTE_32F,
        cublas.CUBLAS_GEMM_DEFAULT,
    )


KERNEL = Kernel(
    name="cupy",
    operator="matmul_add",
    function=matmul_add,
    dtypes=("bf16", "fp16"),
    summary="cupy.copyto, then cublasGemmEx with beta",
)
