"""cublasLt through ctypes: its structures, what is asked of it in which order, what it refuses."""

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from solkit.errors import NoDevice
from solkit.measure.device.cuda import cublaslt
from solkit.measure.device.cuda.cublaslt import Algo, Fp8Product, Heuristic, Operands


class FakeLibrary:
    """Counts what is made and destroyed; `refuses` names the function that fails."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.called: list[str] = []
        self.alive: list[str] = []
        self.arguments: tuple[Any, ...] = ()

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
                arguments[-1]._obj.value = 1
                arguments[-2]._obj.algo.data[0] = 77
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
    product = Fp8Product(fake, 4096, fast=True)
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
        Fp8Product(fake, 4096, fast=False)
    assert [] == fake.alive


@pytest.mark.parametrize("refuses", ["cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic"])
def test_a_card_without_such_products_is_told(refuses: str) -> None:
    """It is found out before anything is timed, and closing still works."""
    fake = library(refuses)
    product = Fp8Product(fake, 4096, fast=False)
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
        product = Fp8Product(real, 4096, fast=fast)
        assert (1, int(fast)) == (
            product.attribute(3, ctypes.c_int32),
            product.attribute(25, ctypes.c_int8),
        )
        assert (68, 0) == (
            product.attribute(0, ctypes.c_int32),
            product.attribute(1, ctypes.c_int32),
        )
        product.close()
