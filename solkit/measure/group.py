"""One group: the kernels of one operator, shape, dtype, params and cache mode, measured in turn.

They share inputs, clocks and heat. A kernel that fails costs its own case only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from solkit.declare.registry import Registry
from solkit.measure import buffers, checking, pace, timing
from solkit.measure.device.base import Device, DeviceLost
from solkit.measure.entry import Entry, Guard, Say, alive
from solkit.measure.manner import Manner
from solkit.measure.measured import outcome
from solkit.model import CacheMode, Outcome, Stage
from solkit.plan.jobs import Job


class Lost(Exception):  # what became of the device
    """The device is lost to this process: at which job and stage, and what was said."""

    def __init__(self, index: int, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.index, self.stage, self.message = index, stage, message


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure here: the manner, the method's floor, the shared headers, the proved modes."""

    manner: Manner
    floor_s: float
    include: Path
    proved: frozenset[CacheMode]


def measure(
    device: Device, registry: Registry, jobs: Sequence[Job], settings: Settings, say: Say
) -> list[Outcome]:
    """Measure a group and return an outcome for each job, in order; Lost when the device is."""
    last: tuple[int, Stage] = (0, "worker")

    def heard(index: int, stage: Stage) -> None:
        nonlocal last
        last = (index, stage)
        say(index, stage)

    try:
        return _measure(device, registry, jobs, settings, heard)
    except DeviceLost as error:  # copying and waiting can find it lost, too
        raise Lost(*last, str(error)) from error


def _measure(
    device: Device, registry: Registry, jobs: Sequence[Job], settings: Settings, say: Say
) -> list[Outcome]:
    entries = [
        Entry(
            index,
            job,
            registry.operators[job.case.operator],
            registry.kernels[job.case.operator, job.case.kernel],
        )
        for index, job in enumerate(jobs)
    ]
    for entry in entries:
        with Guard(entry, "compile", say):
            entry.program = device.prepare(
                entry.kernel, entry.operator, entry.job.case, settings.include
            )
    manner, left = settings.manner, alive(entries)
    sets: buffers.BufferSets | None = None
    if left:
        with Guard(left[0], "allocate", say, others=left[1:]):
            sets = buffers.make(device, left[0].operator, left[0].job.case, manner.seed)
    if sets is None:
        return [entry.failed for entry in entries if entry.failed]
    checking.check_all(device, sets, alive(entries), manner.seed, say)
    timing.warm(device, sets, alive(entries), say)
    conditions = pace.begun(device)
    strangers = device.other_process_count()
    timing.sample(device, sets, alive(entries), manner, conditions, say)
    if manner.energy:
        timing.energies(device, sets, alive(entries), say)
    checking.check_again(device, sets, alive(entries), manner.seed, say)
    strangers = max(strangers, device.other_process_count())
    return [
        outcome(
            entry,
            device,
            sets,
            conditions,
            floor_s=settings.floor_s,
            proved=entry.job.case.cache_mode in settings.proved,
            other_process_count=strangers,
        )
        for entry in entries
    ]
