"""shapes.yaml: what it means, and what it says when it is wrong."""

from pathlib import Path

import pytest
from small_catalog import SCALED, catalog

from solkit.declare.catalog import LocalCatalog
from solkit.declare.kernel import Kernel
from solkit.declare.registry import Registry
from solkit.errors import BadInput
from solkit.model import Case
from solkit.plan.only import parse_only
from solkit.plan.sweep import Sweep, case_by_hand, parse_sweep, read_sweep

UNNAMED = LocalCatalog(Registry())
UNNAMED.registry.add([SCALED, Kernel(name="k", operator="scaled", function=print)], where="unnamed")
HEAD = "version: 1\nsweeps:\n"


def sweep(text: str, *, device: str = "cuda", max_cases: int = 10_000) -> Sweep:
    return parse_sweep(text, catalog(), file="s.yaml", device=device, max_cases=max_cases)


def test_a_point_becomes_a_case_for_every_kernel_of_the_device() -> None:
    """Without kernels: an operator's case is made for each kernel that runs on the device."""
    found = sweep(HEAD + "- {operator: scale, dtype: fp16, shapes: [{cols: 8, rows: 4}]}\n")
    expected = [Case("scale", name, {"rows": 4, "cols": 8}, "fp16") for name in ("solkit", "even")]
    assert expected == list(found.cases)
    assert ["cols=8;rows=4"] * 2 == [case.shape_text for case in found.cases]  # as written
    assert found.notes == ()


def test_the_cpu_takes_the_numpy_reference() -> None:
    """On the device cpu the only kernel of a bundled operator is its reference."""
    found = sweep(HEAD + "- {operator: scale, shapes: [{rows: 4, cols: 8}]}\n", device="cpu")
    assert ["numpy"] == [case.kernel for case in found.cases]


def test_dtype_is_the_sweeps_own_then_the_default_then_the_operators_first() -> None:
    """The nearest dtype wins."""
    body = "- {operator: scale, kernels: solkit, shapes: [{rows: 1, cols: 2}]}\n"
    body += "- {operator: scale, kernels: solkit, shapes: [{rows: 1, cols: 2}], dtype: [bf16]}\n"
    assert ["fp32", "bf16"] == [case.dtype for case in sweep(HEAD + body).cases]
    given = sweep("version: 1\ndefaults: {dtype: fp16}\nsweeps:\n" + body)
    assert ["fp16", "bf16"] == [case.dtype for case in given.cases]


def test_a_grid_is_the_product_of_lists_and_inclusive_ranges() -> None:
    """A range by factor or step ends at `to` where it hits it, else before."""
    found = sweep(
        HEAD
        + "- operator: scale\n  kernels: [solkit]\n"
        + "  grid: {rows: {from: 1, to: 64, factor: 4}, cols: {from: 8, to: 25, step: 8}}\n"
    )
    expected = [(rows, cols) for rows in (1, 4, 16, 64) for cols in (8, 16, 24)]
    assert expected == [(case.shape["rows"], case.shape["cols"]) for case in found.cases]


def test_params_vary_as_lists_and_default_to_the_operators_first_value() -> None:
    """A param that is not named has its first allowed value; a list sweeps it."""
    text = HEAD + "- {operator: product, shapes: [{M: 1, N: 2, K: 3}]"
    assert [{"weight": "kn", "fast": False}] == [case.params for case in sweep(text + "}").cases]
    both = sweep(text + ", params: {weight: [kn, nk], fast: true}}")
    assert [
        {"weight": "kn", "fast": True},
        {"weight": "nk", "fast": True},
    ] == [case.params for case in both.cases]


def test_a_default_that_need_not_be_named_is_left_out_of_a_case() -> None:
    """Given or not, it is the same case; another value is part of its identity."""
    shape = ["rows=2", "cols=4"]
    (plain,) = case_by_hand("scaled", shape, UNNAMED).cases
    assert {"form": "whole"} == plain.params
    assert "rows=2;cols=4;form=whole" == plain.shape_text
    assert (plain,) == case_by_hand("scaled", [*shape, "alpha=1"], UNNAMED).cases
    both = case_by_hand("scaled", [*shape, "alpha=1,0.5"], UNNAMED).cases
    assert [{"form": "whole"}, {"form": "whole", "alpha": 0.5}] == [case.params for case in both]
    with pytest.raises(BadInput, match="unknown value of alpha '2'"):
        case_by_hand("scaled", [*shape, "alpha=2"], UNNAMED)


@pytest.mark.parametrize(
    ("text", "kept"), [("alpha=1", [0]), ("alpha<1", [1]), ("alpha!=1", [1]), ("alpha>0", [0, 1])]
)
def test_only_knows_the_defaults_that_cases_do_not_name(text: str, kept: list[int]) -> None:
    """A case without a name has that value all the same."""
    cases = case_by_hand("scaled", ["rows=2", "cols=4", "alpha=1,0.5"], UNNAMED).cases
    found = parse_only(text).select(cases, UNNAMED.operators)
    assert tuple(cases[index] for index in kept) == found
    with pytest.raises(BadInput, match="unknown name in --only 'alpha'"):
        parse_only(text).select(cases[:1])


def test_duplicates_are_merged_and_said() -> None:
    """A case in the file twice is measured once, and a note names the first."""
    point = "- {operator: scale, kernels: [solkit], shapes: [{rows: 4, cols: 8}]}\n"
    turned = "- {operator: scale, kernels: [solkit], shapes: [{cols: 8, rows: 4}]}\n"
    found = sweep(HEAD + point + point + turned)
    assert 1 == len(found.cases)
    first = "s.yaml: line 4: scale/solkit rows=4 cols=8 fp32"
    assert (f"duplicate cases are measured once: {first} and 1 more",) == found.notes


def test_a_kernel_of_the_other_device_stays_in_the_list() -> None:
    """Planning, not reading, says that a named kernel does not run here."""
    text = HEAD + "- {operator: scale, kernels: [numpy], shapes: [{rows: 4, cols: 8}]}\n"
    assert ["numpy"] == [case.kernel for case in sweep(text).cases]


def test_ten_thousand_cases_are_taken_unasked() -> None:
    """The limit itself still needs no --max-cases; benchmarks/speed.py times it."""
    lines = "".join(f"  - {{rows: {rows}, cols: 8}}\n" for rows in range(1, 5001))
    found = sweep(HEAD + "- operator: scale\n  shapes:\n" + lines)
    assert 10_000 == len(found.cases)


SCALE = HEAD + "- operator: scale\n"
BAD = {
    "": ("s.yaml: is empty", "solkit new shapes"),
    "a: ]": ("s.yaml: line 1: is not YAML", "brackets"),
    "[]": ("the file must be a mapping, not a list", "solkit new shapes"),
    "sweeps: []": ("has no version", "version: 1"),
    "version: 2": ("line 1: the version is 2, this solkit reads 1", "version: 1"),
    "version: one": ("version must be a whole number, not 'one'", "decimal"),
    "version: 1": ("has no sweeps", "product, scale"),
    HEAD + "  []": ("has no sweeps", "product, scale"),
    "version: 1\nsweep: []": ("line 2: unknown key of the file 'sweep'", "did you mean 'sweeps'"),
    HEAD + "- scale": ("line 3: a sweep must be a mapping, not 'scale'", ""),
    HEAD + "- {shapes: []}": ("line 3: a sweep without operator", "product, scale"),
    HEAD + "- operator: scael": ("line 3: unknown operator 'scael'", "did you mean 'scale'"),
    SCALE: ("line 3: the sweep of 'scale' has no shapes", "rows, cols"),
    SCALE + "  shapes: []": ("has no shapes", "rows, cols"),
    SCALE + "  gird: 1": ("line 4: unknown key of a sweep 'gird'", "did you mean 'grid'"),
    SCALE + "  shapes: [{rows: 1}]": (
        "line 4: a shape of 'scale' lacks the axis 'cols'",
        "rows, cols",
    ),
    SCALE + "  shapes: [{rows: 1, cols: 2, K: 3}]": (
        "line 4: unknown axis of 'scale' 'K'",
        "known: cols",
    ),
    SCALE + "  shapes: {rows: 1}": ("line 4: shapes must be a list", ""),
    SCALE + "  shapes: [{rows: -1, cols: 2}]": (
        "line 4: rows is -1, which is out of range",
        "from 0 to",
    ),
    SCALE + "  grid: {rows: {from: 0, to: 8, factor: 2}, cols: 2}": (
        "rows.from is 0, which is out of range",
        "from 1 to",
    ),
    SCALE + "  shapes: [{rows: 1099511627777, cols: 2}]": (
        "rows is 1099511627777",
        "to 1099511627776",
    ),
    SCALE + "  shapes: [{rows: " + "9" * 5000 + ", cols: 2}]": (
        "which is out of range",
        "from 0 to",
    ),
    SCALE + "  shapes: [{rows: 1.5, cols: 2}]": (
        "rows must be a whole number, not '1.5'",
        "decimal",
    ),
    SCALE + "  shapes: [{rows: '8', cols: 2.0}]": (
        "rows must be a whole number, not '8'",
        "quotes",
    ),
    SCALE + "  shapes: [{rows: true, cols: 2}]": (
        "rows must be a whole number, not 'true'",
        "decimal",
    ),
    SCALE + "  shapes: [{rows: .nan, cols: 2}]": (
        "rows must be a whole number, not '.nan'",
        "decimal",
    ),
    SCALE + "  shapes: [{rows: , cols: 2}]": (
        "rows must be a whole number, not nothing",
        "decimal",
    ),
    SCALE + "  shapes: [{rows: 010, cols: 2}]": (
        "rows must be a whole number, not '010'",
        "decimal",
    ),
    SCALE + "  shapes: [{rows: [1, 2], cols: 2}]": ("rows in shapes must be one number", "grid:"),
    SCALE + "  shapes: [{rows: 1, rows: 2, cols: 2}]": (
        "has the key 'rows' twice, first in line 4",
        "",
    ),
    SCALE + "  grid: {rows: [], cols: 2}": ("line 4: rows is an empty list", ""),
    SCALE + "  grid: {rows: {from: 1, to: 8}, cols: 2}": (
        "needs either factor or step",
        "factor: 4",
    ),
    SCALE + "  grid: {rows: {from: 1, step: 8}, cols: 2}": ("has no 'to'", "from and to"),
    SCALE + "  grid: {rows: {from: 8, to: 1, step: 1}, cols: 2}": ("ends below its start", "swap"),
    SCALE + "  grid: {rows: {from: 1, to: 8, step: 0}, cols: 2}": ("rows.step is 0", "from 1"),
    SCALE + "  grid: {rows: {from: 1, to: 8, factor: 1}, cols: 2}": ("rows.factor is 1", "from 2"),
    SCALE + "  grid: {rows: {from: 1, to: 8, stride: 1}, cols: 2}": (
        "unknown key of the range",
        "step",
    ),
    SCALE + "  grid: {rows: {from: 1, to: 1000000, step: 1}, cols: 2}": (
        "has 1,000,000 values",
        "step",
    ),
    SCALE + "  dtype: bf61\n  shapes: [{rows: 1, cols: 1}]": (
        "line 4: unknown dtype 'bf61'",
        "'bf16'",
    ),
    SCALE + "  kernels: [solkti]\n  shapes: [{rows: 1, cols: 1}]": (
        "unknown kernel 'solkti'",
        "'solkit'",
    ),
    SCALE + "  params: {weight: kn}\n  shapes: [{rows: 1, cols: 1}]": (
        "unknown param of 'scale'",
        "",
    ),
    HEAD + "- {operator: product, params: {weight: kk}, shapes: [{M: 1, N: 1, K: 1}]}": (
        "line 3: unknown value of weight 'kk'",
        "kn, nk",
    ),
    HEAD + "- &a {operator: scale}\n- *a": ("used again through an alias", "write the values out"),
    HEAD + "- &a [*a]": ("used again through an alias", "write the values out"),
    "[" * 2000: ("is not YAML", ""),
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_bad_input_is_named_with_its_line_and_a_remedy(text: str) -> None:
    """Each error says what is wrong, where, and what would be right."""
    message, remedy = BAD[text]
    with pytest.raises(BadInput) as caught:
        sweep(text)
    assert message in caught.value.message
    assert remedy in caught.value.remedy


def test_too_many_cases_are_refused_before_they_are_built() -> None:
    """The product is counted first: building these would outlast the test."""
    wide = "{from: 1, to: 10000, step: 1}"
    with pytest.raises(BadInput, match=r"line 3: 300,000,000 cases are more than 10,000") as caught:
        sweep(HEAD + f"- {{operator: product, grid: {{M: {wide}, N: {wide}, K: [1, 2, 3]}}}}")
    assert "--max-cases 300000000" in caught.value.remedy


def test_more_cases_are_taken_where_allowed() -> None:
    """--max-cases raises the limit."""
    grid = "- {operator: product, grid: {M: {from: 1, to: 11000, step: 1}, N: 1, K: 1}}"
    assert 11_000 == len(sweep(HEAD + grid, max_cases=11_000).cases)


def test_a_file_that_is_missing_or_not_utf8_is_bad_input(tmp_path: Path) -> None:
    """A file that can't be read as text is refused with its name (and line)."""
    with pytest.raises(BadInput, match="can't be read"):
        read_sweep(tmp_path / "none.yaml", catalog())
    with pytest.raises(BadInput, match="can't be read"):
        read_sweep(tmp_path, catalog())
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"version: 1\n# \xe9\n")
    with pytest.raises(BadInput, match="line 2: is not UTF-8"):
        read_sweep(path, catalog())


def test_a_case_by_hand_is_read_by_the_rules_of_the_file() -> None:
    """Assignments are axes and params; a comma sweeps."""
    found = case_by_hand(
        "product", ["M=8,16", "K=2560", "N=2560", "weight=nk"], catalog(), dtype="bf16"
    )
    assert [{"M": 8, "N": 2560, "K": 2560}, {"M": 16, "N": 2560, "K": 2560}] == [
        case.shape for case in found.cases
    ]
    assert {("bf16", "nk", "solkit")} == {
        (case.dtype, case.params["weight"], case.kernel) for case in found.cases
    }


@pytest.mark.parametrize(
    ("operator", "words", "message"),
    [
        ("prodct", [], "unknown operator 'prodct'"),
        ("scale", ["rows"], "'rows' is no assignment"),
        ("scale", ["rows=1", "rows=2"], "rows is given twice"),
        ("scale", ["rows=1"], "lacks the axis 'cols'"),
        ("scale", ["rows=1", "cols=1", "row=1"], "unknown axis or param of 'scale' 'row'"),
        ("scale", ["rows=x", "cols=1"], "rows must be a whole number, not 'x'"),
        ("scale", ["rows={a: b}", "cols=1"], "rows must be a whole number"),
        ("scale", ["rows=1e3", "cols='"], "rows must be a whole number, not '1e3'"),
    ],
)
def test_a_wrong_case_by_hand_is_bad_input(operator: str, words: list[str], message: str) -> None:
    """The same errors as a file gives, without a line to look up."""
    with pytest.raises(BadInput) as caught:
        case_by_hand(operator, words, catalog())
    assert message in caught.value.message


CASES = (
    Case("scale", "solkit", {"rows": 64, "cols": 8}, "fp16"),
    Case("scale", "even", {"rows": 32, "cols": 8}, "bf16"),
    Case("product", "solkit", {"M": 1, "N": 2, "K": 3}, "bf16", {"weight": "nk", "fast": True}),
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("operator=scale", [0, 1]),
        ("operator!=scale", [2]),
        ("operator=scale,rows>=64", [0]),
        ("rows<64", [1]),
        ("rows > 32", [0]),
        ("rows<=32", [1]),
        ("cols=8", [0, 1]),
        ("dtype=fp16|bf16", [0, 1, 2]),
        ("weight=nk, fast=true", [2]),
        ("kernel=even", [1]),
    ],
)
def test_only_keeps_the_cases_that_meet_every_term(text: str, kept: list[int]) -> None:
    """A case without the axis of a term does not meet it."""
    assert tuple(CASES[index] for index in kept) == parse_only(text).select(CASES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is no condition"),
        ("rows", "'rows' is no condition"),
        ("rows>=", "is no condition"),
        ("rows==3", "is no condition"),
        ("rows>=many", "'many' in 'rows>=many' is no number"),
        ("rwos>=1", "unknown name in --only 'rwos'"),
        ("operator=scael", "unknown operator in --only 'scael'"),
        ("dtype=fp8|fp4", "unknown dtype in --only 'fp8'"),
        ("operator>1", "compares a name with a number"),
        ("rows>100", "leaves none of the 3 cases"),
    ],
)
def test_a_wrong_filter_is_bad_input(text: str, message: str) -> None:
    """A filter that can't mean anything is an error, never an empty run."""
    with pytest.raises(BadInput) as caught:
        parse_only(text).select(CASES)
    assert message in caught.value.message
