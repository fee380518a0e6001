"""How declarations are found: by path, the bundled ones by the same way as a user's."""

import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from solkit.declare.arg import Arg, Array
from solkit.declare.kernel import CPU_DTYPES, Kernel
from solkit.declare.operator import Operator
from solkit.dtypes import DTYPES
from solkit.errors import BadInput, SolkitError, unknown, words
from solkit.resources import folder

_LOADED = "solkit_loaded_"  # the modules of declarations


@dataclass(slots=True)
class Registry:
    """Operators by name, and kernels by operator and name."""

    operators: dict[str, Operator] = field(default_factory=dict)
    kernels: dict[tuple[str, str], Kernel] = field(default_factory=dict)

    def add(self, declarations: Iterable[Operator | Kernel], *, where: str) -> None:
        """Take in declarations; a name declared twice is an error, not a choice."""
        kernels = []
        for declaration in declarations:
            if isinstance(declaration, Kernel):
                kernels.append(declaration)
                continue
            known = self.operators.setdefault(declaration.name, declaration)
            if known is not declaration:
                raise BadInput(
                    f"{where}: the operator {declaration.name!r} is declared already",
                    remedy="give it another name, or declare only a Kernel with operator="
                    f"{declaration.name!r}",
                )
            reference = reference_kernel(declaration)
            self.kernels[declaration.name, reference.name] = reference
        for kernel in kernels:
            if isinstance(kernel.operator, Operator):
                known = self.operators.setdefault(kernel.operator.name, kernel.operator)
                if known is not kernel.operator:
                    raise BadInput(
                        f"{where}: kernel {kernel.name!r} carries another operator named "
                        f"{kernel.operator.name!r}",
                        remedy="refer to the operator by its name",
                    )
                reference = reference_kernel(known)
                self.kernels.setdefault((known.name, reference.name), reference)
            elif kernel.operator not in self.operators:
                raise unknown(
                    f"operator of kernel {kernel.name!r}:",
                    kernel.operator,
                    self.operators,
                    where=where,
                )
            else:
                kernel = replace(kernel, operator=self.operators[kernel.operator])  # noqa: PLW2901
            key = (kernel.operator_name, kernel.name)
            if self.kernels.setdefault(key, kernel) is not kernel:
                raise BadInput(
                    f"{where}: {kernel.operator_name!r} has a kernel {kernel.name!r} already",
                    remedy="give it another name",
                )

    def kernel_names(self, operator: str, device: str) -> tuple[str, ...]:
        """Return the kernels of an operator that run on a kind of device, in the order declared."""
        return tuple(
            name
            for (owner, name), kernel in self.kernels.items()
            if owner == operator and kernel.device == device
        )


def reference_kernel(operator: Operator) -> Kernel:
    """Return the operator's NumPy reference as a kernel of the CPU device, named `numpy`."""
    return Kernel(
        name="numpy",
        operator=operator,
        function=_writes_outputs(operator),
        device="cpu",
        dtypes=tuple(dtype for dtype in CPU_DTYPES if dtype in operator.dtypes or dtype == "fp64"),
        summary="the NumPy reference, timed on this host",
    )


def _writes_outputs(operator: Operator) -> Callable[..., None]:
    asked = (*operator.reference_params, *operator.reference_axes)

    def run(**values: Any) -> None:  # noqa: ANN401  # arrays, params and axes by name
        present = {arg.name: arg for arg in operator.args if arg.exists(values)}
        inputs = {
            name: _given(arg, values[name]) for name, arg in present.items() if arg.role != "out"
        }
        rest = {name: values[name] for name in asked if name in values}
        results = operator.reference(**inputs, **rest)
        outputs = [arg for arg in present.values() if arg.role != "in"]
        if len(outputs) == 1 and not isinstance(results, tuple):
            results = (results,)
        for arg, result in zip(outputs, results, strict=True):
            values[arg.name][...] = _stored(arg, result)

    return run


def _given(arg: Arg, array: Array) -> Array:
    """Return an input as a reference takes it: codes as their values, integers as float64."""
    from solkit.declare import fp8  # noqa: PLC0415  # NumPy loads only where it is used

    if arg.dtype == fp8.NAME:
        return fp8.decoded(array)
    return array.astype("f8") if _number(arg) == "int" else array


def _stored(arg: Arg, result: Array) -> Array:
    """Return a reference's result as an array of the argument's dtype holds it."""
    from solkit.declare import fp8  # noqa: PLC0415  # as above

    if arg.dtype == fp8.NAME:
        return fp8.encoded(result)
    return result.round() if _number(arg) == "int" else result  # a plain store would cut off


def _number(arg: Arg) -> str:
    return DTYPES[arg.dtype].number if arg.dtype else "float"


def load(path: Path) -> list[Operator | Kernel]:
    """Import one .py file, or every .py directly in a folder, and return what they declare."""
    if path.is_dir():
        found = [item for file in sorted(path.glob("*.py")) for item in load(file)]
        if not found:
            raise BadInput(
                f"{path}: no .py file in it declares an Operator or a Kernel",
                remedy="see docs/write-a-kernel.md",
            )
        return found
    if not path.is_file():
        raise BadInput(
            f"{path}: no such file or folder", remedy="--load takes a .py file or a folder of them"
        )
    name = f"{_LOADED}{path.stem}_{sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadInput(
            f"{path}: is no Python file", remedy="--load takes a .py file or a folder of them"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SolkitError as error:
        raise BadInput(f"{path}: {error.message}", remedy=error.remedy) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a file that raises or exits is that file's fault
        place = raised_at(error)
        line = f" (line {place[1]})" if place else ""
        raise BadInput(
            f"{path}: importing it raised {type(error).__name__}: {words(error)}{line}",
            remedy="run it by itself: python " + str(path),
        ) from error
    return _declared(vars(module).values(), path)


def raised_at(error: BaseException) -> tuple[Path, int] | None:
    """Return the file and line of loaded code that an error came through last, if it did."""
    found, frame = None, error.__traceback__
    while frame is not None:
        if str(frame.tb_frame.f_globals.get("__name__", "")).startswith(_LOADED):
            found = Path(frame.tb_frame.f_code.co_filename), frame.tb_lineno
        frame = frame.tb_next
    return found


def _declared(values: Iterable[object], path: Path) -> list[Operator | Kernel]:
    found: list[Operator | Kernel] = []
    for value in values:
        items = value if isinstance(value, (tuple, list)) else (value,)
        found += [item for item in items if isinstance(item, (Operator, Kernel))]
    unique = list({id(item): item for item in found}.values())
    return [
        replace(item, folder=path.resolve().parent) if isinstance(item, Kernel) else item
        for item in unique
    ]


def bundled() -> Registry:
    """Return what the kernels folder declares."""
    registry = Registry()
    for path in sorted(folder("kernels").glob("*/*.py")):
        registry.add(load(path), where=str(path))
    return registry
