"""A kernel made ready for one case: compiled, loaded, its arguments checked and bound."""

import contextlib
import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np
from cupy.cuda import driver
from cupy.cuda.function import Module

from solkit.declare import fp8
from solkit.declare.arg import Array
from solkit.declare.card import Card
from solkit.declare.kernel import Kernel, Launch
from solkit.declare.operator import Operator
from solkit.declare.tensor_map import StoredTensor, TensorMap
from solkit.errors import BadInput
from solkit.measure.aligned import refuse_unaligned
from solkit.measure.device import nvrtc
from solkit.measure.device.base import Buffers, Call, Program
from solkit.measure.device.cuda import clusters, tensor_maps
from solkit.measure.device.cuda.extended import ExtendedCall
from solkit.measure.returned import CUDA_KINDS, bytes_of, claimed, on_device, same_form
from solkit.model import Case

_GIVEN_SHARED_BYTES = 48 * 1024  # more than this must be asked for

Name = str | int | float | TensorMap


def prepare(
    kernel: Kernel,
    operator: Operator,
    case: Case,
    *,
    arch: str,
    include: Path,
    card: Card,
) -> Program:
    """Compile (or take from the cache) and load a kernel for one case."""
    if kernel.function is not None:
        return _python_program(kernel, operator, case)
    launches = kernel.launches_on(case, card)
    if not launches:
        raise BadInput(
            f"{case}: the kernel declares no launch", remedy="return at least one Launch"
        )
    compilation = compile_kernel(kernel, launches, arch, include)
    module = Module()
    module.load(compilation.cubin)
    workspace = {
        name: cp.empty(size, dtype=cp.uint8)
        for name, size in kernel.workspace_on(case, card).items()
    }
    steps = []
    for launch in launches:
        function = module.get_function(compilation.lowered[launch.entry])
        static_bytes = compilation.functions[launch.entry].shared_bytes or 0
        _allow_shared(function, launch, static_bytes, case, card)
        clusters.allow(function.ptr, launch, case, card)
        names: tuple[Name, ...] = (
            launch.args
            if launch.args is not None
            else (*(arg.name for arg in operator.args_of(case)), *operator.axes)
        )
        tensors = _mapped(names, operator, case, card)
        _check_parameters(function.ptr, launch, names, operator, case, workspace)
        steps.append(_step(function, launch, names, case, workspace, tensors))

    def bind(buffers: Buffers) -> Call:
        addresses = {name: array.data.ptr for name, array in buffers.items()}
        refuse_unaligned(case, addresses, kernel.align_bytes)
        ready = [step(buffers) for step in steps]
        return ready[0] if len(ready) == 1 else functools.partial(_in_turn, ready)

    entries = tuple(dict.fromkeys(launch.entry for launch in launches))
    return Program(bind, tuple(compilation.functions[entry] for entry in entries), len(launches))


def _in_turn(calls: Sequence[Call]) -> None:
    for call in calls:
        call()


def _mapped(
    names: Sequence[Name], operator: Operator, case: Case, card: Card
) -> dict[TensorMap, StoredTensor]:
    """Return what each tensor map among the parameters is a map of; BadInput where it can't be."""
    maps = [name for name in names if isinstance(name, TensorMap)]
    if maps and not card.has_clusters:
        raise BadInput(
            f"{case}: tensor maps are for cards from compute capability 9.0 on, this one has "
            f"{card.capability_text}",
            remedy="declare min_compute_capability='9.0', or launch another kernel on such cards: "
            "launches(case, card)",
        )
    return {wanted: wanted.tensor(operator, case) for wanted in maps}


def _step(
    function: Any,  # noqa: ANN401  # a CuPy function
    launch: Launch,
    names: Sequence[Name],
    case: Case,
    workspace: Mapping[str, Array],
    tensors: Mapping[TensorMap, StoredTensor],
) -> Callable[[Buffers], Call]:
    """Return what binds a launch to arrays: CuPy's, or where that can't, the extended launch."""

    def parameter(name: Name, buffers: Buffers) -> Any:  # noqa: ANN401  # array, scalar or map
        if isinstance(name, TensorMap):
            return tensor_maps.encoded(name, tensors[name], buffers[name.arg].data.ptr)
        return _value(name, buffers, case, workspace)

    def bind(buffers: Buffers) -> Call:
        values = tuple(parameter(name, buffers) for name in names)
        if not tensors and launch.cluster_shape == (1, 1, 1):
            return functools.partial(
                function, launch.grid, launch.block, values, launch.shared_bytes
            )
        return ExtendedCall(
            launch,
            function.ptr,
            tuple(map(_packed, values)),
            stream=_stream,
            check=driver.check_status,
            keep=(values, function),
        )

    return bind


def _stream() -> int:
    return int(cp.cuda.get_current_stream().ptr)


def _packed(value: Any) -> Any:  # noqa: ANN401  # array, scalar or map; a ctypes object
    if isinstance(value, ctypes.Array):
        return value
    if isinstance(value, np.generic):
        return (ctypes.c_float if isinstance(value, np.floating) else ctypes.c_int64)(value.item())
    return ctypes.c_void_p(value.data.ptr)


def _allow_shared(
    function: Any,  # noqa: ANN401  # a CuPy function
    launch: Launch,
    static_bytes: int,
    case: Case,
    card: Card,
) -> None:
    """Let a launch have the dynamic shared memory it asks for; BadInput where a block has less."""
    limit_bytes = card.shared_bytes_per_block
    if launch.shared_bytes + static_bytes > limit_bytes:
        beside = f" beside {static_bytes} that are declared" * bool(static_bytes)
        raise BadInput(
            f"{case}: {launch.entry} asks for {launch.shared_bytes} bytes of shared memory"
            f"{beside}, a block has {limit_bytes}",
            remedy="use a smaller tile or fewer stages on this card: launches(case, card) finds "
            "its limit in card.shared_bytes_per_block",
        )
    if launch.shared_bytes + static_bytes > _GIVEN_SHARED_BYTES:
        attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.funcSetAttribute(function.ptr, attribute, launch.shared_bytes)


def compile_kernel(
    kernel: Kernel, launches: Sequence[Launch], arch: str, include: Path
) -> nvrtc.Compilation:
    """Compile all entries of a kernel's launches; the compiler's log comes back in the error."""
    path = kernel.folder / kernel.source
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror}", remedy="`source` is relative to the declaration"
        ) from error
    return nvrtc.compile_source(
        source,
        name=str(path),
        entries=tuple(dict.fromkeys(launch.entry for launch in launches)),
        arch=arch,
        options=kernel.options,
        include_dirs=(include, kernel.folder),
    )


def compile_quietly(kernel: Kernel, case: Case, arch: str, include: Path, card: Card) -> None:
    """Compile for the cache; what is wrong is said when the case's turn comes."""
    with contextlib.suppress(Exception):
        launches = kernel.launches_on(case, card)
        if launches:
            compile_kernel(kernel, launches, arch, include)


def _python_program(kernel: Kernel, operator: Operator, case: Case) -> Program:
    params = kernel.taken(operator.completed(case).params)
    function = kernel.function or _nothing

    def bind(buffers: Buffers) -> Call:
        arrays = {arg.name: _typed(buffers[arg.name], arg.dtype_of(case)) for arg in args}
        if kernel.take is not None:
            arrays = {name: kernel.take(array) for name, array in arrays.items()}
        return functools.partial(function, **arrays, **params)

    def adopt(result: object, buffers: Buffers) -> None:
        targets = {arg.name: _typed(buffers[arg.name], arg.dtype_of(case)) for arg in outputs}
        taken = {}
        for name, returned in claimed(result, targets).items():
            array = bytes_of(returned) if name in codes else returned
            if not isinstance(array, cp.ndarray):
                array = on_device(name, array, cp.from_dlpack, kinds=CUDA_KINDS, where="the GPU")
            if name in codes and array.itemsize == 1:
                array = array.view(cp.uint8)
            same_form(name, array, targets[name])
            array = array.view(f"u{array.itemsize}")  # its bits: bf16 can be had no other way
            own = any(cp.may_share_memory(array, target) for target in targets.values())
            taken[name] = array.copy() if own else array  # it may be another output, turned round
        for name, array in taken.items():
            targets[name].view(array.dtype)[...] = array

    args, outputs = operator.args_of(case), operator.outputs_of(case)
    kernel.refuse_call(case, [*(arg.name for arg in args), *params])
    codes = {arg.name for arg in outputs if arg.dtype_of(case) == fp8.NAME}
    return Program(bind, adopt=adopt)


def _nothing(**_values: Any) -> None:  # noqa: ANN401  # takes what any kernel takes
    """Compute nothing: the checks then say that no output was written."""


def _typed(array: Array, dtype: str) -> Array:
    if dtype != "bf16":
        return array
    try:
        from ml_dtypes import bfloat16  # noqa: PLC0415  # only Python kernels on bf16 need it
    except ImportError as error:
        raise BadInput(
            "bf16 arrays for Python kernels need ml_dtypes", remedy="pip install ml_dtypes"
        ) from error
    return array.view(bfloat16)


def _value(name: str | float, buffers: Buffers, case: Case, workspace: Mapping[str, Array]) -> Any:  # noqa: ANN401  # array or scalar
    if isinstance(name, str):
        if name in buffers:
            return buffers[name]
        if name in case.shape:
            return np.int64(case.shape[name])
        if name in workspace:
            return workspace[name]
        raise BadInput(
            f"{case}: the launch argument {name!r} is no argument, axis or workspace",
            remedy=f"known: {', '.join([*buffers, *case.shape, *workspace])}",
        )
    return np.int64(name) if isinstance(name, int) else np.float32(name)


def _check_parameters(
    pointer: int,
    launch: Launch,
    names: Sequence[Name],
    operator: Operator,
    case: Case,
    workspace: Mapping[str, Array],
) -> None:
    """Refuse a launch whose argument list isn't the one the compiled function takes."""
    dummies = {arg.name: None for arg in operator.args_of(case)}
    for name in names:
        if not isinstance(name, TensorMap):
            _value(name, dummies, case, workspace)
    sizes = [_parameter_bytes(name) for name in names]
    taken = _parameter_sizes(pointer)
    if taken is not None and taken != sizes:
        raise BadInput(
            f"{case}: {launch.entry} takes {len(taken)} parameters of {taken} bytes, the "
            f"declaration passes {len(sizes)} ({', '.join(map(str, names))}) of {sizes} bytes",
            remedy="a pointer for each argument, then a long long for each axis; or name them in "
            "Launch(args=...), TensorMap(...) for a `const __grid_constant__ TensorMap`",
        )


def _parameter_bytes(name: Name) -> int:
    """Return what a parameter takes: a pointer or an axis 8 bytes, like a Python int."""
    if isinstance(name, TensorMap):
        return tensor_maps.MAP_BYTES
    return 4 if isinstance(name, float) else 8


def _parameter_sizes(pointer: int) -> list[int] | None:
    """Ask the driver for a function's parameters; None where it can't tell (before CUDA 12.4)."""
    try:
        ask = ctypes.CDLL("libcuda.so.1").cuFuncGetParamInfo
    except (OSError, AttributeError):
        return None
    sizes: list[int] = []
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    while True:
        status = ask(
            ctypes.c_void_p(pointer),
            ctypes.c_size_t(len(sizes)),
            ctypes.byref(offset),
            ctypes.byref(size),
        )
        if status:
            return sizes
        sizes.append(size.value)
