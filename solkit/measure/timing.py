"""Taking the samples of a group: warm up, take batches in turn, rest between them, know the end."""

import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice

from solkit.errors import BadInput
from solkit.measure import pace
from solkit.measure.buffers import BufferSets, settle
from solkit.measure.device.base import Call, Device, Sample, Unblockable
from solkit.measure.device.records import RecordsLost
from solkit.measure.entry import Entry, Guard, Say, alive
from solkit.measure.manner import Manner
from solkit.measure.pace import Conditions
from solkit.measure.sampling import awake, batch_count, enough, steady
from solkit.stats import median

WARM_BATCH = 8
WARM_MOST_S = 0.3
GRAPH_LEAST_CALLS = 20
FEW_CALLS = 2
MOST_LAUNCHES = 512  # of a batch: a queue holds 1024 of small kernels on an H200
MOST_AHEAD = 512  # buffer sets of the steady work before a batch
MOST_ENERGY_SETS = 4096
# Calls whose launch the host is timed in: two milliseconds of the device's work, or five calls.
LAUNCH_S, LEAST_LAUNCHES, LAUNCH_COUNT = 0.002, 5, 33
Drawn = tuple[Sequence[Call], Sequence[Call]]  # steady work ahead of a batch, and the batch


def timed(device: Device, sets: BufferSets, entry: Entry, number: int) -> object:
    """Time one call of the entry's kernel on a buffer set; return what the call returned."""
    returned: list[object] = []
    call = entry.ready.bind(sets.buffers(number))

    def kept() -> None:
        returned.append(call())

    def drawn() -> Drawn:
        if returned:  # the call ran, and has to run again: on its first values
            sets.restore(device)
        return (), [kept]

    _time(device, entry, drawn)
    return returned[-1]


def batch(
    device: Device, sets: BufferSets, entry: Entry, count: int, *, steadily: bool = False
) -> list[Sample]:
    """Time the kernel on the next buffer sets, `count` times or as often as they allow.

    The calls that lead a batch, after another kernel or the host, are run and not counted: they
    would pay for lines that others left in the cache. Calls whose arguments change in place use
    each set once, then all are restored, outside of any sample. steadily: the device works on the
    same kernel right before, on other sets where there are any.
    """
    lead = device.lead_count if count > 1 else 0
    wanted = count + lead
    others = max(1, min(MOST_AHEAD, sets.count - wanted)) if steadily else 0

    def drawn() -> Drawn:
        # In one draw: a restore between two could hand the sets of the work ahead out again.
        numbers = sets.next(device, others + wanted)
        calls = [entry.ready.bind(sets.buffers(number)) for number in numbers]
        first = max(len(calls) - wanted, min(others, 1))  # fewer are handed out before a restore
        return calls[:first], calls[first:] or calls

    taken = _time(device, entry, drawn)
    return taken[lead if len(taken) > 1 else 0 :]


def _time(device: Device, entry: Entry, drawn: Callable[[], Drawn]) -> list[Sample]:
    """Time calls; what must be run again is drawn anew, for arguments changed in place.

    Once: a batch whose records were lost. A batch that can't be blocked may have been too much for
    the launch queue, so two calls are tried before the entry is timed without the block (samples
    taken before that was known go: a case has one method).
    """
    mode, lost = entry.job.case.cache_mode, False
    while True:
        ahead, calls = drawn()
        calls = calls[: entry.most_count]
        try:
            return device.time(calls, mode=mode, blocked=entry.blocked, ahead=ahead)
        except Unblockable:
            if not entry.blocked:
                raise
            if len(calls) > FEW_CALLS:
                entry.most_count = FEW_CALLS
            else:
                entry.blocked, entry.most_count = False, device.most_calls
                entry.samples.clear()
        except RecordsLost:
            if lost:
                raise
            lost = True


def warm(device: Device, sets: BufferSets, entries: Sequence[Entry], say: Say) -> None:
    """Run every kernel until its times and clocks agree from one batch to the next.

    A card that may only be waking up (its clock far below its highest) goes on to the time limit.
    """
    for entry in entries:
        with Guard(entry, "time", say):
            if device.whole_rotation:
                _refuse_drift(entry, "a graph that is replayed", "--timer cupti or event_blocked")
            if entry.job.case.cache_mode == "cold":
                settle(device, sets, entry.ready.bind)
            started_s = time.monotonic()
            before: list[Sample] = []
            while (left_s := WARM_MOST_S - (time.monotonic() - started_s)) > 0:
                after = _warming(device, sets, entry, left_s)
                entry.median_s = median([sample.time_s for sample in after])
                if _settled(before, after, device.max_clock_hz):
                    break
                before = after
            if entry.blocked:  # else the host's time holds the device's
                entry.launch_s = _launch_s(device, sets, entry)
    sets.restore(device)


def _launch_s(device: Device, sets: BufferSets, entry: Entry) -> float | None:
    """Return the median of the host's time to enqueue a call, before any sample is taken.

    The calls are fewer than a launch queue holds, so none of them waits for the device. What they
    compute does not matter here: the sets go round as often as it takes.
    """
    fitting = max(1, MOST_LAUNCHES // entry.ready.launch_count)
    wanted = int(LAUNCH_S / max(entry.median_s or 0.0, 1e-9))
    count = min(max(wanted, LEAST_LAUNCHES), LAUNCH_COUNT, fitting)
    numbers = sets.next(device, count)
    calls = [entry.ready.bind(sets.buffers(number)) for number in numbers]
    found = device.launch_s(list(islice(cycle(calls), count)))
    return round(found, 9) if found is not None else None  # the host's clock tells no finer


def _refuse_drift(entry: Entry, who: str, instead: str) -> None:
    """Raise BadInput where in-place arguments would not have their first values in a timed call."""
    changed = [arg.name for arg in entry.operator.args_of(entry.job.case) if arg.role == "inout"]
    if changed:
        raise BadInput(
            f"{who} changes the in-place argument {changed[0]!r} again and again",
            remedy=f"take {instead} for such operators",
        )


def _warming(device: Device, sets: BufferSets, entry: Entry, left_s: float) -> list[Sample]:
    """Take a warming batch, in smaller ones where calls are long."""
    started_s = time.monotonic()
    found: list[Sample] = []
    while len(found) < WARM_BATCH and (not found or time.monotonic() - started_s < left_s):
        count = _count(device, sets, entry)
        found += batch(
            device,
            sets,
            entry,
            count if device.whole_rotation else min(WARM_BATCH - len(found), count),
        )
        entry.median_s = found[-1].time_s
    return found


def _settled(before: Sequence[Sample], after: Sequence[Sample], highest_hz: float | None) -> bool:
    clocks = [[sample.sm_hz for sample in batch if sample.sm_hz] for batch in (before, after)]
    times = [[sample.time_s for sample in batch] for batch in (before, after)]
    calm = steady(*times) and (steady(*clocks) or not clocks[1])
    return calm and awake(clocks[1], highest_hz)


def sample(
    device: Device,
    sets: BufferSets,
    entries: Sequence[Entry],
    manner: Manner,
    conditions: Conditions,
    say: Say,
) -> None:
    """Take samples of each kernel until it has enough: in turn, or each at its settled clock."""
    if manner.settle == "sustained":
        for entry in entries:
            _steadily(device, sets, entry, manner, conditions, say)
        return
    open_entries = list(entries)
    while open_entries:
        for entry in open_entries:
            with Guard(entry, "time", say):
                _take(device, sets, entry, manner)
                pace.rest(device, conditions)
        open_entries = [entry for entry in alive(open_entries) if not entry.ended]


def _steadily(
    device: Device,
    sets: BufferSets,
    entry: Entry,
    manner: Manner,
    conditions: Conditions,
    say: Say,
) -> None:
    def working() -> list[Sample]:
        say(entry.index, "time")
        return batch(device, sets, entry, _count(device, sets, entry), steadily=True)

    with Guard(entry, "time", say):
        if sets.count == 1:  # the work before a batch has no other set to go to
            _refuse_drift(entry, "steady work on one buffer set", "--cache cold or --settle burst")
        pace.settle(working)
        while not entry.ended:
            say(entry.index, "time")
            _take(device, sets, entry, manner, steadily=True)
            conditions.add(device.conditions())


def _take(
    device: Device, sets: BufferSets, entry: Entry, manner: Manner, *, steadily: bool = False
) -> None:
    started_s = time.monotonic()
    count = _count(device, sets, entry)
    entry.samples += batch(device, sets, entry, count, steadily=steadily)
    work_s = pace.AHEAD_S if steadily else 0.0
    entry.spent_s += max(time.monotonic() - started_s - work_s, 0.0)
    entry.median_s = median(entry.times_s)
    verdict = enough(
        entry.times_s,
        spent_s=entry.spent_s,
        budget_s=manner.budget_s,
        precision_fraction=manner.precision_fraction,
        tick_s=device.tick_s,
    )
    if verdict.stop:
        entry.ended = verdict.reason


def _count(device: Device, sets: BufferSets, entry: Entry) -> int:
    """Return how many calls the next batch takes; a graph goes over all buffer sets."""
    most = device.most_calls - device.lead_count
    if device.whole_rotation:
        return min(max(sets.count, GRAPH_LEAST_CALLS), most)
    launches = entry.ready.launch_count + 2  # a call's own, and the stamps and flush around it
    fitting = max(1, min(most, MOST_LAUNCHES // launches - device.lead_count))
    return batch_count(
        entry.median_s, most=min(fitting, max(1, entry.most_count - device.lead_count))
    )


def energies(device: Device, sets: BufferSets, entries: Sequence[Entry], say: Say) -> None:
    """Measure the energy of a call of each kernel, over at least a second of steady work.

    Where that can't be had as the case is timed, a note says why.
    """
    for entry in entries:
        with Guard(entry, "time", say):
            problem = _no_energy(entry)
            if not problem:
                numbers = range(min(sets.count, MOST_ENERGY_SETS))
                calls: list[Call] = [entry.ready.bind(sets.buffers(number)) for number in numbers]
                entry.energy_j = device.energy_per_call_j(calls)
                problem = "" if entry.energy_j else "this device does not count it"
            if problem:
                entry.notes.append(f"energy was asked for and not measured: {problem}")


def _no_energy(entry: Entry) -> str:
    """Return why steady work would not be what the case is, or nothing."""
    if entry.job.case.cache_mode in ("clean", "zeroed"):
        return "a flush between the calls would be most of it"
    if any(arg.role == "inout" for arg in entry.operator.args_of(entry.job.case)):
        return "steady work would change the in-place arguments again and again"
    return ""
