"""A cluster of blocks made of Python: barriers with phases, places that know who has to read them.

Warps are generators that yield what they wait for; copies, arrivals at other blocks, products and
stores are under way until they are let happen. A seed says who goes next. Instead of numbers,
places hold tokens: who reads one asserts that it is the right one, who begins a new use of a place
asserts that the former has been read.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

Steps = Iterator[Callable[[], bool]]
OPERAND, SLICE, PART = 12, 5, 7  # bytes of a stage's a or b, of a slice, of a warp's sums
WARPS = 4  # of a warpgroup
PACES = (0.01, 0.2, 1.0)


class Wrong(AssertionError):
    """What must not happen has."""


def check(holds: object, what: str) -> None:
    if not holds:
        raise Wrong(what)


def now() -> bool:
    return True


@dataclass(frozen=True)
class Shape:
    """A form, by its counts alone, and what a cluster does by it."""

    stages: int = 3
    slices: int = 2
    apart: int = 2
    in_stage: int = 2
    warpgroups: int = 2
    cluster_m: int = 1
    cluster_n: int = 1
    split: int = 1
    tiles: int = 3
    k_stages: int = 4
    has_residual: bool = True

    @property
    def tails(self) -> list[range]:
        """The slices of a warpgroup in each further stage of a tile."""
        firsts = range(self.apart, self.slices, self.in_stage)
        return [range(first, min(first + self.in_stage, self.slices)) for first in firsts]

    @property
    def shares(self) -> bool:
        """Whether blocks send each other operands."""
        return self.cluster_m * self.cluster_n > 1

    @property
    def leavers(self) -> int:
        """Warps that multiply what comes into a stage, or goes out from there."""
        return WARPS * self.warpgroups * (self.cluster_m + self.cluster_n - 1)


class Mbarrier:
    """A phase ends with its last arrival and the last announced byte."""

    def __init__(self, block: "Block", arrivals: int) -> None:
        self.block, self.arrivals = block, arrivals
        self.left, self.bytes, self.phase = arrivals, 0, 0

    def _end(self) -> None:
        check(self.block.open and self.block.runs, "a barrier of a block that doesn't run is used")
        check(self.left >= 0, "more arrivals than a phase takes")
        if not self.left and not self.bytes:
            self.left, self.phase = self.arrivals, self.phase + 1

    def arrive(self, announced: int = 0) -> None:
        """Take an arrival, and maybe bytes that will come."""
        self.bytes += announced
        self.left -= 1
        self._end()

    def came(self, count: int) -> None:
        """Count bytes that have come, announced or not yet."""
        self.bytes -= count
        self._end()

    def ended(self, parity: int) -> Callable[[], bool]:
        """Return whether the phase of this parity has ended, to be asked later."""
        return lambda: self.phase % 2 != parity


class Place:
    """A stage, or a warpgroup's slices beside the ring: what lies there, who has yet to read it."""

    def __init__(self) -> None:
        self.use: Hashable = None
        self.unread = 0
        self.holds: dict[Hashable, Hashable] = {}

    def begin(self, use: Hashable, reads: int) -> None:
        """Begin a use that ends by so many reads; once for all who say it."""
        if use != self.use:
            check(self.unread == 0, f"{use} comes before {self.use} has been read")
            self.use, self.unread, self.holds = use, reads, {}

    def put(self, use: Hashable, key: Hashable, token: Hashable) -> None:
        """Write a token."""
        check(self.use == use, f"{token} comes into {self.use}")
        self.holds[key] = token

    def look(self, use: Hashable, wanted: dict[Hashable, Hashable]) -> None:
        """Assert that these tokens are there."""
        found = {key: self.holds.get(key) for key in wanted} if self.use == use else self.use
        check(found == wanted, f"{found} is read for {wanted}")

    def read(self, use: Hashable, wanted: dict[Hashable, Hashable]) -> None:
        """Assert it and be one of the reads that end the use."""
        self.look(use, wanted)
        self.unread -= 1


class Ring:
    """A place in the ring and its parity."""

    def __init__(self, stages: int) -> None:
        self.stages, self.stage, self.parity = stages, 0, 0

    def advance(self) -> None:
        """Go to the next place; the parity turns with each round."""
        self.stage += 1
        if self.stage == self.stages:
            self.stage, self.parity = 0, self.parity ^ 1


class Block:
    """What a block has in shared memory, and its warps."""

    def __init__(self, cluster: "Cluster", split: int, m: int, n: int) -> None:
        shape = cluster.shape
        self.cluster, self.split, self.m, self.n = cluster, split, m, n
        self.open, self.runs, self.warps_left = False, False, 4 * (shape.warpgroups + 1)
        groups, stages = range(shape.warpgroups), range(shape.stages)
        self.full = [Mbarrier(self, 1) for _ in stages]
        self.empty = [Mbarrier(self, shape.leavers) for _ in stages]
        self.ready = [Mbarrier(self, 1) for _ in groups]
        self.done = [[Mbarrier(self, WARPS) for _ in range(shape.slices)] for _ in groups]
        self.mail = [Mbarrier(self, 1) for _ in groups]
        self.stages = [Place() for _ in stages]
        self.apart = [Place() for _ in groups]
        self.parts: dict[Hashable, Hashable] = {}
        self.warps: list[Any] = []
        self.ks = range(
            shape.k_stages * split // shape.split, shape.k_stages * (split + 1) // shape.split
        )

    def beside(self) -> list["Block"]:
        """Return the blocks that share a with this one."""
        every = self.cluster.blocks
        return [other for other in every if (self.split, self.m) == (other.split, other.m)]

    def above(self) -> list["Block"]:
        """Return the blocks that share b with this one."""
        every = self.cluster.blocks
        return [other for other in every if (self.split, self.n) == (other.split, other.n)]

    def operands(self, tile: int, k: int) -> dict[Hashable, Hashable]:
        """Return the tokens of a stage: a by parts, b by parts."""
        shape = self.cluster.shape
        a = {("a", part): ("a", tile, self.m, k, part) for part in range(shape.cluster_n)}
        return a | {("b", part): ("b", tile, self.n, k, part) for part in range(shape.cluster_m)}


class Cluster:
    """Blocks that run at the same time, what is under way between them, and what came out.

    together: the warps of a block leave the cluster's barrier when all of them wait there.
    """

    def __init__(
        self,
        shape: Shape,
        roles: Callable[[Block], list[Any]],
        seed: int,
        *,
        together: bool = False,
    ) -> None:
        self.shape, self.random = shape, Random(seed)  # noqa: S311  # no secret
        self.together = together
        self.under_way: list[tuple[float, Callable[[], None]]] = []  # each with its pace
        self.stored: Counter[Hashable] = Counter()
        self.arrived, self.meetings = 0, 0
        self.blocks = [
            Block(self, split, m, n)
            for split in range(shape.split)
            for m in range(shape.cluster_m)
            for n in range(shape.cluster_n)
        ]
        for block in self.blocks:
            block.warps = roles(block)
        self.warps = [warp for block in self.blocks for warp in block.warps]

    def later(self, event: Callable[[], None]) -> None:
        """Let something happen some time from now, before or after what else is under way."""
        self.under_way.append((self.random.choice(PACES), event))

    def run(self) -> None:
        """Let warps and what is under way go on in any order, some of them slowly."""
        draw, warps = self.random, list(self.warps)
        steps = {warp: warp.run() for warp in warps}
        waits = dict.fromkeys(warps, now)
        pace = {warp: draw.choice(PACES) for warp in warps}
        while warps or self.under_way:
            free = [warp for warp in warps if waits[warp]()]
            check(free or self.under_way, "nobody can go on")
            paces = [*(pace[warp] for warp in free), *(own for own, _ in self.under_way)]
            (chosen,) = draw.choices(range(len(paces)), paces)
            if chosen >= len(free):
                self.under_way.pop(chosen - len(free))[1]()
                continue
            try:
                waits[free[chosen]] = next(steps[free[chosen]])
            except StopIteration:
                warps.remove(free[chosen])
        self.check_stored()

    def check_stored(self) -> None:
        """Every slice of every tile once, with all of k and its residual."""
        shape = self.shape
        wanted = {
            (tile, block.split, block.m, block.n, group, slice_, tuple(range(shape.k_stages)))
            for tile in range(shape.tiles)
            for block in self.blocks
            for group in range(shape.warpgroups)
            for slice_ in range(shape.slices)
        }
        check(self.stored == Counter(wanted), "other slices are stored than were to be")
        waited = [barrier.bytes for block in self.blocks for barrier in (*block.full, *block.mail)]
        check(not any(waited), "bytes have come that nobody announced")
