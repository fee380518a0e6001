"""Declarations as plain data; what an author's function does wrong costs that case only."""

from dataclasses import replace
from typing import Any

import pytest
from cards import H200
from small_catalog import PRODUCT, SCALE, SCALED, catalog

from solkit.declare.arg import Arg
from solkit.declare.catalog import CaseFacts, KernelInfo, OperatorInfo, case_facts, operator_info
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.model import Case, Step, Work

CASE = Case("twice", "fast", {"rows": 8}, "fp32")


def problem(work: Any, **changes: Any) -> str:
    """Return what is said of a case whose work model is, or returns, `work`."""
    operator = Operator(
        name="twice",
        args=(Arg("x", "rows"), Arg("y", "rows", "out")),
        work=work if callable(work) else lambda _case: work,
        reference=lambda x: x,
        **changes,
    )
    kernel = Kernel(name="fast", operator=operator, function=print)
    facts = case_facts(operator, kernel, CASE)
    assert (Work(0, 0), (), 0, None) == (
        facts.work,
        facts.unfused,
        facts.buffer_bytes,
        facts.refusal,
    )
    assert facts.problem is not None
    return facts.problem


def explode(_case: Case) -> Work:
    message = "columns"
    raise KeyError(message)


def test_an_operator_as_data() -> None:
    """Each param's values with the default first, the axes in order."""
    assert (
        OperatorInfo(
            "product",
            ("M", "K", "N"),
            {"weight": ("kn", "nk"), "fast": (False, True)},
            ("fp32", "fp16", "bf16"),
            "",
        )
        == catalog().operators["product"]
    )


def test_an_operator_as_data_tells_what_cases_need_not_name() -> None:
    """The params, and what a case has that names none of them."""
    info = operator_info(SCALED)
    assert ("alpha",) == info.unnamed_defaults
    assert {"alpha": 1.0} == info.unnamed_params


def test_a_declaration_is_asked_with_the_defaults_that_a_case_does_not_name() -> None:
    """Its work model, its unfused form and its refusals alike."""

    def work(case: Case) -> Work:
        return Work(8, int(8 * float(case.params["alpha"])))

    def refuse(case: Case) -> str | None:
        return "no halves" if case.params["alpha"] != 1 else None

    operator = replace(
        SCALED, work=work, unfused=lambda case: (Step("one", work(case)),), refuse=refuse
    )
    kernel = Kernel(name="k", operator=operator, function=print)
    case = Case("scaled", "k", {"rows": 1, "cols": 2}, "fp32", {"form": "whole"})
    facts = case_facts(operator, kernel, case)
    assert (Work(8, 8), (Step("one", Work(8, 8)),)) == (facts.work, facts.unfused)
    assert facts.refusal is None
    halved = replace(case, params={"form": "whole", "alpha": 0.5})
    assert "no halves" == case_facts(operator, kernel, halved).refusal


def test_kernels_as_data_in_the_order_declared() -> None:
    """The NumPy reference comes first, with its operator."""
    kernels = catalog().kernels
    assert ["numpy", "numpy", "solkit", "even", "solkit"] == [kernel.name for kernel in kernels]
    assert (
        KernelInfo("product", "solkit", "cuda", ("fp32", "fp16", "bf16"), "8.0", "") == kernels[-1]
    )


def test_a_case_is_described_by_its_work_its_steps_and_its_buffers() -> None:
    """10 x 20 x 30 in bf16: 2,200 bytes in three arrays."""
    shape = {"M": 10, "N": 20, "K": 30}
    case = Case("product", "solkit", shape, "bf16", {"weight": "kn", "fast": False})
    work = Work(1_800, 400, {"bf16_tensor": 12_000})
    steps = (Step("product", work), Step("copy", Work(1000, 1000)))
    assert [CaseFacts(work, steps, 2_200)] == catalog().describe([case])


def test_workspace_counts_among_the_buffers() -> None:
    """A case of 8 floats in and out with 1,000 bytes of scratch needs 1,064."""
    kernel = Kernel(
        name="k", operator=SCALE, function=print, workspace=lambda _case: {"a": 600, "b": 400}
    )
    facts = case_facts(SCALE, kernel, Case("scale", "k", {"rows": 2, "cols": 4}, "fp32"))
    assert 1_064 == facts.buffer_bytes
    assert facts.problem is None


def test_workspace_that_depends_on_the_card_counts_where_one_is_known() -> None:
    """4 bytes for each of 132 SMs beside 64; on a card that nobody knows the arrays alone."""
    kernel = Kernel(
        name="k", operator=SCALE, function=print, workspace=lambda _, card: {"a": 4 * card.sm_count}
    )
    case = Case("scale", "k", {"rows": 2, "cols": 4}, "fp32")
    assert 64 + 528 == case_facts(SCALE, kernel, case, H200).buffer_bytes
    assert 64 == case_facts(SCALE, kernel, case).buffer_bytes


def test_a_refusal_is_no_problem() -> None:
    """The kernel says what it does not take; the work is known all the same."""
    (facts,) = catalog().describe([Case("scale", "even", {"rows": 2, "cols": 3}, "fp32")])
    assert ("cols must be even", None) == (facts.refusal, facts.problem)
    assert 24 == facts.work.read_bytes


@pytest.mark.parametrize(
    ("words", "work"),
    [
        ("describing it raised KeyError: 'columns'", explode),
        ("returned tuple, not Work", (1, 2)),
        ("counts read_bytes as -1, no whole number", Work(-1, 4)),
        ("counts write_bytes as 4.0, no whole number", Work(4, 4.0)),  # type: ignore[arg-type]
        ("counts read_bytes as True, no whole number", Work(True, 4)),  # noqa: FBT003  # the point
        ("counts fp32 as -8, no whole number", Work(4, 4, {"fp32": -8})),
        (
            "counts sfu as 9223372036854775808, more than any machine can: take a",
            Work(4, 4, {}, {"sfu": 2**63}),
        ),
        ("unknown pipe 'tensor'", Work(4, 4, {"tensor": 8})),
        ("unknown pipe 'fp31'", Work(4, 4, {}, {"fp31": 8})),
        ("moves no bytes", Work(0, 0, {"fp32": 8})),
    ],
)
def test_a_wrong_work_model_is_the_problem_of_its_case(words: str, work: Any) -> None:
    """Named with what it counted; nothing of it is used."""
    assert words in problem(work)


@pytest.mark.parametrize("reason", [True, ["no"], 0])
def test_a_refusal_is_in_words(reason: Any) -> None:
    """Of the operator as of a kernel: the report has to say why."""
    said = f"returned {reason!r}, neither words nor None"
    assert f"refuse of the operator 'twice' {said}" in problem(
        Work(4, 4), refuse=lambda _case: reason
    )
    kernel = Kernel(name="odd", operator=SCALE, function=print, refuse=lambda _case: reason)
    facts = case_facts(SCALE, kernel, Case("scale", "odd", {"rows": 2, "cols": 2}, "fp32"))
    assert f"refuse of the kernel 'odd' {said}" in (facts.problem or "")


def test_a_wrong_unfused_form_is_a_problem_too() -> None:
    """Its steps are works as well."""
    said = problem(Work(4, 4), unfused=lambda _case: (Step("a", Work(4, -4)),))
    assert "counts write_bytes as -4" in said


def test_the_operators_of_these_tests_are_themselves_right() -> None:
    """Neither has a problem with an ordinary case."""
    held = {"weight": "kn", "fast": False}
    cases = [
        Case(SCALE.name, "solkit", {"rows": 2, "cols": 2}, "fp32"),
        Case(PRODUCT.name, "solkit", {"M": 2, "N": 2, "K": 2}, "fp16", held),
    ]
    assert [None, None] == [facts.problem for facts in catalog().describe(cases)]


def test_a_shape_without_a_meaning_is_refused_for_every_kernel_before_its_work() -> None:
    """The operator is asked first: nothing else of it need make sense there."""

    def too_many(case: Case) -> str | None:
        return "top_k 9 is more than the 8 experts" if case.shape["rows"] == 8 else None

    operator = Operator(
        name="twice",
        args=(Arg("x", "rows"), Arg("y", "rows", "out")),
        work=explode,
        reference=lambda x: x,
        refuse=too_many,
    )
    kernel = Kernel(
        name="fast", operator=operator, function=print, refuse=lambda _case: "never asked"
    )
    facts = case_facts(operator, kernel, CASE)
    assert ("top_k 9 is more than the 8 experts", None) == (facts.refusal, facts.problem)
    other = case_facts(operator, kernel, Case("twice", "fast", {"rows": 9}, "fp32"))
    assert "KeyError" in (other.problem or "")


def test_only_the_arguments_that_a_case_has_need_memory() -> None:
    """A mask of 8 fp32 numbers, where there is one."""
    operator = Operator(
        name="twice",
        args=(
            Arg("x", "rows"),
            Arg("mask", "rows", when={"mask_kind": ("additive",)}),
            Arg("y", "rows/3", "out", dtype="fp8_e4m3"),
        ),
        work=lambda _case: Work(1, 1),
        reference=lambda x, mask=0.0: x + mask,
        params={"mask_kind": ("none", "additive")},
    )
    kernel = Kernel(name="fast", operator=operator, function=print)
    needs = [
        case_facts(
            operator, kernel, Case("twice", "fast", {"rows": 8}, "fp32", {"mask_kind": kind})
        ).buffer_bytes
        for kind in ("none", "additive")
    ]
    assert [4 * 8 + 3, 2 * 4 * 8 + 3] == needs
