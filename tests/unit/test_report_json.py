"""The JSON document: every number of a judged run, raw, and a schema that holds it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from synthetic import hot_outcomes, measured, outcomes, synthetic_run

from solkit import record
from solkit.judge.score import score
from solkit.model import Case, Failed, Run, Skipped, Work
from solkit.report import csv
from solkit.report.columns import COLUMNS, NAMES, values
from solkit.report.json import render
from solkit.report.json_schema import schema

ROOT = Path(__file__).parents[2]
SCHEMA = jsonschema.Draft202012Validator(schema())
CASE = Case("copy", "solkit", {"elements": 8}, "bf16", {"layout": "nk"})
GOOD = measured(CASE, Work(10**9, 10**9, {"bf16_tensor": 7}), time_s=2e-3)
RECORDED = record.read(ROOT / "benchmarks" / "h200" / "main.jsonl")


def read(run: Run, baseline: str | None = None) -> dict[str, Any]:
    """Return the document, once it has been found to fit its schema."""
    found: dict[str, Any] = json.loads(render(run, score(run, baseline=baseline)))
    SCHEMA.validate(found)
    return found


def test_the_committed_schema_is_current() -> None:
    """After a change: python -m solkit.report.json_schema docs/schemas/report.json."""
    committed = (ROOT / "docs" / "schemas" / "report.json").read_text(encoding="utf-8")
    assert schema() == json.loads(committed)
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize(
    "run",
    [
        synthetic_run(),
        synthetic_run(hot_outcomes()),
        synthetic_run(gpu=None, made=outcomes(None)),
        synthetic_run([]),
        replace(synthetic_run([GOOD]), ended=None, ceilings=None, planned_count=None),
        RECORDED,
    ],
    ids=["every status", "hot", "cpu", "empty", "cut", "recorded"],
)
def test_every_run_fits_the_schema(run: Run) -> None:
    """Each kind of outcome, of device and of ending."""
    assert len(run.outcomes) == len(read(run)["cases"])


def test_a_case_has_the_columns_of_the_csv_by_their_names() -> None:
    """With the same values, but in full precision; the shape is an object."""
    run = synthetic_run()
    judged = score(run, baseline="torch")
    for item, case in zip(judged, read(run, "torch")["cases"], strict=True):
        if case["status"] in ("measured", "invalid"):
            row = values(item)
            names = [each.name for each in COLUMNS if each.name not in ("shape", "verdict")]
            assert [row[name] for name in names] == [case[name] for name in names]


def test_the_numbers_are_raw_and_in_si_units() -> None:
    """1 GB read and written in 2 ms at 2 TB/s is a score of one half under the data sheet."""
    (case,) = read(synthetic_run([GOOD]))["cases"]
    assert ({"elements": 8}, {"layout": "nk"}, 2e-3, 1e-3, 0.5, 7) == tuple(
        case[name] for name in ("shape", "params", "median_s", "sol_s", "sol_score", "flop")
    )
    assert list(GOOD.times_s) == case["outcome"]["times_s"]
    assert GOOD.clocks.sm_hz == case["outcome"]["clocks"]["sm_hz"]
    assert GOOD.check.error_fraction == case["outcome"]["check"]["error_fraction"]
    assert "no baseline kernel was named" == case["judgement"]["gap_reason"]


def test_what_has_no_time_says_why() -> None:
    """Failed and skipped cases keep their names and have none of the numbers."""
    run = synthetic_run(
        [Failed(CASE, "check", "3 differ", "Fix it.", (), "wrong_values"), Skipped(CASE, "no pipe")]
    )
    failed, skipped = read(run)["cases"]
    assert ("failed", "check", "wrong_values", "3 differ", "Fix it.") == (
        failed["status"],
        *(failed["outcome"][name] for name in ("stage", "verdict", "message", "remedy")),
    )
    assert ("skipped", {"reason": "no pipe"}) == (skipped["status"], skipped["outcome"])
    assert [*NAMES, "status", "outcome"] == [
        name for name in (*NAMES, "status", "outcome", "median_s") if name in skipped
    ]


def test_counts_and_medians_are_given_over_all_and_for_each_operator_and_kernel() -> None:
    """INVALID and failed cases are counted and in no median."""
    found = read(synthetic_run())
    assert {
        "all": 69,
        "measured": 63,
        "invalid": 1,
        "failed": 2,
        "skipped": 3,
        "in_medians": 63,
    } == found["summary"]["counts"]
    assert 0.6556246401542289 == pytest.approx(found["summary"]["medians"]["sol_score"])
    softmax = next(each for each in found["operators"] if each["operator"] == "softmax")
    assert [("solkit", 6), ("torch", 6), ("fast", 0)] == [
        (each["kernel"], each["counts"]["in_medians"]) for each in softmax["kernels"]
    ]
    assert softmax["kernels"][2]["medians"] == {
        "sol_score": None,
        "sol_clock": None,
        "sol_measured": None,
    }


def test_hot_cases_are_measured_and_in_no_median() -> None:
    """What came from the L2 answers another question."""
    counts = read(synthetic_run(hot_outcomes()))["summary"]["counts"]
    assert (4, 4, 2) == (counts["all"], counts["measured"], counts["in_medians"])


def test_the_header_says_what_was_measured_on_and_against() -> None:
    """Device, versions, seed, and the limits of each roof."""
    found = read(RECORDED)
    assert ("NVIDIA H200", "h200_sxm", 0, "complete") == (
        found["device"]["name"],
        found["run"]["spec"],
        found["run"]["seed"],
        found["run"]["ended"],
    )
    assert 4.8e12 == found["roofs"]["spec"]["dram_bytes_per_s"]
    assert 4e12 < found["roofs"]["measured"]["dram_bytes_per_s"] < 4.8e12
    assert "solkit" in found["run"]["versions"]
    assert 2 == len(found["caveats"])


def test_a_number_that_is_infinite_is_null() -> None:
    """JSON has no infinity; a method without a floor has no multiple of it."""
    (case,) = read(synthetic_run([replace(GOOD, floor_s=0.0)]))["cases"]
    assert {"word": "throughput", "floors_count": None} == case["judgement"]["regime"]


def test_hostile_names_are_kept_as_they_are_in_ascii() -> None:
    """A program can find the case again, and a terminal is not acted on."""
    name = '\x1b[31m<b>"\u202e\ud800\n' + "x" * 10_000
    run = synthetic_run([Failed(replace(CASE, operator=name), "check", name)])
    text = render(run, score(run))
    assert text.isascii()
    assert "\x1b" not in text
    (case,) = json.loads(text)["cases"]
    assert (name, name) == (case["operator"], case["outcome"]["message"])


def test_the_same_run_gives_the_same_bytes() -> None:
    """And ends with a line break, as a text file does."""
    run = synthetic_run()
    assert render(run, score(run)) == render(run, score(run))
    assert render(run, score(run)).endswith("\n}\n")


@pytest.mark.parametrize(
    "path",
    [("schema",), ("run", "seed"), ("summary", "counts"), ("cases", 0, "median_s")],
    ids=str,
)
def test_a_document_with_a_hole_does_not_fit(path: tuple[str | int, ...]) -> None:
    """Every field is there, or null; a reader need not ask."""
    found = read(synthetic_run([GOOD]))
    *way, last = path
    place: Any = found
    for step in way:
        place = place[step]
    del place[last]
    with pytest.raises(jsonschema.ValidationError):
        SCHEMA.validate(found)


def test_csv_and_json_agree_on_the_order_of_cases() -> None:
    """The run's order."""
    run = synthetic_run()
    lines = csv.render(run, score(run)).splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == [
        case["operator"] for case in read(run)["cases"]
    ]
