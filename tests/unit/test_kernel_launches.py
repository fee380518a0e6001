"""How bundled kernels cut a case: what they refuse, and that every element has a thread."""

import math
import re
from dataclasses import replace

import pytest
from cards import CARDS, H200
from hypothesis import example, given
from hypothesis import strategies as st

from solkit.declare.card import Card
from solkit.declare.kernel import Launch
from solkit.declare.registry import bundled
from solkit.model import Case, Param

REGISTRY = bundled()


def case(operator: str, dtype: str, shape: dict[str, int], **params: Param) -> Case:
    chosen = {name: values[0] for name, values in REGISTRY.operators[operator].params.items()}
    return Case(operator, "solkit", shape, dtype, chosen | params)


def launch(of: Case, card: Card = H200) -> Launch:
    return REGISTRY.kernels[of.operator, "solkit"].launches_on(of, card)[0]


def sizes(of: Launch) -> list[int]:
    """Return the numbers of the template, in order."""
    return [int(text) for text in re.findall(r"(?<=[ <])\d+(?=[,>])", of.entry)]


@pytest.mark.parametrize("count", [1, 7, 8, 1023, 4097, 8192 * 11008])
def test_a_gated_kernel_has_a_thread_for_each_vector_and_each_item_behind_the_last(
    count: int,
) -> None:
    """8 items of bf16 a thread, and the rest one by one; no block has nothing to do."""
    found = launch(case("swiglu", "bf16", {"rows": 1, "cols": count}))
    needed = count // 8 + count % 8
    assert (found.grid[0] - 1) * found.block[0] < needed <= found.grid[0] * found.block[0]


def test_small_arrays_are_cut_into_small_blocks() -> None:
    """4096 items of bf16 are 512 vectors: two SMs have a part, where a large block is one SM's."""
    small = launch(case("swiglu", "bf16", {"rows": 1, "cols": 4096}))
    large = launch(case("swiglu", "bf16", {"rows": 8192, "cols": 4096}))
    assert (2, 256) == (small.grid[0], small.block[0])
    assert (4096, 1024) == (large.grid[0], large.block[0])


@pytest.mark.parametrize(
    ("cols", "joined"), [(1, 8), (17, 8), (4097, 8), (34, 4), (12, 2), (4096, 1), (10240, 1)]
)
def test_bias_gelu_joins_rows_to_whole_vectors(cols: int, joined: int) -> None:
    """The fewest rows whose items are a multiple of 8 bf16; all of them have a thread."""
    rows = 1000
    found = launch(case("bias_gelu", "bf16", {"rows": rows, "cols": cols}))
    tx, ty, vec, rows_a_thread, seen = sizes(found)
    assert (8, joined) == (vec, seen)
    assert (tx, ty, 1) == found.block
    assert found.grid[0] * tx * vec >= joined * cols
    assert found.grid[1] * found.grid[2] * ty * rows_a_thread >= math.ceil(rows / joined)


def test_bias_gelu_goes_on_in_z_where_y_ends() -> None:
    """A grid has 65535 blocks in y at most: 100 million rows of 8 go on in z."""
    rows = 100_000_000
    found = launch(case("bias_gelu", "bf16", {"rows": rows, "cols": 8}))
    _, ty, _, rows_a_thread, _ = sizes(found)
    assert found.grid[1] <= 65_535
    assert 1 < found.grid[2] < 65_536
    assert rows <= found.grid[1] * found.grid[2] * ty * rows_a_thread < rows * 1.1


def test_rope_is_not_defined_for_an_odd_head() -> None:
    """The reason names the extent; every kernel of the operator skips the case."""
    refuse = REGISTRY.operators["rope"].refuse
    assert refuse is not None
    shape = {"tokens": 1, "heads": 2, "kv_heads": 1, "head_dim": 3}
    assert "head_dim is 3: it must be even, for items turn in pairs" == refuse(
        case("rope", "bf16", shape)
    )
    assert refuse(case("rope", "bf16", shape | {"head_dim": 2})) is None


def test_rope_refuses_heads_longer_than_a_block() -> None:
    """2 x 1025 items, a pair a thread, are more than 1024 threads; 2 x 1023 are not."""
    kernel = REGISTRY.kernels["rope", "solkit"]
    shape = {"tokens": 1, "heads": 2, "kv_heads": 1, "head_dim": 2050}
    assert "a head of 2050 items takes 1025 threads, over a block" == kernel.refusal(
        case("rope", "bf16", shape)
    )
    assert kernel.refusal(case("rope", "bf16", shape | {"head_dim": 2046})) is None


@given(
    rows=st.sampled_from([64, 512, 4096]),
    cols=st.integers(1, 300_000),
    dtype=st.sampled_from(["bf16", "fp32"]),
    masking=st.sampled_from(["none", "additive", "causal"]),
)
@example(rows=64, cols=201, dtype="bf16", masking="none")
@example(rows=4096, cols=65_487, dtype="bf16", masking="causal")
@example(rows=64, cols=65_511, dtype="fp32", masking="additive")
def test_softmax_has_a_place_for_each_vector_wherever_a_row_begins(
    rows: int, cols: int, dtype: str, masking: str
) -> None:
    """Vectors are counted from the 128-byte line in which a row begins, at any of its items."""
    of = case("softmax", dtype, {"rows": rows, "cols": cols}, masking=masking)
    found = launch(of)
    if "looped" in found.entry:  # as many steps as it takes
        return
    numbers, line = sizes(found), 128 // of.item_bytes
    cluster = "cluster" in found.entry
    ranks, threads, kept = numbers[:3] if cluster else (1, numbers[0], numbers[2])
    aligned = cols * of.item_bytes % 16 == 0
    latest = 0 if aligned else max(row * cols % line for row in range(line))
    assert (latest + cols) * of.item_bytes // 16 <= ranks * threads * kept


@pytest.mark.parametrize(
    ("dtype", "rows", "cols", "entry"),
    [
        ("bf16", 512, 4096, "<__nv_bfloat16, 256, 1, 8, 2, 8, false>"),
        # One wave of blocks where rows are short or wide; else two vectors a thread.
        ("bf16", 2048, 2560, "<__nv_bfloat16, 64, 1, 8, 5, 16, true>"),
        ("bf16", 512, 16384, "<__nv_bfloat16, 512, 1, 8, 4, 4, false>"),
        ("bf16", 2048, 4096, "<__nv_bfloat16, 256, 1, 8, 2, 8, true>"),
        # Rows of 32 KB: 1024 threads, of which an SM still holds two blocks.
        ("bf16", 8192, 16384, "<__nv_bfloat16, 1024, 1, 8, 2, 2, true>"),
        ("fp32", 8192, 8192, "<float, 1024, 1, 4, 2, 2, true>"),
        ("bf16", 32768, 4096, "<__nv_bfloat16, 256, 1, 8, 2, 6, false>"),
    ],
)
def test_rmsnorm_waits_for_the_weight_with_the_row_between_few_rows_and_very_many(
    dtype: str, rows: int, cols: int, entry: str
) -> None:
    """Threads, rows, items, vectors of a block, blocks an SM, and whether it is early."""
    assert f"rmsnorm{entry}" == launch(case("rmsnorm", dtype, {"rows": rows, "cols": cols})).entry


LARGE_CLUSTERS = [(64, 262_144), (512, 262_143), (1, 128_256), (4096, 262_144)]


@pytest.mark.parametrize(("rows", "cols"), LARGE_CLUSTERS)
def test_softmax_takes_16_blocks_a_row_only_where_the_card_holds_them(rows: int, cols: int) -> None:
    """Half as many are twice as large; cards without clusters are launched as this one is."""
    of = case("softmax", "bf16", {"rows": rows, "cols": cols})
    for most, blocks in ((16, 16), (8, 8), (4, 4)):
        found = launch(of, replace(H200, most_cluster_blocks=most))
        assert rows * blocks == found.grid[0]
        ranks, threads = sizes(found)[:2]
        assert (blocks, found.block[0]) == (ranks, threads)
    assert launch(of) == launch(of, CARDS["sm_80"])


@pytest.mark.parametrize("weight_dtype", ["int4", "int8"])
def test_dequant_gemv_refuses_rows_whose_bytes_are_more_than_it_counts(weight_dtype: str) -> None:
    """Eight rows of 2^29 int8 are 2^32 bytes, which the device would count as none."""
    kernel = REGISTRY.kernels["dequant_gemv", "solkit"]
    shape = {"tokens": 1, "rows": 16, "cols": 2**29}
    assert "a row has 268435456 columns at most" == kernel.refusal(
        case("dequant_gemv", "bf16", shape, weight_dtype=weight_dtype)
    )
    longest = case("dequant_gemv", "bf16", shape | {"cols": 2**28}, weight_dtype=weight_dtype)
    assert kernel.refusal(longest) is None


@pytest.mark.parametrize(
    ("axis", "reason"),
    [("cols", "a row has 2147483648 columns at most"), ("tokens", "2147483648 tokens at most")],
)
def test_embedding_refuses_more_than_it_counts(axis: str, reason: str) -> None:
    """A row of 2^32 columns would have a length of 0 in 32 bits, and token 2^32 be token 0."""
    kernel = REGISTRY.kernels["embedding", "solkit"]
    shape = {"tokens": 1, "vocab": 2, "cols": 1}
    assert reason == kernel.refusal(case("embedding", "bf16", shape | {axis: 2**31 + 1}))
    assert kernel.refusal(case("embedding", "bf16", shape | {axis: 2**31})) is None


@pytest.mark.parametrize(("style", "threads"), [("half", 8), ("interleaved", 16)])
def test_rope_has_a_thread_for_16_bytes_of_a_vector(style: str, threads: int) -> None:
    """A head of 128 in bf16: 8 pairs from both halves, or 4 pairs side by side."""
    shape = {"tokens": 8192, "heads": 32, "kv_heads": 8, "head_dim": 128}
    found = launch(case("rope", "bf16", shape, style=style))
    tx, ty, pairs, heads = sizes(found)
    assert (threads, 64 // threads, 40) == (tx, pairs, heads)
    assert 8192 * 40 == found.grid[0] * ty


def test_adamw_passes_what_every_element_shares() -> None:
    """Bias corrections of step 10, worked out by the host: lr / (1 - 0.9^10) and the like."""
    found = launch(case("adamw", "fp32", {"elements": 1000}))
    assert found.args is not None
    keep, beta1, beta2, step_size, unbias, epsilon = found.args[-6:]
    assert (0.9, 0.95, 1e-8) == (beta1, beta2, epsilon)
    assert (0.9999, 0.00153533993, 1.57864838) == pytest.approx((keep, step_size, unbias), rel=1e-8)


@given(
    tokens=st.sampled_from([1, 17, 512, 8192]),
    cols=st.one_of(st.integers(1, 9000), st.sampled_from([2560, 4096, 5120, 8192, 16384])),
    dtype=st.sampled_from(["bf16", "fp32"]),
)
def test_embedding_has_a_place_for_each_vector_of_each_row(
    tokens: int, cols: int, dtype: str
) -> None:
    """Pieces fill a row, and exactly where loads have no guard; no block is without a row."""
    of = case("embedding", dtype, {"tokens": tokens, "vocab": 9, "cols": cols})
    found = launch(of)
    tx, ty, vec, items, pieces, ahead = sizes(found)
    assert cols % vec == 0
    assert (pieces - 1) * tx * items < cols // vec <= pieces * tx * items
    if "true" in found.entry:
        assert pieces * tx * items * vec == cols
    assert (tx, ty, 1) == found.block
    assert tokens <= found.grid[0] // pieces * ty < tokens + ty
    assert ahead == 0 or "true" in found.entry


@pytest.mark.parametrize(
    ("tokens", "cols", "capability", "entry"),
    [
        # 132 SMs x 2048 threads x 16 bytes are 528 rows of 8 KB.
        (8192, 4096, 90, "512, 1, 8, 1, 1, true, 528"),
        # Pieces of 320 vectors fill a row of 640; 512 do not.
        (8192, 5120, 90, "320, 1, 8, 1, 2, true, 423"),
        (512, 4096, 90, "128, 1, 8, 4, 1, true, 0"),
        # Before CC 9.0 there is no bulk prefetch; a row of 1536 bytes is too short for one.
        (8192, 4096, 80, "128, 1, 8, 2, 2, true, 0"),
        (65536, 768, 90, "48, 2, 8, 2, 1, false, 0"),
        (8192, 4097, 90, "121, 1, 1, 2, 17, false, 0"),
    ],
)
def test_embedding_asks_for_rows_early_where_they_are_many_and_long(
    tokens: int, cols: int, capability: int, entry: str
) -> None:
    """Block, items of a vector, vectors a thread, pieces, whether they fill a row, rows ahead."""
    card = replace(H200, compute_capability=capability)
    found = launch(case("embedding", "bf16", {"tokens": tokens, "vocab": 9, "cols": cols}), card)
    assert f"embedding<__nv_bfloat16, {entry}>" == found.entry
