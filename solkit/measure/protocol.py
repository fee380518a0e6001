"""What parent and worker say to each other: one JSON object a line, plain data only.

Parent to worker: {"do": name, ...}. Worker to parent: any number of {"at": index, "stage": name},
then one {"done": payload} or {"error": {...}}; {"lost": {...}} is the last word of a worker whose
device is gone.
"""

import json
from typing import Any

from solkit.errors import BadInput
from solkit.wire import to_json

# How long a worker may be silent at what solkit itself does; a case's own stages take --timeout.
STAGE_LIMIT_S = {"describe": 60.0, "compile": 300.0, "allocate": 120.0, "worker": 180.0}
CASE_STAGES = ("launch", "check", "time")


def limit_s(stage: str, timeout_s: float) -> float:
    """Return how long a stage may go on without a word; timeout_s is the limit of a case."""
    if stage in CASE_STAGES:
        return timeout_s
    return STAGE_LIMIT_S.get(stage, STAGE_LIMIT_S["worker"])


def line(message: dict[str, Any]) -> bytes:
    """Write one message."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def plain(value: object, kind: object = None) -> Any:  # noqa: ANN401  # JSON
    """Turn vocabulary values into plain JSON data."""
    return json.loads(to_json(value, kind))


def typed(kind: Any, value: Any) -> Any:  # noqa: ANN401  # a type form, JSON, a value of that type
    """Turn plain JSON data back into vocabulary values."""
    from solkit.wire import from_json  # noqa: PLC0415  # pydantic, when something arrives

    return from_json(kind, json.dumps(value))


def several(kind: Any, answer: object, count: int) -> list[Any]:  # noqa: ANN401  # a type form
    """Return the `count` values of a kind that an answer holds; BadInput where it does not fit.

    A worker's own answer does. Authors' code can write between its lines.
    """
    try:
        found: list[Any] = typed(list[kind], answer)
        problem = f"it holds {len(found)} of the {count} that were asked for"
    except BadInput as error:
        found, problem = [], error.message
    if len(found) != count:
        raise BadInput(
            f"the worker's answer does not fit: {problem}",
            remedy="run the case alone; a kernel must not write to descriptors it did not open",
        )
    return found
