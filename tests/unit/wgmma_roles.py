"""The roles of warps in kernels/matmul/wgmma_tiles.cuh, each in the order of the device code."""

from collections.abc import Hashable
from functools import partial

from wgmma_cluster import OPERAND, PART, SLICE, WARPS, Block, Steps, check, now
from wgmma_warp import Warp


class LoadWarp(Warp):
    """Stages of operands, then of the residual."""

    def _work(self) -> Steps:
        shape, block = self.shape, self.block
        for tile in range(shape.tiles):
            for k in block.ks:
                yield from self._wait_empty()
                block.full[self.at.stage].arrive(self._announced())
                yield now
                use, parts = ("operands", tile, k), block.operands(tile, k)
                for key, blocks, count in (
                    (("a", block.n), block.beside(), OPERAND // shape.cluster_n),
                    (("b", block.m), block.above(), OPERAND // shape.cluster_m),
                ):
                    for to in blocks:
                        self._copy(
                            to, to.stages[self.at.stage], use, WARPS * shape.warpgroups,
                            (key, parts[key]), to.full[self.at.stage], count,
                        )  # fmt: skip
                    yield now
                self.at.advance()
            for slices in shape.tails:
                yield from self._wait_empty()
                count = SLICE * len(slices) * shape.warpgroups if shape.has_residual else 0
                block.full[self.at.stage].arrive(count)
                for slice_ in slices if shape.has_residual else ():
                    yield now
                    for group in range(shape.warpgroups):
                        barrier = block.full[self.at.stage]
                        self._load_residual(tile, group, slice_, self.at.stage, barrier)
                self.at.advance()
        if shape.shares:
            yield from self._outlast_others()
        yield from self._wait_until_others_run()

    def _outlast_others(self) -> Steps:
        for _ in range(self.shape.stages):
            yield from self._wait_empty()
            self.at.advance()

    def _wait_empty(self) -> Steps:
        yield from self._wait(self.block.empty[self.at.stage], self.at.parity ^ 1)

    def _announced(self) -> int:
        return 2 * OPERAND


class StoreWarp(Warp):
    """The residual of slices beside the ring; all results of a warpgroup."""

    stores = 0  # under way

    def _work(self) -> Steps:
        yield from self._wait_until_others_run()
        yield from self._store_tiles()

    def _store_tiles(self) -> Steps:
        shape, block, group = self.shape, self.block, self.group
        for tile in range(shape.tiles):
            count = SLICE * shape.apart if shape.has_residual else 0
            block.ready[group].arrive(count)
            for slice_ in range(shape.apart) if shape.has_residual else ():
                yield now
                self._load_residual(tile, group, slice_, 0, block.ready[group])
            if shape.split > 1:
                block.mail[group].arrive(self._expected())
            self._pass_products()
            for slices in shape.tails:
                yield from self._store_slices(tile, slices)
                for _ in range(self._leaves()):
                    yield from self._leave(self.at.stage)
                self.at.advance()
            if shape.apart:
                yield from self._store_slices(tile, range(shape.apart))
            self.parity ^= 1

    def _expected(self) -> int:
        return PART * WARPS * (self.shape.split - 1)

    def _pass_products(self) -> None:
        for _ in self.block.ks:
            self.at.advance()

    def _leaves(self) -> int:
        return WARPS

    def _store_slices(self, tile: int, slices: range) -> Steps:
        for slice_ in slices:
            yield from self._wait_done(slice_)
            self.stores += 1
            self.cluster.later(partial(self._stored, tile, slice_, self.at.stage))
        yield from self._wait_stores_read()

    def _wait_done(self, slice_: int) -> Steps:
        yield from self._wait(self.block.done[self.group][slice_], self.parity)

    def _wait_stores_read(self) -> Steps:
        yield lambda: not self.stores

    def _stored(self, tile: int, slice_: int, stage: int) -> None:
        block, group = self.block, self.group
        ks = tuple(range(self.shape.k_stages))
        place, use, _ = self._slice_at(tile, group, slice_, stage)
        place.read(use, {(group, slice_, warp): ("out", tile, slice_, ks) for warp in range(WARPS)})
        self.stores -= 1
        self.cluster.stored[tile, block.split, block.m, block.n, group, slice_, ks] += 1


class MultiplyWarp(Warp):
    """A warp of a warpgroup: products of every stage, then results.

    Nothing is taken for granted of when the four warps' shares of a product are multiplied.
    """

    def __init__(self, block: Block, group: int, number: int) -> None:
        super().__init__(block, group)
        self.number = number
        self.products: list[tuple[int, int, int]] = []  # those under way: stage, tile, k
        self.sums: list[int] = []

    def _work(self) -> Steps:
        shape, block = self.shape, self.block
        for tile in range(shape.tiles):
            last, self.sums = 0, []
            for k in block.ks:
                yield from self._wait(block.full[self.at.stage], self.at.parity)
                self._multiply(tile, k)
                if k > block.ks[0]:
                    yield from self._wait_products(1)
                    yield from self._leave(last)
                last = self.at.stage
                self.at.advance()
            yield from self._wait_products(0)
            yield from self._leave(last)
            if shape.split > 1:
                yield from self._add_up(tile)
            yield from self._wait_ready()
            for slices in shape.tails:
                yield from self._wait(block.full[self.at.stage], self.at.parity)
                for slice_ in slices:
                    yield from self._finish(tile, slice_, self.at.stage)
                self.at.advance()
            for slice_ in range(shape.apart):
                yield from self._finish(tile, slice_, 0)
            self.parity ^= 1

    def _multiply(self, tile: int, k: int) -> None:
        use, parts = ("operands", tile, k), self.block.operands(tile, k)
        self.block.stages[self.at.stage].look(use, parts)
        self.products.append((self.at.stage, tile, k))
        self.cluster.later(self._multiplied)

    def _multiplied(self) -> None:
        """End the oldest product: they complete in order."""
        stage, tile, k = self.products.pop(0)
        self.block.stages[stage].read(("operands", tile, k), self.block.operands(tile, k))
        self.sums.append(k)

    def _wait_products(self, pending: int) -> Steps:
        yield lambda: len(self.products) <= pending

    def _wait_ready(self) -> Steps:
        yield from self._wait(self.block.ready[self.group], self.parity)

    def _add_up(self, tile: int) -> Steps:
        yield from self._wait_until_others_run()
        mine = self.block
        for other in self.cluster.blocks:
            if (other.m, other.n) == (mine.m, mine.n) and other is not mine:
                check(other.runs, "sums are sent to a block that doesn't run")
                key = (mine.split - (mine.split > other.split), self.group, self.number)
                check(key not in other.parts, "sums are sent twice to one place")
                self.cluster.later(partial(self._deliver, other, key, (tile, *self.sums)))
                yield now
        yield from self._wait_for_mail()
        for place in range(self.shape.split - 1):
            of_tile, *sums = mine.parts.get((place, self.group, self.number), (None,))
            check(of_tile == tile, "sums are added before they have come")
            self.sums += sums

    def _deliver(self, to: Block, key: Hashable, letter: tuple[int, ...]) -> None:
        check(to.runs, "sums come to a block that has ended")
        to.parts[key] = letter
        to.mail[self.group].came(PART)

    def _wait_for_mail(self) -> Steps:
        yield from self._wait(self.block.mail[self.group], 0)

    def _finish(self, tile: int, slice_: int, stage: int) -> Steps:
        """Residual and sums to results, in its quarter of the slice."""
        yield now
        group = self.group
        check(not self.products, "sums are read that products still add to")
        place, use, reads = self._slice_at(tile, group, slice_, stage)
        if self.shape.has_residual:
            place.look(use, {(group, slice_): ("residual", tile, group, slice_)})
        place.begin(use, reads)
        token = ("out", tile, slice_, tuple(sorted(self.sums)))
        place.put(use, (group, slice_, self.number), token)
        yield now
        self.block.done[group][slice_].arrive()


def roles(block: Block) -> list[Warp]:
    """Return a block's warps: one loads, one a warpgroup stores, others idle, the rest multiply."""
    groups = range(block.cluster.shape.warpgroups)
    warps = [LoadWarp(block, opens=True), *(StoreWarp(block, group) for group in groups)]
    warps += [Warp(block) for _ in range(4 - len(warps))]
    warps += [MultiplyWarp(block, group, number) for group in groups for number in range(WARPS)]
    return warps
