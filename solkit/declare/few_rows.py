"""The products of few rows, 16-bit types: how their weights are streamed by all of a card."""

from typing import NamedTuple, Protocol

from solkit.declare.card import Card
from solkit.declare.geometry import RANKS, WARP, ceil_div
from solkit.declare.kernel import Launch
from solkit.model import Case

MOST_ROWS = 64  # of x: what the accumulators of a block have room for
MOST_GEMV_ROWS = 4  # multiply-adds, one for each weight and row of x, then take as long as memory
COPIES_FROM = 80  # compute capability: asynchronous copies, and tensor cores for bf16
VECTOR = 8  # items of 16 bytes
ITEM_BYTES, SUM_BYTES = 2, 4
PITCH_PAD = 4  # columns, as in part_pitch() of split_sums.cuh


class Follower(Protocol):
    """What follows a sum of products, and how a kernel of the family is told of it."""

    def epilogue(self, case: Case) -> str:
        """Return the template argument that every kernel of the family takes last."""

    def launch_args(self, case: Case) -> tuple[str | int | float, ...]:
        """Return what every kernel of the family takes, in its order."""


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


def launches_of(product: Follower, case: Case, form: Form) -> tuple[Launch, ...]:
    """Return the launch of one form; gemv forms are for one layout of the weights each."""
    name, sizes = _function(case, form)
    spelled = ", ".join((case.ctype, *map(_spelled, sizes), product.epilogue(case)))
    return (
        Launch(
            f"{name}<{spelled}>",
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


def _spelled(size: int) -> str:
    return str(size).lower()  # a bool as C++ writes it


def choose(case: Case, card: Card) -> Form:
    """Return the form for a case: multiply-adds for the fewest rows, tensor cores for more.

    K is split over clusters until the blocks fill the card; where there are none, a block has fewer
    columns and its warps share K.
    """
    rows, cols, nk = case.shape["M"], case.shape["N"], case.params["weight"] == "nk"
    most_ranks = min(card.most_cluster_blocks, RANKS[0])
    if rows <= MOST_GEMV_ROWS:
        few = rows <= MOST_GEMV_ROWS // 2  # whose sums leave registers for a third block
        resident = 3 if few else 2
        if nk:
            return GemvNk(1, depth=8 if few else 4, warps=8, sharers=1, resident=resident)
        if most_ranks > 1:
            return GemvKn(16, warps=8, ranks=most_ranks, resident=resident)
        return GemvKn(4, warps=16, ranks=1, resident=1)
    if most_ranks == 1:
        return Swapped(32, bk=128, warps_n=2, warps_k=2, stages=4, ranks=1)
    bn = 128 if rows > MOST_ROWS // 2 else 64
    ranks = 1
    while ranks < most_ranks and ceil_div(cols, bn) * ranks < card.sm_count:
        ranks *= 2
    return Swapped(bn, bk=64, warps_n=4, warps_k=1, stages=4, ranks=ranks)
