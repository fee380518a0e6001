"""Declarations as plain data: all that planning needs to know, wherever the code itself lives.

Bundled declarations are described in this process; a user's are described by the worker, so that a
stranger's code never runs in the parent (measure/worker.py answers the same three questions).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from solkit.declare.card import Card
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.declare.registry import Registry
from solkit.errors import BadInput, SolkitError, told, unknown, words
from solkit.gpu import PIPES
from solkit.model import Case, Param, Step, Work

MOST_COUNT = 2**63  # what a run file can hold


@dataclass(frozen=True, slots=True)
class OperatorInfo:
    """An operator as data. `params` holds each param's allowed values, the default first.

    unnamed_defaults: the params that a case does not name at their default.
    """

    name: str
    axes: tuple[str, ...]
    params: dict[str, tuple[Param, ...]]
    dtypes: tuple[str, ...]
    summary: str
    unnamed_defaults: tuple[str, ...] = ()

    @property
    def unnamed_params(self) -> dict[str, Param]:
        """What a case has that does not name it: those params and their defaults."""
        return {name: self.params[name][0] for name in self.unnamed_defaults}


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """A kernel as data."""

    operator: str
    name: str
    device: str
    dtypes: tuple[str, ...]
    min_compute_capability: str
    summary: str
    bundled: bool = True
    by_name_only: bool = False


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """One case described: its work, its unfused form, what its buffers need, why it is refused."""

    work: Work
    unfused: tuple[Step, ...]
    buffer_bytes: int
    refusal: str | None = None
    problem: str | None = None


class Catalog(Protocol):
    """What planning asks of declarations."""

    @property
    def operators(self) -> dict[str, OperatorInfo]:
        """Every operator by name."""

    @property
    def kernels(self) -> tuple[KernelInfo, ...]:
        """Every kernel, in the order declared."""

    def describe(self, cases: Sequence[Case], card: Card | None = None) -> list[CaseFacts]:
        """Return the facts of each case, in order; on a card, where one is known."""


class LocalCatalog:
    """A catalog of declarations that live in this process."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    @property
    def operators(self) -> dict[str, OperatorInfo]:
        """Every operator by name."""
        return {name: operator_info(operator) for name, operator in self.registry.operators.items()}

    @property
    def kernels(self) -> tuple[KernelInfo, ...]:
        """Every kernel, in the order declared."""
        return tuple(kernel_info(kernel) for kernel in self.registry.kernels.values())

    def describe(self, cases: Sequence[Case], card: Card | None = None) -> list[CaseFacts]:
        """Return the facts of each case, in order; on a card, where one is known."""
        return [
            case_facts(
                self.registry.operators[case.operator],
                self.registry.kernels[case.operator, case.kernel],
                case,
                card,
            )
            for case in cases
        ]


def operator_info(operator: Operator) -> OperatorInfo:
    """Describe an operator as data."""
    return OperatorInfo(
        operator.name,
        operator.axes,
        dict(operator.params),
        operator.dtypes,
        operator.summary,
        operator.unnamed_defaults,
    )


def kernel_info(kernel: Kernel) -> KernelInfo:
    """Describe a kernel as data."""
    return KernelInfo(
        kernel.operator_name,
        kernel.name,
        kernel.device,
        kernel.dtypes,
        kernel.min_compute_capability,
        kernel.summary,
        by_name_only=kernel.by_name_only,
    )


def case_facts(
    operator: Operator, kernel: Kernel, case: Case, card: Card | None = None
) -> CaseFacts:
    """Ask a declaration for one case's facts; what its code raises becomes the case's problem."""
    try:
        case = operator.completed(case)
        undefined = operator.refuse(case) if operator.refuse else None
        _check_reason(undefined, f"operator {operator.name!r}")
        if undefined:  # there is no work to ask about
            return CaseFacts(Work(0, 0), (), 0, undefined)
        buffers = sum(arg.nbytes(case) for arg in operator.args_of(case))
        buffers += sum(kernel.workspace_on(case, card).values())
        unfused = tuple(operator.unfused(case)) if operator.unfused else ()
        work = operator.work(case)
        for each in (work, *(step.work for step in unfused)):
            _check_work(each, operator)
        refusal = kernel.refusal(case)
        _check_reason(refusal, f"kernel {kernel.name!r}")
        return CaseFacts(work, unfused, buffers, refusal)
    except SolkitError as error:
        problem = told(f"{error.message} {error.remedy}".strip())
        return CaseFacts(Work(0, 0), (), 0, problem=problem)
    except Exception as error:  # noqa: BLE001  # an author's function may raise anything: it costs this case only
        problem = f"describing it raised {type(error).__name__}: {words(error)}"
        return CaseFacts(Work(0, 0), (), 0, problem=problem)


def _check_reason(reason: object, whose: str) -> None:
    """Refuse what is no reason in words: an author may well answer True."""
    if reason is not None and not isinstance(reason, str):
        raise BadInput(f"refuse of the {whose} returned {reason!r}, neither words nor None")


def _check_work(work: Work, operator: Operator) -> None:
    """Refuse a work model whose counts are no counts, or whose pipes nobody has."""
    if not isinstance(work, Work):
        raise BadInput(
            f"the work model of {operator.name!r} returned {type(work).__name__}, not Work"
        )
    counts = {
        "read_bytes": work.read_bytes,
        "write_bytes": work.write_bytes,
        **work.flop,
        **work.estimated_flop,
    }
    for name, value in counts.items():
        counted = f"the work model of {operator.name!r} counts {name} as {value!r}"
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise BadInput(f"{counted}, no whole number")
        if value >= MOST_COUNT:
            raise BadInput(f"{counted}, more than any machine can: take a smaller shape")
    for pipe in (*work.flop, *work.estimated_flop):
        if pipe not in PIPES:
            raise unknown("pipe", pipe, PIPES, where=f"the work model of {operator.name!r}")
    if not work.traffic_bytes:
        raise BadInput(f"the work model of {operator.name!r} moves no bytes")
