"""Tensor maps: what is refused, when declared or on a case, and how the driver sees them."""

import ctypes
from typing import Any

import pytest

from solkit.declare.arg import Arg, Bits, Layout
from solkit.declare.operator import Operator
from solkit.declare.tensor_map import StoredTensor, TensorMap
from solkit.errors import BadInput
from solkit.measure.device.cuda import tensor_maps
from solkit.model import Case, Work

OPERATOR = Operator(
    name="shapes",
    args=(
        Arg("w", "K N", layout=Layout("weight", {"kn": "K N", "nk": "N K"})),
        Arg("codes", "M K", dtype="uint8", init=Bits()),
        Arg("pages", "M K N 4 8"),
        Arg("rare", "M K", when={"weight": ("nk",)}),
        Arg("y", "M", "out"),
    ),
    params={"weight": ("kn", "nk")},
    work=lambda _case: Work(1, 1),
    reference=lambda w, codes, pages, rare=None: (w, codes, pages, rare),
)


def case(dtype: str = "bf16", weight: str = "kn", **shape: int) -> Case:
    return Case("shapes", "k", {"M": 3, "N": 40, "K": 24} | shape, dtype, {"weight": weight})


@pytest.mark.parametrize(
    ("words", "held"),
    [
        ("the box is 64, not 1 to 5 whole numbers", {"box": 64}),
        ("the box is (), not 1 to 5 whole numbers", {"box": ()}),
        ("the box is (8, 1.0), not 1 to 5 whole numbers", {"box": (8, 1.0)}),
        ("the box is (1, 1, 1, 1, 1, 8), not 1 to 5", {"box": (1, 1, 1, 1, 1, 8)}),
        ("has an extent outside of 1 to 256", {"box": (64, 257)}),
        ("has an extent outside of 1 to 256", {"box": (0, 64)}),
        ("swizzle_bytes is 16", {"swizzle_bytes": 16}),
        ("l2_promotion_bytes is 512", {"l2_promotion_bytes": 512}),
        ("its argument is no name", {"arg": 3}),
    ],
)
def test_what_no_tensor_could_have_is_refused_when_it_is_declared(
    words: str, held: dict[str, Any]
) -> None:
    """With what to give instead."""
    with pytest.raises(BadInput) as caught:
        TensorMap(**{"arg": "x", "box": (64, 64)} | held)
    assert words in caught.value.message
    assert caught.value.remedy


def test_a_map_is_of_an_argument_as_it_is_stored() -> None:
    """[K, N] or [N, K], as the case says: the box goes by memory, the last axis contiguous."""
    wanted = TensorMap("w", box=(16, 8))
    assert StoredTensor("bf16", "K N", (24, 40)) == wanted.tensor(OPERATOR, case())
    assert StoredTensor("bf16", "N K", (40, 24)) == wanted.tensor(OPERATOR, case(weight="nk"))


def test_strides_are_the_bytes_of_whole_rows_planes_and_so_on() -> None:
    """3 x 24 x 40 x 4 x 8 items of 4 bytes, every axis but the last."""
    found = TensorMap("pages", box=(1, 1, 8, 4, 4)).tensor(OPERATOR, case("fp32"))
    assert (24 * 40 * 128, 40 * 128, 128, 32) == found.strides_bytes


@pytest.mark.parametrize(
    ("words", "wanted", "of"),
    [
        ("unknown argument of a TensorMap 'v'", TensorMap("v", (8, 8)), case()),
        ("unknown argument of a TensorMap 'rare'", TensorMap("rare", (8, 8)), case()),
        ("has 3 axes, the argument 2: K N", TensorMap("w", (1, 8, 8)), case()),
        ("is 8 bytes of bf16, no multiple of 16", TensorMap("w", (8, 4)), case()),
        (
            "is 128 bytes of bf16, longer than the swizzle of 64",
            TensorMap("w", (8, 64), 64),
            case(),
        ),
        (
            "rows of 36 bf16 are 72 bytes long, no multiple of 16",
            TensorMap("w", (8, 8)),
            case(N=36),
        ),
        ("over 2^32 items or 2^40 bytes", TensorMap("codes", (8, 16)), case(M=2**33, K=32)),
        ("over 2^32 items or 2^40 bytes", TensorMap("pages", (1, 1, 1, 1, 8)), case(K=2**30)),
    ],
)
def test_what_the_engine_can_not_copy_is_refused_on_its_case(
    words: str, wanted: TensorMap, of: Case
) -> None:
    """It names the case, the map, what is wrong, and what to do."""
    with pytest.raises(BadInput) as caught:
        wanted.tensor(OPERATOR, of)
    assert words in caught.value.message
    assert "shapes/k" in caught.value.message
    assert caught.value.remedy


def test_rows_that_do_not_fit_are_refused_by_the_axis_that_makes_them() -> None:
    """Eight bf16 are 16 bytes; of a matrix stored [N, K] it is K that counts."""
    with pytest.raises(BadInput) as caught:
        TensorMap("w", (8, 8)).tensor(OPERATOR, case(weight="nk", K=36))
    assert "refuse cases whose K is no multiple of 8, or load those without a map" == (
        caught.value.remedy
    )


class Driver:
    """Keeps what it is asked to encode, and says `status`."""

    def __init__(self, status: int = 0) -> None:
        self.status, self.given = status, ()

    def cuTensorMapEncodeTiled(self, made: Any, *given: Any) -> int:  # noqa: N802  # the driver's name
        """Take the arguments as plain numbers."""
        self.given = tuple(
            list(each) if hasattr(each, "_length_") else each.value for each in given
        )
        made[15] = 7
        return self.status


def test_the_driver_is_given_the_axes_contiguous_first() -> None:
    """bf16 is its number 9; 128 bytes of swizzle and of promotion 3 and 2; steps of one item."""
    wanted, driver = TensorMap("w", box=(32, 64), swizzle_bytes=128), Driver()
    made = tensor_maps.encoded(
        wanted, wanted.tensor(OPERATOR, case(N=4096)), 0x7000, library=driver
    )
    assert (9, 2, 0x7000, [4096, 24], [8192], [64, 32], [1, 1], 0, 3, 2, 0) == driver.given
    assert (128, 0, 7) == (ctypes.sizeof(made), ctypes.addressof(made) % 128, made[15])


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("uint8", 0),
        ("int8", 0),
        ("fp8_e4m3", 0),
        ("int32", 3),
        ("fp16", 6),
        ("fp32", 7),
        ("fp64", 8),
        ("bf16", 9),
    ],
)
def test_each_dtype_has_the_drivers_number(dtype: str, number: int) -> None:
    """Codes of 8 bits go as bytes; a tensor of one axis has no stride to tell."""
    tensor = StoredTensor(dtype, "K", (1024,))
    assert number == tensor_maps.encoding(TensorMap("x", (64,)), tensor, 0)[0].value
    assert () == tensor.strides_bytes


def test_an_address_or_a_map_that_the_driver_would_refuse_is_named() -> None:
    """Before it is asked, or with what it was asked."""
    wanted, tensor = TensorMap("x", (8, 8)), StoredTensor("bf16", "M K", (3, 24))
    with pytest.raises(BadInput, match="begins at an address that is no multiple of 16"):
        tensor_maps.encoded(wanted, tensor, 0x7008, library=Driver())
    with pytest.raises(BadInput, match=r"returned 1\): bf16 \(3, 24\), box \(8, 8\), swizzle 0"):
        tensor_maps.encoded(wanted, tensor, 0x7000, library=Driver(1))
