"""Matrix products by cublasLt through ctypes: the library of CUDA's that has fp8 and epilogues.

CuPy loads libcublasLt for its own use but has no door to it. Names, numbers and layouts are those
of cublasLt.h (11.8 to 13). Matrices are column-major there.
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
R_32F, R_16F, R_16BF, R_8F_E4M3 = 0, 2, 14, 28
_COMPUTE_32F = 68
_TRANSPOSED = 1
_DESC_TRANSA, _DESC_FAST_ACCUM, _PREF_WORKSPACE_BYTES = 3, 25, 1
_DESC_EPILOGUE, _DESC_BIAS = 7, 8
BIAS, GELU_BIAS = 4, 4 | 32  # cublasLtEpilogue_t; its GELU is the tanh form
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
class Form:
    """What a product computes: out = alpha left @ right + beta source, accumulated in fp32.

    out, source [rows, cols], left [rows, depth], right [depth, cols], all column-major; left may be
    stored as its transpose. kind, out_kind: cudaDataType of the operands and of the results.
    fast_fp8: sums of fp8 products stay in the tensor core's own accumulator, which keeps fewer bits
    than fp32; False adds them up in fp32 registers every few products, at some cost in speed; None
    for other types. epilogue: BIAS or GELU_BIAS, what is done to that before it is rounded; None
    for nothing.
    """

    rows: int
    cols: int
    depth: int
    kind: int
    out_kind: int
    left_transposed: bool = False
    fast_fp8: bool | None = None
    alpha: float = 1.0
    beta: float = 0.0
    epilogue: int | None = None


@dataclass(frozen=True, slots=True)
class Operands:
    """Device addresses of a product's matrices; workspace holds WORKSPACE_BYTES.

    source: what is added to the product; None where it is out itself, or where nothing is.
    bias: an item for each row of out, where the form has an epilogue.
    """

    left: int
    right: int
    out: int
    workspace: int
    source: int | None = None
    bias: int | None = None


class Product:
    """A matrix product: its descriptors, the algorithms the library proposes, and its calls."""

    def __init__(self, library: ctypes.CDLL, form: Form) -> None:
        self._library = library
        self._made: list[tuple[str, ctypes.c_void_p]] = []
        self._alpha, self._beta = ctypes.c_float(form.alpha), ctypes.c_float(form.beta)
        self._handle: ctypes.c_void_p | None = None
        self._algos: tuple[Algo, ...] = ()
        held = (form.depth, form.rows) if form.left_transposed else (form.rows, form.depth)
        try:
            self._desc = self._create("cublasLtMatmulDesc", _COMPUTE_32F, R_32F)
            if form.left_transposed:
                self._set(_DESC_TRANSA, ctypes.c_int32(_TRANSPOSED))
            if form.fast_fp8 is not None:
                self._set(_DESC_FAST_ACCUM, ctypes.c_int8(form.fast_fp8))
            if form.epilogue is not None:
                self._set(_DESC_EPILOGUE, ctypes.c_int32(form.epilogue))
            self._left = self._layout(form.kind, *held)
            self._right = self._layout(form.kind, form.depth, form.cols)
            self._out = self._layout(form.out_kind, form.rows, form.cols)
        except NoDevice:
            self.close()
            raise

    def choose(self, most: int = 1, bias: int | None = None) -> int:
        """Open the library on the current device; return how many algorithms it proposes.

        The first is the one that it would choose itself. bias: an address, where the form has an
        epilogue: the library proposes nothing while it knows of none.
        """
        if bias is not None:
            self._set(_DESC_BIAS, ctypes.c_void_p(bias))
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
        results, found = (Heuristic * most)(), ctypes.c_int()
        layouts = (self._left, self._right, self._out, self._out)
        self._check(
            "cublasLtMatmulAlgoGetHeuristic",
            handle,
            self._desc,
            *layouts,
            preference,
            ctypes.c_int(most),
            results,
            ctypes.byref(found),
        )
        self._algos = tuple(
            Algo.from_buffer_copy(each.algo)
            for each in results[: found.value]
            if each.state == _SUCCESS
        )
        if not self._algos:
            raise NoDevice("cublasLt has no such product for this card")
        return len(self._algos)

    def bind(
        self, operands: Operands, stream: Callable[[], int], place: int = 0
    ) -> Callable[[], None]:
        """Return the call by one of the algorithms; `stream` gives the current stream's handle."""
        if self._handle is None or not self._algos:
            raise NoDevice("cublasLt has not chosen an algorithm", remedy="call choose() first")
        out = ctypes.c_void_p(operands.out)
        arguments = (
            self._handle,
            self._desc,
            ctypes.byref(self._alpha),
            ctypes.c_void_p(operands.left),
            self._left,
            ctypes.c_void_p(operands.right),
            self._right,
            ctypes.byref(self._beta),
            out if operands.source is None else ctypes.c_void_p(operands.source),
            self._out,
            out,
            self._out,
            ctypes.byref(self._algos[place]),
            ctypes.c_void_p(operands.workspace),
            ctypes.c_size_t(WORKSPACE_BYTES),
        )

        def call() -> None:
            if operands.bias is not None:  # calls on other buffers set others
                self._set(_DESC_BIAS, ctypes.c_void_p(operands.bias))
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

    def _layout(self, kind: int, rows: int, cols: int) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        sizes = (ctypes.c_uint64(rows), ctypes.c_uint64(cols), ctypes.c_int64(rows))
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


def fp8_product(library: ctypes.CDLL, extent: int, *, fast: bool) -> Product:
    """Return a square product of e4m3 matrices with bf16 results.

    out[j, i] = sum over k of left[i, k] * right[j, k], rows contiguous: fp8 products ask for the
    left matrix transposed.
    """
    form = Form(extent, extent, extent, R_8F_E4M3, R_16BF, left_transposed=True, fast_fp8=fast)
    return Product(library, form)
