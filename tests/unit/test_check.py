"""Outputs are compared on values; what is wrong has a verdict, a place, and numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checking import (
    DEVICE,
    buffers_of,
    case_of,
    checked,
    failure,
    found,
    operator,
    right,
    run,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from solkit.declare import fp8
from solkit.declare.arg import Arg
from solkit.declare.operator import Operator, Tolerance
from solkit.measure.check import CheckFailed, changed_input, compare, expect
from solkit.model import Case, Check

TWO_OUTPUTS = (Arg("x", "rows cols"), Arg("y", "rows cols", "out"), Arg("z", "rows cols", "out"))


def test_a_right_output_passes_with_its_error() -> None:
    """All 30 elements compared; doubling is exact."""
    assert Check(0.0, 30, "whole", "1e-05 relative + 1e-05", 3, "x normal(0, 1)") == checked(right)


def test_the_error_is_told_as_a_fraction_of_what_is_allowed() -> None:
    """Half of absolute + relative x |reference|, at the worst element."""

    def nearly(x: Any, y: Any) -> None:
        right(x, y)
        want = y.astype(np.float64)[2, 3]
        y[2, 3] = want + 0.5 * (0.1 + 0.1 * abs(want))

    loose = operator(tolerance={"fp32": Tolerance(0.1, 0.1)})
    check = checked(nearly, loose)
    assert pytest.approx(0.5, rel=1e-5) == check.error_fraction
    assert "0.1 relative + 0.1" == check.tolerance


@settings(deadline=None)
@given(
    allowances=st.floats(-3, 3),
    relative=st.floats(1e-3, 0.5),
    absolute=st.floats(1e-3, 0.5),
    want=st.floats(-1e3, 1e3),
)
def test_an_element_passes_within_its_allowance_and_fails_beyond(
    allowances: float, relative: float, absolute: float, want: float
) -> None:
    """|out - reference| <= absolute + relative x |reference|, for any of the four."""
    declared = operator(
        lambda x: np.full(x.shape, want),
        tolerance={"fp64": Tolerance(relative, absolute)},
        dtypes=("fp64",),
        args=(Arg("x", "rows cols", dtype="fp64"), Arg("y", "rows cols", "out", dtype="fp64")),
    )
    value = want + allowances * (absolute + relative * abs(want))

    def fill(x: Any, y: Any) -> None:
        del x
        y.fill(value)

    if abs(allowances) < 1 - 1e-9:
        assert pytest.approx(abs(allowances), abs=1e-9) == checked(fill, declared).error_fraction
    elif abs(allowances) > 1 + 1e-9:
        assert "wrong_values" == failure(fill, declared=declared).verdict


def test_a_wrong_element_is_named_with_its_place_and_values() -> None:
    """Where, what was seen, what was expected, and how many."""

    def wrong(x: Any, y: Any) -> None:
        right(x, y)
        y[4, 1] = 7.5

    declared, case = operator(), case_of()
    buffers = buffers_of(declared, case)
    buffers["x"][4, 1] = 3.0
    expected = expect(DEVICE, declared, case, buffers, 3)
    run(wrong, declared, case, buffers)
    with pytest.raises(
        CheckFailed, match=r"^y\[rows 4, cols 1\] is 7\.5, the reference says 6; 1 of 30"
    ) as caught:
        compare(DEVICE, declared, case, buffers, expected)
    assert "wrong_values" == caught.value.verdict
    assert "elements are off by more than 1e-05 relative + 1e-05" in caught.value.message


def test_a_kernel_that_writes_nothing_is_told_so() -> None:
    """Every bit of the output is still set; no arithmetic does that."""
    verdict, message = found(lambda **_: None)
    assert "unwritten" == verdict
    assert message == (
        "30 of 30 elements of 'y' were not written: it wrote nothing there; no kernel ran, or it "
        "wrote elsewhere"
    )


def test_a_kernel_that_writes_half_is_told_how_much_is_missing() -> None:
    """15 of 30 elements."""

    def half(x: Any, y: Any) -> None:
        y[:3] = 2 * x[:3]

    assert ("unwritten", "15 of 30 elements of 'y' were not written") == found(half)


def test_a_second_output_that_nobody_writes_is_named() -> None:
    """A right first one does not hide it."""
    declared = operator(lambda x: (2 * x, 3 * x), args=TWO_OUTPUTS)

    def one(x: Any, y: Any, z: Any) -> None:
        del z
        right(x, y)

    verdict, message = found(one, declared=declared)
    assert ("unwritten", True) == (verdict, "30 of 30 elements of 'z'" in message)


def test_nan_that_was_computed_is_not_taken_for_missing() -> None:
    """Zero by zero gives another NaN than the poison: its place and value are told."""

    def divides(x: Any, y: Any) -> None:
        right(x, y)
        with np.errstate(all="ignore"):
            y[2, 1] = np.float32(0) / np.float32(0)
            y[3, :2] = np.float32(1) / np.float32(0)

    verdict, message = found(divides)
    assert "non_finite" == verdict
    assert message.startswith("y[rows 2, cols 1] is nan, the reference says ")
    assert message.endswith(
        "; 3 of 30 compared elements are NaN or infinite where the reference is finite"
    )


def test_infinity_where_the_reference_is_finite_is_named() -> None:
    """With its sign."""

    def overflows(x: Any, y: Any) -> None:
        right(x, y)
        y[5, 4] = -np.inf

    verdict, message = found(overflows)
    assert ("non_finite", True) == (verdict, message.startswith("y[rows 5, cols 4] is -inf, "))


def test_unwritten_elements_come_before_wrong_ones() -> None:
    """What was not written explains more than what is wrong."""

    def both(x: Any, y: Any) -> None:
        y[:2] = 3 * x[:2]

    assert "unwritten" == failure(both).verdict


def test_an_element_outside_the_sample_must_be_written_too() -> None:
    """Values are compared on sampled rows; poison is looked for everywhere."""
    case = case_of(rows=4000, cols=1024)
    chosen = expect(DEVICE, operator(), case, buffers_of(operator(), case), 3).index["rows"]
    assert chosen is not None
    missing = next(row for row in range(8, 3992) if row not in chosen)

    def all_but_one(x: Any, y: Any) -> None:
        y[:missing] = 2 * x[:missing]
        y[missing, 1:] = 2 * x[missing, 1:]
        y[missing + 1 :] = 2 * x[missing + 1 :]

    assert (
        "unwritten",
        "1 of 4096000 elements of 'y' were not written",
    ) == found(all_but_one, case=case)

    def infinite(x: Any, y: Any) -> None:
        right(x, y)
        y[missing, 3:5] = np.inf

    verdict, message = found(infinite, case=case)
    assert "non_finite" == verdict
    assert message.startswith(f"y[rows {missing}, cols 3] is inf, the reference says ")
    assert message.endswith(
        "; 2 of 4096000 elements are NaN or infinite, none of them in the sample of the reference"
    )


def test_nan_and_infinity_are_right_where_the_reference_has_them() -> None:
    """The root of a negative number is NaN in both, the inverse of zero infinite."""
    declared = operator(lambda x: x**0.5)

    def root(x: Any, y: Any) -> None:
        with np.errstate(all="ignore"):
            y[...] = np.sqrt(x)

    assert 30 == checked(root, declared).compared_count
    infinite = operator(lambda x: np.full(x.shape, np.inf))

    def fill(value: float) -> Callable[..., None]:
        return lambda y, **_: y.fill(value)

    assert 0.0 == checked(fill(np.inf), infinite).error_fraction
    for wrong in (-np.inf, 0.0, np.nan):
        verdict, message = found(fill(wrong), declared=infinite)
        assert ("wrong_values", True) == (verdict, "30 of 30 compared" in message)


def test_nan_and_infinity_are_right_in_a_sample_too() -> None:
    """Where the reference has infinity itself, infinity beyond the sample is not suspected."""
    declared = operator(lambda x: np.where(x > 0, np.inf, x))

    def same(x: Any, y: Any) -> None:
        y[...] = np.where(x > 0, np.float32(np.inf), x)

    assert checked(same, declared, case_of(rows=4000, cols=1024)).way.startswith("sampled")


def test_the_references_own_infinity_beyond_the_sample_is_right() -> None:
    """One element in a million overflows: the reference is asked there, and agrees."""
    case = case_of(rows=4000, cols=1024)
    declared = operator(lambda x: np.where(x == 50.0, np.inf, x))
    buffers = buffers_of(declared, case)
    chosen = expect(DEVICE, declared, case, buffers, 3).index["rows"]
    assert chosen is not None
    missing = next(row for row in range(8, 3992) if row not in chosen)
    buffers["x"][missing, 9] = 50.0
    expected = expect(DEVICE, declared, case, buffers, 3)
    run(lambda x, **_: np.where(x == 50.0, np.float32(np.inf), x), declared, case, buffers)
    assert 0.0 == compare(DEVICE, declared, case, buffers, expected).error_fraction
    buffers["y"][missing, 8] = -np.inf
    with pytest.raises(CheckFailed, match=rf"y\[rows {missing}, cols 8\] is -inf, the"):
        compare(DEVICE, declared, case, buffers, expected)


def test_nan_beyond_the_sample_of_an_in_place_operator_is_found() -> None:
    """Its inputs are gone by then: the sample, which is finite, speaks for the reference."""
    declared = operator(
        lambda x, state: state + x,
        args=(Arg("x", "rows cols"), Arg("state", "rows cols", "inout")),
    )
    case = case_of(rows=4000, cols=1024)
    buffers = buffers_of(declared, case)
    expected = expect(DEVICE, declared, case, buffers, 3)
    chosen = expected.index["rows"]
    assert chosen is not None
    missing = next(row for row in range(8, 3992) if row not in chosen)
    run(lambda x, state: x + state, declared, case, buffers)
    assert 1 > compare(DEVICE, declared, case, buffers, expected).error_fraction
    buffers["state"][missing, 0] = np.nan
    with pytest.raises(CheckFailed, match="the reference is finite in all of the sample; 1 of"):
        compare(DEVICE, declared, case, buffers, expected)


def test_unwritten_elements_show_where_the_reference_is_nan() -> None:
    """The poison is a NaN of its own: it does not pass for the reference's."""
    declared = operator(lambda x: np.full(x.shape, np.nan))
    assert "unwritten" == failure(lambda **_: None, declared=declared).verdict
    assert 0.0 == checked(lambda y, **_: y.fill(np.nan), declared).error_fraction


def test_nan_where_the_reference_has_some_elsewhere_is_wrong() -> None:
    """Its own NaN does not excuse others."""
    declared = operator(lambda x: np.where(x > 0, np.nan, x))
    assert "non_finite" == failure(lambda y, **_: y.fill(np.nan), declared=declared).verdict


def test_a_wrong_last_row_of_a_big_case_is_named_by_its_own_number() -> None:
    """Not by its place in the sample."""

    def wrong(x: Any, y: Any) -> None:
        right(x, y)
        y[-1, 7] = 1e6

    message = failure(wrong, case=case_of(rows=4000, cols=1024)).message
    assert message.startswith("y[rows 3999, cols 7] is 1e+06, ")


def test_an_output_without_axes_is_one_number() -> None:
    """A sum over everything is written, compared and missed like any other output."""
    declared = operator(
        lambda x: x.sum(),
        args=(Arg("x", "rows cols"), Arg("y", "", "out")),
        tolerance={"fp32": Tolerance(1e-4, 1e-4)},
    )

    def total(x: Any, y: Any) -> None:
        y[...] = x.sum()

    assert 1 == checked(total, declared).compared_count
    assert 1 == checked(lambda x, **_: x.sum(), declared).compared_count
    assert "1 of 1 elements of 'y'" in failure(lambda **_: None, declared=declared).message
    assert failure(lambda y, **_: y.fill(1e6), declared=declared).message.startswith("y[] is")


def test_every_output_is_compared() -> None:
    """A wrong second one is not hidden by a right first one."""
    declared = operator(lambda x: (2 * x, 3 * x), args=TWO_OUTPUTS)

    def second_wrong(x: Any, y: Any, z: Any) -> None:
        right(x, y)
        z[...] = 4 * x

    verdict, message = found(second_wrong, declared=declared)
    assert ("wrong_values", True) == (verdict, message.startswith("z["))


def test_an_input_that_was_written_to_is_named() -> None:
    """Inputs are what the reference was given; in-place arguments may change."""
    args = (
        Arg("x", "rows cols"),
        Arg("state", "rows cols", "inout"),
        Arg("y", "rows cols", "out"),
    )
    declared, case = operator(lambda x, state: (state, x), args=args), case_of()
    buffers = buffers_of(declared, case)
    expected = expect(DEVICE, declared, case, buffers, 3)
    buffers["state"] += 1
    assert "" == changed_input(DEVICE, declared, case, buffers, expected)
    buffers["x"][0, 0] += 1
    assert "x" == changed_input(DEVICE, declared, case, buffers, expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.__setitem__((1234, 567), np.nextafter(x[1234, 567], np.float32(9))),
        lambda x: x.__setitem__(slice(None), x[::-1].copy()),
        lambda x: x.sort(axis=1),
        lambda x: x.__setitem__(slice(None), -x),
    ],
    ids=["one bit", "rows turned round", "sorted", "negated"],
)
def test_a_change_far_from_the_sample_is_seen(change: Callable[[Any], None]) -> None:
    """The whole input is summed up, whatever the check of the outputs looks at."""
    declared, case = operator(), case_of(rows=4000, cols=1024)
    buffers = buffers_of(declared, case)
    expected = expect(DEVICE, declared, case, buffers, 3)
    assert "" == changed_input(DEVICE, declared, case, buffers, expected)
    change(buffers["x"])
    assert "x" == changed_input(DEVICE, declared, case, buffers, expected)


def ranks(factor: float = 0.25) -> Operator:
    """Return an operator whose second output is the place of each row's largest value."""
    return operator(
        lambda x: (factor * x, np.argmax(x, axis=1)),
        args=(
            Arg("x", "rows cols"),
            Arg("y", "rows cols", "out", dtype="fp8_e4m3"),
            Arg("place", "rows", "out", dtype="int32"),
        ),
    )


def coded(x: Any, y: Any, place: Any) -> None:
    y[...] = fp8.encoded(x / 4)
    place[...] = np.argmax(x, axis=1)


def test_codes_are_held_against_the_unrounded_value_and_integers_are_exact() -> None:
    """Half a step of eight is allowed to a code, nothing to an integer."""
    done = checked(coded, declared=ranks())
    assert "0.0626 relative + 0.00098, 0 relative + 0" == done.tolerance
    assert 0.5 < done.error_fraction < 1.0
    assert 36 == done.compared_count


def test_a_code_that_was_cut_off_instead_of_rounded_is_wrong() -> None:
    """Toward zero it is off by up to a whole step."""

    def cut(x: Any, y: Any, place: Any) -> None:
        coded(x, y, place)
        over = np.abs(fp8.decoded(y)) > np.abs(x / 4)
        y[...] = np.where(over, y - 1, y)

    verdict, message = found(cut, declared=ranks(), case=case_of(rows=40))
    assert "wrong_values" == verdict
    assert "are off by more than 0.0626 relative + 0.00098" in message


@pytest.mark.parametrize("off", [-1, 1])
def test_a_single_code_beside_the_right_one_is_wrong(off: int) -> None:
    """A step may be no more than a sixteenth of a value: its own half is what is allowed."""

    def beside(x: Any, y: Any, place: Any) -> None:
        coded(x, y, place)
        row, col = np.unravel_index(np.argmax(np.abs(x)), x.shape)  # never zero, never the largest
        y[row, col] = int(y[row, col]) + off

    verdict, message = found(beside, declared=ranks(), case=case_of(rows=40))
    assert "wrong_values" == verdict
    assert "; 1 of " in message


def test_what_is_beyond_the_largest_code_saturates() -> None:
    """The reference is held at 448, where a conversion stops, too."""

    def large(x: Any, y: Any, place: Any) -> None:
        coded(4e4 * x, y, place)

    assert checked(large, declared=ranks(1e4)).error_fraction < 1.0


def test_an_integer_that_is_off_by_one_is_wrong() -> None:
    """Whatever else is right."""

    def off(x: Any, y: Any, place: Any) -> None:
        coded(x, y, place)
        place[2] += 1

    verdict, message = found(off, declared=ranks())
    assert "wrong_values" == verdict
    assert message.startswith("place[rows 2] is ")
    assert message.endswith("1 of 6 compared elements are off by more than 0 relative + 0")


@pytest.mark.parametrize("rows", [6, 400_000])
def test_an_integer_that_was_not_written_is_told_wherever_it_is(rows: int) -> None:
    """Every bit set is -1, which no index or count is; beyond the sample, too."""
    case = case_of(rows=rows)

    def all_but_one(x: Any, y: Any, place: Any) -> None:
        coded(x, y, place)
        place[rows // 2 + 1] = -1

    assert ("unwritten", f"1 of {rows} elements of 'place' were not written") == found(
        all_but_one, declared=ranks(), case=case
    )


def test_large_integers_are_told_to_the_last_digit() -> None:
    """Off by one in ten digits."""
    declared = operator(
        lambda x: 2_000_000_000 + 0 * x,
        args=(Arg("x", "rows cols"), Arg("y", "rows cols", "out", dtype="int32")),
    )

    def off(x: Any, y: Any) -> None:
        del x
        y[...] = 2_000_000_000
        y[2, 1] += 1

    assert "y[rows 2, cols 1] is 2000000001, the reference says 2000000000;" in (
        failure(off, declared=declared).message
    )


def test_a_place_is_told_where_two_dims_are_of_one_axis() -> None:
    """Beyond the sample of a square array: the row and the column are not the same."""
    declared = operator(
        args=(Arg("x", "rows rows"), Arg("y", "rows rows", "out")), dtypes=("fp32",)
    )

    def stray(x: Any, y: Any) -> None:
        np.multiply(x, 2, out=y)
        y[667, 501] = np.inf

    case = Case("twice", "k", {"rows": 1999}, "fp32")
    verdict, message = found(stray, declared=declared, case=case)
    assert "non_finite" == verdict
    assert message.startswith("y[rows 667, rows 501] is inf, the reference says ")
    assert "none of them in the sample" in message


@pytest.mark.parametrize("rows", [6, 400_000])
def test_where_the_reference_says_minus_one_it_is_a_value(rows: int) -> None:
    """A right kernel passes, a wrong one is wrong and not unwritten; one that does nothing is."""

    def place_of(x: Any, rows: Any) -> Any:
        return np.where(x[:, 0] > 0, rows % 2, -1)

    place = Arg("place", "rows", "out", dtype="int32")
    declared, case = operator(place_of, args=(Arg("x", "rows cols"), place)), case_of(rows=rows)

    def kernel(x: Any, place: Any) -> None:
        place[...] = place_of(x, np.arange(rows))

    def wrong(x: Any, place: Any) -> None:
        kernel(x, place)
        place[1] = 77

    assert 0.0 == checked(kernel, declared=declared, case=case).error_fraction
    verdict, message = found(wrong, declared=declared, case=case)
    assert ("wrong_values", True) == (verdict, message.startswith("place[rows 1] is 77"))
    verdict, message = found(lambda **_: None, declared=declared, case=case)
    assert ("unwritten", True) == (verdict, message.startswith(f"{rows} of {rows} elements"))


def test_codes_that_were_not_written_are_told() -> None:
    """0xFF is a NaN that conversions don't make."""

    def half(x: Any, y: Any, place: Any) -> None:
        coded(x, y, place)
        y[3:] = 0xFF

    assert ("unwritten", "15 of 30 elements of 'y' were not written") == found(
        half, declared=ranks()
    )


def test_8_bit_integers_can_not_tell_what_was_not_written() -> None:
    """Every value is one of theirs: a wrong one is told as wrong."""
    declared = operator(
        lambda x: np.rint(50 * np.tanh(x)),
        args=(Arg("x", "rows cols"), Arg("y", "rows cols", "out", dtype="int8")),
    )
    verdict, message = found(lambda **_: None, declared=declared)
    assert ("wrong_values", True) == (verdict, " is -1, the reference says " in message)


def test_an_argument_that_a_case_lacks_is_neither_passed_nor_compared() -> None:
    """With the mask it is added; without it the reference has its own default."""
    declared = operator(
        lambda x, mask=None: 2 * x if mask is None else 2 * x + mask,
        args=(
            Arg("x", "rows cols"),
            Arg("mask", "rows cols", when={"mask_kind": ("additive",)}),
            Arg("y", "rows cols", "out"),
        ),
        params={"mask_kind": ("none", "additive")},
    )

    def masked(x: Any, mask: Any, y: Any) -> None:
        y[...] = 2 * x + mask

    assert 0.0 == checked(right, declared=declared, case=case_of(mask_kind="none")).error_fraction
    with_mask = checked(masked, declared=declared, case=case_of(mask_kind="additive"))
    assert "x normal(0, 1); mask normal(0, 1)" == with_mask.inputs
