"""MatMul + residual: out = x @ weight + residual, the attention output projection and its add."""

from typing import NamedTuple

from solkit import (
    Arg,
    Array,
    Case,
    Kernel,
    Launch,
    Layout,
    Normal,
    Operator,
    Step,
    Tolerance,
    Work,
)
from solkit.declare.geometry import ACCESS_BYTES, ceil_div
from solkit.dtypes import DTYPES

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


class FfmaTile(NamedTuple):
    """A block's tile for fp32, and a thread's part of it."""

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int


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


def work(case: Case) -> Work:
    """2 M N K flop in the dtype's matrix pipe; x, weight and residual are read, out is written.

    The residual's addition is elementwise: M N flop, an estimate.
    """
    m, n, k, item = case.shape["M"], case.shape["N"], case.shape["K"], case.item_bytes
    return Work(
        read_bytes=(m * k + k * n + m * n) * item,
        write_bytes=m * n * item,
        flop={DTYPES[case.dtype].matmul_pipe: 2 * m * n * k},
        estimated_flop={"fp32": m * n},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the product, written, and read again by the addition."""
    m, n, k, item = case.shape["M"], case.shape["N"], case.shape["K"], case.item_bytes
    product = {DTYPES[case.dtype].matmul_pipe: 2 * m * n * k}
    return (
        Step("matmul", Work((m * k + k * n) * item, m * n * item, flop=product)),
        Step("add", Work(2 * m * n * item, m * n * item, estimated_flop={"fp32": m * n})),
    )


def reference(x: Array, w: Array, residual: Array) -> Array:
    """Return x @ w + residual; w is [K, N] here, however it is stored."""
    out: Array = x @ w
    out += residual
    return out


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


def _blocks(case: Case, tile: MmaTile | FfmaTile) -> int:
    return ceil_div(case.shape["M"], tile.bm) * ceil_div(case.shape["N"], tile.bn)


def launches(case: Case) -> tuple[Launch, ...]:
    """One block a tile, on a one-dimensional grid: the .cu orders them."""
    tile = tile_for(case)
    nk = str(case.params["weight"] == "nk").lower()
    grid = (_blocks(case, tile), 1, 1)
    constants = ", ".join(str(size) for size in tile)
    if isinstance(tile, FfmaTile):
        threads = (tile.bm // tile.tm) * (tile.bn // tile.tn)
        return (Launch(f"matmul_add_ffma<{nk}, {constants}, {GROUP}>", grid, (threads, 1, 1)),)
    return (
        Launch(
            f"matmul_add_mma<{case.ctype}, {nk}, {constants}, {GROUP}>",
            grid,
            block=(32 * tile.warps_m * tile.warps_n, 1, 1),
            shared_bytes=tile.shared_bytes,
        ),
    )


def refuse(case: Case) -> str | None:
    """Rows of every matrix must start on a 16-byte boundary."""
    items = ACCESS_BYTES // case.item_bytes
    for axis in ("N", "K"):
        if case.shape[axis] % items:
            return f"{axis} must be a multiple of {items} for {case.dtype} (16-byte rows)"
    return None


OPERATOR = Operator(
    name="matmul_add",
    args=(
        Arg("x", "M K"),
        # Scaled so that results are about 1 for every K.
        Arg(
            "w",
            "K N",
            init=Normal(fan_in="K"),
            layout=Layout("weight", {"kn": "K N", "nk": "N K"}),
        ),
        Arg("residual", "M N"),
        Arg("out", "M N", "out"),
    ),
    params={"weight": ("kn", "nk")},
    work=work,
    unfused=unfused,
    reference=reference,
    # fp32: K products added one after another. Partial sums are about 1, so each addition errs by
    # about 3e-8 and K of them by sqrt(K) times that: 3e-6 at K = 8192, and the largest of 1e8
    # results by six times as much. In the other types the accumulator's error is far below the one
    # rounding of the result.
    tolerance={"fp32": Tolerance(1e-5, 5e-5)},
    independent=("M", "N"),
    summary="out = x @ weight + residual",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="matmul_add.cu",
    launches=launches,
    refuse=refuse,
    summary="mma.sync tiles with a multistage copy pipeline; fp32: register tiles of FFMA",
)
