"""8-bit floats: 256 codes, their values, and the nearest code of a number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare import fp8


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (0x00, 0.0),
        (0x01, 2.0**-9),  # the smallest: below the normal range, steps stay as they are
        (0x07, 7 * 2.0**-9),
        (0x08, 2.0**-6),
        (0x38, 1.0),
        (0x39, 1.125),
        (0x7E, 448.0),
        (0xFE, -448.0),
        (0xB8, -1.0),
    ],
)
def test_a_code_stands_for_its_value(code: int, value: float) -> None:
    """Sign, exponent with bias 7, three bits of mantissa."""
    assert value == fp8.decoded(np.uint8(code))


def test_two_codes_are_nan_and_none_is_infinite() -> None:
    """What other formats spend on infinity are numbers here."""
    assert [0x7F, 0xFF] == np.flatnonzero(np.isnan(fp8.values())).tolist()
    assert not np.isinf(fp8.values()).any()


def test_every_number_of_the_format_has_its_own_code() -> None:
    """Minus zero, too; NaN keeps its sign."""
    assert list(range(256)) == fp8.encoded(fp8.values()).tolist()


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (1.0624, 0x38),
        (1.0625, 0x38),  # halfway: to the even one, 1
        (1.0626, 0x39),
        (1.1875, 0x3A),  # halfway between 1.125 and 1.25: to the even one, above
        (2.0**-10, 0x00),
        (1e-3, 0x01),
        (-1.1875, 0xBA),
        (463.0, 0x7E),
        (1e30, 0x7E),
        (-np.inf, 0xFE),
        (np.nan, 0x7F),
    ],
)
def test_a_number_gets_the_nearest_code(number: float, code: int) -> None:
    """Ties go to the even code; what is beyond 448 becomes 448."""
    assert code == fp8.encoded(number)


@given(st.floats(-448, 448))
def test_no_code_is_nearer(number: float) -> None:
    """Whatever the number, all others are at least as far away."""
    error = abs(fp8.decoded(fp8.encoded(number)) - number)
    assert np.nanmin(np.abs(fp8.values() - number)) == error


@given(number=st.floats(-448, 448))
def test_half_a_step_holds_the_nearest_value_and_no_other(number: float) -> None:
    """Rounding moves a number by half a step at most; both neighbours of its code lie beyond."""
    code = int(fp8.encoded(number))
    half = float(fp8.half_step(number))
    assert abs(float(fp8.decoded(code)) - number) <= half
    if 0 < code & 0x7F < 0x7E:
        for other in (code - 1, code + 1):
            assert abs(float(fp8.decoded(other)) - number) >= half
