"""Kernels of ceilings: what a launch does is counted from its own bounds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.measure.device.cuda import rate_forms as forms


def test_a_multiply_add_is_two_flop() -> None:
    """132 SMs x 1024 threads x 8 chains x 64 steps x 512 rounds x 2 = 70,866,960,384."""
    assert 70_866_960_384 == forms.fma_flop(132)
    assert 132 * forms.fma_flop(1) == forms.fma_flop(132)


@given(
    threads=st.integers(32, 10**6), vectors=st.integers(1, 10**7), items=st.sampled_from([4, 8, 16])
)
def test_a_thread_loads_in_whole_batches(threads: int, vectors: int, items: int) -> None:
    """At least one batch, and otherwise 128 passes over the buffer, to half a batch."""
    loads = forms.l2_loads(threads, vectors, items)
    assert 0 == loads % items
    assert loads >= items
    if loads > items:
        assert abs(loads - 128 * vectors / threads) <= items / 2 + 1e-6


def test_an_h200_reads_its_l2_two_billion_times_a_call() -> None:
    """15 MiB by 132 x 2048 threads, 128 times: 2.0 GB within a batch of loads."""
    for per_sm, block, items in forms.L2_FORMS:
        threads = 132 * per_sm * block
        loads = forms.l2_loads(threads, 15 * 2**20 // 16, items)
        assert 128 * 15 * 2**20 == pytest.approx(16 * threads * loads, rel=0.02)


def test_every_entry_is_in_the_source() -> None:
    """A name that the compiler would not find fails here first."""
    source = forms.SOURCE.read_text(encoding="utf-8")
    for entry in forms.ENTRIES:
        assert re.search(rf"\b{entry.partition('<')[0]}\(", source)
