"""An operator's declaration: what follows from it, and how a wrong one is refused."""

from dataclasses import replace
from typing import Any

import pytest
from small_catalog import PRODUCT, SCALE, SCALED

from solkit.declare.arg import Arg, Layout
from solkit.declare.operator import Operator, Tolerance
from solkit.errors import BadInput
from solkit.model import Case, Work


def nothing(x: Any) -> Any:
    return x


def declared(**changes: Any) -> Operator:
    """Build an operator that is right but for the changes."""
    held: dict[str, Any] = {
        "name": "twice",
        "args": (Arg("x", "rows cols"), Arg("y", "rows cols", "out")),
        "work": lambda _case: Work(1, 1),
        "reference": nothing,
    }
    return Operator(**held | changes)


def refusal(**changes: Any) -> str:
    with pytest.raises(BadInput) as caught:
        declared(**changes)
    assert caught.value.remedy
    return caught.value.message


def test_axes_come_in_the_order_in_which_arguments_name_them() -> None:
    """`M K`, then `K N`: M, K, N."""
    assert ("M", "K", "N") == PRODUCT.axes


def test_an_argument_in_place_is_both_read_and_written() -> None:
    """It stands among the inputs and the outputs."""
    operator = declared(
        args=(Arg("x", "rows"), Arg("state", "rows", "inout"), Arg("y", "rows", "out")),
        reference=lambda x, state: (state + x, x),
    )
    assert ["x", "state"] == [arg.name for arg in operator.inputs]
    assert ["state", "y"] == [arg.name for arg in operator.outputs]


def test_a_layout_changes_the_stored_order_and_not_the_logical_one() -> None:
    """The weight is K by N to the reference, and N by K in memory where the param says so."""
    weight = PRODUCT.args[1]
    case = Case("product", "k", {"M": 2, "N": 3, "K": 5}, "fp32", {"weight": "nk"})
    assert ("K", "N") == weight.axis_names
    assert (3, 5) == weight.stored_shape(case)
    assert ("K", "N") == weight.stored_axes({"weight": "kn"})
    assert 60 == weight.nbytes(case)


def test_an_argument_can_have_a_dtype_of_its_own() -> None:
    """Statistics in fp32 beside bf16 data."""
    case = Case("twice", "k", {"rows": 10}, "bf16")
    assert [20, 40] == [Arg("x", "rows", dtype=dtype).nbytes(case) for dtype in (None, "fp32")]


def test_a_reference_gets_only_the_params_it_names() -> None:
    """A layout is no business of the reference: it sees the logical order."""
    operator = declared(
        reference=lambda x, form: {form: x},
        params={"form": ("exact", "tanh"), "layout": ("a", "b")},
    )
    assert ("form",) == operator.reference_params
    assert () == PRODUCT.reference_params


def test_a_case_is_completed_by_the_defaults_that_it_need_not_name() -> None:
    """What it names stays; where nothing is missing, it is the very case."""
    plain = Case("scaled", "k", {"rows": 2, "cols": 2}, "fp32", {"form": "half"})
    assert {"form": "half", "alpha": 1.0} == SCALED.completed(plain).params
    assert {"form": "half"} == plain.params
    named = replace(plain, params={"form": "half", "alpha": 0.5})
    assert named is SCALED.completed(named)
    assert plain is SCALE.completed(plain)


def test_a_tolerance_is_the_operators_or_the_dtypes_own() -> None:
    """Declared for one dtype, it leaves the others alone."""
    operator = declared(tolerance={"fp16": Tolerance(0.1, 0.2)})
    assert Tolerance(0.1, 0.2) == operator.tolerance_for("fp16")
    assert Tolerance(1e-5, 1e-5) == operator.tolerance_for("fp32")
    assert Tolerance(1.6e-2, 4e-3) == SCALE.tolerance_for("bf16")


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("args holds 'x', which is no Arg", {"args": ("x",)}),
        ("args is None, not a tuple of Arg", {"args": None}),
        ("its work is not a function", {"work": None}),
        ("the param 'form' has no values: give a tuple", {"params": {"form": 5}}),
        ("the param 'form' has values that are neither", {"params": {"form": ("a", None)}}),
        (
            "unnamed_defaults names 'alpha', which is no param",
            {"unnamed_defaults": ("alpha",), "params": {"form": ("a", "b")}},
        ),
        (
            "unnamed_defaults is 'form', not a tuple of params",
            {"unnamed_defaults": "form", "params": {"form": ("a", "b")}},
        ),
        (
            "'form' must be named: the argument 'z' depends on it",
            {
                "unnamed_defaults": ("form",),
                "params": {"form": ("a", "b")},
                "args": (
                    Arg("x", "n"),
                    Arg("y", "n", "out"),
                    Arg("z", "n", "out", when={"form": ("a",)}),
                ),
            },
        ),
        (
            "'order' must be named: the argument 'x' depends on it",
            {
                "unnamed_defaults": ("order",),
                "params": {"order": ("kn", "nk")},
                "args": (
                    Arg("x", "K N", layout=Layout("order", {"kn": "K N", "nk": "N K"})),
                    Arg("y", "K N", "out"),
                ),
            },
        ),
        ("'a b' can't be the name of an argument or a param", {"params": {"a b": (1,)}}),
        (
            "'ro-ws' is no dim: write an axis, a number, or terms like batch*kv_len/16",
            {"args": (Arg("x", "ro-ws"), Arg("y", "ro-ws", "out"))},
        ),
        ("no argument has the role 'out' or 'inout'", {"args": (Arg("x", "rows"),)}),
        ("two arguments share a name: x, x", {"args": (Arg("x", "n"), Arg("x", "n", "out"))}),
        (
            "argument 'y' has the role 'output' (known: in, out, inout)",
            {"args": (Arg("x", "n"), Arg("z", "n", "out"), Arg("y", "n", "output"))},  # type: ignore[arg-type]
        ),
        (
            "argument 'y' has the unknown dtype 'fp23'",
            {"args": (Arg("x", "n"), Arg("y", "n", "out", dtype="fp23"))},
        ),
        (
            "the argument 'rows' has the name of a param or an axis",
            {"args": (Arg("x", "rows"), Arg("rows", "rows", "out"))},
        ),
        ("independent names 'row', which is no axis", {"independent": ("row",)}),
        (
            "'rows' can't be independent: the output 'y' has the dim 'rows/128'",
            {"independent": ("rows",), "args": (Arg("x", "rows"), Arg("y", "rows/128", "out"))},
        ),
        ("the dtype 'half' is unknown (known: fp64, fp32, fp16, bf16)", {"dtypes": ("half",)}),
        ("the dtype 'half' is unknown", {"tolerance": {"half": Tolerance(1, 1)}}),
        ("the param 'form' has no values", {"params": {"form": ()}}),
        ("its reference is not a function", {"reference": 3}),
        ("its refuse is not a function", {"refuse": "never"}),
        ("its unfused is not a function", {"unfused": ()}),
        ("its reference does not take the input 'x' (it takes: a)", {"reference": lambda a: a}),
        (
            "its reference takes 'scale', which is no input, no param and no axis",
            {"reference": lambda x, scale: x * scale},
        ),
    ],
)
def test_a_wrong_declaration_is_refused_by_name(words: str, changes: dict[str, Any]) -> None:
    """What is wrong, in which operator, and where to read how it is done."""
    message = refusal(**changes)
    assert message.startswith("operator 'twice': ")
    assert words in message


@pytest.mark.parametrize("name", [5, "", " "])
def test_an_operator_has_a_text_for_a_name(name: Any) -> None:
    """Nobody could ask for it otherwise."""
    assert "its name is no text" in refusal(name=name)


@pytest.mark.parametrize(
    ("words", "layout"),
    [
        ("is laid out by 'order', which is no param", Layout("order", {"a": "n m"})),
        ("its layout for form=a is ''", Layout("form", {"b": "m n"})),
        ("its layout for form=b is 'n n'", Layout("form", {"a": "n m", "b": "n n"})),
    ],
)
def test_a_layout_must_reorder_the_axes_for_every_value(words: str, layout: Layout) -> None:
    """A value without an order, or with another set of axes, can't be stored."""
    args = (Arg("x", "m n", layout=layout), Arg("y", "m n", "out"))
    assert words in refusal(args=args, params={"form": ("a", "b")})
