"""A form of a product on Hopper's tensor cores: its tile, and how it lies in shared memory.

kernels/matmul/wgmma_form.cuh has the same sizes.
"""

from typing import NamedTuple

from solkit.declare.card import Card
from solkit.declare.geometry import ceil_div
from solkit.model import Case

STAGE_K = 64  # items of k in a stage: rows of 128 bytes, the widest swizzle
ROWS = 64  # of a warpgroup's product
WIDEST = 256  # columns of a product, rows of a box
ROW_ITEMS = 64  # of the longest swizzled row
EIGHT = 8  # columns of a fragment; items of a slice's shortest row, which has no swizzle
ITEM_BYTES, SUM_BYTES, BARRIER_BYTES = 2, 4, 8
RESERVED_BYTES = 1024  # of an SM's shared memory, for each block
MOST_STAGES, MOST_TAIL_STAGES = 20, 2
FOUR, FOUND_FOR_FOUR = 4, 120 / 132  # blocks of a cluster, and the SMs that such clusters find


class Layout(NamedTuple):
    """How a form lies in shared memory: the ring's stages, a warpgroup's slices beside it."""

    stages: int
    apart: int


class WgmmaForm(NamedTuple):
    """A block's tile of bm x bn; blocks of a cluster that share x or weight, or one tile's k.

    swapped: the tile's rows are columns of the weight, its columns rows of x (tokens).
    resident: blocks an SM.
    """

    bm: int
    bn: int
    cluster_m: int = 1
    cluster_n: int = 1
    split: int = 1
    resident: int = 1
    swapped: bool = False

    @property
    def warpgroups(self) -> int:
        """Warpgroups that multiply; each takes 64 rows, or 128 of a tile of 256."""
        return min(2, self.bm // ROWS)

    @property
    def cluster(self) -> int:
        """Blocks of a cluster."""
        return self.cluster_m * self.cluster_n * self.split

    @property
    def shares(self) -> bool:
        """Whether blocks of a cluster share x or weight."""
        return self.cluster_m * self.cluster_n > 1

    def extents(self, case: Case) -> tuple[int, int]:
        """Return the rows and columns that tiles cover."""
        rows, columns = case.shape["M"], case.shape["N"]
        return (columns, rows) if self.swapped else (rows, columns)

    def tiles(self, case: Case) -> int:
        """Return the tiles of a case, those of a cluster's blocks that share as one."""
        rows, columns = self.extents(case)
        height, width = self.bm * self.cluster_m, self.bn * self.cluster_n
        return ceil_div(rows, height) * ceil_div(columns, width)

    def clusters(self, card: Card) -> int:
        """Return the clusters that stand on a card at once.

        Clusters of four blocks and more leave SMs idle: 30 of four stood on an H200's 132.
        """
        loss = 1 if self.cluster < FOUR else FOUND_FOR_FOUR
        return max(1, int(card.sm_count * self.resident * loss) // self.cluster)

    @property
    def widths(self) -> tuple[int, int]:
        """Return the columns of a tile's two products, the second 0 where there is one."""
        wide = min(WIDEST, self.bn)
        return wide, self.bn - wide

    def last(self, *, nk: bool) -> int:
        """Return the columns that fill no line of 128 bytes of a weight that is [K, N]."""
        return 0 if nk or self.swapped else self.bn % ROW_ITEMS

    def stage_bytes(self, *, nk: bool) -> int:
        """Return the shared memory of a stage: 64 k of x and weight, whole lines of them."""
        filling = -self.last(nk=nk) % ROW_ITEMS
        return (self.bm + self.bn + filling) * STAGE_K * ITEM_BYTES

    def slice_columns(self, *, nk: bool) -> int:
        """Return the columns of a slice, at most 64: all of whole lines, or all of the last."""
        own = self.bn // self.split
        if self.swapped:
            return next(items for items in range(ROW_ITEMS, 0, -EIGHT) if own % items == 0)
        return min(row_items(own), row_items(self.last(nk=nk)))

    def slice_bytes(self, *, nk: bool) -> int:
        """Return the shared memory of a slice: 64 rows."""
        return ROWS * self.slice_columns(nk=nk) * ITEM_BYTES

    def slices(self, *, nk: bool) -> int:
        """Return the slices of a warpgroup."""
        rows = self.bm // ROWS // self.warpgroups
        return rows * (self.bn // self.split) // self.slice_columns(nk=nk)

    @property
    def parts_bytes(self) -> int:
        """Shared memory of the sums that the other blocks of a split send, in fp32."""
        return (self.split - 1) * self.bm * (self.bn // self.split) * SUM_BYTES

    def barrier_bytes(self, stages: int, *, nk: bool) -> int:
        """Return the shared memory of barriers: two a stage, one a slice, the warpgroups'."""
        of_warpgroup = 1 + (self.split > 1) + self.slices(nk=nk)
        return BARRIER_BYTES * (2 * stages + self.warpgroups * of_warpgroup)

    def layout(self, shared_bytes: int, *, nk: bool) -> Layout | None:
        """Return the most stages that fit into a block's shared memory; None where two don't.

        The slices lie beside the ring as far as they fit there, the others in stages of it. That
        costs stages of lead at the end of each tile, and yet one more stage is worth it: tiles of
        128 x 256 took 141.5 us by four stages, 143.3 by three (H200, bf16, 8192 x 2560 x 2560).
        """
        most = min(shared_bytes, (shared_bytes + RESERVED_BYTES) // self.resident - RESERVED_BYTES)
        stage_bytes = self.stage_bytes(nk=nk)
        slice_bytes = self.warpgroups * self.slice_bytes(nk=nk)
        best = None
        for stages in range(2, MOST_STAGES + 1):
            left = most - stages * stage_bytes - self.barrier_bytes(stages, nk=nk)
            left -= self.parts_bytes
            if left < 0:
                break
            apart = min(self.slices(nk=nk), left // slice_bytes)
            tail_stages = ceil_div(self.slices(nk=nk) - apart, stage_bytes // slice_bytes)
            fits = tail_stages <= min(MOST_TAIL_STAGES, stages - 2)
            if fits and not (tail_stages and self.split > 1):
                best = Layout(stages, apart)
        return best

    def shared_bytes(self, layout: Layout, *, nk: bool) -> int:
        """Return the shared memory of a block."""
        beside = self.warpgroups * layout.apart * self.slice_bytes(nk=nk)
        ring = layout.stages * self.stage_bytes(nk=nk)
        return ring + beside + self.parts_bytes + self.barrier_bytes(layout.stages, nk=nk)


def row_items(columns: int) -> int:
    """Return the items of the longest row of a box into which so many columns can be cut."""
    return next(items for items in (ROW_ITEMS, 32, 16, EIGHT) if columns % items == 0)
