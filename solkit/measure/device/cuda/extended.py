"""The driver's extended launch (cuLaunchKernelEx) through ctypes: CuPy has no launch attributes.

Names, numbers and layouts are those of cuda.h (11.8 to 13). Nothing is loaded at import.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from solkit.declare.kernel import Launch

_CLUSTER_DIMENSION = 4  # CUlaunchAttributeID
_VALUE_WORDS = 16  # of 32 bits: CUlaunchAttributeValue is a union of 64 bytes


class Attribute(ctypes.Structure):
    """CUlaunchAttribute; of the values only the cluster's are used: three words."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("pad", ctypes.c_uint32),
        ("value", ctypes.c_uint32 * _VALUE_WORDS),
    )


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


@cache
def libcuda() -> ctypes.CDLL:
    """Return the driver's library; OSError where there is none."""
    return ctypes.CDLL("libcuda.so.1")


def config(launch: Launch) -> Config:
    """Return a launch's configuration, with its cluster where it asks for one."""
    made = Config(launch.grid, launch.block, launch.shared_bytes)
    if launch.cluster_shape != (1, 1, 1):
        made.attributes = ctypes.pointer(Attribute(_CLUSTER_DIMENSION, 0, launch.cluster_shape))
        made.attribute_count = 1
    return made


class ExtendedCall:
    """A launch bound to its parameters: calling it enqueues the kernel on the current stream.

    parameters: one ctypes object (or array) each, which the launch copies; keep: what must live as
    long as the call does, the arrays behind the pointers and the function's module.
    """

    __slots__ = ("_addresses", "_config", "_function", "_held", "_launch", "_raise", "_stream")

    def __init__(
        self,
        launch: Launch,
        pointer: int,
        parameters: Sequence[Any],
        *,
        stream: Callable[[], int],
        check: Callable[[int], object],
        keep: object = None,
        library: Any = None,  # noqa: ANN401  # the driver, or a test's
    ) -> None:
        self._launch = (library or libcuda()).cuLaunchKernelEx
        self._config, self._function = config(launch), ctypes.c_void_p(pointer)
        addresses = map(ctypes.addressof, parameters)
        self._addresses = (ctypes.c_void_p * len(parameters))(*addresses)
        self._held = (parameters, keep)
        self._stream, self._raise = stream, check

    def __call__(self) -> None:
        """Enqueue the kernel; what the driver refuses is raised by `check`."""
        self._config.stream = self._stream()
        status = self._launch(ctypes.byref(self._config), self._function, self._addresses, None)
        if status:
            self._raise(status)
