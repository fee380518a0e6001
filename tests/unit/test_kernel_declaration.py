"""A kernel's declaration: CUDA or Python, for a device there is, in dtypes there are."""

from typing import Any

import pytest
from small_catalog import SCALE

from solkit.declare.kernel import Kernel, Launch
from solkit.errors import BadInput
from solkit.model import Case


def launches(_case: Case) -> tuple[Launch, ...]:
    return (Launch("f", (1, 1, 1), (1, 1, 1)),)


def double(x: Any, y: Any) -> None:
    y[...] = 2 * x


def odd(case: Case) -> str | None:
    return "rows must be even" if case.shape["rows"] % 2 else None


@pytest.mark.parametrize(
    "held",
    [
        {},
        {"source": "k.cu"},
        {"launches": launches},
        {"source": "k.cu", "launches": launches, "function": double},
    ],
)
def test_a_kernel_is_either_cuda_or_python(held: dict[str, Any]) -> None:
    """Neither, half of one, and both are refused."""
    with pytest.raises(BadInput, match="give source and launches"):
        Kernel(name="k", operator=SCALE, **held)


def test_an_unknown_device_or_dtype_is_refused() -> None:
    """With the known ones and the nearest."""
    with pytest.raises(BadInput, match="kernel 'k': unknown device 'gpu'"):
        Kernel(name="k", operator=SCALE, function=double, device="gpu")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="unknown dtype 'fp61'") as caught:
        Kernel(name="k", operator=SCALE, function=double, dtypes=("fp61",))
    assert "did you mean 'fp64'?" in caught.value.remedy


def test_a_kernel_of_the_cpu_has_the_dtypes_of_numpy_alone() -> None:
    """NumPy has no arithmetic for bf16: the default list is cut to what can run."""
    kernel = Kernel(name="k", operator=SCALE, function=double, device="cpu")
    assert ("fp32",) == kernel.dtypes
    assert ("fp32", "fp16", "bf16") == Kernel(name="k", operator=SCALE, function=double).dtypes


def test_a_kernel_names_its_operator_by_object_or_by_name() -> None:
    """So that a kernel can live anywhere."""
    named = [
        Kernel(name="k", operator=operator, function=double).operator_name
        for operator in (SCALE, "scale")
    ]
    assert ["scale", "scale"] == named


def test_a_kernel_refuses_a_dtype_it_lacks_and_then_what_it_says() -> None:
    """The reason is for people: it ends up in the report."""
    kernel = Kernel(name="k", operator=SCALE, function=double, dtypes=("fp32",), refuse=odd)
    for words, rows, dtype in (
        ("kernel 'k' has no bf16 (it has fp32)", 2, "bf16"),
        ("rows must be even", 3, "fp32"),
        (None, 2, "fp32"),
    ):
        assert words == kernel.refusal(Case("scale", "k", {"rows": rows}, dtype))
    free = Kernel(name="k", operator=SCALE, function=double)
    assert free.refusal(Case("scale", "k", {"rows": 3}, "fp32")) is None
