"""Buffer sets: enough of them that no read is served by a cache, within half the memory."""

import numpy as np
import pytest
from fake_device import MIB, FakeDevice
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.operator import Arg, Operator
from solkit.errors import NoDevice
from solkit.measure.buffers import BufferSets, cache_label, make, set_count
from solkit.model import Case, Work

sizes = st.integers(0, 2**40)
multiples = st.sampled_from([2.0, 3.0])

BLEND = Operator(
    name="blend",
    args=(Arg("x", "rows"), Arg("state", "rows", "inout"), Arg("y", "rows", "out")),
    work=lambda _case: Work(1, 1),
    reference=lambda x, state: (state + x, x),
)
CASE = Case("blend", "k", {"rows": 1024}, "fp32")  # 4 KiB an argument, 12 KiB a set


def blend_sets(
    *, cache_bytes: int = 0, free_bytes: int = 64 * MIB
) -> tuple[BufferSets, FakeDevice]:
    device = FakeDevice(cache_bytes=cache_bytes, free_bytes=free_bytes)
    return make(device, BLEND, CASE, 7), device


@given(footprint=sizes, cache=sizes, free=sizes, multiple=multiples)
def test_the_sets_fit_into_half_the_memory_or_are_one(
    footprint: int, cache: int, free: int, multiple: float
) -> None:
    """One is always taken: whether it fits is asked elsewhere."""
    count = set_count(
        footprint_bytes=footprint, cache_bytes=cache, free_bytes=free, multiple=multiple
    )
    assert 1 <= count <= 65536
    assert count == 1 or count * footprint <= free / 2


@given(footprint=st.integers(1, 2**40), cache=sizes, multiple=multiples)
def test_with_room_enough_the_sets_are_cold(footprint: int, cache: int, multiple: float) -> None:
    """Together they hold `multiple` caches, so that the others push a set out before its turn."""
    count = set_count(
        footprint_bytes=footprint, cache_bytes=cache, free_bytes=2**60, multiple=multiple
    )
    if count < 65536:
        assert count * footprint >= multiple * cache
        assert "cold" == cache_label(
            footprint_bytes=footprint, cache_bytes=cache, sets=count, multiple=multiple
        )


@pytest.mark.parametrize(("kind", "count"), [("cuda", 30), ("cpu", 20)])
def test_a_card_rotates_over_three_caches_and_a_host_over_two(kind: str, count: int) -> None:
    """A cache of ten sets: what is said of a run's method holds for what it does."""
    device = FakeDevice(cache_bytes=10 * 12 * 1024)
    device.kind = kind
    sets = make(device, BLEND, CASE, 7)
    assert (count, "cold") == (sets.count, sets.cache)


@given(footprint=st.integers(1, 2**40), cache=sizes, free=sizes, multiple=multiples)
def test_cold_is_said_only_where_the_other_sets_displace_one(
    footprint: int, cache: int, free: int, multiple: float
) -> None:
    """Less than that, and nobody knows what was still cached."""
    count = set_count(
        footprint_bytes=footprint, cache_bytes=cache, free_bytes=free, multiple=multiple
    )
    cold = count * footprint >= (multiple - 1) * cache
    label = cache_label(footprint_bytes=footprint, cache_bytes=cache, sets=count, multiple=multiple)
    assert ("cold" if cold else "unknown") == label


@pytest.mark.parametrize(
    ("count", "footprint", "cache", "free"),
    [
        (30, 5 * MIB, 50 * MIB, 1000 * MIB),  # three caches of 50 MiB
        (2, 900 * MIB, 50 * MIB, 4000 * MIB),  # one set alone is larger: two still alternate
        (10, 5 * MIB, 50 * MIB, 100 * MIB),  # half the memory
        (1, 90 * MIB, 50 * MIB, 100 * MIB),
        (65536, 1024, 50 * MIB, 1000 * MIB),  # tiny cases stop somewhere
        (3, 0, 1, 1000 * MIB),  # no bytes count as one
    ],
)
def test_set_counts(count: int, footprint: int, cache: int, free: int) -> None:
    """On a CUDA device the sets total three last-level caches."""
    assert count == set_count(
        footprint_bytes=footprint, cache_bytes=cache, free_bytes=free, multiple=3.0
    )


def test_every_argument_gets_an_array_in_every_set() -> None:
    """Twice a cache of 60 KiB in sets of 12 KiB: ten; in-place ones keep their first values."""
    sets, device = blend_sets(cache_bytes=60 * 1024)
    assert (10, "cold") == (sets.count, sets.cache)
    assert [("x", 10, 7), ("state", 10, 7), ("y", 10, 7), ("state", 1, 7)] == device.allocated
    assert ["state"] == list(sets.pristine)
    assert np.isnan(sets.buffers(9)["y"]).all()
    assert (sets.buffers(0)["x"] == sets.buffers(9)["x"]).all()


def test_sets_are_handed_out_in_turn() -> None:
    """Each comes again only after all the others."""
    sets, _ = blend_sets(cache_bytes=18 * 1024)
    assert 3 == sets.count
    assert [1, 2, 0, 1, 2, 0] == [sets.take() for _ in range(6)]


def test_restore_gives_in_place_arguments_their_first_values_back() -> None:
    """In every set; outputs and inputs are left as they are."""
    sets, device = blend_sets()
    first = sets.buffers(0)["state"].copy()
    for number in range(sets.count):
        sets.buffers(number)["state"][...] = 5.0
        sets.buffers(number)["x"][...] = 6.0
    sets.restore(device)
    for number in range(sets.count):
        assert (first == sets.buffers(number)["state"]).all()
        assert (sets.buffers(number)["x"] == 6.0).all()


def test_repair_gives_inputs_their_first_values_back() -> None:
    """After a kernel wrote where it should only read."""
    sets, device = blend_sets()
    first = sets.buffers(0)["x"].copy()
    for number in range(sets.count):
        sets.buffers(number)["x"][...] = 6.0
    sets.repair(device, CASE, 7)
    assert all((first == sets.buffers(number)["x"]).all() for number in range(sets.count))


def test_poison_fills_the_outputs_of_one_set() -> None:
    """In-place arguments hold input and stay."""
    sets, device = blend_sets()
    for number in range(2):
        sets.buffers(number)["y"][...] = 1.0
    sets.poison(device, 1)
    assert (sets.buffers(0)["y"] == 1.0).all()
    assert np.isnan(sets.buffers(1)["y"]).all()
    assert not np.isnan(sets.buffers(1)["state"]).any()


def test_a_case_larger_than_the_free_memory_is_refused_before_it_is_allocated() -> None:
    """With the need and what is free."""
    with pytest.raises(NoDevice, match=r"need 12\.0 KiB, and 8\.00 KiB are free"):
        blend_sets(free_bytes=8192)
