"""Garbage in the files that people hand over: a result or a clear error, never anything else."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from small_catalog import catalog
from test_record import MEASURED, OUTCOMES, RUN

from solkit import record, wire
from solkit.errors import SolkitError
from solkit.judge.score import score
from solkit.model import Clocks, Run, SlowMode
from solkit.plan.only import parse_only
from solkit.plan.starter import SHAPES
from solkit.plan.sweep import parse_sweep
from solkit.report import annotations, csv, fragment
from solkit.report.renderers import FILE_RENDERERS, RENDERERS

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


TIMED = replace(
    MEASURED,
    times_s=tuple(float(f"1.{place:03}e-6") for place in range(12)),
    sample_count=40,
    median_s=1.005e-6,
    low_s=1.001e-6,
    high_s=1.01e-6,
    clocks=Clocks(1.7e9, 1.5e9, 1.9e9, 2.6e9, 52.0, 400.0, ("software power cap",), 1.6e9),
    sample_hz=tuple(1.5e9 + 3e7 * place for place in range(12)),
    throttled_count=3,
    slow_mode=SlowMode(2e-6, 0.2),
    busy_s=9e-7,
    energy_j=0.1,
    other_process_count=1,
    place_fraction=0.007,
)
HEADER = replace(RUN, method="cupti", settle="sustained", cache_proof_s={"cold": 2e-6, "hot": 1e-6})
TIMED_LINES = (json.loads(wire.header_json(HEADER)), json.loads(record.outcome_json(TIMED)))
TIMED_KEYS = (
    {"settle", "precision_fraction", "cache_proof_s"},
    {
        *("times_s", "median_s", "low_s", "high_s", "floor_s", "sample_count", "cache", "clocks"),
        *("sample_hz", "throttled_count", "slow_mode", "busy_s", "energy_j", "launch_count"),
        *("other_process_count", "set_count", "place_fraction", "method"),
    },
)
TIMED_PLACES = [
    (number, path)
    for number, (document, keys) in enumerate(zip(TIMED_LINES, TIMED_KEYS, strict=True))
    for path in places(document)
    if path[0] in keys
]
EXTREMES = st.sampled_from(
    [0, -1, 1, 1e-300, 5e-324, 1e-12, 1e-3, 0.5, 1e9, 1e24, 1e308, -1e308, 2**63, 10**400, None]
)
CASE_WORD = TIMED.case.operator
ODD = EXTREMES | st.floats(allow_nan=False, allow_infinity=False) | JSON


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(where=st.sampled_from(TIMED_PLACES), new=ODD)
@example(where=(1, ("sample_hz", 4)), new=1e308)
@example(where=(1, ("sample_hz", 4)), new=1e24)
@example(where=(1, ("sample_hz",)), new=[1e-3] + [1e24] * 11)
@example(where=(1, ("clocks", "sm_hz")), new=1e-300)
@example(where=(1, ("median_s",)), new=1e-300)
@example(where=(1, ("energy_j",)), new=1e-12)
@example(where=(1, ("slow_mode",)), new={"median_s": 1e9, "share_fraction": 0.999})
@example(where=(0, ("cache_proof_s",)), new={"\ud800": 1e9})
@example(where=(0, ("precision_fraction",)), new=1e-300)
def test_any_condition_of_a_time_is_reported_or_refused(where: tuple[int, Any], new: Any) -> None:
    """Clocks, modes, energy, counts and states: whatever is read can be shown in every format."""
    number, path = where
    documents = json.loads(json.dumps(TIMED_LINES))
    inner = documents[number]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    text = b"".join(json.dumps(document).encode() + b"\n" for document in documents)
    try:
        run = record.parse(text, "run.jsonl")
    except SolkitError:
        return
    judged = score(run)
    assert {"html", "markdown", "csv", "json", "junit"} == set(RENDERERS)
    for render in RENDERERS.values():
        assert CASE_WORD in render(run, judged)
    for render_file in FILE_RENDERERS.values():
        assert CASE_WORD.encode() in render_file(run, judged)
    assert CASE_WORD in fragment.render(run, judged)
    assert annotations.render(run, judged).count("\n") <= annotations.ANNOTATIONS_MOST


def test_the_good_time_is_good() -> None:
    """What is spoilt above reads whole before."""
    text = b"".join(json.dumps(document).encode() + b"\n" for document in TIMED_LINES)
    assert (TIMED,) == record.parse(text, "run.jsonl").outcomes
