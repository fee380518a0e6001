"""Buffer sets: enough of them that no read is served by a cache, within half the memory."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from fake_device import MIB, CleaningDevice, FakeDevice
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.arg import Arg, Array
from solkit.declare.operator import Operator
from solkit.errors import NoDevice
from solkit.measure.buffers import BufferSets, cache_label, make, set_count, settle
from solkit.measure.device.base import Call
from solkit.model import CacheMode, Case, Work

sizes = st.integers(0, 2**40)
multiples = st.sampled_from([2.0, 3.0])

BLEND = Operator(
    name="blend",
    args=(Arg("x", "rows"), Arg("state", "rows", "inout"), Arg("y", "rows", "out")),
    work=lambda _case: Work(1, 1),
    reference=lambda x, state: (state + x, x),
)
PLAIN = Operator(
    name="plain",
    args=(Arg("x", "rows"), Arg("z", "rows"), Arg("y", "rows", "out")),
    work=lambda _case: Work(1, 1),
    reference=lambda x, z: x + z,
)
CASE = Case("blend", "k", {"rows": 1024}, "fp32")  # 4 KiB an argument, 12 KiB a set


def blend_sets(
    *,
    cache_bytes: int = 0,
    free_bytes: int = 64 * MIB,
    operator: Operator = BLEND,
    mode: CacheMode = "cold",
) -> tuple[BufferSets, FakeDevice]:
    device = FakeDevice(cache_bytes=cache_bytes, free_bytes=free_bytes)
    return make(device, operator, replace(CASE, cache_mode=mode), 7), device


class Weightless(CleaningDevice):
    """A device whose arrays take no memory, so that sets may be as large as a card's."""

    kind = "cuda"

    def allocate(self, arg: Arg, case: Case, set_count: int, seed: int) -> list[Array]:  # noqa: ARG002  # the protocol's
        """Return empty arrays."""
        return [np.empty(0)] * set_count


def once_sets(
    count: int, *, operator: Operator = BLEND, cache_bytes: int = 12 * 1024
) -> tuple[BufferSets, CleaningDevice]:
    """Return sets of 12 KiB, no smaller than the cache; memory has the room for `count` of them."""
    device = CleaningDevice(cache_bytes=cache_bytes, free_bytes=2 * count * 12 * 1024)
    sets = make(device, operator, CASE, 7)
    assert (count, True) == (sets.count, sets.once)
    return sets, device


def settled(device: FakeDevice, sets: BufferSets) -> list[int]:
    """Settle the cache; return the sets that calls were run on, in order."""
    ran: list[int] = []
    places = {id(sets.arrays["y"][number]): number for number in range(sets.count)}
    settle(device, sets, lambda arrays: lambda: ran.append(places[id(arrays["y"])]))
    return ran


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
            "cold", footprint_bytes=footprint, cache_bytes=cache, sets=count, multiple=multiple
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
    label = cache_label(
        "cold", footprint_bytes=footprint, cache_bytes=cache, sets=count, multiple=multiple
    )
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


def test_restore_is_one_copy_to_all_of_an_arguments_copies() -> None:
    """A device may have a faster way than one after the other."""
    sets, device = blend_sets(cache_bytes=18 * 1024)
    seen: list[tuple[bool, bool]] = []

    def copy_all(source: Array, targets: Sequence[Array]) -> None:
        seen.append((source is sets.pristine["state"], targets is sets.arrays["state"]))

    device.copy_all = copy_all
    sets.restore(device)
    assert [(True, True)] == seen


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


@pytest.mark.parametrize(("label", "cache"), [("hot", 24 * 1024), ("unknown", 24 * 1024 - 1)])
def test_hot_is_said_only_of_a_set_that_fits_into_half_the_cache(label: str, cache: int) -> None:
    """One set, the same again and again: 12 KiB, of which each half of an L2 keeps a copy."""
    sets, _ = blend_sets(cache_bytes=cache, mode="hot")
    assert (1, label) == (sets.count, sets.cache)


@pytest.mark.parametrize("mode", ["clean", "zeroed"])
def test_a_flush_needs_one_set_whatever_its_size(mode: CacheMode) -> None:
    """It is larger than the cache: what the set leaves there is gone."""
    for cache_bytes in (0, 4096, 64 * MIB):
        sets, _ = blend_sets(cache_bytes=cache_bytes, mode=mode)
        assert (1, mode) == (sets.count, sets.cache)


def test_ten_calls_in_a_graph_are_not_cold_for_a_cache_of_more() -> None:
    """A graph goes over all sets in one batch, so it has no more of them than calls.

    Ten sets of 12 KiB against a cache of 100 KiB: the eleventh call would find its set there.
    """
    device = FakeDevice(cache_bytes=100 * 1024)
    device.kind, device.whole_rotation, device.most_calls = "cuda", True, 10
    sets = make(device, BLEND, CASE, 7)
    assert (10, "unknown") == (sets.count, sets.cache)
    device.most_calls = 64
    enough = make(device, BLEND, CASE, 7)
    assert (25, "cold") == (enough.count, enough.cache)  # three caches in sets of 12 KiB


def test_too_little_memory_for_the_rotation_is_unknown_not_cold() -> None:
    """Half of it holds two sets of the ten: what is read may still be cached."""
    sets, _ = blend_sets(cache_bytes=60 * 1024, free_bytes=48 * 1024)
    assert (2, "unknown") == (sets.count, sets.cache)


@given(cache_bytes=st.integers(0, 128 * 1024), counts=st.lists(st.integers(1, 40)))
def test_without_changes_in_place_the_rotation_goes_on_from_batch_to_batch(
    cache_bytes: int, counts: list[int]
) -> None:
    """As many as asked for, and a set comes again after all the others."""
    sets, device = blend_sets(cache_bytes=cache_bytes, operator=PLAIN)
    handed = [number for count in counts for number in sets.next(device, count)]
    assert sum(counts) == len(handed)
    assert all((one + 1) % sets.count == other for one, other in pairwise(handed))
    assert 0 == device.copied


@given(cache_bytes=st.integers(0, 128 * 1024), counts=st.lists(st.integers(1, 40), min_size=1))
def test_arguments_changed_in_place_are_restored_before_their_set_comes_again(
    cache_bytes: int, counts: list[int]
) -> None:
    """Whatever batches are asked for: at least one set each, none twice, all with first values."""
    sets, device = blend_sets(cache_bytes=cache_bytes)
    first = sets.buffers(0)["state"].copy()
    for count in counts:
        handed = sets.next(device, count)
        assert 1 <= len(handed) <= count
        assert len(set(handed)) == len(handed)
        for number in handed:
            state = sets.buffers(number)["state"]
            assert (first == state).all()
            state += 1.0


@given(sets_wanted=st.integers(3, 60), count=st.integers(1, 33))
def test_between_two_restores_all_sets_take_their_turn_but_the_last(
    sets_wanted: int, count: int
) -> None:
    """A restore after half of them would leave half a rotation: too little to be cold.

    The last is left out rather than handed out alone, for a batch of one has no call to lead it.
    """
    sets, device = blend_sets(cache_bytes=sets_wanted * 6 * 1024)
    assert sets_wanted == sets.count
    turns: list[int] = []
    while True:
        handed = sets.next(device, count)
        if 0 in handed and turns:
            break
        assert len(handed) >= min(2, count)
        turns += handed
    assert list(range(len(turns))) == turns
    assert len(turns) >= sets.count - 1
    assert count > 1 or len(turns) == sets.count


def test_one_set_is_restored_before_each_call() -> None:
    """Hot and in place: a batch of one, over and over."""
    sets, device = blend_sets(cache_bytes=64 * 1024, mode="hot")
    assert [[0], [0], [0]] == [sets.next(device, 32) for _ in range(3)]
    assert 2 == device.copied  # the first needed none


@pytest.mark.parametrize(
    ("count", "cache_bytes", "mode"),
    [
        (10, 60 * 1024, "cold"),  # sets of 12 KiB: twice the cache in all
        (11, 60 * 1024 + 1, "cold"),
        (512, 3 * MIB, "cold"),
        (512, 8 * MIB, "cold"),  # of 1366; what so small sets write costs nothing
        (1, 60 * 1024, "hot"),  # there is no more than one
        (2, 0, "cold"),
    ],
)
def test_the_cache_settles_by_a_whole_rotation_of_512_calls_at_most(
    count: int, cache_bytes: int, mode: CacheMode
) -> None:
    """Each on a set of its own, none of them timed."""
    device = CleaningDevice(cache_bytes=cache_bytes)
    device.cleans = False
    sets = make(device, BLEND, replace(CASE, cache_mode=mode), 7)
    assert list(range(count)) == settled(device, sets)
    assert ([], [count]) == (device.ran, device.settled)


@pytest.mark.parametrize("operator", [BLEND, PLAIN])
def test_large_sets_are_gone_over_twice_and_cleaned(operator: Operator) -> None:
    """Their pages have to be known by then; the cache is clean and every set is fresh behind it."""
    sets, device = once_sets(3, operator=operator)
    assert [0, 1, 2] * 2 == settled(device, sets)
    assert ([], [3, 3, 0]) == (device.ran, device.settled)
    assert [0, 1, 2] == sets.next(device, 5)


# -- sets used once between two cleanings ---------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "mib", "free_mib"),
    [
        (33, 60, 10**6),  # as large as the cache
        (33, 248, 10**6),  # 8 GiB hold 33 of them
        (32, 249, 10**6),
        (8, 1024, 10**6),
        (2, 3072, 10**6),
        (2, 20_000, 10**6),  # two at least, larger than 8 GiB as they are
        (16, 60, 16 * 2 * 60),  # half the memory
        (1, 20_000, 50_000),
        (1, 60, 150),  # alone and no larger than the cache: it does not displace itself
    ],
)
def test_as_many_sets_are_used_once_as_8_gib_hold(count: int, mib: int, free_mib: int) -> None:
    """33 at most, and two at least where memory has the room: cache of 60 MiB."""
    device = Weightless(cache_bytes=60 * MIB, free_bytes=free_mib * MIB)
    case = replace(CASE, shape={"rows": mib * MIB // 12})
    sets = make(device, BLEND, case, 7)
    assert (count, True) == (sets.count, sets.once)
    assert ("cold" if count * mib >= 120 else "unknown") == sets.cache


@pytest.mark.parametrize(
    ("once", "rows", "mode", "cleans"),
    [
        (True, 1024, "cold", True),
        (False, 1023, "cold", True),  # four bytes an argument less than the cache
        (False, 1024, "cold", False),  # a graph, or a host: nobody cleans
        (False, 1024, "hot", True),  # one set: the flush, or nobody, cares for its state
        (False, 1024, "clean", True),
        (False, 1024, "zeroed", True),
    ],
)
def test_only_cold_sets_no_smaller_than_a_cache_that_is_cleaned_are_used_once(
    *, once: bool, rows: int, mode: CacheMode, cleans: bool
) -> None:
    """A cache of 12 KiB; smaller sets push each other out: 33 at least on a card."""
    device = Weightless(cache_bytes=12 * 1024)
    device.cleans = cleans
    sets = make(device, PLAIN, replace(CASE, shape={"rows": rows}, cache_mode=mode), 7)
    assert once is sets.once
    assert (1 if mode != "cold" else 33 if cleans else 3) == sets.count


def test_most_sets_limits_sets_used_once_as_well() -> None:
    """The last check needs a single one."""
    sets = make(CleaningDevice(cache_bytes=1), BLEND, CASE, 7, most_sets=1)
    assert (1, True) == (sets.count, sets.once)


@given(
    count=st.integers(1, 33),
    counts=st.lists(st.integers(1, 40), min_size=1),
    operator=st.sampled_from([BLEND, PLAIN]),
)
def test_no_set_used_once_comes_again_before_the_cache_is_cleaned(
    count: int, counts: list[int], operator: Operator
) -> None:
    """Whatever batches are asked for: in order from the first, at least one set each."""
    sets, device = once_sets(count, operator=operator)
    turns: list[list[int]] = [[]]
    for wanted in counts:
        cleaned = len(device.settled)
        handed = sets.next(device, wanted)
        assert min(2, wanted, count) <= len(handed) <= wanted
        turns += [[] for _ in device.settled[cleaned:]]
        turns[-1] += handed
    assert all(list(range(len(turn))) == turn for turn in turns)
    assert all(count - 1 <= len(turn) <= count for turn in turns[:-1])
    assert [0] * (len(turns) - 1) == device.settled  # cleaned, and no call run


@given(count=st.integers(1, 33), counts=st.lists(st.integers(1, 40), min_size=1))
def test_sets_used_once_have_their_first_values_when_they_come_again(
    count: int, counts: list[int]
) -> None:
    """Restored before the cache is cleaned, for a restore leaves dirty lines."""
    sets, device = once_sets(count)
    first = sets.buffers(0)["state"].copy()
    copied: list[int] = []
    plain = device.settle_cache

    def settle_cache(calls: Sequence[Call]) -> None:
        copied.append(device.copied)
        plain(calls)

    device.settle_cache = settle_cache
    for wanted in counts:
        for number in sets.next(device, wanted):
            state = sets.buffers(number)["state"]
            assert (first == state).all()
            state += 1.0
    assert [count * (turn + 1) for turn in range(len(copied))] == copied


def test_sets_used_once_that_nothing_changes_are_not_copied() -> None:
    """A turn ends with a cleaning alone."""
    sets, device = once_sets(3, operator=PLAIN)
    assert [[0, 1], [0, 1, 2], [0]] == [sets.next(device, wanted) for wanted in (2, 5, 1)]
    assert ([0, 0], 0) == (device.settled, device.copied)
