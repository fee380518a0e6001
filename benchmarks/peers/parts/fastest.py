"""Which of several ways to make a call takes the GPU least, by cold calls in turn."""

from collections.abc import Callable, Sequence
from itertools import cycle

import torch
from torch import Tensor

from solkit.declare.geometry import ceil_div
from solkit.stats import median

Way = Callable[..., None]  # called with the operands, in order
ROUNDS = 9
CACHES = 3  # as much as the sets of operands hold, in L2s: each call's come from DRAM
AHEAD_CYCLES = 2_000_000  # a millisecond in which the host queues a round of calls


def fastest(ways: Sequence[Way], operands: Sequence[Tensor]) -> int:
    """Return the place of the way with the least median time; RuntimeError where none runs.

    The ways are called in turn, to and fro, on copies of the operands. One that raises in its first
    call, since it asks for more than the card has, is none.
    """
    sets = cycle(_copies(operands))
    running, problems = [], []
    for place, way in enumerate(ways):
        try:
            way(*next(sets))
        except Exception as error:  # noqa: BLE001  # whatever a library raises, it costs this way alone
            problems.append(str(error))
        else:
            running.append(place)
    if not running:
        message = f"none of {len(ways)} ways runs: {problems[0] if problems else 'there is none'}"
        raise RuntimeError(message)
    if len(running) == 1:
        return running[0]
    times_s: dict[int, list[float]] = {place: [] for place in running}
    for number in range(ROUNDS):
        order = running if number % 2 else running[::-1]
        torch.cuda._sleep(AHEAD_CYCLES)  # noqa: SLF001  # torch has no other spin
        ways[order[0]](*next(sets))  # leads: it pays for what the copies left in the L2
        marks = [(_mark(), ways[place](*next(sets)), _mark()) for place in order]
        torch.cuda.synchronize()
        for place, (first, _, last) in zip(order, marks, strict=True):
            times_s[place].append(first.elapsed_time(last) / 1e3)
    return min(running, key=lambda place: median(times_s[place]))


def _copies(operands: Sequence[Tensor]) -> list[list[Tensor]]:
    cache_bytes = torch.cuda.get_device_properties(operands[0].device).L2_cache_size
    held_bytes = sum(each.nbytes for each in operands)
    count = 1 + ceil_div(CACHES * cache_bytes, held_bytes)
    return [[each.clone() for each in operands] for _ in range(count)]


def _mark() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
