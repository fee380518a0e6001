"""A kernel: one way to compute an operator, as CUDA source or as a Python callable."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from solkit.declare.operator import Operator
from solkit.dtypes import DTYPES
from solkit.errors import BadInput, unknown
from solkit.model import Case

CPU_DTYPES = ("fp64", "fp32")  # what NumPy has arithmetic for


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a CUDA function.

    entry: a name expression of the source, e.g. "swiglu<__half, 256, 8>".
    args: names of arguments, axes and workspace buffers, or numbers. Left out: a pointer for each
    argument in the operator's order, then a 64-bit integer for each axis in the operator's order.
    Axes are passed as `long long`, Python ints as `long long`, floats as `float`.
    """

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    args: tuple[str | int | float, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One way to compute `operator` (the object, or its name).

    CUDA: `source` (a .cu beside the declaration) and `launches(case)`; `workspace(case)` gives
    scratch buffers by name and bytes. Python: `function(**arrays, **params)` on arrays of the
    device named, which writes the outputs in place and returns None, or returns them: an array, or
    a tuple in the order of the outputs. On the CPU it has NumPy's dtypes alone.
    refuse(case): why this kernel does not take a case, or None.
    min_compute_capability: the oldest card it runs on.
    by_name_only: a sweep measures it only where it names it; a variant that serves as a ceiling.
    """

    name: str
    operator: Operator | str
    source: str = ""
    launches: Callable[[Case], tuple[Launch, ...]] | None = None
    function: Callable[..., Any] | None = None
    device: Literal["cuda", "cpu"] = "cuda"
    dtypes: tuple[str, ...] = ("fp32", "fp16", "bf16")
    refuse: Callable[[Case], str | None] | None = None
    workspace: Callable[[Case], Mapping[str, int]] | None = None
    min_compute_capability: str = "7.5"
    options: tuple[str, ...] = ()
    summary: str = ""
    by_name_only: bool = False
    folder: Path = field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        """Refuse a declaration that is neither CUDA nor Python, or both, or for no device."""
        cuda = bool(self.source) and self.launches is not None
        if cuda == (self.function is not None):
            raise BadInput(
                f"kernel {self.name!r}: give source and launches (CUDA), or function (Python)",
                remedy="see docs/write-a-kernel.md",
            )
        where = f"kernel {self.name!r}"
        if self.device not in ("cuda", "cpu"):
            raise unknown("device", self.device, ("cuda", "cpu"), where=where)
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                raise unknown("dtype", dtype, DTYPES, where=where)
        if self.device == "cpu":
            held = tuple(dtype for dtype in self.dtypes if dtype in CPU_DTYPES)
            object.__setattr__(self, "dtypes", held)

    @property
    def operator_name(self) -> str:
        """The name of the operator it computes."""
        return self.operator if isinstance(self.operator, str) else self.operator.name

    def refusal(self, case: Case) -> str | None:
        """Return why this kernel does not take the case, or None."""
        if case.dtype not in self.dtypes:
            return f"kernel {self.name!r} has no {case.dtype} (it has {', '.join(self.dtypes)})"
        return self.refuse(case) if self.refuse else None
