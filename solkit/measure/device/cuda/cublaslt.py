"""fp8 matrix products by cublasLt, the only library of CUDA's that has them, through ctypes.

CuPy loads libcublasLt for its own use but has no door to its fp8 products. Names, numbers and
layouts are those of cublasLt.h (11.8 to 13). Matrices are column-major there: the left one is given
transposed, as fp8 products ask for.
"""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from solkit.errors import NoDevice

SONAMES = ("libcublasLt.so.13", "libcublasLt.so.12")
WORKSPACE_BYTES = 64 << 20
# cudaDataType, cublasComputeType_t, cublasOperation_t, and attributes of cublasLt's descriptors.
_R_32F, _R_16BF, _R_8F_E4M3 = 0, 14, 28
_COMPUTE_32F = 68
_TRANSPOSED = 1
_DESC_TRANSA, _DESC_FAST_ACCUM, _PREF_WORKSPACE_BYTES = 3, 25, 1
_SUCCESS = 0


class Algo(ctypes.Structure):
    """cublasLtMatmulAlgo_t: 64 bytes that only the library reads."""

    _fields_ = (("data", ctypes.c_uint64 * 8),)


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algo", Algo),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


def load(names: tuple[str, ...] = SONAMES) -> ctypes.CDLL:
    """Return libcublasLt: the one that is loaded already, else by its name; NoDevice for none."""
    for mode in (getattr(os, "RTLD_NOLOAD", 0) | ctypes.DEFAULT_MODE, ctypes.DEFAULT_MODE):
        for name in names:
            try:
                return ctypes.CDLL(name, mode=mode)
            except OSError:
                continue
    raise NoDevice(
        f"{' and '.join(names)} can't be loaded",
        remedy="install cuBLAS: pip install 'solkit[cuda13]', or solkit[cuda12]",
    )


@dataclass(frozen=True, slots=True)
class Operands:
    """Device addresses: fp8 left [extent, extent] and right, rows contiguous; bf16 out; scratch.

    out[j, i] = sum over k of left[i, k] * right[j, k]; workspace holds WORKSPACE_BYTES.
    """

    left: int
    right: int
    out: int
    workspace: int


class Fp8Product:
    """A square product of e4m3 matrices with fp32 accumulation and bf16 results.

    fast: sums stay in the tensor core's own accumulator, which keeps fewer bits than fp32; without
    it they are added up in fp32 registers every few products, at some cost in speed.
    """

    def __init__(self, library: ctypes.CDLL, extent: int, *, fast: bool) -> None:
        self._library = library
        self._made: list[tuple[str, ctypes.c_void_p]] = []
        self._one, self._zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        self._handle: ctypes.c_void_p | None = None
        self._algo: Algo | None = None
        try:
            self._desc = self._create("cublasLtMatmulDesc", _COMPUTE_32F, _R_32F)
            self._set(_DESC_TRANSA, ctypes.c_int32(_TRANSPOSED))
            self._set(_DESC_FAST_ACCUM, ctypes.c_int8(fast))
            self._narrow = self._layout(_R_8F_E4M3, extent)
            self._wide = self._layout(_R_16BF, extent)
        except NoDevice:
            self.close()
            raise

    def choose(self) -> None:
        """Open the library on the current device and let it choose its algorithm."""
        handle = ctypes.c_void_p()
        self._check("cublasLtCreate", ctypes.byref(handle))
        self._handle = handle
        self._made.append(("cublasLtDestroy", handle))
        preference = self._create("cublasLtMatmulPreference")
        size = ctypes.c_size_t(WORKSPACE_BYTES)
        self._check(
            "cublasLtMatmulPreferenceSetAttribute",
            preference,
            ctypes.c_int(_PREF_WORKSPACE_BYTES),
            ctypes.byref(size),
            ctypes.c_size_t(ctypes.sizeof(size)),
        )
        result, found = Heuristic(), ctypes.c_int()
        layouts = (self._narrow, self._narrow, self._wide, self._wide)
        self._check(
            "cublasLtMatmulAlgoGetHeuristic",
            handle,
            self._desc,
            *layouts,
            preference,
            ctypes.c_int(1),
            ctypes.byref(result),
            ctypes.byref(found),
        )
        if not found.value or result.state != _SUCCESS:
            raise NoDevice("cublasLt has no fp8 product for this card")
        self._algo = result.algo

    def bind(self, operands: Operands, stream: Callable[[], int]) -> Callable[[], None]:
        """Return the call; `stream` gives the current stream's handle each time."""
        if self._handle is None or self._algo is None:
            raise NoDevice("cublasLt has not chosen an algorithm", remedy="call choose() first")
        out = ctypes.c_void_p(operands.out)
        arguments = (
            self._handle,
            self._desc,
            ctypes.byref(self._one),
            ctypes.c_void_p(operands.left),
            self._narrow,
            ctypes.c_void_p(operands.right),
            self._narrow,
            ctypes.byref(self._zero),
            out,
            self._wide,
            out,
            self._wide,
            ctypes.byref(self._algo),
            ctypes.c_void_p(operands.workspace),
            ctypes.c_size_t(WORKSPACE_BYTES),
        )

        def call() -> None:
            self._check("cublasLtMatmul", *arguments, ctypes.c_void_p(stream()))

        return call

    def attribute(self, number: int, kind: type[Any]) -> int:
        """Return an attribute of the product's descriptor, as the library holds it."""
        value, written = kind(), ctypes.c_size_t()
        self._check(
            "cublasLtMatmulDescGetAttribute",
            self._desc,
            ctypes.c_int(number),
            ctypes.byref(value),
            ctypes.c_size_t(ctypes.sizeof(value)),
            ctypes.byref(written),
        )
        return int(value.value)

    def close(self) -> None:
        """Give everything back to the library."""
        for name, made in reversed(self._made):
            getattr(self._library, name)(made)
        self._made.clear()

    def _create(self, name: str, *arguments: int) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self._check(f"{name}Create", ctypes.byref(made), *map(ctypes.c_int, arguments))
        self._made.append((f"{name}Destroy", made))
        return made

    def _layout(self, kind: int, extent: int) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        sizes = (ctypes.c_uint64(extent), ctypes.c_uint64(extent), ctypes.c_int64(extent))
        name = "cublasLtMatrixLayout"
        self._check(f"{name}Create", ctypes.byref(made), ctypes.c_int(kind), *sizes)
        self._made.append((f"{name}Destroy", made))
        return made

    def _set(self, number: int, value: Any) -> None:  # noqa: ANN401  # a ctypes integer
        self._check(
            "cublasLtMatmulDescSetAttribute",
            self._desc,
            ctypes.c_int(number),
            ctypes.byref(value),
            ctypes.c_size_t(ctypes.sizeof(value)),
        )

    def _check(self, name: str, *arguments: Any) -> None:  # noqa: ANN401  # ctypes values
        status = getattr(self._library, name)(*arguments)
        if status != _SUCCESS:
            raise NoDevice(f"{name} returned status {status}")
