"""The measured roof of this host: streams and matrix products, counted as what they move and do."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, repeat

import numpy as np
import pytest

from solkit.bound import bound, measured_roof
from solkit.measure import host_ceilings
from solkit.model import Ceilings, Work

ARENA = np.ones(3 * 300_000, dtype=np.float32)


@pytest.mark.parametrize(
    ("name", "read_bytes", "write_bytes"),
    [
        ("read", 1_200_000, 0),
        ("copy", 600_000, 600_000),
        ("triad", 800_000, 400_000),
        ("write", 0, 1_200_000),
    ],
)
def test_a_stream_counts_what_it_reads_and_writes(
    name: str, read_bytes: int, write_bytes: int
) -> None:
    """1.2 MB of traffic, split as the stream splits it, in a time that memory allows."""
    with ThreadPoolExecutor(2) as pool:
        point = host_ceilings._host_point(name, 1_200_000, 3, ARENA, 2, pool)
    assert (name, read_bytes, write_bytes) == (point.kernel, point.read_bytes, point.write_bytes)
    assert 1e8 < point.traffic_bytes / point.median_s < 1e13


def test_streams_do_what_they_are_counted_for() -> None:
    """The triad adds, the copy copies, the write fills."""
    first, second, third = np.zeros(4), np.arange(4.0), np.full(4, 10.0)
    host_ceilings._stream("triad", (first, second, third))
    assert [10.0, 11.0, 12.0, 13.0] == list(first)
    host_ceilings._stream("copy", (second, first))
    assert [0.0, 1.0, 2.0, 3.0] == list(first)
    host_ceilings._stream("write", (first,))
    assert [1.0] * 4 == list(first)


def test_a_product_counts_two_flop_a_term() -> None:
    """2 n^3, at a rate a processor can have."""
    point = host_ceilings._host_gemm("fp32", np.float32, 128)
    assert ("fp32", 2 * 128**3) == (point.pipe, point.flop)
    assert 1e7 < point.flop / point.median_s < 1e14


def test_the_hosts_roof_covers_both_precisions_and_all_shares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Any work of a CPU run has a bound under it, and more bytes take longer."""
    monkeypatch.setattr(host_ceilings, "CPU_TRAFFIC_BYTES", (2**16, 2**20))
    monkeypatch.setattr(host_ceilings, "_GEMM_EXTENTS", (64,))
    found = host_ceilings.cpu_ceilings()
    assert isinstance(found, Ceilings)
    assert {"read", "triad", "copy", "write"} == {point.kernel for point in found.dram}
    roof = measured_roof(found)
    assert {"fp32", "fp64"} == set(roof.pipes_flop_per_s)
    for read, write in ((1, 0), (1, 1), (0, 1)):
        small, large = (
            bound(Work(read * scale, write * scale), roof).memory_s for scale in (2**18, 2**24)
        )
        assert 0 < small < large


@pytest.mark.parametrize(
    ("traffic_bytes", "cache_bytes", "count"),
    [
        (2**16, 2**25, 4096),  # a quarter GiB at least
        (2**20, 2**29, 1024),  # twice a cache of 512 MiB
        (2**28, 2**25, 2),  # never the same set twice in a row
        (3 * 2**20, 0, 86),  # rounded up
    ],
)
def test_a_set_has_left_the_cache_when_its_turn_comes(
    traffic_bytes: int, cache_bytes: int, count: int
) -> None:
    """Cold for ceilings as for cases: a ceiling read from the cache would be too high."""
    assert count == host_ceilings.rotation_count(traffic_bytes, cache_bytes)


def test_the_ceiling_is_the_fastest_of_enough_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call is not timed, nine are at least, and the one quick call among them counts."""
    monkeypatch.setattr(host_ceilings, "_HOST_SPEND_S", 0.0)
    taken_s: list[float] = []

    def call(time_s: float) -> None:
        taken_s.append(time_s)
        time.sleep(time_s)

    slow: partial[None] = partial(call, 0.01)
    quick: partial[None] = partial(call, 0.0)
    calls: list[Callable[[], object]] = [quick, slow, slow, quick]
    assert host_ceilings.fastest_s(chain(calls, repeat(slow))) < 0.005
    assert 10 == len(taken_s)
    assert host_ceilings.fastest_s(chain([quick], repeat(slow))) >= 0.01
