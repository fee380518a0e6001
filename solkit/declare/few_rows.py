"""The products of few rows, 16-bit types: how their weights are streamed by all of a card."""

from typing import NamedTuple

from solkit.declare.card import Card
from solkit.declare.geometry import RANKS, WARP, ceil_div
from solkit.declare.kernel import Launch
from solkit.declare.product import Product, spelled
from solkit.model import Case

MOST_ROWS = 64  # of x: what the accumulators of a block have room for
MOST_GEMV_ROWS = 4  # a gemv form has a sum for each; with more, multiply-adds outlast memory
COPIES_FROM = 80  # compute capability: asynchronous copies, and tensor cores for bf16
VECTOR = 8  # items of 16 bytes
PIECE = WARP * VECTOR  # neighbouring k that a warp of gemv_nk loads at once
ITEM_BYTES, SUM_BYTES = 2, 4
PITCH_PAD = 4  # columns, as in part_pitch() of split_sums.cuh


class GemvNk(NamedTuple):
    """Columns that `sharers` warps of a block take, reading `depth` pieces of 256 k at once.

    resident: blocks that the registers of an SM are dealt out for. alone: weights stay out of L1.
    """

    cols: int
    depth: int
    warps: int
    sharers: int
    resident: int
    alone: bool = True

    @property
    def warp_count(self) -> int:
        """The warps of a block."""
        return self.warps

    @property
    def ranks(self) -> int:
        """The blocks of a cluster: none is needed."""
        return 1

    def blocks(self, cols: int) -> int:
        """Return the blocks for so many columns."""
        return ceil_div(cols, self.cols * self.warps // self.sharers)

    def reach(self, depth: int) -> int:
        """Return the k to which the loads of a column reach for so many: in whole rounds."""
        round_items = self.sharers * self.depth * PIECE
        return ceil_div(depth, round_items) * round_items

    def shared_bytes(self, _rows: int) -> int:
        """Return the bytes of a block beside those that its function declares."""
        return 0


class GemvKn(NamedTuple):
    """Lanes along the columns, 8 each; the others, the warps and the ranks of a cluster share K.

    resident: blocks that the registers of an SM are dealt out for. alone: weights stay out of L1.
    """

    col_lanes: int
    warps: int
    ranks: int
    resident: int
    alone: bool = True

    @property
    def warp_count(self) -> int:
        """The warps of a block."""
        return self.warps

    @property
    def bn(self) -> int:
        """The columns of a block."""
        return self.col_lanes * VECTOR

    def blocks(self, cols: int) -> int:
        """Return the blocks for so many columns."""
        return ceil_div(cols, self.bn) * self.ranks

    def shared_bytes(self, rows: int) -> int:
        """Return the bytes of a block's sums, a part for each warp."""
        return self.warps * rows * (self.bn + PITCH_PAD) * SUM_BYTES


class Swapped(NamedTuple):
    """The columns and k of a block's tile, its warps along both, stages, and ranks of a cluster.

    turned: neighbours begin at different tiles, so that they don't ask for the same x at once.
    """

    bn: int
    bk: int
    warps_n: int
    warps_k: int
    stages: int
    ranks: int
    turned: bool = False

    @property
    def warp_count(self) -> int:
        """The warps of a block."""
        return self.warps_n * self.warps_k

    def blocks(self, cols: int) -> int:
        """Return the blocks for so many columns."""
        return ceil_div(cols, self.bn) * self.ranks

    def shared_bytes(self, rows: int) -> int:
        """Return the bytes of a block: the ring of tiles, then in its place the sums."""
        padded = padded_rows(rows)
        ring = self.stages * (self.bn + padded) * self.bk * ITEM_BYTES
        return max(ring, self.warps_k * padded * (self.bn + PITCH_PAD) * SUM_BYTES)


Form = GemvNk | GemvKn | Swapped


def padded_rows(rows: int) -> int:
    """Return the rows of x that tensor cores take: 8, 16, 32 or 64."""
    return next(most for most in (8, 16, 32, 64) if rows <= most)


def takes(case: Case, card: Card) -> bool:
    """Whether there is a form for the case on the card."""
    few = case.dtype in ("fp16", "bf16") and case.shape["M"] <= MOST_ROWS
    return few and card.compute_capability >= COPIES_FROM


def launches_of(product: Product, case: Case, form: Form) -> tuple[Launch, ...]:
    """Return the launch of one form; gemv forms are for one layout of the weights each."""
    name, sizes = _function(case, form)
    constants = ", ".join((case.ctype, *map(spelled, sizes), product.epilogue(case)))
    return (
        Launch(
            f"{name}<{constants}>",
            grid=(form.blocks(case.shape["N"]), 1, 1),
            block=(form.warp_count * WARP, 1, 1),
            shared_bytes=form.shared_bytes(case.shape["M"]),
            args=product.launch_args(case),
            cluster=form.ranks,
        ),
    )


def _function(case: Case, form: Form) -> tuple[str, tuple[int, ...]]:
    """Return the name of a form's kernel, and its constants."""
    rows = case.shape["M"]
    match form:
        case GemvNk():
            return "matmul_gemv_nk", (rows, *form)
        case GemvKn():
            return "matmul_gemv_kn", (rows, *form)
        case Swapped():
            return "matmul_swapped", (case.params["weight"] == "nk", padded_rows(rows), *form)


def launches(product: Product, case: Case, card: Card) -> tuple[Launch, ...]:
    """Return the launch of the form that a case gets on a card."""
    return launches_of(product, case, choose(case, card))


# The choice is fitted to times of an H200 (132 SMs, bf16, us), in each row of figures K x N:
#                                   2560^2  4096^2  5120^2  8192^2  14336 x 4096
#   M = 1, nk: 2 columns a warp      5.70    9.63    13.82   32.70   27.89
#              2 warps a column      5.30   10.94    14.22   36.67   29.34
#   M = 1, kn: 32 columns a block    5.47   10.32    17.50   35.98   30.22
#              128, 8 ranks          5.82   10.10    14.78   39.26   28.90
#              128, 4 ranks          6.43   10.80    14.32   32.61   30.34
#   M = 16, kn: 64 columns, 2 ranks  6.43   10.53    15.54   32.66   28.96
#               64 columns, 4 ranks  6.19   11.34    15.42   41.70   31.49
#   M = 64, kn: 64 columns, 2 ranks 10.08   14.22    23.58   36.00   40.46
#              128 columns, 4 ranks  8.78   16.22    19.42   49.50   43.95
# Blocks that don't all stand on the card at once, or that leave SMs without one, explain the rows.
GEMV_ROWS = 1  # 4 took gemv 7.17 (kn, 2560^2) and tensor cores 5.71; 4096^2: 15.30 and 10.51
FILLED = 0.9  # of the SMs: as many as have a block when the card counts as full
RESIDENT = 2.4  # blocks an SM, where registers have room for 3: clusters don't find all of it


def choose(case: Case, card: Card) -> Form:
    """Return the form for a case: multiply-adds for one row, tensor cores for more."""
    rows, cols = case.shape["M"], case.shape["N"]
    if rows > GEMV_ROWS:
        return _swapped(rows, cols, card)
    return _gemv_nk(case.shape["K"]) if case.params["weight"] == "nk" else _gemv_kn(cols, card)


def _gemv_nk(depth: int) -> GemvNk:
    """Return the form whose rounds of loads reach least beyond K."""
    columns = GemvNk(2, depth=4, warps=8, sharers=1, resident=3)
    shared = GemvNk(1, depth=5, warps=8, sharers=2, resident=3)
    return min(columns, shared, key=lambda form: form.reach(depth))


def _gemv_kn(cols: int, card: Card) -> GemvKn:
    """Return blocks of 32 columns if so many leave SMs idle, else a cluster for 128 columns.

    K is split as often as all blocks still stand on the card at once.
    """
    narrow = GemvKn(4, warps=16, ranks=1, resident=1)
    if not card.has_clusters or narrow.blocks(cols) < FILLED * card.sm_count:
        return narrow._replace(ranks=_ranks(narrow.blocks(cols), card.sm_count, card))
    wide = GemvKn(16, warps=8, ranks=1, resident=3)
    return wide._replace(ranks=_ranks(wide.blocks(cols), RESIDENT * card.sm_count, card))


def _swapped(rows: int, cols: int, card: Card) -> Swapped:
    """Return tiles of 64 columns, K split in two, where their blocks fill the card.

    Beyond 32 rows they must fill it evenly: what a block computes takes longer than its copies.
    """
    most_ranks = card.most_cluster_blocks
    if most_ranks == 1:
        return Swapped(32, bk=128, warps_n=2, warps_k=2, stages=4, ranks=1)
    split = min(4, most_ranks)  # for fewer columns
    if rows <= MOST_ROWS // 2:
        tile = Swapped(64, bk=128, warps_n=4, warps_k=2, stages=4, ranks=2)
        filled = tile.blocks(cols) >= FILLED * card.sm_count
        return tile if filled else Swapped(64, 64, 4, 1, stages=6, ranks=split)
    tile = Swapped(64, bk=64, warps_n=4, warps_k=1, stages=5, ranks=2)
    slots = ceil_div(tile.blocks(cols), card.sm_count) * card.sm_count
    even = tile.blocks(cols) >= FILLED * slots
    return tile if even else Swapped(128, 64, 4, 1, stages=4, ranks=split)


def _ranks(blocks: int, most_blocks: float, card: Card) -> int:
    """Return the blocks that share K, for so many blocks without them: the most that have room."""
    most = min(card.most_cluster_blocks, most_blocks / blocks)
    return next((ranks for ranks in RANKS if ranks <= most), 1)
