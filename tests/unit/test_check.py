"""Outputs are compared on values, whole or on sampled indices; what was not written shows."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from solkit.declare.operator import Arg, Layout, Operator, Tolerance
from solkit.measure.check import CheckFailed, _held, changed_input, compare, expect
from solkit.measure.device.cpu import CpuDevice
from solkit.model import Case, Check, Param, Work

ROWS, COLS = 6, 5
DEVICE = CpuDevice()
Buffers = dict[str, Any]


def operator(reference: Callable[..., Any] = lambda x: 2 * x, **changes: Any) -> Operator:
    held: dict[str, Any] = {
        "name": "twice",
        "args": (Arg("x", "rows cols"), Arg("y", "rows cols", "out")),
        "work": lambda _case: Work(1, 1),
        "reference": reference,
        "independent": ("rows",),
    }
    return Operator(**held | changes)


def case_of(rows: int = ROWS, cols: int = COLS, **params: Param) -> Case:
    return Case("twice", "k", {"rows": rows, "cols": cols}, "fp32", dict(params))


def buffers_of(declared: Operator, case: Case) -> Buffers:
    return {arg.name: DEVICE.allocate(arg, case, 1, 3)[0] for arg in declared.args}


def checked(
    kernel: Callable[[Buffers], None], declared: Operator | None = None, case: Case | None = None
) -> Check:
    """Run a kernel once on poisoned outputs and compare."""
    declared, case = declared or operator(), case or case_of()
    buffers = buffers_of(declared, case)
    expected = expect(DEVICE, declared, case, buffers, 3)
    kernel(buffers)
    return compare(DEVICE, declared, case, buffers, expected)


def right(buffers: Buffers) -> None:
    buffers["y"][...] = 2 * buffers["x"]


def failure(kernel: Callable[[Buffers], None], **held: Any) -> CheckFailed:
    with pytest.raises(CheckFailed) as caught:
        checked(kernel, **held)
    assert caught.value.remedy
    return caught.value


def test_a_right_output_passes_with_its_error() -> None:
    """All 30 elements compared; doubling is exact."""
    assert Check(0.0, 30, "whole", "1e-05 relative + 1e-05", 3) == checked(right)


def test_the_error_is_told_as_a_fraction_of_what_is_allowed() -> None:
    """Half of absolute + relative x |reference|, at the worst element."""

    def nearly(buffers: Buffers) -> None:
        right(buffers)
        want = buffers["y"].astype(np.float64)[2, 3]
        buffers["y"][2, 3] = want + 0.5 * (0.1 + 0.1 * abs(want))

    loose = operator(tolerance={"fp32": Tolerance(0.1, 0.1)})
    found = checked(nearly, loose)
    assert pytest.approx(0.5, rel=1e-5) == found.error_fraction
    assert "0.1 relative + 0.1" == found.tolerance


def test_a_wrong_element_is_named_with_its_place_and_values() -> None:
    """Where, what was seen, what was expected, and how many."""

    def wrong(buffers: Buffers) -> None:
        buffers["x"][4, 1] = 3.0
        right(buffers)
        buffers["y"][4, 1] = 7.5

    declared, case = operator(), case_of()
    buffers = buffers_of(declared, case)
    buffers["x"][4, 1] = 3.0
    expected = expect(DEVICE, declared, case, buffers, 3)
    wrong(buffers)
    with pytest.raises(CheckFailed, match=r"y\[rows 4, cols 1\] is 7\.5, the reference says 6;"):
        compare(DEVICE, declared, case, buffers, expected)
    message = failure(wrong).message
    assert "elements are off by more than 1e-05 relative + 1e-05" in message


def test_what_was_not_written_shows() -> None:
    """Outputs are NaN before the call."""
    message = failure(lambda _buffers: None).message
    assert "30 of 30 elements of 'y' are NaN: not written, or computed so" == message

    def half(buffers: Buffers) -> None:
        buffers["y"][:3] = 2 * buffers["x"][:3]

    assert failure(half).message.startswith("15 of 30 elements of 'y' are NaN")


def test_an_element_outside_the_sample_must_be_written_too() -> None:
    """Values are compared on sampled rows; NaN is looked for everywhere."""
    case = case_of(rows=4000, cols=1024)

    def all_but_one(buffers: Buffers) -> None:
        right(buffers)
        missing = next(row for row in range(8, 3992) if row not in chosen)
        buffers["y"][missing, 0] = np.nan

    buffers = buffers_of(operator(), case)
    chosen = expect(DEVICE, operator(), case, buffers, 3).index["rows"]
    assert chosen is not None
    assert "1 of 4096000 elements" in failure(all_but_one, case=case).message


def test_nan_and_infinity_are_right_where_the_reference_has_them() -> None:
    """The root of a negative number is NaN in both, the inverse of zero infinite."""
    declared = operator(lambda x: x**0.5)

    def root(buffers: Buffers) -> None:
        with np.errstate(all="ignore"):
            buffers["y"][...] = np.sqrt(buffers["x"])

    assert 30 == checked(root, declared).compared_count
    infinite = operator(lambda x: np.full(x.shape, np.inf))

    def fill(value: float) -> Callable[[Buffers], None]:
        return lambda buffers: buffers["y"].fill(value)

    assert 0.0 == checked(fill(np.inf), infinite).error_fraction
    assert "30 of 30 compared" in failure(fill(-np.inf), declared=infinite).message
    assert "30 of 30 compared" in failure(fill(0.0), declared=infinite).message


def test_nan_where_the_reference_has_some_elsewhere_is_wrong() -> None:
    """Its own NaN does not excuse others."""
    declared = operator(lambda x: np.where(x > 0, np.nan, x))
    assert (
        "off by more than"
        in failure(lambda buffers: buffers["y"].fill(np.nan), declared=declared).message
    )


def test_a_big_case_is_checked_on_sampled_rows_with_both_ends() -> None:
    """Tails and last tiles live at the ends; the rest is spread at random, by the seed."""
    declared, case = operator(), case_of(rows=4000, cols=1024)
    buffers = buffers_of(declared, case)
    expected = expect(DEVICE, declared, case, buffers, 3)
    chosen = expected.index["rows"]
    assert chosen is not None
    assert expected.index["cols"] is None
    assert {*range(8), *range(3992, 4000)} <= set(chosen.tolist())
    assert f"sampled {len(chosen)} of 4000 rows" == expected.way
    again = expect(DEVICE, declared, case, buffers, 3).index["rows"]
    assert (chosen == again).all()
    right(buffers)
    assert len(chosen) * 1024 == compare(DEVICE, declared, case, buffers, expected).compared_count


def test_a_wrong_last_row_of_a_big_case_is_named_by_its_own_number() -> None:
    """Not by its place in the sample."""

    def wrong(buffers: Buffers) -> None:
        right(buffers)
        buffers["y"][-1, 7] = 1e6

    message = failure(wrong, case=case_of(rows=4000, cols=1024)).message
    assert message.startswith("y[rows 3999, cols 7] is 1e+06, ")


def test_a_long_vector_is_sampled_along_its_only_axis() -> None:
    """A copy of ten million elements: a million of them in float64 take a tenth of a second."""
    declared = operator(
        args=(Arg("x", "n"), Arg("y", "n", "out")), independent=("n",), dtypes=("fp32",)
    )
    for count in (2_000_000, 10**7):
        case = Case("twice", "k", {"n": count}, "fp32")
        buffers = {"x": np.ones(count, np.float32), "y": np.full(count, 2.0, np.float32)}
        expected = expect(DEVICE, declared, case, buffers, 0)
        found = compare(DEVICE, declared, case, buffers, expected)
        assert 900_000 < found.compared_count <= 1_000_016
        assert f"sampled {found.compared_count} of {count} n" == found.way


def test_a_product_is_sampled_along_both_of_its_free_axes() -> None:
    """Rows and columns are chosen where there are many, the inner axis stays whole."""
    declared = Operator(
        name="product",
        args=(
            Arg("a", "M K"),
            Arg("w", "K N", layout=Layout("weight", {"kn": "K N", "nk": "N K"})),
            Arg("y", "M N", "out"),
        ),
        work=lambda case: Work(
            1, 1, {"fp32": 2 * case.shape["M"] * case.shape["N"] * case.shape["K"]}
        ),
        reference=lambda a, w: a @ w,
        params={"weight": ("kn", "nk")},
        independent=("M", "N"),
        tolerance={"fp32": Tolerance(1e-3, 1e-3)},
    )
    case = Case("product", "k", {"M": 1024, "N": 768, "K": 512}, "fp32", {"weight": "nk"})
    buffers = {arg.name: DEVICE.allocate(arg, case, 1, 3)[0] for arg in declared.args}
    assert (768, 512) == buffers["w"].shape
    expected = expect(DEVICE, declared, case, buffers, 3)
    rows, cols = expected.index["M"], expected.index["N"]
    assert rows is not None
    assert cols is not None
    assert (len(rows), len(cols)) == expected.values["y"].shape
    np.matmul(buffers["a"], buffers["w"].T, out=buffers["y"])
    found = compare(DEVICE, declared, case, buffers, expected)
    assert len(rows) * len(cols) == found.compared_count
    assert f"sampled {len(rows)} of 1024 M, {len(cols)} of 768 N" == found.way
    buffers["y"][1023, 767] += 1.0
    with pytest.raises(CheckFailed, match=r"y\[M 1023, N 767\]"):
        compare(DEVICE, declared, case, buffers, expected)


def test_an_axis_that_is_short_stays_whole_beside_one_that_is_long() -> None:
    """Eight rows are all compared, of many columns a sample."""
    declared, case = operator(independent=("rows", "cols")), case_of(rows=8, cols=500_000)
    expected = expect(DEVICE, declared, case, buffers_of(declared, case), 3)
    assert expected.index["rows"] is None
    assert expected.way.endswith("of 500000 cols")


def test_a_reference_gets_its_params() -> None:
    """By name, with the case's value."""
    declared = operator(lambda x, factor: factor * x, params={"factor": (2, 3)})

    def thrice(buffers: Buffers) -> None:
        buffers["y"][...] = 3 * buffers["x"]

    assert 0.01 > checked(thrice, declared, case_of(factor=3)).error_fraction
    assert "off by" in failure(thrice, declared=declared, case=case_of(factor=2)).message


def test_an_output_without_axes_is_one_number() -> None:
    """A sum over everything is written, compared and missed like any other output."""
    declared = operator(
        lambda x: x.sum(),
        args=(Arg("x", "rows cols"), Arg("y", "", "out")),
        tolerance={"fp32": Tolerance(1e-4, 1e-4)},
    )

    def total(buffers: Buffers) -> None:
        buffers["y"][...] = buffers["x"].sum()

    assert 1 == checked(total, declared).compared_count
    assert "1 of 1 elements of 'y' are NaN" in failure(lambda _all: None, declared=declared).message
    assert failure(lambda all_: all_["y"].fill(1e6), declared=declared).message.startswith("y[] is")


def test_every_output_is_compared() -> None:
    """A wrong second one is not hidden by a right first one; no elements are no error."""
    declared = operator(
        lambda x: (2 * x, 3 * x),
        args=(Arg("x", "rows cols"), Arg("y", "rows cols", "out"), Arg("z", "rows cols", "out")),
    )

    def second_wrong(buffers: Buffers) -> None:
        right(buffers)
        buffers["z"][...] = 4 * buffers["x"]

    assert failure(second_wrong, declared=declared).message.startswith("z[")


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        ("returned 2 outputs, 1 are declared", lambda x: (x, x)),
        ("returned 'y' of shape (6,), declared is (6, 5) (rows cols)", lambda x: x.sum(axis=1)),
        ("returned 'y' of shape (5, 6), declared is (6, 5)", lambda x: x.T),
        ("returned 'y' of shape (), declared is (6, 5)", lambda x: x.sum()),
    ],
)
def test_a_reference_that_returns_something_else_is_named(
    words: str, reference: Callable[..., Any]
) -> None:
    """The fault is the operator's and not the kernel's."""
    assert words in failure(right, declared=operator(reference)).message


def test_one_array_for_two_outputs_is_named() -> None:
    """A reference that forgot an output."""
    args = (Arg("x", "rows cols"), Arg("y", "rows cols", "out"), Arg("z", "rows cols", "out"))
    assert (
        "returned 1 outputs, 2 are declared" in failure(right, declared=operator(args=args)).message
    )


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
    ("dtype", "value", "held"),
    [
        ("fp16", 65519.9, 65519.9),
        ("fp16", 65520.0, math.inf),
        ("fp16", -1e9, -math.inf),
        ("bf16", 3.39e38, 3.39e38),
        ("bf16", 3.4e38, math.inf),
        ("fp32", 3.4e38, 3.4e38),
        ("fp32", 1e39, math.inf),
        ("fp64", 1e308, 1e308),
    ],
)
def test_a_reference_beyond_the_dtype_is_infinite(dtype: str, value: float, held: float) -> None:
    """What a dtype can't hold rounds to infinity in the kernel, so it must in the reference."""
    assert [held] == list(_held(np.array([value]), dtype))
