"""JSON Schemas of the two files that others read and write: shapes.yaml and run.jsonl.

`python -m solkit.plan.schema docs/schemas` writes them; a test holds the committed ones current.
"""

import json
import sys
from pathlib import Path
from typing import Any

from solkit.dtypes import CASE_DTYPES
from solkit.model import Case, Run
from solkit.plan.extents import MOST_EXTENT
from solkit.plan.sweep import VERSION
from solkit.wire import KINDS, LATER_FIELDS, SCHEMA

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def shapes_schema() -> dict[str, Any]:
    """Return the schema of shapes.yaml; operators, axes and params are the catalog's to check."""
    extent = {"type": "integer", "minimum": 0, "maximum": MOST_EXTENT}
    positive = {**extent, "minimum": 1}
    param = {"type": ["string", "number", "boolean"]}
    dtype = {"enum": list(CASE_DTYPES)}
    span = {
        "type": "object",
        "description": "from, from x factor (or + step), ... up to and including to",
        "properties": {
            "from": positive,
            "to": positive,
            "factor": {**extent, "minimum": 2},
            "step": positive,
        },
        "required": ["from", "to"],
        "oneOf": [{"required": ["factor"]}, {"required": ["step"]}],
        "additionalProperties": False,
    }
    axis = {"oneOf": [extent, _some(extent), span]}
    sweep = {
        "type": "object",
        "properties": {
            "operator": {"type": "string"},
            "kernels": _one_or_some({"type": "string"}),
            "dtype": _one_or_some(dtype),
            "params": {"type": "object", "additionalProperties": _one_or_some(param)},
            "shapes": {
                "type": "array",
                "items": {"type": "object", "additionalProperties": extent, "minProperties": 1},
            },
            "grid": {"type": "object", "additionalProperties": axis, "minProperties": 1},
        },
        "required": ["operator"],
        "anyOf": [{"required": ["shapes"]}, {"required": ["grid"]}],
        "additionalProperties": False,
    }
    return {
        "$schema": DRAFT,
        "title": "shapes.yaml",
        "description": "A sweep for `solkit run --shapes` and `solkit plan --shapes`.",
        "type": "object",
        "properties": {
            "version": {"const": VERSION},
            "defaults": {
                "type": "object",
                "properties": {
                    "dtype": _one_or_some(dtype),
                    "kernels": _one_or_some({"type": "string"}),
                },
                "additionalProperties": False,
            },
            "sweeps": {"type": "array", "items": sweep, "minItems": 1},
        },
        "required": ["version", "sweeps"],
        "additionalProperties": False,
    }


def run_schema() -> dict[str, Any]:
    """Return the schema of one line of run.jsonl: a header, an outcome or an end."""
    definitions: dict[str, Any] = {}
    header = _of_class(Run, definitions)
    for name in LATER_FIELDS:
        del header["properties"][name]
    header["properties"] = {
        "record": {"const": "run"},
        "schema": {"const": SCHEMA},
        **header["properties"],
    }
    header["required"] = ["record", "schema", *header["required"]]
    case = _of_class(Case, definitions)
    outcomes = [_flat(kind, _of_class(found, definitions), case) for kind, found in KINDS.items()]
    flat = {
        "Case",
        *(found.__name__ for found in KINDS.values()),
    }  # written out above, not referred to
    count = {"type": "integer", "minimum": 0}
    end = {
        "title": "End",
        "type": "object",
        "properties": {
            "record": {"const": "end"},
            "status": {"enum": ["complete", "interrupted"]},
            "counts": {"type": "object", "additionalProperties": count},
            "duration_s": {"type": "number", "minimum": 0},
        },
        "required": ["record", "status", "counts", "duration_s"],
    }
    return {
        "$schema": DRAFT,
        "title": "a line of run.jsonl",
        "description": f"{SCHEMA}: a header first, then outcomes as they happen, an end last.",
        "oneOf": [header, *outcomes, end],
        "$defs": {name: definitions[name] for name in sorted(definitions) if name not in flat},
    }


def main() -> None:
    """Write both schemas into the folder named."""
    if len(sys.argv) != 2:  # noqa: PLR2004  # the program and the folder
        sys.exit("usage: python -m solkit.plan.schema FOLDER")
    for name, schema in documents().items():
        (Path(sys.argv[1]) / name).write_text(schema, encoding="utf-8")


def documents() -> dict[str, str]:
    """Return the files that are committed, by name."""
    schemas = {"shapes.json": shapes_schema(), "run.json": run_schema()}
    return {name: json.dumps(schema, indent=1) + "\n" for name, schema in schemas.items()}


def _some(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}


def _one_or_some(item: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [item, _some(item)]}


def _of_class(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a dataclass as it is read, its parts moved to `definitions`."""
    from pydantic import TypeAdapter  # noqa: PLC0415  # not where only names are wanted

    schema = TypeAdapter(kind).json_schema()
    definitions.update(schema.pop("$defs", {}))
    return schema


def _flat(kind: str, outcome: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome's schema with the fields of its case beside its own."""
    own = {name: part for name, part in outcome["properties"].items() if name != "case"}
    needed = [name for name in outcome["required"] if name != "case"]
    return {
        **outcome,
        "properties": {
            "record": {"const": "outcome"},
            "kind": {"const": kind},
            **case["properties"],
            **own,
        },
        "required": ["record", "kind", *case["properties"], *needed],
    }


if __name__ == "__main__":
    main()
