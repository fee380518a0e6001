"""Cases become jobs with bounds; what a device or kernel can't do becomes Skipped, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass

from solkit.bound import Roof, bound
from solkit.declare.catalog import CaseFacts, Catalog, KernelInfo
from solkit.gpu import Gpu
from solkit.model import Bound, Case, Failed, Skipped, Step, Work


@dataclass(frozen=True, slots=True)
class Job:
    """One case to measure: its work, the unfused form, its bound, and the bytes of one buffer set."""

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
        """Return the jobs grouped by what differs in the kernel only, in order of first appearance."""
        grouped: dict[object, list[Job]] = {}
        for job in self.jobs:
            grouped.setdefault(job.case.group_key, []).append(job)
        return list(grouped.values())
