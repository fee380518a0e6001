"""Numbers become words for people: three digits, the right prefix, never an exponent."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit import units

sizes = st.floats(1e-12, 1e18)


@given(value=sizes, sign=st.sampled_from([1, -1]))
def test_written_digits_are_within_half_a_percent(value: float, sign: int) -> None:
    """Three significant digits are off by at most half a step of the third."""
    assert pytest.approx(sign * value, rel=0.005) == float(units.digits(sign * value))


@given(value=sizes)
def test_no_number_is_written_with_an_exponent(value: float) -> None:
    """A person reads 0.0000012 or 1200000, not 1.2e-06."""
    assert set("0123456789.") >= set(units.digits(value))


@given(value=st.floats(1e-12, 99.0), significant=st.integers(3, 6))
def test_small_numbers_have_exactly_so_many_digits(value: float, significant: int) -> None:
    """Trailing zeros count, so that columns line up."""
    written = units.digits(value, significant).replace(".", "").lstrip("0")
    assert significant == len(written)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0", 0.0),
        ("0.500", 0.5),
        ("10.0", 9.996),
        ("1.00", 0.9996),
        ("-9.99", -9.99),
        ("1000", 999.6),
        ("nan", math.nan),
        ("-inf", -math.inf),
    ],
)
def test_digits(written: str, value: float) -> None:
    """Rounding up into the next decade keeps three digits; what is no number stays a word."""
    assert written == units.digits(value)


@pytest.mark.parametrize(
    ("written", "value_s"),
    [
        ("0 s", 0.0),
        ("12.4 µs", 12.4e-6),
        ("1.00 ms", 0.9996e-3),
        ("999 µs", 0.9991e-3),
        ("1.50 s", 1.5),
        ("120 s", 120.0),
        ("0.0200 ns", 2e-11),
        ("-3.00 ms", -3e-3),
    ],
)
def test_seconds(written: str, value_s: float) -> None:
    """A time has the prefix that leaves one to three digits before the point."""
    assert written == units.seconds(value_s)


@pytest.mark.parametrize(
    ("written", "value_s"),
    [
        ("0 s", -3.0),
        ("59 s", 59.4),
        ("1 min 00 s", 59.6),
        ("1 min 15 s", 75.0),
        ("1 h 00 min", 3599.6),
        ("25 h 01 min", 25 * 3600 + 61.0),
    ],
)
def test_duration(written: str, value_s: float) -> None:
    """A wait is whole seconds, then minutes, then hours; never negative."""
    assert written == units.duration(value_s)


def test_traffic_goes_in_powers_of_ten() -> None:
    """It is the numerator of a rate."""
    assert ["512 B", "1.00 kB", "139 MB", "4.80 TB"] == [
        units.traffic(value) for value in (512, 999.6, 138.9e6, 4.8e12)
    ]


def test_capacity_goes_in_powers_of_two() -> None:
    """Memories are built so: 60 MiB of L2 are 62,914,560 bytes."""
    assert ["512 B", "1.00 KiB", "60.0 MiB", "141 GiB", "2.00 TiB"] == [
        units.capacity(value) for value in (512, 1024, 62_914_560, 141 * 2**30, 2**41)
    ]


def test_rates_counts_and_the_rest() -> None:
    """Every kind of number has one way to be written."""
    assert "4.80 TB/s" == units.bandwidth(4.8e12)
    assert "989 TFLOP/s" == units.flop_rate(989.4e12)
    assert "1.20 PFLOP/s" == units.flop_rate(1.2e15)
    assert "107 GFLOP" == units.flop_count(107.37e9)
    assert "773 FLOP/B" == units.intensity(772.8)
    assert "1980 MHz" == units.frequency(1.98e9)
    assert "700 W" == units.power(700.0)
    assert "87.3 %" == units.percent(0.873)
    assert "10,485,760" == units.count(10_485_760)


def test_energy_per_call_and_work_per_joule() -> None:
    """A short kernel takes millijoules; what it does for one goes in powers of ten."""
    written = [units.energy(value) for value in (31.25, 0.0842, 4.2e-6, 0.9999)]
    assert ["31.2 J", "84.2 mJ", "4.20 µJ", "1.00 J"] == written
    assert "1.30 TFLOP/J" == units.flop_per_joule(1.3e12)
    assert "9.10 GB/J" == units.bytes_per_joule(9.1e9)
