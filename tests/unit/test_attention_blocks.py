"""How the decoding kernel shares sequences, heads and keys among blocks."""

import pytest
from cards import H200
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.kernel import Launch
from solkit.declare.registry import bundled
from solkit.model import Case

KERNEL = bundled().kernels["attention_decode", "solkit"]
COUNTERS = 1024  # of the .cu: one for each x and z of a grid that merges in the workspace


def case(batch: int, heads: int, kv_heads: int, head_dim: int, kv_len: int) -> Case:
    shape = {
        "batch": batch,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "kv_len": kv_len,
    }
    return Case("attention_decode", "solkit", shape, "bf16", {"cache": "contiguous"})


def launch(of: Case) -> Launch:
    (only,) = KERNEL.launches_on(of, H200)
    return only


@pytest.mark.parametrize(
    ("batch", "kv_len", "grid"),
    [
        (16, 8192, (8, 1, 16)),  # a block on nearly every SM of 132
        (4, 4096, (8, 4, 4)),
        (1, 1024, (8, 8, 1)),  # no more than a cluster
        (1, 131072, (8, 16, 1)),  # as many as SMs, by way of the workspace
        (256, 1024, (8, 1, 256)),  # several goes
        (64, 4096, (2, 2, 64)),  # 4 heads a block: all in one go
        (1, 17, (8, 1, 1)),  # two tiles are no work for two blocks
    ],
)
def test_there_is_about_one_block_an_sm(
    batch: int, kv_len: int, grid: tuple[int, int, int]
) -> None:
    """Blocks for heads, splits of their keys, and sequences; 32 query heads, 8 KV heads of 128."""
    assert grid == launch(case(batch, 32, 8, 128, kv_len)).grid


def test_the_workspace_holds_a_part_for_each_split() -> None:
    """8 heads x 16 splits x 8 rows of 128 floats, and two floats a row."""
    held = KERNEL.workspace_on(case(1, 32, 8, 128, 131072), H200)
    assert {"sums": 8 * 16 * 8 * 128 * 4, "statistics": 8 * 16 * 8 * 8} == held


@given(
    batch=st.integers(1, 2000),
    group=st.integers(1, 70),
    kv_heads=st.integers(1, 64),
    head_dim=st.sampled_from([64, 128, 256]),
    kv_len=st.integers(1, 300_000),
)
def test_splits_are_few_enough_to_be_merged(
    batch: int, group: int, kv_heads: int, head_dim: int, kv_len: int
) -> None:
    """Every split has a tile of 16 keys, a cluster 8 blocks at most, a counter its place."""
    found = launch(case(batch, group * kv_heads, kv_heads, head_dim, kv_len))
    heads, splits, sequences = found.grid
    assert batch == sequences
    assert 1 <= splits <= max(1, kv_len / 16)
    if splits > 1:
        assert splits <= (8 if "cluster" in found.entry else 64)
        assert heads * sequences <= COUNTERS
