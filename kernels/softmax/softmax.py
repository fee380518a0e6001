"""Softmax over each row: y = exp(t - max t) / sum(exp(t - max t)), t = x scale + mask."""

from dataclasses import dataclass

import numpy as np

from solkit import Arg, Array, Card, Case, Kernel, Launch, Operator, Step, Tolerance, Work
from solkit.declare.geometry import ACCESS_BYTES, WARP, ceil_div, power_of_two

MOST_COLS = 2**30  # rows and columns are counted in 32 bits on the device
MOST_RANKS, PORTABLE_RANKS = 16, 8  # blocks of a cluster; more than 8 run on some cards alone
FULL_BLOCK = 512  # threads of a block at most
ALONE = 4 * FULL_BLOCK  # vectors of 16 bytes that a block may hold where there are many rows
SPREAD = (1, 2, 4)  # vectors a thread, where there are few rows
ALL_THREADS = 2**18  # of an H200: 132 SMs, 2048 each
ROWS_PER_BLOCK = 4  # where a warp has a row to itself
LOOPED_THREADS, LOOPED_ITEMS = 512, 4  # of longer rows: threads a block, loads in flight a thread


def work(case: Case) -> Work:
    """Count what is seen of x and the mask, which is read, and all of y.

    An item that is seen costs a product, a maximum, a difference, a sum and a product, and one
    exp; a mask adds a sum.
    """
    rows, cols, seen = case.shape["rows"], case.shape["cols"], _seen_count(case)
    additive = _adds(case)
    return Work(
        read_bytes=(1 + additive) * seen * case.item_bytes,
        write_bytes=rows * cols * case.item_bytes,
        estimated_flop={"fp32": (5 + additive) * seen, "sfu": seen + rows},
    )


def _seen_count(case: Case) -> int:
    """Return how many items take part: with a causal mask 1, 2 ... cols in each cols rows."""
    rows, cols = case.shape["rows"], case.shape["cols"]
    if case.params["masking"] != "causal":
        return rows * cols
    whole, rest = divmod(rows, cols)
    return whole * cols * (cols + 1) // 2 + rest * (rest + 1) // 2


def unfused(case: Case) -> tuple[Step, ...]:
    """Return scale and mask, where there are any, then max, exp of the difference, sum, quotient.

    Full arrays go through DRAM between them in the case's dtype, and so do the rows' max and sum.
    """
    count, rows = case.shape["rows"] * case.shape["cols"], case.shape["rows"]
    full, one, flop = count * case.item_bytes, rows * case.item_bytes, {"fp32": count}
    masking = case.params["masking"]
    masked = (1 + (masking == "additive")) * full
    return (
        *(
            [Step("scale", Work(full, full, estimated_flop=flop))]
            if case.params["scale"] != 1
            else []
        ),
        *([Step("mask", Work(masked, full, estimated_flop=flop))] if masking != "none" else []),
        Step("max", Work(full, one, estimated_flop=flop)),
        Step("exp", Work(full + one, full, estimated_flop={"fp32": count, "sfu": count})),
        Step("sum", Work(full, one, estimated_flop=flop)),
        Step("divide", Work(full + one, full, estimated_flop={"fp32": count, "sfu": rows})),
    )


def reference(
    x: Array, mask: Array = None, rows: Array = None, *, scale: float = 1.0, masking: str = "none"
) -> Array:
    """Return exp(t - max t) / sum; `rows` are the rows' numbers, which a causal mask needs."""
    y: Array = x * x.dtype.type(scale)
    if masking == "additive":
        y += mask
    elif masking == "causal":
        unseen = np.arange(x.shape[-1]) > (rows % x.shape[-1])[:, None]
        y[unseen] = -np.inf
    y -= y.max(axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    if masking == "causal":
        y[unseen] = 0  # in a row that is not a number, too
    return y


def launches(case: Case, card: Card) -> tuple[Launch, ...]:
    """Keep rows on the chip where they fit there, else take two passes."""
    most = most_ranks(card)
    shape = layout(case, most)
    return (launch(case, shape) if shape else looped(case, most),)


def most_ranks(card: Card) -> int:
    """Return the blocks that a row may have. Before CC 9.0 a block takes rows alone anyway."""
    return min(MOST_RANKS, card.most_cluster_blocks) if card.has_clusters else MOST_RANKS


@dataclass(frozen=True, slots=True)
class OnChip:
    """How a row is held: `kept` vectors by each thread of `ranks` blocks of `threads`.

    With an additive mask, as many of the mask's vectors are held beside them.
    """

    ranks: int
    threads: int
    kept: int


def layout(case: Case, most: int) -> OnChip | None:
    """Return how a row is held by so many blocks at most, or None where it is too long."""
    return _spread(case, most) or _packed(case, most)


def _spread(case: Case, most: int) -> OnChip | None:
    """Give few rows to many threads, all of them there at once; None where there are too many.

    Rows that a block holds alone get all of the threads that an H200 has, those that a cluster
    holds a quarter. Long ones get half, and all only where vectors would else be 8 a thread:
    64 x 32768 bf16 took 4.5 us by 2 vectors of 131072 threads, 5.8 by one of 262144; 64 x 128256
    took 10.5 us by 4 of 262144, 10.8 by 8 of 131072.
    """
    long = _vectors(case) > ALONE
    for held in SPREAD:
        alone = _vectors(case) <= FULL_BLOCK * held
        wanted = FULL_BLOCK // 2 if long else FULL_BLOCK
        ranks = 1 if alone else min(most, _ranks(case, held, wanted))
        threads = _threads(case, ranks, held)
        part = 1 if alone or (long and held == SPREAD[-1]) else 2 if long else 4
        if threads <= FULL_BLOCK and case.shape["rows"] * ranks * threads <= ALL_THREADS // part:
            return OnChip(ranks, threads, held)
    return None


def _packed(case: Case, most: int) -> OnChip | None:
    """Keep many rows under way on an SM, long ones by clusters of small blocks.

    4096 x 65536 bf16 took 256 us by 8 blocks of 128 threads, 259 by 4 of 256. More than 8 blocks
    gain where those are large, 64 x 262144 took 22.3 us by 8 of 512 and 20.0 by 16 of 256, and
    nothing where they are small: 4096 x 128256, 497 us by 8 of 256 and 496 by 16 of 128.
    """
    alone, few, many = (FULL_BLOCK, 2, 4) if _adds(case) else (ALONE, 4, 8)
    if _vectors(case) <= alone:
        held = min(few, ceil_div(_vectors(case), WARP))
        return OnChip(1, _threads(case, 1, held), held)
    ranks = min(PORTABLE_RANKS, most, _ranks(case, many, FULL_BLOCK // 4))
    if _threads(case, ranks, many) > FULL_BLOCK // 2:
        ranks = most
    threads = _threads(case, ranks, many)
    held = ceil_div(_vectors(case), ranks * threads)
    return OnChip(ranks, threads, held) if threads <= FULL_BLOCK else None


def _ranks(case: Case, held: int, threads: int) -> int:
    """Return the blocks of a row's cluster when each has about so many threads."""
    return power_of_two(ceil_div(_vectors(case), threads * held))


def _threads(case: Case, ranks: int, held: int) -> int:
    """Return the threads of a block, whole warps, when each holds so many vectors."""
    return WARP * ceil_div(_vectors(case), WARP * ranks * held)


def _adds(case: Case) -> bool:
    return case.params["masking"] == "additive"


def _edges(case: Case) -> bool:
    return case.shape["cols"] * case.item_bytes % ACCESS_BYTES != 0


def _vectors(case: Case) -> int:
    """Return the places that a row's whole 16-byte vectors need, at least one.

    Rows of odd lengths begin anywhere in a line of eight, as late as in the last one's last item:
    their first whole vector is then the ninth.
    """
    return max(1, case.shape["cols"] * case.item_bytes // ACCESS_BYTES + 8 * _edges(case))


def _kind(case: Case) -> str:
    return f"{case.ctype}, Mask::{case.params['masking']}, {str(_edges(case)).lower()}"


def _args(case: Case) -> tuple[str | float, ...]:
    mask = "mask" if _adds(case) else "x"
    return ("x", mask, "y", "rows", "cols", float(case.params["scale"]))


def launch(case: Case, shape: OnChip) -> Launch:
    """Return the launch that holds rows so."""
    rows, threads = case.shape["rows"], shape.threads
    whole = _whole(case, shape)
    if shape.ranks > 1:
        form = f"{shape.ranks}, {threads}, {shape.kept}, {whole}, {LOOPED_ITEMS}"
        return Launch(
            f"softmax_cluster<{_kind(case)}, {form}>",
            grid=(rows * shape.ranks, 1, 1),
            block=(threads, 1, 1),
            args=_args(case),
        )
    in_block = ROWS_PER_BLOCK if threads == WARP else 1
    return Launch(
        f"softmax<{_kind(case)}, {threads}, {in_block}, {shape.kept}, {whole}>",
        grid=(ceil_div(rows, in_block), 1, 1),
        block=(threads * in_block, 1, 1),
        args=_args(case),
    )


def _whole(case: Case, shape: OnChip) -> int:
    """Return how many vectors of every thread are there in every row; a causal mask hides any."""
    if case.params["masking"] == "causal":
        return 0
    vectors = case.shape["cols"] * case.item_bytes // ACCESS_BYTES
    return min(shape.kept, vectors // (shape.ranks * shape.threads))


def looped(case: Case, most: int) -> Launch:
    """Return the launch that reads rows twice, by so many blocks each at most."""
    ranks = min(PORTABLE_RANKS, most)
    return Launch(
        f"softmax_looped<{_kind(case)}, {ranks}, {LOOPED_THREADS}, {LOOPED_ITEMS}>",
        grid=(case.shape["rows"] * ranks, 1, 1),
        block=(LOOPED_THREADS, 1, 1),
        args=_args(case),
    )


def refuse(case: Case) -> str | None:
    """Name rows that are too long, and too many of them."""
    rows, cols = case.shape["rows"], case.shape["cols"]
    if cols > MOST_COLS:
        return f"a row has {MOST_COLS} columns at most"
    return "a grid has 2^31 blocks at most" if rows * MOST_RANKS >= 2**31 else None


OPERATOR = Operator(
    name="softmax",
    args=(
        Arg("x", "rows cols"),
        Arg("mask", "rows cols", when={"masking": ("additive",)}),
        Arg("y", "rows cols", "out"),
    ),
    params={"scale": (1.0, 0.125), "masking": ("none", "additive", "causal")},
    work=work,
    unfused=unfused,
    reference=reference,
    # Results are about 1 / cols, so an absolute allowance of the usual size would pass anything:
    # all but the last steps of the type is relative. fp16 below 6e-5 (its normal range, which a row
    # of 16K columns is under) has fixed steps of 6e-8, so it gets one of them.
    tolerance={
        "fp64": Tolerance(1e-12, 1e-20),
        "fp32": Tolerance(1e-5, 1e-14),
        "fp16": Tolerance(2e-3, 6e-8),
        "bf16": Tolerance(1.6e-2, 1e-14),
    },
    independent=("rows",),
    summary="y = exp(t - max t) / sum(exp(t - max t)) row by row, t = x scale + mask",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="softmax.cu",
    launches=launches,
    refuse=refuse,
    summary="the row stays in registers, those of a cluster of blocks where it is long",
)
