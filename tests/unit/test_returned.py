"""A Python kernel may return its outputs; they are held against what is declared."""

from typing import Any

import numpy as np
import pytest
from checking import case_of, checked, found, operator

from solkit.declare.arg import Arg, Layout
from solkit.measure.returned import CUDA_KINDS, claimed, on_device
from solkit.measure.verdict import CheckFailed

STEP = operator(
    lambda x, state: (state + x, 2 * x),
    args=(Arg("x", "rows cols"), Arg("state", "rows cols", "inout"), Arg("y", "rows cols", "out")),
)


class Foreign:
    """An array of another library, as DLPack shows it."""

    def __init__(self, array: Any, kind: int = 1) -> None:
        self.array, self.kind = array, kind
        self.shape, self.dtype = array.shape, array.dtype

    def __array__(self) -> Any:
        """Never taken: DLPack is."""
        raise AssertionError

    def __dlpack__(self, **asked: Any) -> Any:
        """Hand over the memory."""
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Say where it is."""
        return (self.kind, 0)


def test_a_returned_array_is_the_output() -> None:
    """Nothing was written in place, and nothing is missing."""
    assert 0.0 == checked(lambda x, **_: 2 * x).error_fraction
    assert 0.0 == checked(lambda x, **_: (2 * x,)).error_fraction


class Opaque:
    """What looks like an array and hands nothing over."""

    def __init__(self, array: Any) -> None:
        self.shape, self.dtype = array.shape, array.dtype

    def __array__(self) -> Any:
        """Never taken: DLPack is."""
        raise AssertionError


class OpaqueOnTheGpu(Opaque):
    """The same, which says that it lies there."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Say where it is."""
        return (2, 0)


class Astray(Foreign):
    """An array that says of its place what is none."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return nothing that can be unpacked."""
        return ()  # type: ignore[return-value]


def test_an_array_of_another_library_is_taken_by_dlpack() -> None:
    """As torch's and others' are."""
    assert 30 == checked(lambda x, **_: Foreign(2 * x)).compared_count


def test_the_array_that_was_passed_may_be_returned() -> None:
    """As functions with out= do."""
    assert 0.0 == checked(lambda x, y: np.multiply(x, 2, out=y)).error_fraction


def test_a_tuple_holds_the_outputs_in_order() -> None:
    """In-place arguments are outputs, too."""
    assert 60 == checked(lambda x, state, **_: (state + x, 2 * x), STEP).compared_count
    verdict, message = found(lambda x, state, **_: (2 * x, state + x), declared=STEP)
    assert ("wrong_values", True) == (verdict, message.startswith("state["))


def test_outputs_that_are_returned_in_each_others_place_are_taken_so() -> None:
    """A view of an output is what it shows, even where another one is copied over it."""
    declared = operator(
        lambda x: (2 * x, 3 * x),
        args=(Arg("x", "rows cols"), Arg("y", "rows cols", "out"), Arg("z", "rows cols", "out")),
    )

    def crossed(x: Any, y: Any, z: Any) -> Any:
        y[...], z[...] = 3 * x, 2 * x
        return z, y

    assert checked(crossed, declared).error_fraction < 1

    def turned(x: Any, y: Any) -> Any:
        y[...] = 2 * x
        return y[::-1]

    assert "wrong_values" == found(turned)[0]


def test_what_is_returned_has_logical_axis_order() -> None:
    """As the arrays that the function is given on this device."""
    declared = operator(
        args=(
            Arg("x", "rows cols"),
            Arg("y", "rows cols", "out", layout=Layout("order", {"cr": "cols rows"})),
        ),
        params={"order": ("cr",)},
    )
    assert 0.0 == checked(lambda x, **_: 2 * x, declared, case_of(order="cr")).error_fraction


@pytest.mark.parametrize(
    ("verdict", "words", "function"),
    [
        ("wrong_shape", "it returned 'y' of shape (5, 6), declared is (6, 5)", lambda x, **_: x.T),
        (
            "wrong_shape",
            "it returned 'y' of shape (6,), declared is (6, 5)",
            lambda x, **_: x[:, 0],
        ),
        ("wrong_shape", "it returned 'y' of shape (1, 5), declared is", lambda x, **_: x[:1]),
        ("wrong_shape", "it returned 'y' of shape (), declared is", lambda x, **_: x.sum()),
        ("wrong_shape", "it returned 2 of 1 declared outputs (y)", lambda x, y: (x, y)),
        ("wrong_shape", "it returned 0 of 1 declared outputs (y)", lambda **_: ()),
        ("wrong_shape", "it returned a float, not the declared outputs (y)", lambda **_: 1.5),
        ("wrong_shape", "it returned a list, not the declared", lambda x, **_: [x]),
        ("wrong_shape", "it returned a bool, not the declared", lambda **_: True),
        ("wrong_shape", "it returned 'y' as a NoneType, not as an", lambda **_: (None,)),
        (
            "wrong_dtype",
            "it returned 'y' as float64, declared is float32",
            lambda x, **_: 2 * x.astype(np.float64),
        ),
        (
            "wrong_dtype",
            "it returned 'y' as a test_returned array that does not lie on this host",
            lambda x, **_: Foreign(2 * x, kind=2),
        ),
        (
            "wrong_dtype",
            "it returned 'y' as a test_returned array without __dlpack__: it can't be read",
            lambda x, **_: Opaque(x),
        ),
        (
            "wrong_dtype",
            "a test_returned array that can't be read: tuple index out of range",
            lambda x, **_: Astray(2 * x),
        ),
    ],
)
def test_what_is_not_declared_is_refused(verdict: str, words: str, function: Any) -> None:
    """Count, kind, shape and dtype, before any value is looked at; no axis is broadcast."""
    seen, message = found(function)
    assert (verdict, True) == (seen, words in message), message


def test_one_array_for_two_outputs_is_refused() -> None:
    """Both are named."""
    assert ("wrong_shape", "it returned 1 of 2 declared outputs (state, y)") == found(
        lambda x, **_: 2 * x,
        declared=STEP,
    )


def test_nothing_returned_claims_nothing() -> None:
    """None means that the outputs were written in place."""
    assert {} == claimed(None, {"y": np.zeros(3)})


@pytest.mark.parametrize("value", [np.zeros(3), np.float32(1)])
def test_an_array_of_the_host_is_no_output_on_a_gpu(value: Any) -> None:
    """It would have to be copied, and the copy would not be timed."""
    with pytest.raises(CheckFailed, match="a numpy array that does not lie on the GPU") as caught:
        on_device("y", value, lambda array: array, kinds=CUDA_KINDS, where="the GPU")
    assert "wrong_dtype" == caught.value.verdict


def test_an_array_of_the_gpu_that_hands_nothing_over_is_told_so() -> None:
    """What is missing is named, and no AttributeError is the verdict."""
    value = OpaqueOnTheGpu(np.zeros(3))
    with pytest.raises(CheckFailed, match="array without __dlpack__: it can't be read") as caught:
        on_device("y", value, lambda array: array, kinds=CUDA_KINDS, where="the GPU")
    assert "wrong_dtype" == caught.value.verdict


@pytest.mark.parametrize(
    "error",
    [
        AttributeError("'Lazy' object has no attribute 'storage'"),
        BufferError("Can't export tensors that require gradient"),
        RuntimeError("bool is not supported"),
    ],
    ids=repr,
)
def test_an_array_that_can_not_be_read_is_told_with_the_reason(error: Exception) -> None:
    """As its own library gives it."""

    def take(array: Any) -> Any:
        del array
        raise error

    with pytest.raises(CheckFailed, match=f"that can't be read: {error}") as caught:
        on_device("y", Foreign(np.zeros(3), kind=2), take, kinds=CUDA_KINDS, where="the GPU")
    assert "wrong_dtype" == caught.value.verdict
