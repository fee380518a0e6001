"""Proof of the cache modes: on tables of times, as one read of half the L2 shows them."""

from collections.abc import Sequence
from typing import Any

import pytest
from fake_device import FakeDevice
from hypothesis import given
from hypothesis import strategies as st

from solkit.errors import BadInput
from solkit.measure.device.base import Call, Sample
from solkit.measure.device.cpu import CpuDevice
from solkit.measure.proof import judged, modes_proved
from solkit.model import CacheMode

US = 1e-6
FLOOR_S = 0.58 * US
H200: dict[CacheMode, float] = {
    "cold": 11.18 * US,
    "clean": 11.25 * US,
    "zeroed": 13.39 * US,
    "hot": 7.90 * US,
}
times = st.floats(0, 1e-3)


def test_an_h200_proves_all_four_modes() -> None:
    """Its times of a read of 30 MiB: 1.45 times as long from memory, floor taken off."""
    assert {"cold", "clean", "zeroed", "hot"} == judged(H200, floor_s=FLOOR_S)


def test_a_card_that_shows_no_difference_proves_nothing() -> None:
    """Its L2 may serve both, or neither."""
    assert set() == judged(dict.fromkeys(H200, 11.18 * US), floor_s=FLOOR_S)


@pytest.mark.parametrize(("modes", "cold_us"), [({"cold", "hot"}, 9.37), (set(), 9.35)])
def test_memory_takes_a_fifth_longer_than_the_l2_above_the_floor(
    modes: set[str], cold_us: float
) -> None:
    """7.90 - 0.58 = 7.32 us hot: from 8.784 us above the floor on."""
    assert modes == judged({"cold": cold_us * US, "hot": 7.90 * US}, floor_s=FLOOR_S)


@pytest.mark.parametrize("flush", ["clean", "zeroed"])
def test_a_flush_that_leaves_the_buffer_in_the_l2_is_not_proved(flush: CacheMode) -> None:
    """It reads as fast as hot; the other three stand."""
    assert set(H200) - {flush} == judged(H200 | {flush: H200["hot"]}, floor_s=FLOOR_S)


@pytest.mark.parametrize(("proved", "clean_us"), [(True, 9.60), (False, 9.58)])
def test_a_flush_brings_back_85_percent_of_a_cold_read(*, proved: bool, clean_us: float) -> None:
    """0.85 * (11.18 - 0.58) + 0.58 = 9.59 us; longer than cold is a flush as well."""
    assert proved is ("clean" in judged(H200 | {"clean": clean_us * US}, floor_s=FLOOR_S))


def test_a_mode_that_was_not_measured_is_not_proved() -> None:
    """Cold and hot are the proof; what was not asked for is not claimed."""
    two: dict[CacheMode, float] = {"cold": H200["cold"], "hot": H200["hot"]}
    assert {"cold", "hot"} == judged(two, floor_s=FLOOR_S)


@pytest.mark.parametrize("time_s", [FLOOR_S, FLOOR_S / 2, 0.0])
def test_reads_that_are_lost_in_the_floor_prove_nothing(time_s: float) -> None:
    """As long as an empty call, or shorter: the ratio of nothing to nothing is no proof."""
    assert set() == judged(dict.fromkeys(H200, time_s), floor_s=FLOOR_S)


@given(
    cold_s=times, clean_s=times, zeroed_s=times, hot_s=times, floor_s=times, scale=st.floats(1, 1e3)
)
def test_no_flush_is_proved_where_cold_is_not(
    cold_s: float, clean_s: float, zeroed_s: float, hot_s: float, floor_s: float, scale: float
) -> None:
    """Cold and hot stand or fall together, and cold is longer; slower flushes prove no less."""
    table: dict[CacheMode, float] = {
        "cold": cold_s,
        "clean": clean_s,
        "zeroed": zeroed_s,
        "hot": hot_s,
    }
    proved = judged(table, floor_s=floor_s)
    assert ("cold" in proved) == ("hot" in proved)
    if proved:
        assert {"cold", "hot"} <= proved
        assert cold_s > floor_s
        assert cold_s > hot_s
    slower = table | {"clean": clean_s * scale, "zeroed": zeroed_s * scale}
    assert proved <= judged(slower, floor_s=floor_s)


class Card(FakeDevice):
    """A card whose plain read takes what the table of its modes says."""

    kind = "cuda"

    def __init__(self, table: dict[CacheMode, float], *, cache_bytes: int = 8192) -> None:
        super().__init__(cache_bytes=cache_bytes)
        self.table = table
        self.reads: list[tuple[CacheMode, int]] = []

    def read_s(self, mode: CacheMode, nbytes: int) -> float:
        """Note the read."""
        self.reads.append((mode, nbytes))
        return self.table[mode]


def test_a_run_of_one_mode_measures_cold_and_hot_beside_it_and_proves_what_was_asked_for() -> None:
    """The times of all that was measured are kept; each read is of half the last cache."""
    card = Card(H200)
    times_s, proved = modes_proved(card, ("zeroed",), floor_s=FLOOR_S)
    assert {mode: H200[mode] for mode in ("zeroed", "cold", "hot")} == times_s
    assert frozenset({"zeroed"}) == proved
    assert [("zeroed", 4096), ("cold", 4096), ("hot", 4096)] == card.reads


@pytest.mark.parametrize(
    ("modes", "proved"),
    [
        (("cold",), {"cold"}),
        (("hot", "cold"), {"hot", "cold"}),
        (("hot", "clean", "hot"), {"hot", "clean"}),
        ((), set()),
    ],
)
def test_each_mode_is_read_once(modes: tuple[CacheMode, ...], proved: set[CacheMode]) -> None:
    """However often it is named; cold and hot are read always, and claimed where asked for."""
    card = Card(H200)
    times_s, found = modes_proved(card, modes, floor_s=FLOOR_S)
    assert proved == found
    assert {*modes, "cold", "hot"} == set(times_s)
    assert len(times_s) == len(card.reads)


def test_half_of_an_odd_cache_is_whole_bytes() -> None:
    """Rounded down: the buffer fits."""
    card = Card(H200, cache_bytes=8193)
    modes_proved(card, ("cold",), floor_s=FLOOR_S)
    assert {4096} == {nbytes for _, nbytes in card.reads}


def test_the_floor_is_taken_off_before_modes_are_judged() -> None:
    """9.35 us against 7.90 us are too near without the floor, and far enough with one of 1 us."""
    table: dict[CacheMode, float] = {"cold": 9.35 * US, "hot": 7.90 * US}
    assert frozenset() == modes_proved(Card(table), ("hot",), floor_s=0.0)[1]
    assert frozenset({"hot"}) == modes_proved(Card(table), ("hot",), floor_s=1 * US)[1]


def test_a_timer_that_can_not_flush_says_so_before_the_run() -> None:
    """A graph asked for `clean`: the refusal goes up, with its remedy."""

    class Graph(Card):
        def read_s(self, mode: CacheMode, nbytes: int) -> float:
            if mode == "clean":
                message = "a graph can't flush the L2 between its calls"
                raise BadInput(message, remedy="take --cache cold or hot")
            return super().read_s(mode, nbytes)

    with pytest.raises(BadInput, match="can't flush the L2"):
        modes_proved(Graph(H200), ("cold", "clean"), floor_s=FLOOR_S)
    assert frozenset({"cold"}) == modes_proved(Graph(H200), ("cold",), floor_s=FLOOR_S)[1]


def test_a_card_without_a_difference_proves_no_mode_of_a_run() -> None:
    """Whatever was asked for."""
    table = dict.fromkeys(H200, 9e-6)
    found = modes_proved(Card(table), ("cold", "clean", "zeroed", "hot"), floor_s=0.0)
    assert (table, frozenset()) == found


def test_a_host_proves_its_modes_by_their_footprints_alone() -> None:
    """Nothing is run: another process may hold the shared cache at any moment."""

    class Untouched(CpuDevice):
        def time(self, calls: Sequence[Call], **_how: Any) -> list[Sample]:
            raise AssertionError(calls)

        def read_s(self, mode: CacheMode, nbytes: int) -> float:
            raise AssertionError(mode, nbytes)

    found = modes_proved(Untouched(), ("hot", "clean"), floor_s=0.0)
    assert ({}, frozenset({"hot", "clean"})) == found
