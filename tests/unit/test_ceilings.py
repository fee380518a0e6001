"""The measured roof of a host: cold, and the fastest of enough calls."""

import time
from collections.abc import Callable
from functools import partial
from itertools import chain, repeat

import pytest

from solkit.measure import ceilings


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
    assert count == ceilings.rotation_count(traffic_bytes, cache_bytes)


def test_the_ceiling_is_the_fastest_of_enough_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call is not timed, nine are at least, and the one quick call among them counts."""
    monkeypatch.setattr(ceilings, "_HOST_SPEND_S", 0.0)
    taken_s: list[float] = []

    def call(time_s: float) -> None:
        taken_s.append(time_s)
        time.sleep(time_s)

    slow: partial[None] = partial(call, 0.01)
    quick: partial[None] = partial(call, 0.0)
    calls: list[Callable[[], object]] = [quick, slow, slow, quick]
    assert ceilings.fastest_s(chain(calls, repeat(slow))) < 0.005
    assert 10 == len(taken_s)
    assert ceilings.fastest_s(chain([quick], repeat(slow))) >= 0.01


def test_a_host_has_every_stream_at_every_size_and_both_matrix_pipes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bytes are those of the streams: a triad reads two arrays and writes one."""
    monkeypatch.setattr(ceilings, "CPU_TRAFFIC_BYTES", (12 * 1024, 48 * 1024))
    monkeypatch.setattr(ceilings, "_ROTATION_BYTES", 2**20)
    monkeypatch.setattr(ceilings, "_HOST_SPEND_S", 0.0)
    monkeypatch.setattr(ceilings, "_GEMM_EXTENTS", (32,))
    found = ceilings.cpu_ceilings()
    assert [
        ("read", 12288, 0),
        ("read", 49152, 0),
        ("triad", 8192, 4096),
        ("triad", 32768, 16384),
        ("copy", 6144, 6144),
        ("copy", 24576, 24576),
        ("write", 0, 12288),
        ("write", 0, 49152),
    ] == [(point.kernel, point.read_bytes, point.write_bytes) for point in found.dram]
    assert [("fp32", 65536), ("fp64", 65536)] == [(pipe.pipe, pipe.flop) for pipe in found.pipes]
    assert all(0 < point.median_s < 1 for point in (*found.dram, *found.pipes))
