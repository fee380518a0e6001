"""A peer: a library's own way to compute an operator, declared as a kernel of it.

Nothing here imports a library: a declaration is read also where none is installed.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from solkit import Case, Kernel

INSTALL = {
    "torch": "torch",
    "triton": "triton",
    "liger_kernel": "liger-kernel",
    "quack": "quack-kernels",
}


def peer(
    name: str,
    operator: str,
    compute: Callable[..., Any],
    *,
    needs: Sequence[str] = ("torch",),
    refuse: Callable[[Case], str | None] | None = None,
    dtypes: tuple[str, ...] = ("fp32", "fp16", "bf16"),
    summary: str = "",
    by_name_only: bool = False,
) -> Kernel:
    """Declare a library's way to compute an operator.

    compute(**arguments, **params): the operator's arguments as torch tensors on the arrays' own
    memory; it writes the outputs and returns None, or returns new tensors for them.
    needs: the modules without which every case is skipped. refuse(case): why else one is.
    by_name_only: a sweep measures it only where it names it.
    """

    def function(**values: Any) -> Any:  # noqa: ANN401  # arrays and params by name
        return _part("tensors").kept(compute(**values))

    def refusal(case: Case) -> str | None:
        return next(filter(None, map(missing, needs)), None) or (refuse(case) if refuse else None)

    return Kernel(
        name=name,
        operator=operator,
        function=function,
        take=lambda array: _part("tensors").tensor(array),
        refuse=refusal,
        dtypes=dtypes,
        summary=summary,
        by_name_only=by_name_only,
    )


@cache
def missing(module: str) -> str | None:
    """Return what to install where a module can't be found; it is not imported for that."""
    if find_spec(module) is not None:
        return None
    return f"{module} is not installed: pip install {INSTALL[module]}"


def later(module: str, function: str, *given: object) -> Callable[..., Any]:
    """Return a function of a module beside this one, which is imported at the first call."""

    def call(**values: Any) -> Any:  # noqa: ANN401  # tensors and params by name
        return getattr(_part(module), function)(*given, **values)

    return call


@cache
def _part(name: str) -> Any:  # noqa: ANN401  # a module
    return import_module(f"peers.parts.{name}")
