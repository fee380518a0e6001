"""cublasLt through ctypes: its structures, what is asked of it in which order, what it refuses."""

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from solkit.errors import NoDevice
from solkit.measure.device.cuda import cublaslt
from solkit.measure.device.cuda.cublaslt import (
    Algo,
    Form,
    Heuristic,
    Operands,
    Product,
    fp8_product,
)


class FakeLibrary:
    """Counts what is made and destroyed; `refuses` names the function that fails."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.called: list[str] = []
        self.alive: list[str] = []
        self.arguments: tuple[Any, ...] = ()
        self.layouts: list[tuple[int, int]] = []
        self.attributes: list[tuple[int, int | None]] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        def function(*arguments: Any) -> int:
            self.called.append(name)
            if name == self.refuses:
                return 15
            if name.endswith("Create"):
                self.alive.append(name.removesuffix("Create"))
            if name.endswith("Destroy"):
                assert self.alive.pop() == name.removesuffix("Destroy")
            if name == "cublasLtMatmulAlgoGetHeuristic":
                arguments[-1]._obj.value = arguments[-3].value
                for place, result in enumerate(arguments[-2]):
                    result.algo.data[0] = 77 + place
            if name == "cublasLtMatrixLayoutCreate":
                rows, cols, leading = (each.value for each in arguments[2:])
                assert rows == leading
                self.layouts.append((rows, cols))
            if name == "cublasLtMatmulDescSetAttribute":
                _, number, value, _ = arguments
                self.attributes.append((number.value, value._obj.value))
            if name == "cublasLtMatmul":
                self.arguments = arguments
            return 0

        return function


def library(refuses: str = "") -> Any:
    return FakeLibrary(refuses)


def test_its_structures_are_as_large_as_the_librarys() -> None:
    """A 64-byte algorithm; a result of 96 bytes with the state behind algorithm and size."""
    assert 64 == ctypes.sizeof(Algo)
    assert 96 == ctypes.sizeof(Heuristic)
    assert (64, 72, 76) == (
        Heuristic.workspace_bytes.offset,
        Heuristic.state.offset,
        Heuristic.waves.offset,
    )


def test_a_product_is_called_on_the_current_stream() -> None:
    """Both operands have one layout, the result another; it stands in C's place, too."""
    fake = library()
    product = fp8_product(fake, 4096, fast=True)
    product.choose()
    product.bind(Operands(10, 20, 30, 40), lambda: 50)()
    pointers = [
        argument.value for argument in fake.arguments if isinstance(argument, ctypes.c_void_p)
    ]
    assert [10, 20, 30, 30, 40, 50] == [pointer for pointer in pointers if pointer]
    assert cublaslt.WORKSPACE_BYTES == fake.arguments[-2].value
    assert 77 == fake.arguments[-4]._obj.data[0]
    assert (1.0, 0.0) == (fake.arguments[2]._obj.value, fake.arguments[7]._obj.value)
    product.close()
    assert [] == fake.alive


def test_a_product_is_added_to_another_matrix_by_the_algorithm_that_was_asked_for() -> None:
    """A product plus 2 source: the library proposes eight ways, the third is taken."""
    fake = library()
    form = Form(256, 16, 512, cublaslt.R_16BF, cublaslt.R_16BF, beta=2.0)
    product = Product(fake, form)
    assert 8 == product.choose(most=8)
    product.bind(Operands(10, 20, 30, 40, source=35), lambda: 50, place=2)()
    pointers = [
        argument.value for argument in fake.arguments if isinstance(argument, ctypes.c_void_p)
    ]
    assert [10, 20, 35, 30, 40, 50] == [pointer for pointer in pointers if pointer]
    assert 79 == fake.arguments[-4]._obj.data[0]
    assert (1.0, 2.0) == (fake.arguments[2]._obj.value, fake.arguments[7]._obj.value)
    assert [(256, 512), (512, 16), (256, 16)] == fake.layouts
    assert "cublasLtMatmulDescSetAttribute" not in fake.called
    product.close()


def test_the_bias_of_an_epilogue_is_known_before_a_choice_and_set_anew_by_each_call() -> None:
    """Attribute 7 is the epilogue (36: GELU of the sum with a bias), 8 the bias' address."""
    fake = library()
    product = Product(fake, Form(256, 16, 512, 14, 14, epilogue=cublaslt.GELU_BIAS))
    product.choose(bias=60)
    assert [(7, 36), (8, 60)] == fake.attributes
    for bias in (70, 80):
        product.bind(Operands(10, 20, 30, 40, bias=bias), lambda: 50)()
        assert (8, bias) == fake.attributes[-1]
    product.close()
    Product(fake, Form(256, 16, 512, 14, 14, epilogue=cublaslt.BIAS)).close()
    assert (7, 4) == fake.attributes[-1]


def test_a_left_matrix_that_is_stored_transposed_has_its_own_extents() -> None:
    """[256, 512] is stored as [512, 256], and the library is told to turn it."""
    fake = library()
    Product(fake, Form(256, 16, 512, 14, 14, left_transposed=True)).close()
    assert [(512, 256), (512, 16), (256, 16)] == fake.layouts
    assert 1 == fake.called.count("cublasLtMatmulDescSetAttribute")


@pytest.mark.parametrize(
    "refuses",
    [
        "cublasLtMatmulDescCreate",
        "cublasLtMatmulDescSetAttribute",
        "cublasLtMatrixLayoutCreate",
    ],
)
def test_a_refused_description_leaves_nothing_behind(refuses: str) -> None:
    """The function and its status are told; what was made before is given back."""
    fake = library(refuses)
    with pytest.raises(NoDevice, match=f"{refuses} returned status 15"):
        fp8_product(fake, 4096, fast=False)
    assert [] == fake.alive


@pytest.mark.parametrize("refuses", ["cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic"])
def test_a_card_without_such_products_is_told(refuses: str) -> None:
    """It is found out before anything is timed, and closing still works."""
    fake = library(refuses)
    product = fp8_product(fake, 4096, fast=False)
    with pytest.raises(NoDevice, match="status 15"):
        product.choose()
    with pytest.raises(NoDevice, match="has not chosen"):
        product.bind(Operands(1, 2, 3, 4), lambda: 0)
    product.close()
    assert [] == fake.alive


def test_a_library_that_is_not_here_is_told_with_its_remedy() -> None:
    """The names that were tried, and what to install."""
    with pytest.raises(NoDevice, match=r"libnowhere.so.1 can't be loaded") as caught:
        cublaslt.load(("libnowhere.so.1",))
    assert "pip install" in caught.value.remedy


def test_the_library_itself_holds_what_it_was_told() -> None:
    """Where cuBLAS is installed, its descriptors read back: transposed, fast, fp32 throughout."""
    try:
        real = cublaslt.load()
    except NoDevice as error:
        pytest.skip(error.message)
    for fast in (True, False):
        product = fp8_product(real, 4096, fast=fast)
        assert (1, int(fast)) == (
            product.attribute(3, ctypes.c_int32),
            product.attribute(25, ctypes.c_int8),
        )
        assert (68, 0) == (
            product.attribute(0, ctypes.c_int32),
            product.attribute(1, ctypes.c_int32),
        )
        product.close()
