"""The vocabulary as JSON: what travels on the worker's pipe, and the lines of run.jsonl."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from solkit.errors import BadInput
from solkit.model import Case, Failed, Measured, Outcome, Run, Skipped
from solkit.soundness import header_problem, outcome_problem

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

SCHEMA = "solkit.run/1"
KINDS: dict[str, type[Outcome]] = {"measured": Measured, "failed": Failed, "skipped": Skipped}

CASE_FIELDS = tuple(field.name for field in fields(Case))
# What a header does not hold: it is written before there is an outcome or an end.
LATER_FIELDS = ("outcomes", "ended", "duration_s")
T = TypeVar("T")


def adapter(kind: Any, *, finite: bool = True) -> "TypeAdapter[Any]":  # noqa: ANN401  # any type form
    """Return the cached reader and writer of a tuple of one `kind`; pydantic loads on first use."""
    return _adapter(kind, finite)


@cache
def _adapter(kind: Any, finite: bool) -> "TypeAdapter[Any]":  # noqa: ANN401, FBT001  # a cache key
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415  # 0.1 s, not at CLI start-up

    # A dataclass takes no config from outside, but inherits that of a type around it.
    config = ConfigDict(allow_inf_nan=not finite, ser_json_inf_nan="constants")
    return TypeAdapter(tuple[kind], config=config)


def to_json(value: object, kind: object = None) -> bytes:
    """Write a value as JSON in one line; `kind` where its class alone does not say (list[Case])."""
    return adapter(kind or type(value), finite=False).dump_json((value,))[1:-1]


def from_json(kind: type[T], data: bytes | str, *, finite: bool = False) -> T:
    """Read what `to_json` wrote; raise BadInput where it does not fit, or is not `finite`."""
    from pydantic import ValidationError  # noqa: PLC0415

    raw = data.encode() if isinstance(data, str) else data
    try:
        value: T = adapter(kind, finite=finite).validate_json(b"[" + raw + b"]")[0]
    except ValidationError as error:
        raise BadInput(f"not a {getattr(kind, '__name__', kind)}: {first(error)}") from error
    return value


def case_json(case: Case) -> bytes:
    """Write a case as JSON."""
    return to_json(case)


def case_from_json(data: bytes | str) -> Case:
    """Read a case; raise BadInput where it does not fit."""
    return from_json(Case, data)


def outcome_json(outcome: Outcome) -> bytes:
    """Write an outcome as the line that run.jsonl holds, without its newline.

    Numbers that can't be fail their case, for a line that can't be read would take the whole run
    with it. Raises BadInput where not even the case can be written.
    """
    try:
        line, problem = _outcome_line(outcome), outcome_problem(outcome)
        said = f"its numbers can't be: {problem}"
    except ValueError:  # NaN or infinity: a number nobody can judge
        line, problem = b"", "a number is not finite"
        said = "its numbers are not finite"
    if not problem:
        return line
    if isinstance(outcome, Measured):
        return outcome_json(Failed(outcome.case, "time", said, "measure the case again"))
    raise BadInput(
        f"{outcome.case} can't be recorded: {problem}",
        remedy="give its operator extents, a dtype and params that can be written down",
    )


def _outcome_line(outcome: Outcome) -> bytes:
    """Write an outcome's line; ValueError where a number of it is not finite."""
    found: dict[str, Any] = adapter(type(outcome)).dump_python((outcome,), mode="json")[0]
    case = found.pop("case")
    kind = type(outcome).__name__.lower()
    return compact({"record": "outcome", "kind": kind, **case, **_rounded(found)})


def outcome_from_json(data: bytes | str) -> Outcome:
    """Read an outcome's line; raise BadInput where it does not fit."""
    return outcome_from(loads(data))


def outcome_from(line: Mapping[str, Any]) -> Outcome:
    """Build an outcome from its parsed line; raise BadInput where it does not fit."""
    from pydantic import ValidationError  # noqa: PLC0415

    kind = line.get("kind")
    found = KINDS.get(kind) if isinstance(kind, str) else None
    if found is None:
        raise BadInput(
            f"an outcome of the kind {str(kind)[:80]!r}", remedy=f"known: {', '.join(KINDS)}"
        )
    nested = {key: value for key, value in line.items() if key not in CASE_FIELDS}
    nested["case"] = {key: line[key] for key in CASE_FIELDS if key in line}
    try:
        outcome = cast("Outcome", adapter(found).validate_python((nested,))[0])
    except ValidationError as error:
        raise BadInput(f"an outcome that does not fit: {first(error)}") from error
    problem = outcome_problem(outcome)
    if problem:
        raise BadInput(f"an outcome that can't be: {problem}")
    return outcome


def header_json(run: Run) -> bytes:
    """Write the header line of a run, without its newline."""
    found: dict[str, Any] = adapter(Run).dump_python((replace(run, outcomes=()),), mode="json")[0]
    kept = {name: value for name, value in found.items() if name not in LATER_FIELDS}
    return compact({"record": "run", "schema": SCHEMA, **kept})


def header_from(line: Mapping[str, Any]) -> Run:
    """Build a run without outcomes from its parsed header; raise BadInput where it does not fit."""
    from pydantic import ValidationError  # noqa: PLC0415

    schema = line.get("schema")
    if line.get("record") != "run" or not isinstance(schema, str):
        raise BadInput(
            "no run header: this is not a run of solkit",
            remedy="give the run.jsonl that `solkit run` wrote, or its folder",
        )
    if schema != SCHEMA:
        raise BadInput(
            f"the schema is {schema[:80]!r}, this solkit reads {SCHEMA!r}",
            remedy="read it with the version of solkit that wrote it"
            + _writer(line)
            + ", or measure again",
        )
    held = {
        key: value for key, value in line.items() if key not in ("record", "schema", *LATER_FIELDS)
    }
    try:
        # as JSON, not as objects: strict types (Gpu) take a list for a tuple only there
        run: Run = adapter(Run).validate_json(b"[" + compact(held) + b"]")[0]
    except ValidationError as error:
        raise BadInput(f"the run header does not fit: {first(error)}") from error
    except ValueError as error:  # 1e999 is read as infinity, which no JSON holds
        raise BadInput("the run header does not fit: a number is beyond any range") from error
    problem = header_problem(run)
    if problem:
        raise BadInput(f"the run header can't be: {problem}")
    return run


def loads(data: bytes | str) -> dict[str, Any]:
    """Parse one JSON object; NaN, infinity and anything but an object raise BadInput."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise BadInput(f"not JSON: {str(error)[:200]}") from error
    if not isinstance(value, dict):
        raise BadInput("not a JSON object")
    return value


def compact(value: object) -> bytes:
    """Write JSON without blanks, in UTF-8; NaN and infinity raise ValueError."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")  # lone surrogates come from odd file names


def first(error: "ValidationError") -> str:
    """Say the first thing a validation found, in one line."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    place = ".".join(str(part) for part in details[0]["loc"][1:])
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return (
        f"{place[:200]}: {details[0]['msg'][:200]}{more}"
        if place
        else f"{details[0]['msg'][:200]}{more}"
    )


def _refuse_constant(name: str) -> None:
    message = f"{name} is no number"
    raise ValueError(message)


def _writer(line: Mapping[str, Any]) -> str:
    versions = line.get("versions")
    version = versions.get("solkit") if isinstance(versions, dict) else None
    return f" ({str(version)[:40]})" if version else ""


def _rounded(value: Any, name: str = "") -> Any:  # noqa: ANN401  # JSON in, JSON out
    """Round whatever is in seconds: by the suffix of its own name, or of the name around it."""
    if isinstance(value, float):
        return _shortened(value) if name.endswith("_s") else value
    if isinstance(value, dict):
        return {
            key: _rounded(item, name if name.endswith("_s") else key) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_rounded(item, name) for item in value]
    return value


def _shortened(value_s: float) -> float:
    """Keep 0.1 ns or six digits, whichever is finer: both are far below any timer's tick."""
    return round(value_s, 10) if abs(value_s) >= 1e-4 else float(f"{value_s:.6g}")  # noqa: PLR2004
