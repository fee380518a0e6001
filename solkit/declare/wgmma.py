"""Which form of a product on Hopper's tensor cores takes a case, and its launch.

kernels/matmul/wgmma_tiles.cuh is the kernel.
"""

from functools import partial

from solkit.declare.card import Card
from solkit.declare.geometry import ceil_div
from solkit.declare.kernel import Launch
from solkit.declare.product import Product, spelled
from solkit.declare.tensor_map import TensorMap
from solkit.declare.wgmma_form import (
    EIGHT,
    ITEM_BYTES,
    ROW_ITEMS,
    ROWS,
    STAGE_K,
    WIDEST,
    WgmmaForm,
)
from solkit.errors import BadInput
from solkit.model import Case

CAPABILITY = 90  # wgmma is there and nowhere else
WARPGROUP = 128  # threads
# Rows of tiles that are walked together, so that x and weight are shared in L2: 4 took 141.5 us at
# 8192 x 2560 x 2560 (nk), 8 142.3 and 1 142.8; and, of pairs whose blocks share weight, 8 took
# 1213 us at 8192 x 14336 x 4096 (kn), 4 1223 and 12 1215.
GROUP, SHARED_GROUP = 4, 8

# Each was the fastest of some 150 at a shape or more on an H200 (bf16, cold L2, M from 1 to 8192,
# five K and N from 2560 to 14336, both layouts), or within 1 % of the fastest at several.
FORMS = (
    WgmmaForm(128, 256),
    WgmmaForm(128, 256, cluster_m=2),
    WgmmaForm(256, 160),
    WgmmaForm(128, 320),
    WgmmaForm(128, 160),
    WgmmaForm(128, 128),
    WgmmaForm(64, 160),
    WgmmaForm(64, 128),
    WgmmaForm(64, 96),
    WgmmaForm(64, 64),
    WgmmaForm(128, 64, split=2),
    # Tokens as columns: numbers of tokens that 64 doesn't divide; and few.
    WgmmaForm(128, 200, swapped=True),
    WgmmaForm(64, 200, swapped=True),
    WgmmaForm(128, 152, cluster_n=2, swapped=True),
    WgmmaForm(256, 152, cluster_n=2, swapped=True),
    WgmmaForm(64, 64, split=2, swapped=True),
    WgmmaForm(128, 64, split=2, swapped=True),
    WgmmaForm(128, 64, cluster_m=2, split=2, swapped=True),
    WgmmaForm(64, 32, split=2, resident=2, swapped=True),
    WgmmaForm(64, 16, resident=2, swapped=True),
    WgmmaForm(64, 16, split=2, resident=2, swapped=True),
    WgmmaForm(128, 16, split=2, swapped=True),
)

# What a form takes, in clocks of an SM, fitted to 551 times (H200, 2026-12-01): what it chose was
# 0.3 % slower than the fastest in the mean, 5.6 % at worst, and its own times are off by 5 %. What
# splitting and sharing cost was set anew by 90 more, after their barriers had gone.
CLOCK_HZ = 1.75e9  # under such loads: power holds it below the card's 1.98
FLOP_PER_CLOCK = 4096  # an SM's tensor cores, 16-bit types
OPERAND_BYTES_PER_CLOCK = 159.0  # by which tensor cores read shared memory
INGRESS_BYTES_PER_CLOCK = 95.0  # of an SM from L2
TILE_CLOCKS = 4600.0  # from a tile of 128 x 256 to the next: its residual, results and stores
SHARED_CLOCKS = 2000.0  # and by so much more where blocks share: they wait for each other
SPLIT_CLOCKS, FIRST_CLOCKS = 900.0, 800.0
DRAM_BYTES_PER_S, DRAM_FIRST_S = 4.5e12, 4.53e-6
# No resource hides wholly behind another: the exponents of their norms.
STAGE_NORM, TIME_NORM = 3.0, 4.0


def seconds(form: WgmmaForm, case: Case, card: Card) -> float:
    """Return what a form takes by the model above; for choosing, not for showing."""
    m, n, k = (case.shape[axis] for axis in ("M", "N", "K"))
    tiles, places = form.tiles(case), form.clusters(card)
    blocks_an_sm = max(1, ceil_div(min(tiles, places) * form.cluster, card.sm_count))
    widths = [width for width in form.widths if width]
    multiply = 2 * form.bm * form.bn * STAGE_K / FLOP_PER_CLOCK
    operands = form.bm // ROWS * sum(ROWS + width for width in widths) * STAGE_K * ITEM_BYTES
    # What lies beyond the tensors is not fetched; of what is shared each block fetches its part.
    rows, columns = (
        min(tile, extent)
        for tile, extent in zip((form.bm, form.bn), form.extents(case), strict=True)
    )
    fetched = (rows / form.cluster_n + columns / form.cluster_m) * STAGE_K * ITEM_BYTES
    stage = blocks_an_sm * _norm(
        STAGE_NORM,
        multiply,
        operands / OPERAND_BYTES_PER_CLOCK,
        fetched / INGRESS_BYTES_PER_CLOCK,
    )
    stages = ceil_div(k, STAGE_K) / form.split
    of_largest = TILE_CLOCKS / form.split + form.shares * SHARED_CLOCKS
    between = of_largest * form.bm * form.bn / (128 * 256) * blocks_an_sm
    clocks = ceil_div(tiles, places) * (stages * stage + between) + FIRST_CLOCKS
    clocks += (form.split > 1) * SPLIT_CLOCKS
    traffic_bytes = (m * k + k * n + 2 * m * n) * ITEM_BYTES
    return _norm(TIME_NORM, clocks / CLOCK_HZ, traffic_bytes / DRAM_BYTES_PER_S + DRAM_FIRST_S)


def _norm(exponent: float, *parts: float) -> float:
    return float(sum(part**exponent for part in parts) ** (1 / exponent))


# Below, few_rows is faster; that its copies need no map fetched before may be why. From 16 rows by
# 5120^2 up it is the other way round (15.0 us beside 15.7, kn), and one row is always its.
FEW_ROWS, FEW_ROWS_WEIGHTS = 16, 4096 * 4096
MOST_EXTENT = 2**31 - 2**12  # a box begins at 32-bit places, tiles of a cluster beyond the end too
MOST_SWAPPED_ROWS = 1024  # above, the last of many tiles may be half empty
# Tiles of a cluster. Large blocks that share take 0.2 to 0.8 % more clocks, of which a card at its
# power limit has 0.5 to 1.5 % more: 593.6 us at 4096 x 14336 x 4096 (M, K, N) where blocks alone
# took 598.6. At 1024 rows, one tile each, it had 1 % fewer: 149.4 us where they took 147.3.
FEW_SHARED = 3
# Rows of tiles whose columns must fill lines: of a [K, N] weight, 256 x 160 took 0.1 to 0.7 % more
# than 128 x 320 where the model has it ahead (37.44 us beside 37.18 at 2048 x 2560 x 2560).
TALL = 256


def takes(case: Case, card: Card) -> bool:
    """Whether a form is the way for a case on a card."""
    rows = case.shape["M"]
    few = rows <= 1 or (rows <= FEW_ROWS and case.shape["N"] * case.shape["K"] <= FEW_ROWS_WEIGHTS)
    there = card.compute_capability == CAPABILITY and case.dtype in ("fp16", "bf16")
    return there and not few and max(case.shape.values()) <= MOST_EXTENT


def choose(case: Case, card: Card) -> WgmmaForm:
    """Return the form that the model finds fastest."""
    fitting = [form for form in FORMS if _fits(form, case, card)]
    return min(fitting, key=lambda form: seconds(form, case, card))


def _fits(form: WgmmaForm, case: Case, card: Card) -> bool:
    """Return whether a form can take a case, and was found to be worth it."""
    nk, stages = case.params["weight"] == "nk", ceil_div(case.shape["K"], STAGE_K)
    alone = form.swapped or not form.shares
    return (
        form.layout(card.shared_bytes_per_block, nk=nk) is not None
        and (form.split == 1 or stages >= form.split)
        and (form.split == 1 or form.tiles(case) <= form.clusters(card))
        and (not form.swapped or case.shape["M"] <= MOST_SWAPPED_ROWS)
        and (alone or form.tiles(case) > FEW_SHARED * form.clusters(card))
        and (form.bm < TALL or not form.last(nk=nk))
    )


def launches(product: Product, case: Case, card: Card) -> tuple[Launch, ...]:
    """Return the launch of the form that a case gets on a card."""
    return launches_of(product, case, card, choose(case, card))


def launches_of(product: Product, case: Case, card: Card, form: WgmmaForm) -> tuple[Launch, ...]:
    """Return the launch of one form: a persistent grid, but a cluster a tile where k is split."""
    nk = case.params["weight"] == "nk"
    layout = form.layout(card.shared_bytes_per_block, nk=nk)
    if layout is None:
        raise BadInput(
            f"{case}: {form} needs more than {card.shared_bytes_per_block} bytes of shared memory",
            remedy="take a smaller tile",
        )
    if form.split > (stages := ceil_div(case.shape["K"], STAGE_K)):
        raise BadInput(
            f"{case}: {form} splits {stages} stages of k among {form.split} blocks",
            remedy="split k by no more than its stages of 64",
        )
    tiles = form.tiles(case)
    clusters = tiles if form.split > 1 else min(tiles, form.clusters(card))
    sizes = (
        *(nk, form.swapped, form.bm, form.bn, form.warpgroups, *layout, form.resident),
        *(form.cluster_m, form.cluster_n, form.split),
        SHARED_GROUP if form.shares else GROUP,
    )
    constants = f"{case.ctype}, WgmmaForm<{', '.join(map(spelled, sizes))}>"
    _, _, bias, _, _, *numbers = product.launch_args(case)
    return (
        Launch(
            f"matmul_wgmma<{constants}, {product.epilogue(case)}>",
            grid=(clusters * form.cluster, 1, 1),
            block=(WARPGROUP * (form.warpgroups + 1), 1, 1),
            shared_bytes=form.shared_bytes(layout, nk=nk),
            args=(*_maps(product, form, nk=nk), bias, *numbers),
            cluster=form.cluster,
        ),
    )


def _maps(product: Product, form: WgmmaForm, *, nk: bool) -> tuple[TensorMap, ...]:
    """Return the boxes of a stage's rows, columns and last columns, of a slice in and out."""
    of_rows, of_columns = ("w", "x") if form.swapped else ("x", "w")
    rows = form.bm // form.cluster_n, STAGE_K // form.cluster_n
    if nk or not form.swapped:
        a = TensorMap(of_rows, box=(rows[0], STAGE_K), swizzle_bytes=128)
    else:
        a = TensorMap(of_rows, box=(rows[1], ROW_ITEMS), swizzle_bytes=128)
    columns = form.bn // form.cluster_m
    if nk or form.swapped:
        box_rows = columns if columns <= WIDEST else columns // 2
        b = last = TensorMap(of_columns, box=(box_rows, STAGE_K), swizzle_bytes=128)
    else:
        depth = STAGE_K // form.cluster_m
        b, last = (
            TensorMap(of_columns, box=(depth, items), swizzle_bytes=128)
            for items in (ROW_ITEMS, form.last(nk=nk) or ROW_ITEMS)
        )
    items = form.slice_columns(nk=nk)
    if form.swapped:
        slice_map = partial(TensorMap, box=(items, ROWS), swizzle_bytes=ROWS * ITEM_BYTES)
    else:
        swizzle_bytes = items * ITEM_BYTES if items > EIGHT else 0
        slice_map = partial(TensorMap, box=(ROWS, items), swizzle_bytes=swizzle_bytes)
    return (a, b, last, slice_map("residual" if product.residual else "out"), slice_map("out"))
