"""What samples say beside their median: clocks and their course, throttling, modes, company."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import measured, synthetic_run

from solkit.judge.score import Scored, score
from solkit.model import Case, Clocks, Measured, SlowMode, Work
from solkit.report.samples import (
    SPARK_HEIGHT,
    SPARK_POINTS,
    SPARK_WIDTH,
    clock_spark,
    clock_text,
    doubted,
    energy_text,
    remarks,
)

CASE = Case("copy", "solkit", {"elements": 2**28}, "bf16")


def timed(**changes: object) -> Measured:
    outcome = measured(CASE, Work(2**29, 2**29), time_s=1e-3)
    return replace(outcome, **changes)  # type: ignore[arg-type]


def scored(**changes: object) -> Scored:
    (item,) = score(synthetic_run([timed(**changes)]))
    assert isinstance(item, Scored)
    return item


def places(path: str) -> list[tuple[int, int]]:
    """Return the points of a line's path."""
    numbers = [int(each) for each in path.removeprefix("M").split()]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@pytest.mark.parametrize(
    ("text", "clocks"),
    [
        (("1725 MHz", "1410\u20131980"), Clocks(1.725e9, 1.41e9, 1.98e9)),
        (("1725 MHz", "1725"), Clocks(1.725e9, 1.725e9, 1.725e9)),
        (("1725 MHz", ""), Clocks(1.725e9)),
        (("", ""), Clocks()),
    ],
)
def test_a_clock_is_its_median_with_its_range(text: tuple[str, str], clocks: Clocks) -> None:
    """In MHz, and nothing where nothing is known."""
    assert text == clock_text(timed(clocks=clocks))


def test_a_falling_clock_is_a_falling_line() -> None:
    """Left to right in the order of the samples, and down (a larger y) is slower."""
    path = clock_spark(timed(sample_hz=tuple(1.98e9 - 5e6 * place for place in range(100))))
    points = places(path)
    assert (0, 0) == points[0]
    assert (SPARK_WIDTH, SPARK_HEIGHT) == points[-1]
    assert all(before[1] <= after[1] for before, after in pairwise(points))


def test_a_steady_clock_needs_no_line() -> None:
    """One sample of a short kernel is off by 1 %: its neighbours' medians are not."""
    steady = tuple(1.8e9 * (1 + 0.01 * (-1) ** place) for place in range(100))
    assert "" == clock_spark(timed(sample_hz=steady))
    assert "" == clock_spark(timed(sample_hz=()))
    assert "" == clock_spark(timed(sample_hz=(1.2e9, 1.9e9, None, 1.2e9)))


@given(
    clocks=st.lists(st.one_of(st.none(), st.floats(2e8, 2.5e9)), max_size=300),
)
def test_a_line_stays_in_its_box(clocks: list[float | None]) -> None:
    """At most so many points, whole numbers, inside."""
    path = clock_spark(timed(sample_hz=tuple(clocks)))
    if path:
        points = places(path)
        assert len(points) <= SPARK_POINTS
        assert all(0 <= y <= SPARK_HEIGHT for _, y in points)
        assert SPARK_WIDTH == max(x for x, _ in points)


def test_throttled_samples_are_counted_with_the_drivers_reason() -> None:
    """Of all samples taken, kept in the file or not."""
    item = scored(
        throttled_count=31,
        sample_count=100,
        clocks=Clocks(1.5e9, event_reasons=("software power cap",)),
    )
    assert ("31 of 100 samples at a lowered clock: software power cap",) == remarks(item)


def test_a_slow_mode_is_named() -> None:
    """With its share and its place."""
    item = scored(slow_mode=SlowMode(1.6e-6, 0.2))
    assert ("20 % of samples near 1.60 µs",) == remarks(item)


def test_what_doubts_a_time_comes_first_in_its_remarks() -> None:
    """Host time, cache, company; then throttling, modes and what is only worth knowing."""
    item = scored(
        method="event_unblocked",
        cache="unknown",
        other_process_count=1,
        slow_mode=SlowMode(1.6e-3, 0.25),
        busy_s=8.2e-4,
    )
    assert (
        "host time may be in it",
        "cache not proved cold",
        "1 other process on the device",
        "25 % of samples near 1.60 ms",
        "kernels ran for 820 µs of it",
    ) == remarks(item)
    assert doubted(item)


def test_an_undisturbed_case_has_no_remarks() -> None:
    """Nothing to say, no mark; that several kernels ran is no doubt."""
    assert ((), False) == (remarks(scored()), doubted(scored()))
    assert not doubted(scored(busy_s=9e-4))


def test_energy_that_was_not_asked_for_is_empty() -> None:
    """Never a zero."""
    assert ("", "") == energy_text(scored())
