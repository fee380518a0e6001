"""The dims of a tensor in words, and the arguments that need them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.declare.arg import Arg, Bits, Indices, Normal
from solkit.declare.dims import dim, problems
from solkit.declare.operator import Operator
from solkit.errors import BadInput
from solkit.model import Case, Work

SHAPE = {"batch": 3, "kv_len": 33, "heads": 32, "kv_heads": 8, "cols": 300, "none": 0}


@pytest.mark.parametrize(
    ("extent", "word"),
    [
        (33, "kv_len"),
        (64, "64"),
        (3, "cols/128"),
        (4, "heads/kv_heads"),
        (7, "batch*kv_len/16"),
        (6, "batch*2"),
        (0, "none/16"),
        (0, "cols/none"),
    ],
)
def test_a_quotient_is_rounded_up(extent: int, word: str) -> None:
    """3 sequences of 33 keys are 99, in 7 pages of 16."""
    assert extent == dim(word).extent(SHAPE)


@given(rows=st.integers(1, 2**40), block=st.integers(1, 4096))
def test_blocks_cover_their_axis_and_no_block_is_empty(rows: int, block: int) -> None:
    """So many blocks hold all entries, one fewer does not."""
    count = dim(f"rows/{block}").extent({"rows": rows})
    assert (count - 1) * block < rows <= count * block


def test_only_a_plain_word_is_an_axis() -> None:
    """The check samples along axes; a dim that is computed is taken whole."""
    assert ["kv_len", None, None] == [dim(word).axis for word in ("kv_len", "16", "kv_len/16")]
    assert ("batch", "kv_len") == dim("batch*kv_len/16").axes
    assert ("heads", "kv_heads") == dim("heads/kv_heads").axes


@pytest.mark.parametrize("word", ["a-b", "a//b", "a/b/c", "*a", "a*", "/2", "a/0", "0", "²", "a b"])
def test_what_is_no_dim_is_named(word: str) -> None:
    """The message repeats the word and gives a form that works."""
    assert [f"{word!r} is no dim"] == [text.split(":")[0] for text in problems(word)]


@pytest.mark.parametrize("word", ["rows", "16", "a*b", "a*b*2/16", "a/b", "_x1"])
def test_what_is_a_dim_has_no_problem(word: str) -> None:
    """Axes, numbers, products and one quotient."""
    assert [] == list(problems(word))


def operator(*args: Arg, **changes: Any) -> Operator:
    held: dict[str, Any] = {
        "name": "some",
        "args": args,
        "work": lambda _case: Work(1, 1),
        "reference": lambda x, **_rest: x,
        "params": {"scaling": ("token", "block")},
    }
    return Operator(**held | changes)


SCALED = operator(
    Arg("x", "rows cols"),
    Arg("scale", "rows", "out", dtype="fp32", when={"scaling": ("token",)}),
    Arg("scale", "rows cols/128", "out", dtype="fp32", when={"scaling": ("block",)}),
    Arg("extra", "rows", "out", when={"scaling": ("block",)}),
    reference=lambda x: x,
)


def test_an_argument_exists_for_some_values_of_a_param() -> None:
    """One scale a row, or one for 128 columns, under one name."""
    shape = {"rows": 2, "cols": 300}
    token = Case("some", "k", shape, "bf16", {"scaling": "token"})
    block = Case("some", "k", shape, "bf16", {"scaling": "block"})
    assert ("rows", "cols") == SCALED.axes
    assert [("x", (2, 300)), ("scale", (2,))] == [
        (arg.name, arg.shape(token)) for arg in SCALED.args_of(token)
    ]
    assert [("scale", (2, 3)), ("extra", (2,))] == [
        (arg.name, arg.shape(block)) for arg in SCALED.outputs_of(block)
    ]
    assert ["x"] == [arg.name for arg in SCALED.inputs_of(block)]
    assert [1200, 24, 4] == [arg.nbytes(block) for arg in SCALED.args_of(block)]


OUT = Arg("y", "rows", "out")
INDEX = Arg("i", "rows", dtype="int32", init=Indices(of="rows"))
BLOCK = {"scaling": ("block",)}


@pytest.mark.parametrize(
    ("words", "args"),
    [
        ("two arguments share a name", (Arg("x", "rows"), OUT, Arg("y", "rows", "out"))),
        (
            "two arguments share a name",
            (
                Arg("x", "rows"),
                Arg("y", "rows", "out", when={"scaling": ("token",)}),
                Arg("y", "rows", "out", when={"scaling": ("token", "block")}),
            ),
        ),
        (
            "argument 'x' exists for values of 'size', which is no param",
            (Arg("x", "rows", when={"size": (1,)}), OUT),
        ),
        (
            "argument 'x' exists for scaling=row, which that param can't be",
            (Arg("x", "rows", when={"scaling": ("row",)}), OUT),
        ),
        (
            "argument 'x' holds indices, so its dtype is int32, not own",
            (Arg("x", "rows", init=Indices(of="rows")), OUT),
        ),
        (
            "'a-b' is no dim",
            (Arg("x", "rows", dtype="int32", init=Indices(of="a-b")), OUT),
        ),
        (
            "argument 'x' is filled with random bits, so its dtype is int32, int8 or uint8",
            (Arg("x", "rows", init=Bits(), dtype="fp32"), OUT),
        ),
        (
            "argument 'x' has the dtype int8: init must be Bits() or Indices(of=...)",
            (Arg("x", "rows", init=Normal(), dtype="int8"), OUT),
        ),
        (
            "argument 'x' is gathered by 'token', which is no int32 input",
            (Arg("x", "rows", gathered_by="token"), OUT),
        ),
        (
            "argument 'x' is gathered by 'i', which is gathered itself",
            (
                Arg("i", "rows", dtype="int32", init=Indices("pages"), gathered_by="j"),
                Arg("j", "pages", dtype="int32", init=Indices("rows")),
                Arg("x", "pages", gathered_by="i"),
                OUT,
            ),
        ),
        (
            "argument 'x' is gathered by 'i', but has no dim that could be indexed",
            (INDEX, Arg("x", "", gathered_by="i"), OUT),
        ),
        *(
            (
                f"'i', but only an argument that is read alone is (its role is '{role}')",
                (Arg("x", "rows"), INDEX, Arg("z", "rows", role, gathered_by="i")),  # type: ignore[arg-type]
            )
            for role in ("out", "inout")
        ),
        (
            "gathered by 'i', which cases with scaling=token don't have as an int32 input",
            (replace(INDEX, when=BLOCK), Arg("x", "rows", gathered_by="i"), OUT),
        ),
        (
            "cases with scaling=token have no argument with the role 'out' or 'inout'",
            (Arg("x", "rows"), replace(OUT, when=BLOCK)),
        ),
        (
            "filled by the extent of 'vocab', which is no axis of an argument (known: rows)",
            (Arg("x", "rows", dtype="int32", init=Indices(of="2*vocab")), OUT),
        ),
        (
            "argument 'x' is filled by the extent of 'K', which is no axis of an argument",
            (Arg("x", "rows", init=Normal(fan_in="K")), OUT),
        ),
        (
            "argument 'x' has hole_every=-1: 0 for none, or each n-th",
            (Arg("x", "rows", dtype="int32", init=Indices("rows", hole_every=-1)), OUT),
        ),
        (
            "argument 'x' has the hole 2147483648, which int32 can't hold",
            (Arg("x", "rows", dtype="int32", init=Indices("rows", hole=2**31)), OUT),
        ),
        *(
            (
                "argument 'x' has the dtype fp8_e4m3, which outputs alone can have",
                (Arg("x", "rows", dtype="fp8_e4m3", init=init), OUT),
            )
            for init in (Normal(), Bits())
        ),
        *(
            (
                f"argument 'x' exists for scaling={values!r}, not for a tuple of values",
                (Arg("x", "rows", when={"scaling": values}), OUT),  # type: ignore[dict-item]
            )
            for values in ("block", 1, ())
        ),
        (
            "argument 'x' has when=['scaling'], not a mapping",
            (Arg("x", "rows", when=["scaling"]), OUT),  # type: ignore[arg-type]
        ),
        (
            "argument 'x' has the axes ('rows', 'cols'), not words like 'rows cols'",
            (Arg("x", ("rows", "cols")), OUT),  # type: ignore[arg-type]
        ),
        (
            "argument 'x' has the init None: give a Normal",
            (Arg("x", "rows", init=None), OUT),  # type: ignore[arg-type]
        ),
        (
            "argument 'x' holds indices of 5, not of a dim in words",
            (Arg("x", "rows", dtype="int32", init=Indices(5)), OUT),  # type: ignore[arg-type]
        ),
    ],
)
def test_a_wrong_argument_is_refused_by_name(words: str, args: tuple[Arg, ...]) -> None:
    """Each rule of the words above, broken once."""
    with pytest.raises(BadInput, match="operator 'some'") as caught:
        operator(*args)
    assert words in caught.value.message


def test_a_reference_needs_a_default_for_what_some_cases_lack() -> None:
    """It is not passed then; where another argument of the name stands in, none is needed."""
    extra = Arg("extra", "rows", when=BLOCK)
    with pytest.raises(BadInput) as caught:
        operator(Arg("x", "rows"), extra, OUT, reference=lambda x, extra: x + extra)
    assert (
        "its reference needs 'extra', which cases with scaling=token don't have: give it the "
        "default None"
    ) in caught.value.message
    operator(Arg("x", "rows"), extra, OUT, reference=lambda x, extra=None: (x, extra))
    other = Arg("extra", "rows cols", when={"scaling": ("token",)})
    operator(Arg("x", "rows"), extra, other, OUT, reference=lambda x, extra: (x, extra))


def test_an_axis_is_no_param() -> None:
    """`scaling=3` on the command line could mean both."""
    with pytest.raises(BadInput, match="'scaling' is a param and an axis"):
        operator(Arg("x", "scaling"), Arg("y", "scaling", "out"))
