"""One group: the kernels of one operator, shape, dtype and params, measured round-robin.

They share inputs, clocks and heat. A kernel that fails costs its own case only.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from solkit.declare.registry import Registry
from solkit.errors import NoDevice
from solkit.measure import buffers, check
from solkit.measure.device.base import Device, DeviceLost, Sample
from solkit.measure.entry import Entry, Guard, Say, alive, timed
from solkit.measure.sampling import enough, steady
from solkit.model import Clocks, Failed, Measured, Outcome, Stage
from solkit.plan.jobs import Job
from solkit.stats import median, quantile, spread, thin

WARM_BATCH = 8
WARM_MOST_S = 0.3
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


class Lost(Exception):  # what became of the device
    """The device is lost to this process: at which job and stage, and what was said."""

    def __init__(self, index: int, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.index, self.stage, self.message = index, stage, message


@dataclass(slots=True)
class Settings:
    """How to measure: the seed of the inputs, the time a case may take, the shared headers."""

    seed: int
    budget_s: float
    floor_s: float
    include: Path


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
    left = alive(entries)
    sets: buffers.BufferSets | None = None
    if left:
        with Guard(left[0], "allocate", say, others=left[1:]):
            sets = buffers.make(device, left[0].operator, left[0].job.case, settings.seed)
    if sets is not None:
        _check_all(device, sets, alive(entries), settings, say)
        _warm(device, sets, alive(entries), say)
        before = device.conditions()
        _sample(device, sets, alive(entries), settings, say)
        conditions = _joined(before, device.conditions())
        _check_again(device, sets, alive(entries), settings, say)
        return [_outcome(entry, device, sets, conditions, settings) for entry in entries]
    return [entry.failed for entry in entries if entry.failed]


def _check_all(
    device: Device,
    sets: buffers.BufferSets,
    entries: Sequence[Entry],
    settings: Settings,
    say: Say,
) -> None:
    """Run each kernel once on poisoned outputs and compare every output with the reference."""
    expected: check.Expectation | None = None
    first = entries[0]
    with Guard(first, "check", say, others=entries[1:]):
        expected = check.expect(
            device, first.operator, first.job.case, sets.buffers(0), settings.seed
        )
    for entry in alive(entries):
        if entry.program is None or expected is None:
            continue
        with Guard(entry, "launch", say):
            sets.poison(device, 0)
            entry.program.bind(sets.buffers(0))()
            device.synchronize()
        if entry.failed is None:
            with Guard(entry, "check", say):
                entry.check = check.compare(
                    device, entry.operator, entry.job.case, sets.buffers(0), expected
                )
        with Guard(entry, "check", say):
            sets.restore(device)
            _keep_inputs(device, sets, entry, expected, settings.seed)


def _check_again(
    device: Device,
    sets: buffers.BufferSets,
    entries: Sequence[Entry],
    settings: Settings,
    say: Say,
) -> None:
    """Check a timed call on inputs no kernel has seen: a result kept from before is wrong now."""
    if not entries:
        return
    first, seed = entries[0], settings.seed + 1
    fresh, expected = sets, None
    with Guard(first, "check", say, others=entries[1:]):
        try:
            fresh = buffers.make(device, first.operator, first.job.case, seed, most_sets=1)
        except NoDevice:  # one set fills the memory: its old inputs must do
            seed = settings.seed
            fresh.restore(device)
        expected = check.expect(
            device, first.operator, first.job.case, fresh.buffers(0), settings.seed
        )
    for entry in alive(entries):
        if expected is None:
            continue
        with Guard(entry, "check", say):
            fresh.poison(device, 0)
            timed(device, entry, fresh.buffers(0))
            device.synchronize()
            after = check.compare(
                device, entry.operator, entry.job.case, fresh.buffers(0), expected
            )
            if entry.check is None or after.error_fraction > entry.check.error_fraction:
                entry.check = after
        with Guard(entry, "check", say):
            fresh.restore(device)
            _keep_inputs(device, fresh, entry, expected, seed)


def _keep_inputs(
    device: Device,
    sets: buffers.BufferSets,
    entry: Entry,
    expected: check.Expectation,
    seed: int,
) -> None:
    """Fail a kernel that wrote to an input, and mend it: the next kernel reads the same sets."""
    case = entry.job.case
    changed = check.changed_input(device, entry.operator, case, sets.buffers(0), expected)
    if changed:
        sets.repair(device, case, seed)
        raise check.CheckFailed(
            f"it wrote to its input {changed!r}",
            remedy="write to outputs only, or declare the argument 'inout'",
        )


def _warm(device: Device, sets: buffers.BufferSets, entries: Sequence[Entry], say: Say) -> None:
    """Run every kernel until its times and clocks agree from one batch to the next."""
    for entry in entries:
        with Guard(entry, "time", say):
            started = time.monotonic()
            before: list[Sample] = []
            while (left_s := WARM_MOST_S - (time.monotonic() - started)) > 0:
                after = _batch(device, sets, entry, left_s)
                if _settled(before, after):
                    break
                before = after
        sets.restore(device)


def _batch(device: Device, sets: buffers.BufferSets, entry: Entry, left_s: float) -> list[Sample]:
    """Take a batch of samples, fewer where they are long."""
    started = time.monotonic()
    batch: list[Sample] = []
    while len(batch) < WARM_BATCH and (not batch or time.monotonic() - started < left_s):
        batch.append(timed(device, entry, sets.buffers(sets.take())))
    return batch


def _settled(before: Sequence[Sample], after: Sequence[Sample]) -> bool:
    clocks = [[sample.sm_hz for sample in batch if sample.sm_hz] for batch in (before, after)]
    times = [[sample.time_s for sample in batch] for batch in (before, after)]
    return steady(*times) and (steady(*clocks) or not clocks[1])


def _sample(
    device: Device,
    sets: buffers.BufferSets,
    entries: Sequence[Entry],
    settings: Settings,
    say: Say,
) -> None:
    """Take one sample of each kernel a round, until each has enough."""
    open_entries = list(entries)
    taken = 0
    while open_entries:
        for entry in open_entries:
            with Guard(entry, "time", say):
                if sets.pristine and taken % sets.count == 0:
                    sets.restore(device)
                started = time.monotonic()
                entry.samples.append(timed(device, entry, sets.buffers(sets.take())))
                entry.spent_s += time.monotonic() - started
                taken += 1
                verdict = enough(
                    entry.times_s,
                    spent_s=entry.spent_s,
                    budget_s=settings.budget_s,
                    tick_s=device.tick_s,
                )
                if verdict.stop:
                    entry.ended = verdict.reason
        open_entries = [entry for entry in open_entries if entry.failed is None and not entry.ended]


def _joined(before: Clocks, after: Clocks) -> Clocks:
    reasons = tuple(dict.fromkeys((*before.event_reasons, *after.event_reasons)))
    return Clocks(
        memory_hz=after.memory_hz,
        temperature_c=after.temperature_c,
        power_w=after.power_w,
        event_reasons=reasons,
    )


def _outcome(
    entry: Entry, device: Device, sets: buffers.BufferSets, conditions: Clocks, settings: Settings
) -> Outcome:
    if entry.failed is not None:
        return entry.failed
    if entry.check is None or entry.program is None:
        return Failed(entry.job.case, "check", "it was never checked", "run the case alone")
    ordered = sorted(entry.times_s)
    seen = spread(ordered)
    held = [sample.sm_hz for sample in entry.samples if sample.sm_hz]
    late = sum(sample.late for sample in entry.samples)
    notes = list(entry.program.notes)
    if late:
        notes.append(
            f"{late} of {len(ordered)} samples waited for the host: their times hold host work"
        )
    return Measured(
        case=entry.job.case,
        work=entry.job.work,
        unfused=entry.job.unfused,
        bound=entry.job.bound,
        times_s=thin(entry.times_s),
        sample_count=len(ordered),
        quantiles_s={f"{fraction:g}": quantile(ordered, fraction) for fraction in QUANTILES},
        median_s=seen.median_s,
        low_s=seen.low_s,
        high_s=seen.high_s,
        floor_s=settings.floor_s,
        method=device.method,
        cache=sets.cache,
        clocks=Clocks(
            sm_hz=median(held) if held else None,
            sm_low_hz=min(held, default=None),
            sm_high_hz=max(held, default=None),
            memory_hz=conditions.memory_hz,
            temperature_c=conditions.temperature_c,
            power_w=conditions.power_w,
            event_reasons=conditions.event_reasons,
        ),
        check=entry.check,
        compiled=entry.program.compiled,
        launch_count=entry.program.launch_count,
        ended=entry.ended,
        set_count=sets.count,
        notes=tuple(notes),
    )
