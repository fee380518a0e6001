"""How the kernels of rates.cu are launched, and what a launch does: counted from its own bounds."""

from pathlib import Path

FMA_BLOCK, FMA_CHAINS, FMA_STEPS = 256, 8, 64
FMA_BLOCKS_PER_SM = 4  # 1024 threads: what every card's SM holds at once
FMA_ROUNDS = 512  # 71 GFLOP on 132 SMs: about a millisecond, so that launch and tail are nothing
FMA_SCALE, FMA_SHIFT = 0.999, 0.001  # values stay near one
L2_SHARE = 4  # a quarter of the L2: it stays there whatever the halves of a split L2 duplicate
L2_PASSES = 128  # 2 GB on an H200: about 0.3 ms
# Blocks an SM, threads a block, 16-byte loads in flight a thread.
L2_FORMS = ((2, 1024, 4), (4, 512, 8), (2, 512, 16))
FILL_KERNELS = {"e4m3": "fill_e4m3", "int8": "fill_int8"}
SOURCE = Path(__file__).with_name("rates.cu")
FMA_ENTRY = f"fma_chains<{FMA_BLOCK}, {FMA_CHAINS}, {FMA_STEPS}>"
L2_ENTRIES = {form: f"read_cached<{form[1]}, {form[2]}>" for form in L2_FORMS}
ENTRIES = (FMA_ENTRY, *L2_ENTRIES.values(), *FILL_KERNELS.values())


def fma_flop(sm_count: int) -> int:
    """Return the flop of one launch: 2 a fused multiply-add, counted from the loop's bounds."""
    return 2 * FMA_CHAINS * FMA_STEPS * FMA_ROUNDS * FMA_BLOCK * FMA_BLOCKS_PER_SM * sm_count


def l2_loads(threads: int, vectors: int, items: int) -> int:
    """Return the loads of a thread: L2_PASSES over the buffer by all threads, in whole ITEMS."""
    return max(1, round(L2_PASSES * vectors / threads / items)) * items
