"""A warp of kernels/matmul/wgmma_tiles.cuh: what warps of every role do together."""

from collections.abc import Hashable

from wgmma_cluster import SLICE, Block, Mbarrier, Place, Ring, Steps, check, now


class Warp:
    """A warp without a role: it takes part in what the whole cluster does."""

    def __init__(self, block: Block, group: int = 0, *, opens: bool = False) -> None:
        self.block, self.cluster, self.shape = block, block.cluster, block.cluster.shape
        self.group, self.opens = group, opens
        self.at, self.parity = Ring(self.shape.stages), 0
        self.met = 0  # meetings of the cluster when this warp last arrived at one
        self.waits, self.waited = False, True  # since then: has come to its wait, has passed it

    def run(self) -> Steps:
        """Yield what the warp waits for, from its beginning to its end."""
        self.block.runs = True
        yield from self._open_barriers()
        yield from self._work()
        check(self.waited, "a warp that arrived at the cluster's barrier ends without its wait")
        self.block.warps_left -= 1
        self.block.runs = self.block.warps_left > 0

    def _work(self) -> Steps:
        yield from self._wait_until_others_run()

    def _open_barriers(self) -> Steps:
        yield now
        if self.opens:
            self.block.open = True
        if self.shape.shares or self.shape.split > 1:
            self._arrive_at_meeting()
        if self.shape.shares:
            yield from self._wait_at_meeting()
        elif not self.opens:
            yield lambda: self.block.open

    # The cluster's barrier.

    def _arrive_at_meeting(self) -> None:
        cluster = self.cluster
        self.met, self.waits, self.waited = cluster.meetings, False, False
        cluster.arrived += 1
        if cluster.arrived == len(cluster.warps):
            cluster.arrived, cluster.meetings = 0, cluster.meetings + 1

    def _wait_at_meeting(self) -> Steps:
        self.waits = True
        yield self._others_met

    def _others_met(self) -> bool:
        together = not self.cluster.together or all(warp.waits for warp in self.block.warps)
        self.waited = self.cluster.meetings > self.met and together
        return self.waited

    def _wait_until_others_run(self) -> Steps:
        if self.shape.split > 1 and not self.shape.shares:
            yield from self._wait_at_meeting()

    # Stages.

    def _left_for(self) -> list[Block]:
        """Return the blocks that a stage comes from or goes to, each once."""
        block = self.block
        return [*block.beside(), *(other for other in block.above() if other is not block)]

    def _leave(self, stage: int) -> Steps:
        yield now
        for other in self._left_for():
            if self.shape.shares:
                self.cluster.later(other.empty[stage].arrive)
            else:
                other.empty[stage].arrive()

    def _wait(self, barrier: Mbarrier, parity: int) -> Steps:
        yield barrier.ended(parity)

    def _copy(
        self, to: Block, place: Place, use: Hashable, reads: int,
        item: tuple[Hashable, Hashable], barrier: Mbarrier, count: int,
    ) -> None:  # fmt: skip
        """Begin a copy: from now on the place is in use, later its bytes are there."""

        def land() -> None:
            check(to.runs, "a copy comes to a block that has ended")
            place.put(use, *item)
            barrier.came(count)

        check(to.runs, "a copy is sent to a block that doesn't run")
        place.begin(use, reads)
        self.cluster.later(land)

    # Slices.

    def _slice_at(
        self, tile: int, group: int, slice_: int, stage: int
    ) -> tuple[Place, Hashable, int]:
        """Return a slice's place, its use there, and how many stores read that use."""
        if slice_ < self.shape.apart:
            return self.block.apart[group], ("apart", tile), self.shape.apart
        number = (slice_ - self.shape.apart) // self.shape.in_stage
        reads = len(self.shape.tails[number]) * self.shape.warpgroups
        return self.block.stages[stage], ("tail", tile, number), reads

    def _load_residual(
        self, tile: int, group: int, slice_: int, stage: int, barrier: Mbarrier
    ) -> None:
        place, use, reads = self._slice_at(tile, group, slice_, stage)
        token = ("residual", tile, group, slice_)
        self._copy(self.block, place, use, reads, ((group, slice_), token), barrier, SLICE)
