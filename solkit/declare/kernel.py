"""A kernel: one way to compute an operator, as CUDA source or as a Python callable."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from solkit.declare.card import Card
from solkit.declare.operator import Operator
from solkit.declare.tensor_map import TensorMap
from solkit.dtypes import CASE_DTYPES
from solkit.errors import BadInput, unknown
from solkit.model import Case

CPU_DTYPES = ("fp64", "fp32")  # what NumPy has arithmetic for
MOST_ALIGN_BYTES = 256


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a CUDA function.

    entry: a name expression of the source, e.g. "swiglu<__half, 256, 8>".
    args: names of arguments, axes and workspace buffers, numbers, or tensor maps. Left out: a
    pointer for each argument in the operator's order, then a 64-bit integer for each axis in the
    operator's order. Axes are passed as `long long`, Python ints as `long long`, floats as `float`.
    cluster: the blocks of a cluster along x, or along x, y and z; 1: what the source says, if it
    says __cluster_dims__, else none.
    """

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    args: tuple[str | int | float | TensorMap, ...] | None = None
    cluster: int | tuple[int, int, int] = 1

    def __post_init__(self) -> None:
        """Refuse a cluster that is no count of blocks."""
        given = (self.cluster, 1, 1) if isinstance(self.cluster, int) else self.cluster
        whole = isinstance(given, tuple) and all(type(extent) is int for extent in given)
        if not whole or len(given) != 3 or min(given) < 1:  # noqa: PLR2004  # x, y and z
            raise BadInput(
                f"launch of {self.entry}: the cluster is {self.cluster!r}",
                remedy="give the blocks of a cluster along x, or a tuple for x, y and z",
            )

    @property
    def cluster_shape(self) -> tuple[int, int, int]:
        """The blocks of a cluster along x, y and z."""
        return (self.cluster, 1, 1) if isinstance(self.cluster, int) else self.cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One way to compute `operator` (the object, or its name).

    CUDA: `source` (a .cu beside the declaration) and `launches(case)`; `workspace(case)` gives
    scratch buffers by name and bytes. Where either depends on the card it names it, `launches(case,
    card)`; call them by launches_on() and workspace_on(). Python: `function(**arrays, **params)` on
    arrays of the device named, and the params that it names; it writes the outputs in place and
    returns None, or returns them: an array, or a tuple in the order of the outputs. On the CPU it
    has NumPy's dtypes alone. take(array): what the function gets in an array's place, such as a
    torch tensor on its memory; called when a call is bound to its arrays, so it is no part of it.
    refuse(case): why this kernel does not take a case, or None.
    min_compute_capability: the oldest card it runs on.
    align_bytes: where its arrays must begin, as its widest vector access needs; another is refused.
    by_name_only: a sweep measures it only where it names it; a variant that serves as a ceiling.
    """

    name: str
    operator: Operator | str
    source: str = ""
    launches: Callable[..., tuple[Launch, ...]] | None = None
    function: Callable[..., Any] | None = None
    take: Callable[[Any], Any] | None = None
    device: Literal["cuda", "cpu"] = "cuda"
    dtypes: tuple[str, ...] = ("fp32", "fp16", "bf16")
    refuse: Callable[[Case], str | None] | None = None
    workspace: Callable[..., Mapping[str, int]] | None = None
    min_compute_capability: str = "7.5"
    options: tuple[str, ...] = ()
    summary: str = ""
    by_name_only: bool = False
    align_bytes: int = 16
    folder: Path = field(default=Path(), compare=False)
    _by_card: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        """Refuse a declaration that is neither CUDA nor Python, or both, or for no device."""
        cuda = bool(self.source) and self.launches is not None
        if cuda == (self.function is not None):
            raise BadInput(
                f"kernel {self.name!r}: give source and launches (CUDA), or function (Python)",
                remedy="see docs/write-a-kernel.md",
            )
        where = f"kernel {self.name!r}"
        wrong = next(self._wrong_kinds(), "")
        if wrong:
            raise BadInput(f"{where}: {wrong}", remedy="see docs/write-a-kernel.md")
        if self.device not in ("cuda", "cpu"):
            raise unknown("device", self.device, ("cuda", "cpu"), where=where)
        for dtype in self.dtypes:
            if dtype not in CASE_DTYPES:
                raise unknown("dtype", dtype, CASE_DTYPES, where=where)
        if self.take is not None and (cuda or not callable(self.take)):
            raise BadInput(
                f"{where}: take is {self.take!r}, which a Python kernel alone has, a function",
                remedy="leave it out, or give a function of an array: take=torch.from_dlpack",
            )
        whole = isinstance(self.align_bytes, int) and self.align_bytes > 0
        if not whole or MOST_ALIGN_BYTES % self.align_bytes:
            raise BadInput(
                f"{where}: align_bytes is {self.align_bytes!r}, arrays begin at multiples of "
                f"{MOST_ALIGN_BYTES}",
                remedy=f"give the bytes of its widest vector access, {MOST_ALIGN_BYTES} at most",
            )
        if self.device == "cpu":
            held = tuple(dtype for dtype in self.dtypes if dtype in CPU_DTYPES)
            if not held:
                raise BadInput(
                    f"{where}: NumPy computes in none of its dtypes ({', '.join(self.dtypes)})",
                    remedy=f"give some of {', '.join(CPU_DTYPES)}, or device='cuda'",
                )
            object.__setattr__(self, "dtypes", held)
        given = (("launches", self.launches), ("workspace", self.workspace))
        by_card = tuple(what for what, held in given if held and _names_card(held, what, where))
        object.__setattr__(self, "_by_card", by_card)

    def _wrong_kinds(self) -> Iterator[str]:
        """Say which fields don't hold what they should: an author's types are not checked."""
        if not isinstance(self.name, str) or not self.name.strip():
            yield "its name is no text"
        if not isinstance(self.operator, (str, Operator)):
            yield f"its operator is {self.operator!r}, neither an Operator nor the name of one"
        yield from (
            f"its {what} is {held!r}, not a tuple of words"
            for what, held in (("dtypes", self.dtypes), ("options", self.options))
            if isinstance(held, str) or not all(isinstance(word, str) for word in held)
        )
        yield from (
            f"its {what} is {held!r}, not a function"
            for what in ("launches", "function", "refuse", "workspace")
            if (held := getattr(self, what)) is not None and not callable(held)
        )

    @property
    def operator_name(self) -> str:
        """The name of the operator it computes."""
        return self.operator if isinstance(self.operator, str) else self.operator.name

    def launches_on(self, case: Case, card: Card) -> tuple[Launch, ...]:
        """Return a case's launches on a card; a Python kernel has none."""
        if self.launches is None:
            return ()
        case = self._completed(case)
        return (
            self.launches(case, card=card) if "launches" in self._by_card else self.launches(case)
        )

    def workspace_on(self, case: Case, card: Card | None) -> Mapping[str, int]:
        """Return a case's scratch buffers on a card, name to bytes.

        Where the card is unknown (a plan for one without CUDA) and decides them, there are none.
        """
        if self.workspace is None:
            return {}
        case = self._completed(case)
        if "workspace" not in self._by_card:
            return self.workspace(case)
        return self.workspace(case, card=card) if card else {}

    def taken(self, offered: Mapping[str, Any]) -> dict[str, Any]:
        """Return what of the offered the Python function takes: what it names, or all (`**`)."""
        signature = self._signature
        parameters = signature.parameters if signature else {}
        if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
            return dict(offered)
        return {name: value for name, value in offered.items() if name in parameters}

    def refuse_call(self, case: Case, names: Iterable[str]) -> None:
        """Raise BadInput unless the Python function can be called with these, by name."""
        names = tuple(names)
        try:
            if self._signature is not None:
                self._signature.bind(**dict.fromkeys(names))
        except TypeError as error:
            raise BadInput(
                f"{case}: the function can't be called with {', '.join(names)}: {error}",
                remedy="let it take every argument by name (with the default None where some cases "
                "have none) and params of the operator; or refuse the case",
            ) from error

    @property
    def _signature(self) -> inspect.Signature | None:
        """What the Python function takes; None where there is none, or it is a builtin's secret."""
        try:
            return inspect.signature(self.function) if self.function else None
        except ValueError:
            return None

    def refusal(self, case: Case) -> str | None:
        """Return why this kernel does not take the case, or None."""
        if case.dtype not in self.dtypes:
            return f"kernel {self.name!r} has no {case.dtype} (it has {', '.join(self.dtypes)})"
        return self.refuse(self._completed(case)) if self.refuse else None

    def _completed(self, case: Case) -> Case:
        """Return a case as the functions here get it; see Operator.completed()."""
        return self.operator.completed(case) if isinstance(self.operator, Operator) else case


def _names_card(function: Callable[..., Any], what: str, where: str) -> bool:
    """Return whether a function of a case asks for the card; BadInput where for more."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin's secret
        return False
    asks = "card" in signature.parameters
    try:
        signature.bind(None, **({"card": None} if asks else {}))
    except TypeError as error:
        raise BadInput(
            f"{where}: its {what} takes {signature}: {error}",
            remedy=f"let it take the case and, where it depends on it, the card: {what}(case) or "
            f"{what}(case, card)",
        ) from error
    return asks
