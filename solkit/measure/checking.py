"""The checks around the timing of a group: before it, and again on a call that is timed."""

import time
from collections.abc import Sequence

from solkit.errors import NoDevice
from solkit.measure import buffers, check
from solkit.measure.device.base import Device
from solkit.measure.entry import Entry, Guard, Say, alive
from solkit.measure.timing import timed
from solkit.measure.verdict import CheckFailed


def check_all(
    device: Device, sets: buffers.BufferSets, entries: Sequence[Entry], seed: int, say: Say
) -> None:
    """Run each kernel once on poisoned outputs and compare every output with the reference."""
    expected: check.Expectation | None = None
    first = entries[0]
    with Guard(first, "check", say, others=entries[1:]):
        expected = check.expect(device, first.operator, first.job.case, sets.buffers(0), seed)
    for entry in alive(entries):
        if expected is None:
            continue
        with Guard(entry, "launch", say):
            sets.poison(device, 0)
            arrays = sets.buffers(0)
            device.synchronize()
            started_s = time.monotonic()
            result = entry.ready.bind(arrays)()
            device.synchronize()
            entry.median_s = time.monotonic() - started_s  # enough to choose the first batch by
        if entry.failed is None:
            with Guard(entry, "check", say):
                entry.ready.adopt(result, arrays)
                entry.check = check.compare(
                    device, entry.operator, entry.job.case, sets.buffers(0), expected
                )
        if entry.failed is None and entry.kernel.function is not None:
            with Guard(entry, "check", say):
                _stays_on_its_stream(device, sets, entry)
        with Guard(entry, "check", say):
            sets.restore(device)
            _keep_inputs(device, sets, entry, expected, seed)


def check_again(
    device: Device, sets: buffers.BufferSets, entries: Sequence[Entry], seed: int, say: Say
) -> None:
    """Check a timed call on inputs no kernel has seen: a result kept from before is wrong now."""
    if not entries:
        return
    first, new_seed = entries[0], seed + 1
    fresh, expected = sets, None
    with Guard(first, "check", say, others=entries[1:]):
        try:
            fresh = buffers.make(device, first.operator, first.job.case, new_seed, most_sets=1)
        except NoDevice:  # one set fills the memory: its old inputs must do
            new_seed = seed
            fresh.restore(device)
        expected = check.expect(device, first.operator, first.job.case, fresh.buffers(0), new_seed)
    for entry in alive(entries):
        if expected is None:
            continue
        with Guard(entry, "check", say):
            fresh.poison(device, 0)
            arrays = fresh.buffers(0)
            entry.ready.adopt(timed(device, fresh, entry, 0), arrays)
            device.synchronize()
            after = check.compare(device, entry.operator, entry.job.case, arrays, expected)
            if entry.check is None or after.error_fraction > entry.check.error_fraction:
                entry.check = after
        with Guard(entry, "check", say):
            fresh.restore(device)
            _keep_inputs(device, fresh, entry, expected, new_seed)


def _stays_on_its_stream(device: Device, sets: buffers.BufferSets, entry: Entry) -> None:
    """Fail a Python kernel whose work its stream does not hold: its times would miss it."""
    sets.restore(device)
    sets.poison(device, 0)
    arrays, case = sets.buffers(0), entry.job.case
    outputs = [
        (arrays[arg.name], arg.dtype_of(case))
        for arg in entry.operator.args_of(case)
        if arg.role == "out"
    ]
    stray = device.stray_work(entry.ready.bind(arrays), outputs)
    device.synchronize()
    if stray:
        raise CheckFailed(
            stray,
            remedy="launch on the current stream, or let it wait for yours before you return",
            verdict="other_stream",
        )


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
        raise CheckFailed(
            f"it wrote to its input {changed!r}",
            remedy="write to outputs only, or declare the argument 'inout'",
            verdict="changed_input",
        )
