"""How rows become threads and chunks."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.geometry import RowLayout, RowLimits, ceil_div, row_layout, vector_items
from solkit.model import Case


def registers(chunks: int) -> int:
    return 40 if chunks <= 2 else 64


LIMITS = RowLimits(chunks=2, most_chunks=4, registers=registers, most_threads=512)


@pytest.mark.parametrize(("cols", "items"), [(4096, 8), (4100, 4), (4098, 2), (4097, 1)])
def test_an_access_divides_the_row(cols: int, items: int) -> None:
    """16 bytes of bf16 where 8 divides the extent, else less, so that each row starts aligned."""
    assert items == vector_items(Case("copy", "solkit", {"cols": cols}, "bf16"), "cols")


@pytest.mark.parametrize(
    ("vectors", "rows", "layout"),
    [
        (320, 8192, RowLayout(threads=160, chunks=2, resident=10)),
        (33, 8192, RowLayout(threads=32, chunks=2, rows=4, resident=12)),
        (1376, 8192, RowLayout(threads=480, chunks=3, resident=2)),
        (2048, 8192, RowLayout(threads=512, chunks=4, resident=2)),
        (4096, 8192, RowLayout(threads=1024, chunks=4, resident=1)),
    ],
)
def test_threads_hold_the_fewest_chunks_that_leave_room_for_other_blocks(
    vectors: int, rows: int, layout: RowLayout
) -> None:
    """Two chunks and 512 threads at most; more chunks, then more threads, where a row needs it.

    An SM has 65,536 registers: 1638 threads of 40, 1024 of 64.
    """
    assert layout == row_layout(vectors, rows, LIMITS)


def test_threads_hold_more_where_all_rows_are_then_under_way_at_once() -> None:
    """512 rows on 132 SMs: 3 blocks of 512 threads an SM are too few, 4 of 256 are enough."""
    one_wave = replace(LIMITS, one_wave=True)
    assert RowLayout(threads=512, chunks=2, resident=3) == row_layout(1024, 512, LIMITS)
    assert RowLayout(threads=256, chunks=4, resident=4) == row_layout(1024, 512, one_wave)
    assert RowLayout(threads=512, chunks=2, resident=3) == row_layout(1024, 529, one_wave)


@pytest.mark.parametrize(
    ("vectors", "rows", "layout"),
    [
        (1024, 16, RowLayout(threads=128, chunks=1, ranks=8)),
        (1024, 17, RowLayout(threads=256, chunks=1, ranks=4)),
        (1024, 66, RowLayout(threads=512, chunks=1, ranks=2)),
        (2048, 33, RowLayout(threads=128, chunks=2, ranks=8)),
        (2048, 132, RowLayout(threads=512, chunks=2, ranks=2)),
        (1024, 67, RowLayout(threads=512, chunks=2)),
        (1023, 1, RowLayout(threads=512, chunks=2)),
    ],
)
def test_few_long_rows_get_a_cluster_each(vectors: int, rows: int, layout: RowLayout) -> None:
    """Of 8, 4 or 2 blocks: one an SM on a card of 132, two where a thread has two vectors."""
    assert layout == row_layout(vectors, rows, LIMITS)


def test_more_rows_get_clusters_where_a_kernel_is_faster_so() -> None:
    """Rows of two vectors of 16 bytes a thread or little less, up to cluster_rows of them."""
    limits = replace(LIMITS, cluster_rows=4096)
    cluster = RowLayout(threads=256, chunks=2, ranks=4)
    assert cluster == row_layout(2048, 4096, limits)
    assert cluster == row_layout(1829, 4096, limits)
    one_block = RowLayout(threads=512, chunks=4, resident=2)
    assert one_block == row_layout(2048, 4097, limits)
    assert one_block == row_layout(2048, 4096, LIMITS)
    assert RowLayout(threads=480, chunks=4, resident=2) == row_layout(1828, 4096, limits)
    narrow = row_layout(2048, 4096, limits, vector_bytes=4)
    assert narrow is not None
    assert 1 == narrow.ranks


def test_a_row_too_long_for_registers_has_no_layout() -> None:
    """1024 threads of 4 vectors are 4096; of one register instead of four they are 16,384."""
    assert row_layout(4096, 8, LIMITS) is not None
    assert row_layout(4097, 8, LIMITS) is None
    assert row_layout(16_384, 8, LIMITS, vector_bytes=2) is not None
    assert row_layout(16_385, 8, LIMITS, vector_bytes=2) is None


@pytest.mark.parametrize(("vectors", "threads"), [(1, 4), (5, 8), (16, 16)])
def test_short_rows_share_a_warp(vectors: int, threads: int) -> None:
    """The least power of two that covers the row, from 4 up; 128 to a block."""
    expected = RowLayout(threads, 1, rows=128 // threads, resident=16)
    assert expected == row_layout(vectors, 1000, LIMITS)


@given(
    vectors=st.integers(1, 4096),
    rows=st.integers(1, 1000),
    one_wave=st.booleans(),
    vector_bytes=st.sampled_from([2, 8, 16]),
    cluster_rows=st.sampled_from([0, 500]),
)
def test_only_the_last_chunk_can_reach_over_the_end(
    vectors: int, rows: int, *, one_wave: bool, vector_bytes: int, cluster_rows: int
) -> None:
    """Every vector has a slot, and all chunks but the last are full."""
    limits = replace(LIMITS, one_wave=one_wave, cluster_rows=cluster_rows)
    layout = row_layout(vectors, rows, limits, vector_bytes=vector_bytes)
    assert layout is not None
    threads = layout.threads * layout.ranks
    assert threads * (layout.chunks - 1) < vectors <= threads * layout.chunks
    assert ceil_div(vectors, threads) == layout.chunks <= 4 * 16 // max(4, vector_bytes)
    assert layout.threads * layout.rows * layout.resident <= 2048
