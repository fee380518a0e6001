"""The JSON Schema of the JSON document, from the classes that it is written from.

`python -m solkit.report.json_schema docs/schemas/report.json` writes it; a test holds the committed
one current.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from solkit.judge.score import Scored
from solkit.model import Case, Failed, Measured, Run, Skipped
from solkit.report.columns import COLUMNS
from solkit.report.json import BESIDE, CASE_COLUMNS, ELSEWHERE, SCHEMA, SCORES, STATUSES

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_JSON_TYPES: Mapping[type, str] = {str: "string", int: "integer", float: "number"}
_COUNT = {"type": "integer", "minimum": 0}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document, from the classes that it is written from."""
    parts: dict[str, Any] = {}
    case = _fields(Case, parts)
    judgement = _fields(Scored, parts, without=BESIDE)
    parts["Regime"]["properties"]["floors_count"] = {"type": ["number", "null"]}
    columns = {
        column.name: {"type": [_JSON_TYPES[column.kind], "null"]}
        for column in COLUMNS
        if column.name in CASE_COLUMNS
    }
    measured = {
        **case,
        **columns,
        "status": {"enum": ["measured", "invalid"]},
        "judgement": _object({**judgement, "remarks": _some({"type": "string"})}),
        "outcome": _object(_fields(Measured, parts, without=("case",))),
    }
    others = [
        _object(
            {
                **case,
                "status": {"const": status},
                "outcome": _object(_fields(kind, parts, without=("case",))),
            }
        )
        for status, kind in (("failed", Failed), ("skipped", Skipped))
    ]
    whole = {
        "counts": _object(dict.fromkeys(("all", *STATUSES, "in_medians"), _COUNT)),
        "medians": _object({name: {"type": ["number", "null"]} for name in SCORES}),
    }
    kernel = _object({"kernel": {"type": "string"}, **whole})
    limits = {"dram_bytes_per_s": {"type": "number"}, "pipes_flop_per_s": _map("number")}
    properties = {
        "schema": {"const": SCHEMA},
        "run": _object(
            {**_fields(Run, parts, without=ELSEWHERE), "spec": {"type": ["string", "null"]}}
        ),
        "device": parts["DeviceFacts"],
        "roofs": {"type": "object", "additionalProperties": _object(limits)},
        "caveats": _some({"type": "string"}),
        "summary": _object(whole),
        "operators": _some(
            _object({"operator": {"type": "string"}, **whole, "kernels": _some(kernel)})
        ),
        "cases": _some({"oneOf": [_object(measured), *others]}),
    }
    return {
        "$schema": DRAFT,
        "title": SCHEMA,
        "description": "A judged run, as `solkit report --format json` writes it.",
        **_object(properties),
        "$defs": {name: parts[name] for name in sorted(_used(properties, parts))},
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has every one of these properties, and maybe more."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _some(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _map(kind: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": {"type": kind}}


def _fields(kind: type, parts: dict[str, Any], without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the properties of a class of the vocabulary; classes within it go to `parts`."""
    from pydantic import TypeAdapter  # noqa: PLC0415  # 0.1 s, not at CLI start-up

    found = TypeAdapter(kind).json_schema(mode="serialization")
    parts.update(found.get("$defs", {}))
    held: dict[str, Any] = found["properties"]
    return {name: part for name, part in held.items() if name not in without}


def _used(part: Any, parts: Mapping[str, Any]) -> set[str]:  # noqa: ANN401  # any JSON
    """Return the names of all parts that one refers to, through others too."""
    names = set()
    for reference in _references(part):
        names |= {reference} | _used(parts[reference], parts)
    return names


def _references(part: Any) -> set[str]:  # noqa: ANN401  # any JSON
    if isinstance(part, dict):
        own = {part["$ref"].rpartition("/")[2]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*map(_references, part.values()))
    return set().union(*map(_references, part)) if isinstance(part, (list, tuple)) else set()


def main() -> None:
    """Write the schema into the file named."""
    if len(sys.argv) != 2:  # noqa: PLR2004  # the program and the file
        sys.exit("usage: python -m solkit.report.json_schema FILE")
    Path(sys.argv[1]).write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
