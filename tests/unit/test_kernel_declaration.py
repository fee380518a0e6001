"""A kernel's declaration: CUDA or Python, for a device there is, in dtypes there are."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from cards import H200
from small_catalog import SCALE, SCALED

from solkit.declare.card import Card
from solkit.declare.kernel import Kernel, Launch
from solkit.declare.registry import Registry
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


def test_a_kernel_of_the_cpu_without_a_dtype_of_numpy_is_refused() -> None:
    """It could never run."""
    with pytest.raises(BadInput, match=r"computes in none of its dtypes \(bf16\)") as caught:
        Kernel(name="k", operator=SCALE, function=double, device="cpu", dtypes=("bf16",))
    assert "give some of fp64, fp32, or device='cuda'" == caught.value.remedy


@pytest.mark.parametrize(
    ("words", "held"),
    [
        ("its name is no text", {"name": 5}),
        ("its operator is 3, neither an Operator nor the name of one", {"operator": 3}),
        ("its dtypes is 'fp32', not a tuple of words", {"dtypes": "fp32"}),
        ("its options is '-G', not a tuple of words", {"options": "-G"}),
        ("its function is 3, not a function", {"function": 3}),
        ("its refuse is 'no', not a function", {"refuse": "no"}),
        ("its workspace is 64, not a function", {"workspace": 64}),
        ("its launches is 3, not a function", {"function": None, "source": "k", "launches": 3}),
    ],
)
def test_a_field_of_another_kind_is_named(words: str, held: dict[str, Any]) -> None:
    """When it is declared, and not when a case runs."""
    with pytest.raises(BadInput) as caught:
        Kernel(**{"name": "k", "operator": SCALE, "function": double} | held)
    assert words in caught.value.message


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


@pytest.mark.parametrize("align_bytes", [0, -16, 3, 24, 512, "16", 2.0, None])
def test_no_more_alignment_is_asked_for_than_arrays_have(align_bytes: Any) -> None:
    """Every array would be refused, or none could be held against it."""
    with pytest.raises(BadInput, match=f"align_bytes is {align_bytes!r}") as caught:
        Kernel(name="k", operator=SCALE, function=double, align_bytes=align_bytes)
    assert "256 at most" in caught.value.remedy
    assert 256 == Kernel(name="k", operator=SCALE, function=double, align_bytes=256).align_bytes


@pytest.mark.parametrize(
    "held",
    [{"function": double, "take": 3}, {"source": "k.cu", "launches": lambda _: (), "take": list}],
)
def test_only_a_python_function_has_something_in_an_arrays_place(held: dict[str, Any]) -> None:
    """A CUDA kernel gets pointers, and what converts is a function."""
    with pytest.raises(BadInput, match="which a Python kernel alone has") as caught:
        Kernel(name="k", operator=SCALE, **held)
    assert "take=torch.from_dlpack" in caught.value.remedy


def sized(case: Case, card: Card) -> tuple[Launch, ...]:
    return (Launch("f", (card.sm_count, case.shape["rows"], 1), (1, 1, 1)),)


def test_launches_and_workspace_get_the_card_where_they_name_it() -> None:
    """By that name, with or without a default; what does not ask is called with the case alone."""
    case = Case("scale", "k", {"rows": 3}, "fp32")
    kernel = Kernel(name="k", operator=SCALE, source="k.cu", launches=sized)
    assert (132, 3, 1) == kernel.launches_on(case, H200)[0].grid
    plain = Kernel(name="k", operator=SCALE, source="k.cu", launches=launches)
    assert launches(case) == plain.launches_on(case, H200)
    assert () == Kernel(name="k", operator=SCALE, function=double).launches_on(case, H200)
    scratch = replace(kernel, workspace=lambda _, *, card=None: {"w": card.l2_bytes})
    assert {"w": H200.l2_bytes} == scratch.workspace_on(case, H200)
    assert {} == scratch.workspace_on(case, None)
    assert {"w": 8} == replace(kernel, workspace=lambda _: {"w": 8}).workspace_on(case, None)
    assert {} == plain.workspace_on(case, H200)


def test_a_kernels_functions_get_the_defaults_that_a_case_need_not_name() -> None:
    """Launches, workspace and refusal alike, also where the operator was named: see Registry."""
    case = Case("scaled", "k", {"rows": 2, "cols": 2}, "fp32", {"form": "half"})

    def factor(case: Case) -> float:
        return float(case.params["alpha"])

    kernel = Kernel(
        name="k",
        operator="scaled",
        source="k.cu",
        launches=lambda case: (Launch("f", (1, 1, 1), (1, 1, 1), args=("x", factor(case))),),
        workspace=lambda case: {"w": int(4 * factor(case))},
        refuse=lambda case: f"alpha is {factor(case)}",
    )
    registry = Registry()
    registry.add([SCALED, kernel], where="here")
    held = registry.kernels["scaled", "k"]
    assert SCALED is held.operator
    half = replace(case, params={"form": "half", "alpha": 0.5})
    for of, alpha in ((case, 1.0), (half, 0.5)):
        assert [("x", alpha)] == [launch.args for launch in held.launches_on(of, H200)]
        assert {"w": 4 * alpha} == held.workspace_on(of, H200)
        assert f"alpha is {alpha}" == held.refusal(of)


@pytest.mark.parametrize("what", ["launches", "workspace"])
@pytest.mark.parametrize(
    "function",
    [lambda case, gpu: (case, gpu), lambda: (), lambda case, card, sms: (case, card, sms)],
)
def test_a_function_of_a_case_that_wants_more_than_the_card_is_refused(
    what: str, function: Any
) -> None:
    """When it is declared, with the two forms that can be called."""
    held: dict[str, Any] = {"source": "k.cu", "launches": launches} | {what: function}
    with pytest.raises(BadInput, match=f"kernel 'k': its {what} takes ") as caught:
        Kernel(name="k", operator=SCALE, **held)
    assert f"{what}(case) or {what}(case, card)" in caught.value.remedy


def test_a_default_or_a_partial_is_an_authors_own_affair() -> None:
    """Functions made in a loop bind what they need so."""
    case = Case("scale", "k", {"rows": 3}, "fp32")
    for made in (lambda _, blocks=5: blocks, partial(lambda blocks, _: blocks, 5)):
        kernel = Kernel(name="k", operator=SCALE, source="k.cu", launches=made)
        assert 5 == kernel.launches_on(case, H200)


def call(function: Callable[..., Any], *names: str) -> None:
    kernel = Kernel(name="k", operator=SCALE, function=function, device="cpu")
    kernel.refuse_call(Case("scale", "k", {"rows": 3}, "fp32"), names)


def test_a_function_that_can_not_be_called_is_refused_before_it_is() -> None:
    """What it is called with, and which of it, or of its own, is in the way."""
    with pytest.raises(BadInput) as caught:
        call(lambda x, y: (x, y), "x", "mask", "y")
    assert (
        "scale/k rows=3 fp32: the function can't be called with x, mask, y: "
        "got an unexpected keyword argument 'mask'"
    ) == caught.value.message
    assert "with the default None where some cases have none" in caught.value.remedy
    with pytest.raises(BadInput, match="missing a required argument: 'factor'"):
        call(lambda x, y, factor: (x, y, factor), "x", "y")


def test_a_function_may_take_more_than_a_case_has() -> None:
    """With a default, or by `**`; a builtin that hides what it takes is believed."""
    call(lambda x, y, mask=None: (x, y, mask), "x", "y")
    call(lambda **arrays: arrays, "x", "y")
    call(iter, "x")
    hidden = Kernel(name="k", operator=SCALE, function=iter, device="cpu")
    assert {} == hidden.taken({"form": "erf"})
