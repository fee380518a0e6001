"""A tensor map made for an array: the driver's encoding of what the copy engine is to do.

Names, numbers and layouts are those of cuda.h (12.0 to 13).
"""

import ctypes
from typing import Any

from solkit.declare.tensor_map import GRANULE_BYTES, StoredTensor, TensorMap
from solkit.errors import BadInput
from solkit.measure.device.cuda import extended

MAP_BYTES, ALIGN_BYTES = 128, 128  # CUtensorMap; the driver asks for 64, its header for 128
# CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion of the driver.
_KINDS = {
    "uint8": 0,
    "int8": 0,
    "fp8_e4m3": 0,
    "int32": 3,
    "fp16": 6,
    "fp32": 7,
    "fp64": 8,
    "bf16": 9,
}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
_NOT_INTERLEAVED, _ZERO_FILL = 0, 0
_MapWords = ctypes.c_uint64 * (MAP_BYTES // 8)


def encoded(
    wanted: TensorMap,
    tensor: StoredTensor,
    address: int,
    *,
    library: Any = None,  # noqa: ANN401  # the driver, or a test's
) -> ctypes.Array[ctypes.c_uint64]:
    """Return the 128 bytes of a map of the tensor that lies at an address."""
    if address % GRANULE_BYTES:
        raise BadInput(
            f"TensorMap({wanted.arg!r}): the array begins at an address that is no multiple of "
            f"{GRANULE_BYTES}",
            remedy="declare align_bytes=16 for the kernel, which is the default",
        )
    made = _aligned()
    status = (library or extended.libcuda()).cuTensorMapEncodeTiled(
        made, *encoding(wanted, tensor, address)
    )
    if status:
        raise BadInput(
            f"TensorMap({wanted.arg!r}): the driver refuses it (cuTensorMapEncodeTiled returned "
            f"{status}): {tensor.dtype} {tensor.shape}, box {wanted.box}, swizzle "
            f"{wanted.swizzle_bytes}",
            remedy="take a smaller box, or another swizzle",
        )
    return made


def encoding(wanted: TensorMap, tensor: StoredTensor, address: int) -> tuple[Any, ...]:
    """Return what cuTensorMapEncodeTiled is called with behind the map; axes contiguous first."""
    axes = len(tensor.shape)
    return (
        ctypes.c_int(_KINDS[tensor.dtype]),
        ctypes.c_uint32(axes),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * axes)(*reversed(tensor.shape)),
        (ctypes.c_uint64 * max(1, axes - 1))(*reversed(tensor.strides_bytes)),
        (ctypes.c_uint32 * axes)(*reversed(wanted.box)),
        (ctypes.c_uint32 * axes)(*[1] * axes),
        ctypes.c_int(_NOT_INTERLEAVED),
        ctypes.c_int(_SWIZZLES[wanted.swizzle_bytes]),
        ctypes.c_int(_PROMOTIONS[wanted.l2_promotion_bytes]),
        ctypes.c_int(_ZERO_FILL),
    )


def _aligned() -> ctypes.Array[ctypes.c_uint64]:
    """Return 128 bytes that begin at a multiple of 128; the memory around them lives with them."""
    memory = ctypes.create_string_buffer(MAP_BYTES + ALIGN_BYTES)
    return _MapWords.from_buffer(memory, -ctypes.addressof(memory) % ALIGN_BYTES)
