"""The tiles of a product that is computed by mma.sync (16-bit types) or FFMA (fp32)."""

from typing import NamedTuple

from solkit.declare.geometry import WARP, ceil_div
from solkit.declare.kernel import Launch
from solkit.declare.product import Product, spelled
from solkit.model import Case

GROUP = 8  # tile rows that resident blocks share, so that x and weight are read from L2
FILL = 108  # blocks that keep a large card's SMs busy (A100: 108, H200: 132)


class MmaTile(NamedTuple):
    """A block's tile for 16-bit types, its warps, and the stages of bk in shared memory."""

    bm: int
    bn: int
    bk: int
    warps_m: int
    warps_n: int
    stages: int

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory: `stages` tiles of x and weight, 2 bytes an item."""
        return self.stages * (self.bm + self.bn) * self.bk * 2

    @property
    def thread_count(self) -> int:
        """Threads of a block."""
        return WARP * self.warps_m * self.warps_n


class FfmaTile(NamedTuple):
    """A block's tile for fp32, and a thread's part of it."""

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int

    @property
    def thread_count(self) -> int:
        """Threads of a block."""
        return (self.bm // self.tm) * (self.bn // self.tn)


# Largest first. 64 x 64 a warp asks least of shared memory; the small ones exist to fill the card.
# 64 KB at most: what a block has on CC 7.5. A 128 x 256 tile of 8 warps was slower on an H200
# (bf16, M = 8192, K = N = 2560, kn: 330 us against 274 us; M = 2048: 129 against 91).
MMA_TILES = (
    MmaTile(128, 128, 32, 2, 2, 4),
    MmaTile(64, 64, 64, 2, 2, 4),
    MmaTile(64, 32, 64, 2, 2, 5),
    MmaTile(16, 64, 64, 1, 4, 6),
    MmaTile(16, 32, 128, 1, 2, 5),
)
FFMA_TILES = (FfmaTile(128, 128, 8, 8, 8), FfmaTile(64, 64, 16, 4, 4), FfmaTile(32, 32, 32, 4, 4))


def tile_for(case: Case) -> MmaTile | FfmaTile:
    """Return the largest tile that M half fills and that makes enough blocks for a large card.

    Where none does, the one that makes most blocks: small shapes wait for memory, and more SMs
    fetch more at a time.
    """
    m = case.shape["M"]
    tiles: tuple[MmaTile | FfmaTile, ...] = FFMA_TILES if case.dtype == "fp32" else MMA_TILES
    fitting = [tile for tile in tiles if tile.bm < 2 * m] or [tiles[-1]]
    for tile in fitting:
        if _blocks(case, tile) >= FILL:
            return tile
    return max(fitting, key=lambda tile: _blocks(case, tile))


def launches(product: Product, case: Case, *, old: bool = False) -> tuple[Launch, ...]:
    """One block a tile, on a one-dimensional grid: the .cu orders them.

    old: fp16 by what cards below CC 8.0 have, on whatever card.
    """
    tile, nk = tile_for(case), spelled(case.params["weight"] == "nk")
    constants = ", ".join(map(str, (*tile, GROUP)))
    if isinstance(tile, FfmaTile):
        entry, shared_bytes = f"matmul_ffma<{nk}, {constants}, {product.epilogue(case)}>", 0
    else:
        last = f"{product.epilogue(case)}{', true' if old else ''}"
        entry = f"matmul_mma<{case.ctype}, {nk}, {constants}, {last}>"
        shared_bytes = tile.shared_bytes
    return (
        Launch(
            entry,
            grid=(_blocks(case, tile), 1, 1),
            block=(tile.thread_count, 1, 1),
            shared_bytes=shared_bytes,
            args=product.launch_args(case),
        ),
    )


def _blocks(case: Case, tile: MmaTile | FfmaTile) -> int:
    return ceil_div(case.shape["M"], tile.bm) * ceil_div(case.shape["N"], tile.bn)
