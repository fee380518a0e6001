"""The committed JSON Schemas are current, and what we write and read fits them."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from test_record import OUTCOMES, RUN

from solkit import record
from solkit.plan.schema import documents, run_schema, shapes_schema
from solkit.plan.starter import SHAPES

ROOT = Path(__file__).parents[2]


def check(schema: dict[str, Any], document: object) -> None:
    jsonschema.Draft202012Validator(schema).validate(document)


@pytest.mark.parametrize("name", ["run.json", "shapes.json"])
def test_the_committed_schema_is_current(name: str) -> None:
    """After a change of a file format: python -m solkit.plan.schema docs/schemas."""
    committed = (ROOT / "docs" / "schemas" / name).read_text(encoding="utf-8")
    assert json.loads(documents()[name]) == json.loads(committed)


def test_every_line_that_is_written_fits_the_schema(tmp_path: Path) -> None:
    """Header, each kind of outcome, and the end."""
    path = tmp_path / "run.jsonl"
    with record.Writer(path, RUN) as writer:
        writer.add(OUTCOMES)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert 5 == len(lines)
    for line in lines:
        check(run_schema(), json.loads(line))


@pytest.mark.parametrize(
    "text", [SHAPES, (ROOT / "examples" / "shapes.yaml").read_text(encoding="utf-8")]
)
def test_our_own_sweeps_fit_the_schema(text: str) -> None:
    """The starter and the example."""
    check(shapes_schema(), yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "version: 2\nsweeps: [{operator: a, shapes: [{x: 1}]}]",
        "version: 1\nsweeps: []",
        "version: 1\nsweeps: [{operator: a}]",
        "version: 1\nsweeps: [{operator: a, shapes: [{x: -1}]}]",
        "version: 1\nsweeps: [{operator: a, shapes: [{x: 1.5}]}]",
        "version: 1\nsweeps: [{operator: a, grid: {x: {from: 1, to: 8}}}]",
        "version: 1\nsweeps: [{operator: a, grid: {x: {from: 1, to: 8, factor: 1}}}]",
        "version: 1\nsweeps: [{operator: a, dtype: fp12, shapes: [{x: 1}]}]",
        "version: 1\nsweep: [{operator: a, shapes: [{x: 1}]}]",
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(text: str) -> None:
    """An editor that checks by the schema says so before solkit does."""
    with pytest.raises(jsonschema.ValidationError):
        check(shapes_schema(), yaml.safe_load(text))


def test_an_outcome_with_a_hole_does_not_fit() -> None:
    """Every field of the case stands in every outcome."""
    line = json.loads(record.outcome_json(OUTCOMES[2]))
    for name in ("operator", "kernel", "shape", "dtype", "params", "reason"):
        with pytest.raises(jsonschema.ValidationError):
            check(run_schema(), {key: value for key, value in line.items() if key != name})
