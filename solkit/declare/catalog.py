"""Declarations as plain data: all that planning needs to know, wherever the code itself lives.

Bundled declarations are described in this process; a user's are described by the worker, so that a
stranger's code never runs in the parent (measure/worker.py answers the same three questions).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.declare.registry import Registry
from solkit.errors import SolkitError
from solkit.model import Case, Param, Step, Work


@dataclass(frozen=True, slots=True)
class OperatorInfo:
    """An operator as data. `params` holds each param's allowed values, the default first."""

    name: str
    axes: tuple[str, ...]
    params: dict[str, tuple[Param, ...]]
    dtypes: tuple[str, ...]
    summary: str


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

    def describe(self, cases: Sequence[Case]) -> list[CaseFacts]:
        """Return the facts of each case, in order."""


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

    def describe(self, cases: Sequence[Case]) -> list[CaseFacts]:
        """Return the facts of each case, in order."""
        return [
            case_facts(
                self.registry.operators[case.operator], self.registry.kernels[case.operator, case.kernel], case
            )
            for case in cases
        ]


def operator_info(operator: Operator) -> OperatorInfo:
    """Describe an operator as data."""
    return OperatorInfo(
        operator.name, operator.axes, dict(operator.params), operator.dtypes, operator.summary
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
    )


def case_facts(operator: Operator, kernel: Kernel, case: Case) -> CaseFacts:
    """Ask a declaration for one case's facts; what its code raises becomes the case's problem."""
    try:
        buffers = sum(arg.nbytes(case) for arg in operator.args)
        buffers += sum(kernel.workspace(case).values()) if kernel.workspace else 0
        unfused = operator.unfused(case) if operator.unfused else ()
        return CaseFacts(operator.work(case), tuple(unfused), buffers, kernel.refusal(case))
    except SolkitError as error:
        return CaseFacts(Work(0, 0), (), 0, problem=f"{error.message} {error.remedy}".strip())
    except Exception as error:  # noqa: BLE001  # an author's function may raise anything: it costs this case only
        return CaseFacts(Work(0, 0), (), 0, problem=f"describing it raised {type(error).__name__}: {error}")
