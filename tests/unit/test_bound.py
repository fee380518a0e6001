"""The least time a piece of work can take: the largest of its parts, and nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_catalog import CARD

from solkit.bound import Roof, bound, clock_roof, hard_roof, measured_roof, spec_roof
from solkit.model import Ceilings, DramCeiling, PipeCeiling, Settle, Work

ROOF = spec_roof(CARD)
CEILINGS = Ceilings(
    "events",
    (
        DramCeiling("read", 10**5, 0, 1e-6),
        DramCeiling("read", 10**9, 0, 1e-3),
        DramCeiling("copy", 10**5, 10**5, 2e-6),
        DramCeiling("copy", 10**9, 10**9, 4e-3),
        DramCeiling("write", 0, 10**5, 1.5e-6),
        DramCeiling("write", 0, 10**9, 1.5e-3),
    ),
    (
        PipeCeiling("fp32", 10**12, 0.05, "1024^3"),
        PipeCeiling("fp32", 10**12, 0.025, "8192^3"),
        PipeCeiling("bf16_tensor", 10**12, 0.002, "8192^3"),
    ),
)
MEASURED = measured_roof(CEILINGS)

counts = st.integers(0, 10**13)
flops = st.dictionaries(st.sampled_from(["fp32", "bf16_tensor"]), st.integers(0, 10**16))
works = st.builds(Work, read_bytes=counts, write_bytes=counts, flop=flops, estimated_flop=flops)
roofs = st.sampled_from([ROOF, MEASURED])


@given(work=works, roof=roofs)
def test_the_bound_is_the_largest_of_its_parts(work: Work, roof: Roof) -> None:
    """Memory and every pipe work at the same time: the slowest decides, and is named."""
    found = bound(work, roof)
    assert max([found.memory_s, *found.compute_s.values()]) == found.sol_s
    by_name = {"memory": found.memory_s} | {
        f"compute:{pipe}": time_s for pipe, time_s in found.compute_s.items()
    }
    assert found.sol_s == by_name[found.limiter]


@given(work=works, extra_bytes=counts, roof=st.just(ROOF))
def test_more_bytes_never_shorten_the_bound(work: Work, extra_bytes: int, roof: Roof) -> None:
    """Moving more cannot make the lower bound on time smaller."""
    for heavier in (
        replace(work, read_bytes=work.read_bytes + extra_bytes),
        replace(work, write_bytes=work.write_bytes + extra_bytes),
    ):
        assert bound(work, roof).sol_s <= bound(heavier, roof).sol_s


@given(work=works, extra_flop=counts, pipe=st.sampled_from(["fp32", "bf16_tensor"]), roof=roofs)
def test_more_flop_never_shorten_the_bound(
    work: Work, extra_flop: int, pipe: str, roof: Roof
) -> None:
    """Computing more cannot, either."""
    heavier = replace(work, flop={**work.flop, pipe: work.flop.get(pipe, 0) + extra_flop})
    assert bound(work, roof).sol_s <= bound(heavier, roof).sol_s


@given(moved_bytes=st.integers(10**3, 10**12))
def test_the_bound_is_continuous_at_the_ridge(moved_bytes: int) -> None:
    """Just left and right of the ridge only the name changes: the time differs by the step."""
    ridge_flop = round(moved_bytes * 614.4e12 / 2.0e12)
    step = max(1, ridge_flop // 10**6)
    left = bound(Work(moved_bytes, 0, {"bf16_tensor": ridge_flop - step}), ROOF)
    right = bound(Work(moved_bytes, 0, {"bf16_tensor": ridge_flop + step}), ROOF)
    assert ("memory", "compute:bf16_tensor") == (left.limiter, right.limiter)
    assert pytest.approx(left.sol_s, rel=2e-5) == right.sol_s
    assert left.near_ridge
    assert right.near_ridge


points = st.builds(
    DramCeiling,
    kernel=st.sampled_from(["read", "copy"]),
    read_bytes=st.integers(1, 10**9),
    write_bytes=st.just(0),
    median_s=st.floats(1e-7, 1e-2),
)


@given(
    curve=st.lists(points, min_size=1, max_size=6),
    read_bytes=st.integers(0, 10**9),
    write_bytes=st.integers(0, 10**9),
    factor=st.integers(1, 1000),
)
def test_the_measured_curve_is_monotone(
    curve: list[DramCeiling], read_bytes: int, write_bytes: int, factor: int
) -> None:
    """More traffic at the same share of reads never takes less time, however noisy the points."""
    work = Work(read_bytes, write_bytes)
    more = Work(read_bytes * factor, write_bytes * factor)
    for roof in (MEASURED, measured_roof(Ceilings("events", tuple(curve)))):
        assert bound(work, roof).memory_s <= bound(more, roof).memory_s * (1 + 1e-9)


def test_a_disturbed_point_counts_as_the_better_one_with_more_bytes() -> None:
    """A stream that moved 2 MB in 3 us can't need 9 us for 1 MB."""
    noisy = (DramCeiling("read", 10**6, 0, 9e-6), DramCeiling("read", 2 * 10**6, 0, 3e-6))
    roof = measured_roof(Ceilings("events", noisy))
    assert pytest.approx(3e-6) == bound(Work(10**6, 0), roof).memory_s
    assert pytest.approx(3e-6) == bound(Work(10**6 + 1, 0), roof).memory_s


def test_estimates_are_shown_and_never_bind() -> None:
    """A bound must be provable, and only exact counts are."""
    found = bound(Work(2, 0, estimated_flop={"fp32": 46_080_000_000}), ROOF)
    assert {"fp32": pytest.approx(1e-3)} == found.estimate_s
    assert 1e-12 == found.sol_s
    assert "memory" == found.limiter


@pytest.mark.parametrize(
    ("near", "flop_fraction"), [(False, 0.89), (True, 0.91), (True, 1.1), (False, 1.12)]
)
def test_near_ridge_means_within_ten_percent(*, near: bool, flop_fraction: float) -> None:
    """The shorter of both times is at least 90 % of the longer."""
    flop = round(flop_fraction * 614.4e9)
    assert near is bound(Work(2_000_000_000, 0, {"bf16_tensor": flop}), ROOF).near_ridge


def test_no_work_takes_no_time() -> None:
    """Nothing moved, nothing computed: nothing is near anything."""
    for roof in (ROOF, MEASURED, Roof("none", 0.0, {})):
        found = bound(Work(0, 0), roof)
        assert (0.0, "memory", False) == (found.sol_s, found.limiter, found.near_ridge)


def test_a_pipe_the_roof_lacks_is_left_out() -> None:
    """The caller skips such a case, or the roof never measured that pipe."""
    assert {} == bound(Work(1, 0, {"fp4_tensor": 10**12}), ROOF).compute_s


def test_spec_roof_holds_what_the_card_file_says() -> None:
    """2 TB/s and the published peaks."""
    assert Roof("spec", 2.0e12, {"fp32": 46.08e12, "bf16_tensor": 614.4e12}) == spec_roof(CARD)


def test_clock_roof_scales_the_pipes_and_leaves_the_memory() -> None:
    """At 1.2 GHz: 100 SMs x 4096 FLOP x 1.2e9; DRAM has a clock of its own."""
    roof = clock_roof(CARD, 1.2e9)
    assert pytest.approx(491.52e12) == roof.pipes_flop_per_s["bf16_tensor"]
    assert 2.0e12 == roof.dram_bytes_per_s


def test_hard_roof_takes_pin_rate_and_highest_clock() -> None:
    """The tensor peak is published at 1.5 GHz and the card goes up to 1.8."""
    assert 2.0e12 == hard_roof(CARD).dram_bytes_per_s
    roof = hard_roof(replace(CARD, dram_pin_bytes_per_s=2.1e12))
    assert 2.1e12 == roof.dram_bytes_per_s
    assert pytest.approx(737.28e12) == roof.pipes_flop_per_s["bf16_tensor"]
    assert 46.08e12 == roof.pipes_flop_per_s["fp32"]


def test_a_card_is_scored_against_the_lesser_of_sheet_and_pin_rate() -> None:
    """A data sheet may round up what the pins can't give."""
    assert 1.9e12 == spec_roof(replace(CARD, dram_pin_bytes_per_s=1.9e12)).dram_bytes_per_s


def test_measured_roof_takes_the_best_of_all_points() -> None:
    """The best stream gives the asymptote, the best product gives each pipe."""
    assert 1e12 == MEASURED.dram_bytes_per_s
    assert pytest.approx({"fp32": 40e12, "bf16_tensor": 500e12}) == MEASURED.pipes_flop_per_s
    assert 0.0 == measured_roof(Ceilings("events", ())).dram_bytes_per_s


@pytest.mark.parametrize(
    ("settle", "rates"),
    [
        ("burst", {"bf16_tensor": 793e12, "fp16_tensor": 759e12, "fp32": 60e12}),
        ("sustained", {"bf16_tensor": 661e12, "fp16_tensor": 759e12, "fp32": 60e12}),
    ],
)
def test_a_measured_roof_is_of_the_runs_own_settling(
    settle: Settle, rates: dict[str, float]
) -> None:
    """A case from rest is held against rates from rest, and where a kind is missing, to what is."""
    pipes = (
        PipeCeiling("bf16_tensor", 683 * 10**12, 1.0, "4096", "burst"),
        PipeCeiling("bf16_tensor", 793 * 10**12, 1.0, "8192", "burst"),
        PipeCeiling("bf16_tensor", 661 * 10**12, 1.0, "8192", "sustained"),
        PipeCeiling("fp16_tensor", 759 * 10**12, 1.0, "8192", "burst"),
        PipeCeiling("fp32", 60 * 10**12, 1.0, "chains", "sustained"),
    )
    assert rates == measured_roof(Ceilings("any", (), pipes), settle).pipes_flop_per_s


@pytest.mark.parametrize(
    ("memory_s", "work"),
    [
        (1e-6, Work(10**3, 0)),  # below the smallest point its time is a floor
        (1e-6, Work(10**5, 0)),
        (5.005e-4, Work(500_050_000, 0)),  # half-way between both
        (1e-3, Work(10**9, 0)),
        (2e-2, Work(20 * 10**9, 0)),  # beyond the largest its bandwidth goes on
        (1.5e-3, Work(0, 10**9)),
        (4e-3, Work(10**9, 10**9)),  # a copy's own point
        ((2e-3 + 4e-3) / 2, Work(15 * 10**8, 5 * 10**8)),  # half-way from copy to read, 2 GB
    ],
)
def test_the_measured_curve_goes_through_its_points(memory_s: float, work: Work) -> None:
    """Traffic picks the place on each kind's curve, the share of reads picks between kinds."""
    assert pytest.approx(memory_s) == bound(work, MEASURED).memory_s


def test_a_share_of_reads_beyond_all_kinds_takes_the_nearest() -> None:
    """With a copy alone on the curve, reads and writes cost what it costs."""
    copy = measured_roof(Ceilings("events", CEILINGS.dram[2:4]))
    assert [4e-3, 4e-3] == [
        bound(work, copy).memory_s for work in (Work(2 * 10**9, 0), Work(0, 2 * 10**9))
    ]


def test_a_slow_read_kernel_is_not_the_cards_ceiling() -> None:
    """A kernel that only reads needs no longer than a copy of as many bytes."""
    points = (
        DramCeiling("write", 0, 1000, 2e-6),
        DramCeiling("copy", 500, 500, 3e-6),
        DramCeiling("triad", 667, 333, 3.5e-6),
        DramCeiling("read", 1000, 0, 5e-6),
    )
    roof = measured_roof(Ceilings("any", points))
    shares = [(0, 1000), (500, 500), (667, 333), (1000, 0)]
    assert [2e-6, 3e-6, 3e-6, 3e-6] == [bound(Work(*share), roof).memory_s for share in shares]


def test_a_disturbed_large_point_is_no_slower_than_a_small_one_repeated() -> None:
    """16 times the bytes need 16 times the time of the smaller stream at most."""
    points = (DramCeiling("copy", 500, 500, 1e-6), DramCeiling("copy", 8000, 8000, 25e-6))
    roof = measured_roof(Ceilings("any", points))
    seen = [bound(Work(size, size), roof).memory_s for size in (500, 4000, 8000, 16000)]
    assert [1e-6, 8e-6, 16e-6, 32e-6] == pytest.approx(seen)
