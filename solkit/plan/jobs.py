"""Cases become jobs with bounds; what can't be done here is Skipped, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from solkit import units
from solkit.bound import Roof, bound, spec_roof
from solkit.declare.card import Card
from solkit.declare.catalog import CaseFacts, Catalog, KernelInfo, OperatorInfo
from solkit.errors import BadInput
from solkit.gpu import DeviceFacts, Gpu
from solkit.model import Bound, Case, Failed, Skipped, Step, Work

USABLE_FRACTION = 0.95  # of a card's memory, where nobody knows how much is free
NUMPY_COPIES = 3  # a NumPy reference makes temporaries about twice as large as its arrays
MOST_COUNT = 2**63  # bytes or FLOP beyond it are a mistake


@dataclass(frozen=True, slots=True)
class Job:
    """One case to measure: work, unfused form, bound, and the bytes of one buffer set."""

    case: Case
    work: Work
    unfused: tuple[Step, ...]
    bound: Bound
    buffer_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be measured, and what won't."""

    jobs: tuple[Job, ...]
    skipped: tuple[Skipped, ...]
    failed: tuple[Failed, ...]

    def groups(self) -> list[list[Job]]:
        """Return the jobs that differ in the kernel only as groups, in order of appearance."""
        grouped: dict[object, list[Job]] = {}
        for job in self.jobs:
            grouped.setdefault(job.case.group_key, []).append(job)
        return list(grouped.values())


def plan(
    cases: Sequence[Case],
    catalog: Catalog,
    *,
    device: str,
    gpu: Gpu | None = None,
    roof: Roof | None = None,
    facts: DeviceFacts | None = None,
) -> Plan:
    """Turn cases into jobs; what this device or a kernel can't do is skipped, with the reason.

    device: `cuda` or `cpu`. roof: what bounds are taken against, the card's spec by default.
    facts: the device as probed; without them the spec's memory and compute capability serve.
    The catalog is asked once, for all cases that are left by then.
    """
    against = roof or (spec_roof(gpu) if gpu else None)
    if against is None:
        raise BadInput("a plan needs a card or a measured roof", remedy="name a card with --gpu")
    target = _Target(device, gpu, against, facts)
    operators = catalog.operators
    kernels = {(kernel.operator, kernel.name): kernel for kernel in catalog.kernels}
    found: dict[int, Job | Skipped | Failed] = {}
    asked: list[int] = []
    for place, case in enumerate(cases):
        kernel = kernels[case.operator, case.kernel]
        reason = _empty(case) or target.refuses_kernel(case, operators[case.operator], kernel)
        if reason:
            found[place] = Skipped(case, reason)
        else:
            asked.append(place)
    card = Card.of(gpu) if gpu else None
    described = catalog.describe([cases[place] for place in asked], card) if asked else []
    for place, case_facts in zip(asked, described, strict=True):
        found[place] = target.job(cases[place], case_facts)
    outcomes = [found[place] for place in range(len(cases))]
    return Plan(
        tuple(item for item in outcomes if isinstance(item, Job)),
        tuple(item for item in outcomes if isinstance(item, Skipped)),
        tuple(item for item in outcomes if isinstance(item, Failed)),
    )


def plan_document(plan: Plan, gpu: Gpu) -> dict[str, Any]:
    """Return what `solkit plan --json` prints: SI units, every number of the bound.

    `failed` is there only where a declaration's own work or refusal went wrong.
    """
    roof = spec_roof(gpu)
    document: dict[str, Any] = {
        "gpu": gpu.id,
        "cases": [_case_document(job, roof) for job in plan.jobs],
        "skipped": [{**_identity(item.case), "reason": item.reason} for item in plan.skipped],
    }
    if plan.failed:
        document["failed"] = [
            {
                **_identity(item.case),
                "stage": item.stage,
                "message": item.message,
                "remedy": item.remedy,
            }
            for item in plan.failed
        ]
    return document


def unfused_sol_s(job: Job, roof: Roof) -> float | None:
    """Return the sum of the bounds of the unfused steps, where the operator declares them."""
    return sum(bound(step.work, roof).sol_s for step in job.unfused) if job.unfused else None


@dataclass(frozen=True, slots=True)
class _Target:
    """What a plan is made for."""

    device: str
    gpu: Gpu | None
    roof: Roof
    facts: DeviceFacts | None
    capability: str = field(init=False)
    free_bytes: int | None = field(init=False)

    def __post_init__(self) -> None:
        probed = self.facts.compute_capability if self.facts else ""
        object.__setattr__(
            self, "capability", probed or (self.gpu.compute_capability if self.gpu else "")
        )
        object.__setattr__(self, "free_bytes", _free_bytes(self.gpu, self.facts))

    def refuses_kernel(self, case: Case, operator: OperatorInfo, kernel: KernelInfo) -> str:
        """Return why a kernel does not run here at all, whatever the shape, or nothing."""
        if kernel.device != self.device:
            return f"the kernel {kernel.name!r} runs on {kernel.device}, not on {self.device}"
        if case.dtype not in kernel.dtypes:
            if kernel.device == "cpu" and case.dtype in operator.dtypes:
                return f"NumPy has fp32 and fp64 arithmetic only, {case.dtype} needs a GPU"
            owner, known = (
                (f"kernel {kernel.name!r}", kernel.dtypes)
                if case.dtype in operator.dtypes
                else (f"operator {operator.name!r}", operator.dtypes)
            )
            return f"the {owner} has no {case.dtype} (it has {', '.join(known)})"
        if self.device == "cuda" and _version(self.capability) < _version(
            kernel.min_compute_capability
        ):
            return (
                f"the kernel {kernel.name!r} needs compute capability "
                f"{kernel.min_compute_capability}, "
                f"{self._name} has {self.capability}"
            )
        return ""

    def job(self, case: Case, facts: CaseFacts) -> Job | Skipped | Failed:
        """Return the job of a case, or why there is none."""
        if facts.problem:
            remedy = f"mend work, unfused, workspace or refuse of {case.operator!r}"
            return Failed(case, "describe", facts.problem, remedy)
        reason = facts.refusal or self._lacks_pipe(facts) or self._lacks_memory(facts)
        if reason:
            return Skipped(case, reason)
        if not _countable(facts):
            message = f"its work is no count from 0 to 2^63: {facts.work}"
            return Failed(case, "describe", message, f"mend work or unfused of {case.operator!r}")
        return Job(
            case, facts.work, facts.unfused, bound(facts.work, self.roof), facts.buffer_bytes
        )

    @property
    def _name(self) -> str:
        return self.facts.name if self.facts else self.gpu.name if self.gpu else self.device

    def _lacks_pipe(self, facts: CaseFacts) -> str:
        if self.device != "cuda" or self.gpu is None:
            return ""
        missing = [
            pipe for pipe, count in facts.work.flop.items() if count and pipe not in self.gpu.pipes
        ]
        if not missing:
            return ""
        words = missing[0].replace("_", " ")
        if missing[0] in self.gpu.absent_pipes or self.gpu.vendor != "derived":
            return f"{self.gpu.name} has no {words} pipe"
        return f"the peak of the {words} pipe of {self.gpu.name} is unknown: add a spec file for it"

    def _lacks_memory(self, facts: CaseFacts) -> str:
        copies = NUMPY_COPIES if self.device == "cpu" else 1
        need_bytes = facts.buffer_bytes * copies
        if self.free_bytes is None or need_bytes <= self.free_bytes:
            return ""
        return (
            f"needs {units.capacity(need_bytes)} of memory"
            + (" (temporaries included)" if copies > 1 else "")
            + f", {units.capacity(self.free_bytes)} are free on {self._name}"
        )


def _empty(case: Case) -> str:
    """Say which axes leave a case without work, or nothing: no work model is asked about it."""
    names = [axis for axis, extent in case.shape.items() if extent == 0]
    if not names:
        return ""
    return f"nothing to do: {' and '.join(names)} {'is' if len(names) == 1 else 'are'} 0"


def _free_bytes(gpu: Gpu | None, facts: DeviceFacts | None) -> int | None:
    if facts is not None and facts.dram_free_bytes is not None:
        return facts.dram_free_bytes
    total = (facts.dram_bytes if facts else None) or (gpu.dram_bytes if gpu else None)
    return int(total * USABLE_FRACTION) if total else None


def _version(text: str) -> tuple[int, ...]:
    """Read `9.0` as (9, 0); a card that says no number is never too old."""
    parts = text.split(".")
    return tuple(int(part) for part in parts) if all(map(str.isdecimal, parts)) else (999,)


def _countable(facts: CaseFacts) -> bool:
    counts: list[int] = []
    for work in (facts.work, *(step.work for step in facts.unfused)):
        counts += (work.read_bytes, work.write_bytes, *work.flop.values())
        counts += work.estimated_flop.values()
    return all(0 <= count < MOST_COUNT for count in counts)


def _identity(case: Case) -> dict[str, Any]:
    return {
        "operator": case.operator,
        "kernel": case.kernel,
        "dtype": case.dtype,
        "shape": case.shape,
        "params": case.params,
    }


def _case_document(job: Job, roof: Roof) -> dict[str, Any]:
    return {
        **_identity(job.case),
        "read_bytes": job.work.read_bytes,
        "write_bytes": job.work.write_bytes,
        "flop": job.work.flop,
        "memory_s": job.bound.memory_s,
        "compute_s": max(job.bound.compute_s.values(), default=0.0),
        "sol_s": job.bound.sol_s,
        "limiter": job.bound.limiter,
        "intensity_flop_per_byte": job.work.intensity_flop_per_byte,
        "unfused_sol_s": unfused_sol_s(job, roof),
    }
