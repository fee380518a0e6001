"""Which indices of a case are compared with the reference: all, or both ends and strata."""

import math
from bisect import bisect_right
from collections.abc import Mapping

import numpy as np

from solkit.declare.arg import Arg, Array
from solkit.declare.operator import Operator
from solkit.model import Case

# Elements over all arguments. A reference and its comparison take 5 to 20 ns an element in float64,
# twice a case: 5 to 20 ms a case in all, which leaves a sweep its pace.
ELEMENT_COUNT = 600_000
WHOLE_FLOP = 100_000_000
# Where outputs lie in tiles (two axes are free): 80 strata a side and both ends, so that every tile
# of 128 x 128 is looked into up to 5,120 a side. Rows come whole, so fewer of them will do.
LEAST_TILED = 96
LEAST_ROWS = 24
# Where so few indices have more behind them (long rows, a cache of keys and values), fewer are
# taken, the first and the last at least: 32 million took attention's reference 4 s on one core.
MOST_ELEMENTS = 8_000_000
LEAST_INDICES = 2
MOST_INDICES = 100_000  # of ten million: one in each hundred, so no block of threads is unseen
END_COUNT = 8  # at each end, where tails and last tiles live

Index = Mapping[str, Array | None]  # per axis the chosen indices, None for all


def choose(operator: Operator, case: Case, seed: int) -> dict[str, Array | None]:
    """Choose indices for each axis: None (all) while that is cheap, else both ends and strata.

    Sampled are the axes along which outputs are independent: the most indices of each that leave
    all arguments together ELEMENT_COUNT elements, if that is no fewer than tell something. An axis
    that is part of a longer dim (`rows/128`) stays whole there.
    """
    index: dict[str, Array | None] = dict.fromkeys(operator.axes)
    flop = sum(operator.work(operator.completed(case)).flop.values())
    if _element_count(operator, case, None) <= ELEMENT_COUNT and flop <= WHOLE_FLOP:
        return index
    most = _most_indices(operator, case)
    rng = np.random.default_rng([seed, 1])
    for axis in operator.independent:
        if case.shape[axis] > most:
            index[axis] = _spread(rng, case.shape[axis], most)
    return index


def _most_indices(operator: Operator, case: Case) -> int:
    """Return how many indices of each free axis are taken."""
    free = operator.independent
    least = LEAST_ROWS if len(free) < 2 else LEAST_TILED  # noqa: PLR2004  # a tile has two sides
    longest = max((case.shape[axis] for axis in free), default=0)

    def counted(most: int) -> int:
        return _element_count(operator, case, most)

    if counted(least) > MOST_ELEMENTS:
        fewer = range(LEAST_INDICES, least)
        return max(LEAST_INDICES, fewer.start + bisect_right(fewer, MOST_ELEMENTS, key=counted) - 1)
    more = range(least, min(longest, MOST_INDICES) + 1)
    return max(least, least + bisect_right(more, ELEMENT_COUNT, key=counted) - 1)


def _spread(rng: np.random.Generator, extent: int, count: int) -> Array:
    """Return `count` of so many indices, in order: both ends, and a random one in each stratum.

    Strata leave no run of indices longer than two of them unseen, and need no sorting (choosing
    without replacement took 60 ms for a million). Of few indices a third is at either end.
    """
    ends = min(END_COUNT, max(1, count // 3))
    strata = count - 2 * ends
    borders = np.arange(strata + 1)
    borders *= extent - 2 * ends
    borders //= max(strata, 1)
    borders += ends
    inner = borders[:-1]
    inner += (rng.random(strata) * (borders[1:] - inner)).astype(np.int64)
    return np.concatenate([np.arange(ends), inner, np.arange(extent - ends, extent)])


def entries_of(arg: Arg, case: Case, index: Index, rows: Array | None = None) -> list[Array | None]:
    """Return the entries of each stored dim that are chosen; None for all of one.

    rows: those of the leading dim, where the argument is gathered.
    """
    chosen = [index[dim.axis] if dim.axis else None for dim in arg.dims]
    if rows is not None:
        chosen[0] = rows
    stored = dict(zip(arg.stored_places(case.params), chosen, strict=True))
    return [stored[place] for place in range(len(chosen))]


def extents_of(arg: Arg, case: Case, index: Index) -> tuple[int, ...]:
    """Return the extents that an argument has at the chosen indices, in logical order."""
    held = (index[dim.axis] if dim.axis else None for dim in arg.dims)
    return tuple(
        extent if chosen is None else len(chosen)
        for extent, chosen in zip(arg.shape(case), held, strict=True)
    )


def _element_count(operator: Operator, case: Case, most: int | None) -> int:
    """Return the elements of all arguments, with at most so many indices of each free axis."""
    counts: dict[str, int] = {}
    present = operator.args_of(case)
    for arg in sorted(present, key=lambda arg: bool(arg.gathered_by)):  # what gathers comes first
        extents = [
            extent if most is None or dim.axis not in operator.independent else min(extent, most)
            for dim, extent in zip(arg.dims, arg.shape(case), strict=True)
        ]
        if arg.gathered_by:
            extents[0] = min(arg.shape(case)[0], counts[arg.gathered_by])
        counts[arg.name] = math.prod(extents)
    return sum(counts.values())


def words_of(case: Case, index: Index) -> str:
    """Say what is compared: `whole`, or the sampled indices of each axis."""
    sampled = [
        f"{len(chosen)} of {case.shape[axis]} {axis}"
        for axis, chosen in index.items()
        if chosen is not None
    ]
    return f"sampled {' x '.join(sampled)}, both ends among them" if sampled else "whole"
