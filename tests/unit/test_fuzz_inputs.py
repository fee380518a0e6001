"""Garbage in the files that people hand over: a result or a clear error, never anything else."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from small_catalog import catalog
from test_record import MEASURED, OUTCOMES, RUN

from solkit import record, wire
from solkit.errors import SolkitError
from solkit.judge.score import score
from solkit.model import Run
from solkit.plan.only import parse_only
from solkit.plan.starter import SHAPES
from solkit.plan.sweep import parse_sweep
from solkit.report import csv

yaml = pytest.importorskip("yaml")

THOUSAND = settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
CATALOG = catalog()
KEYS = (
    *("version", "defaults", "sweeps", "operator", "kernels", "dtype", "params", "shapes", "grid"),
    *("from", "to", "factor", "step", "rows", "cols", "M", "N", "K", "weight", "fast"),
)
WORDS = ("scale", "product", "solkit", "even", "numpy", "fp32", "bf16", "kn", "nk", "1", "~", "")
NUMBERS = st.integers(-(2**70), 2**70) | st.integers(-1, 9) | st.floats()
SCALARS = NUMBERS | st.booleans() | st.none() | st.sampled_from(WORDS) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=12,
)
SWEEPS = st.fixed_dictionaries(
    {"operator": st.sampled_from(["scale", "product"])},
    optional=dict.fromkeys(("kernels", "dtype", "params", "shapes", "grid"), VALUES),
)
SMALL = (
    SHAPES.replace("add_rmsnorm", "scale")
    .replace("matmul_add", "product")
    .replace("softmax", "scale")
)


def sweep_or_error(text: str) -> None:
    """Read a sweep; anything but a result or a SolkitError fails the test."""
    try:
        found = parse_sweep(text, CATALOG, file="s.yaml", max_cases=500)
    except SolkitError:
        return
    assert 1 <= len(found.cases) <= 500
    assert all(extent >= 1 for case in found.cases for extent in case.shape.values())


@THOUSAND
@given(text=st.text())
@example(text="- " * 5000)
@example(text="{" * 5000)
@example(text="a: &a [*a, *a]")
@example(text="? {a: b}\n: c")
@example(text="!!python/object/apply:os.system [ls]")
def test_any_text_as_a_sweep_is_a_result_or_an_error(text: str) -> None:
    """Text that nobody meant as YAML."""
    sweep_or_error(text)


@THOUSAND
@given(
    document=st.fixed_dictionaries({"version": st.just(1), "sweeps": st.lists(SWEEPS, max_size=3)})
    | VALUES
)
def test_any_document_as_a_sweep_is_a_result_or_an_error(document: Any) -> None:
    """YAML of the right words in the wrong places."""
    sweep_or_error(yaml.safe_dump(document, allow_unicode=True))


@THOUSAND
@given(start=st.integers(0, len(SMALL)), length=st.integers(0, 30), new=st.text(max_size=10))
def test_any_edit_of_a_good_sweep_is_a_result_or_an_error(
    start: int, length: int, new: str
) -> None:
    """A slip of the hand in a file that was good."""
    sweep_or_error(SMALL[:start] + new + SMALL[start + length :])


@THOUSAND
@given(text=st.text(alphabet="rowscl=<>!,|.0123456789 -eax", max_size=40) | st.text())
def test_any_filter_is_a_result_or_an_error(text: str) -> None:
    """What is typed behind --only."""
    try:
        kept = parse_only(text).select([outcome.case for outcome in OUTCOMES])
    except SolkitError:
        return
    assert kept


LINES = [wire.header_json(RUN), *map(record.outcome_json, OUTCOMES)]
LINES.append(b'{"record":"end","status":"complete","counts":{},"duration_s":1.0}')
FILE = b"\n".join(LINES) + b"\n"


def run_or_error(text: bytes) -> None:
    """Read a run and judge it; anything but a result or a SolkitError fails the test."""
    try:
        run = record.parse(text, "run.jsonl")
    except SolkitError:
        return
    assert isinstance(run, Run)
    assert csv.render(run, score(run)).startswith("operator,")


@THOUSAND
@given(text=st.binary())
@example(text=b"\xff\xfe{\x00}\x00")
@example(text=b"[" * 100_000)
@example(text=b"1" * 10_000)
def test_any_bytes_as_a_run_are_a_result_or_an_error(text: bytes) -> None:
    """A file that has nothing to do with solkit."""
    run_or_error(text)


@THOUSAND
@given(start=st.integers(0, len(FILE)), length=st.integers(0, 60), new=st.binary(max_size=12))
def test_any_edit_of_a_good_run_is_a_result_or_an_error(
    start: int, length: int, new: bytes
) -> None:
    """A file that a disk or an editor has spoilt."""
    run_or_error(FILE[:start] + new + FILE[start + length :])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a JSON document."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


PLACES = [(number, path) for number, line in enumerate(LINES) for path in places(json.loads(line))]
LEAVES = st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.integers()
LEAVES |= st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@THOUSAND
@given(where=st.sampled_from(PLACES), new=JSON)
def test_any_value_in_a_good_run_is_a_result_or_an_error(where: tuple[int, Any], new: Any) -> None:
    """A number where a name was, a list where a number was, a count beyond any float."""
    number, path = where
    document = json.loads(LINES[number])
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    assume(inner[path[-1]] != new)
    inner[path[-1]] = new
    changed = [*LINES[:number], json.dumps(document).encode(), *LINES[number + 1 :]]
    run_or_error(b"\n".join(changed) + b"\n")


def test_the_good_run_is_good() -> None:
    """The fuzzed file reads whole before it is spoilt."""
    assert OUTCOMES == record.parse(FILE, "run.jsonl").outcomes
    assert MEASURED in OUTCOMES
