"""Parquet: what the CSV says, typed, and the samples beside it."""

import csv
import io
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic import hot_outcomes, synthetic_run

from solkit import record
from solkit.errors import NoDevice
from solkit.judge.score import score
from solkit.model import Case, Failed, Measured, Run, Work
from solkit.report import csv as report_csv
from solkit.report.columns import COLUMNS
from solkit.report.parquet import render

RECORDED = record.read(Path(__file__).parents[2] / "benchmarks" / "h200" / "main.jsonl")
CASE = Case("copy", "solkit", {"elements": 8}, "bf16")


def read(run: Run) -> pa.Table:
    return pq.read_table(pa.BufferReader(render(run, score(run))))


@pytest.mark.parametrize(
    "run",
    [RECORDED, synthetic_run(), synthetic_run(hot_outcomes()), synthetic_run([])],
    ids=["recorded", "every status", "hot", "empty"],
)
def test_every_value_is_that_of_the_csv(run: Run) -> None:
    """Text as text, numbers to the last digit the CSV writes, empty cells as null."""
    rows = list(csv.DictReader(io.StringIO(report_csv.render(run, score(run)))))
    found = read(run).to_pylist()
    assert len(rows) == len(found)
    for row, item in zip(rows, found, strict=True):
        for column in COLUMNS:
            value = item[column.name]
            if value is None:
                assert "" == row[column.name], column.name
            elif column.kind is str:
                assert row[column.name] == value
            else:
                assert float(row[column.name]) == pytest.approx(value, rel=1e-11)


def test_the_columns_are_typed() -> None:
    """Text, whole numbers and floats, in the order of the CSV; the samples come last."""
    kinds = {str: "string", int: "int64", float: "double"}
    wanted = [(each.name, kinds[each.kind]) for each in COLUMNS if each.name != "flop"]
    found = read(synthetic_run()).schema
    assert wanted == [
        (field.name, str(field.type)) for field in found if field.name not in ("flop", "times_s")
    ]
    assert pa.float64() == found.field("flop").type
    assert pa.list_(pa.float64()).value_type == found.field("times_s").type.value_type


def test_the_samples_are_there_in_their_order() -> None:
    """As recorded; null for a case that has none."""
    run = synthetic_run()
    assert [
        list(each.times_s) if isinstance(each, Measured) else None for each in run.outcomes
    ] == read(run).column("times_s").to_pylist()


def test_the_file_says_what_it_was_measured_on() -> None:
    """In the metadata of its schema, which readers keep."""
    known = read(RECORDED).schema.metadata
    assert (b"NVIDIA H200", b"cupti", b"0") == tuple(
        known[name] for name in (b"solkit.card", b"solkit.method", b"solkit.seed")
    )


def test_the_same_run_gives_the_same_bytes() -> None:
    """No time of writing, no path."""
    run = synthetic_run()
    assert render(run, score(run)) == render(run, score(run))


def test_counts_beyond_64_bits_are_kept_as_floats() -> None:
    """The sum of two pipes can be larger than either may."""
    outcome = next(each for each in RECORDED.outcomes if isinstance(each, Measured))
    most = 2**63 - 1
    huge = replace(outcome, work=Work(most, 0, {"fp64_tensor": most, "bf16_tensor": most}))
    (row,) = read(replace(RECORDED, outcomes=(huge,))).to_pylist()
    assert (most, pytest.approx(2.0**64)) == (row["read_bytes"], row["flop"])


def test_hostile_names_are_written_clean() -> None:
    """Lone surrogates have no UTF-8, controls no use."""
    case = replace(CASE, operator="\ud800\x00=1\u202e", kernel="k" * 10_000)
    (row,) = read(synthetic_run([Failed(case, "check", "no")])).to_pylist()
    assert ("\ufffd=1", "k" * 10_000) == (row["operator"], row["kernel"])


def test_without_pyarrow_the_remedy_is_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a traceback."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(NoDevice, match="needs pyarrow") as caught:
        render(RECORDED, ())
    assert "pip install 'solkit[parquet]'" == caught.value.remedy
