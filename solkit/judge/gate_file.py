"""gate.toml: what CI asks of a run, read into a Gate; a wrong file is a BadInput that says why.

```toml
version = 1
roof = "spec"            # spec | clock | measured
fail_under = 0.80
min_effect = 0.02
allow = ["driver"]
[operators.softmax]
fail_under = 0.70
min_effect = 0.05
```
"""

import json
import math
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from solkit.errors import BadInput, unknown
from solkit.files import read_whole
from solkit.judge.conditions import ALLOWED
from solkit.judge.gate import Floors, Gate
from solkit.judge.score import RoofName

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

VERSION = 1
MAX_FILE_BYTES = 100_000
HELP = "see docs/ci.md"
_MOST_SHOWN = 5  # problems named in one message
_STRICT: dict[str, Any] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """The keys of one [operators.NAME] table."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    fail_under: float | None = None
    min_effect: float | None = None


@dataclass(frozen=True, slots=True)
class GateFile:
    """The keys of a gate.toml."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT
    version: int
    roof: RoofName | None = None
    fail_under: float | None = None
    min_effect: float | None = None
    allow: tuple[str, ...] = ()
    operators: dict[str, OperatorTable] = field(default_factory=dict)


@cache
def _adapter() -> "TypeAdapter[GateFile]":
    from pydantic import TypeAdapter  # noqa: PLC0415  # 0.1 s that most commands don't need

    return TypeAdapter(GateFile)


def read_gate(path: Path, known_operators: Collection[str]) -> Gate:
    """Read a gate.toml. `known_operators`: the names that its tables may have.

    Raises BadInput, naming file, key and remedy, for whatever is wrong with it: unreadable, too
    big, not TOML, another version, unknown or missing keys, unknown operators, no fraction.
    """
    return parse_gate(_read(path), known_operators, where=str(path))


def parse_gate(text: str, known_operators: Collection[str], *, where: str) -> Gate:
    """Turn the text of a gate.toml into a Gate; `where` names the file in errors."""
    table = _table(text, where)
    _check_version(table, where)
    from pydantic import ValidationError  # noqa: PLC0415  # 0.1 s that most commands don't need

    # Through JSON: strict validation takes arrays for tuples only there.
    try:
        held = _adapter().validate_json(json.dumps(table, default=str))
    except ValidationError as error:
        raise _wrong(error.errors(include_url=False), where) from error
    except (ValueError, OverflowError, RecursionError) as error:  # an integer too long to print
        raise BadInput(f"{where}: a value is beyond any range", remedy=HELP) from error
    for name in held.operators:
        if name not in known_operators:
            raise unknown("operator", name, known_operators, where=f"{where}: operators", hint=HELP)
    for name in held.allow:
        if name not in ALLOWED:
            raise unknown("condition", name, ALLOWED, where=f"{where}: allow", hint=HELP)
    for problem, remedy in _number_problems(held):
        raise BadInput(f"{where}: {problem}", remedy=remedy)
    if not _asks(held):
        raise BadInput(
            f"{where}: asks for nothing", remedy=f"give it fail_under = 0.8 or min_effect; {HELP}"
        )
    return Gate(
        floors=Floors(
            default_fraction=held.fail_under,
            operators_fraction={
                name: own.fail_under
                for name, own in held.operators.items()
                if own.fail_under is not None
            },
            roof=held.roof,
        ),
        min_effect_fraction=held.min_effect,
        operators_min_effect_fraction={
            name: own.min_effect
            for name, own in held.operators.items()
            if own.min_effect is not None
        },
        allow=held.allow,
    )


def _read(path: Path) -> str:
    try:
        data = read_whole(
            path, most_bytes=MAX_FILE_BYTES, remedy="a gate.toml holds a few lines: is it this one?"
        )
    except OSError as error:
        raise BadInput(
            f"{path}: cannot be read: {error.strerror or error}",
            remedy="check the path and its rights",
        ) from error
    try:
        return data.decode("utf-8-sig")  # editors on Windows write its mark first
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path}: not UTF-8 text (byte {error.start})", remedy="save the file as UTF-8"
        ) from error


def _table(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise BadInput(f"{where}: nested too deeply", remedy=HELP) from error
    except ValueError as error:  # TOMLDecodeError gives line and column
        raise BadInput(
            f"{where}: not TOML: {_short(error)}", remedy=f"mend that line; {HELP}"
        ) from error


def _check_version(table: dict[str, Any], where: str) -> None:
    """Refuse another version first: its other keys would only look wrong."""
    if "version" not in table:
        raise BadInput(f"{where}: version is missing", remedy=f"write version = {VERSION}")
    version = table["version"]
    if version is True or version != VERSION:
        raise BadInput(
            f"{where}: version is {_short(version)}, this solkit reads {VERSION}",
            remedy=f"write version = {VERSION}, or take a solkit that reads the other",
        )


def _asks(held: GateFile) -> bool:
    tables: tuple[GateFile | OperatorTable, ...] = (held, *held.operators.values())
    return bool(held.allow) or any(
        each.fail_under is not None or each.min_effect is not None for each in tables
    )


def _number_problems(held: GateFile) -> Iterator[tuple[str, str]]:
    tables: dict[str, GateFile | OperatorTable]
    tables = {"": held, **{f"operators.{name}.": own for name, own in held.operators.items()}}
    for place, table in tables.items():
        floor, effect = table.fail_under, table.min_effect
        if floor is not None and not (math.isfinite(floor) and 0 < floor <= 1):
            yield (
                f"{place}fail_under is {floor:g}, no fraction above 0 and up to 1",
                "write e.g. 0.8 for 80 %",
            )
        if effect is not None and not (math.isfinite(effect) and 0 < effect < 1):
            yield (
                f"{place}min_effect is {effect:g}, no fraction above 0 and below 1",
                "write e.g. 0.02 for 2 %",
            )


def _wrong(errors: "list[ErrorDetails]", where: str) -> BadInput:
    said = [_problem(error) for error in errors[:_MOST_SHOWN]]
    more = f"; and {len(errors) - _MOST_SHOWN} more" if len(errors) > _MOST_SHOWN else ""
    remedies = list(dict.fromkeys(remedy for _, remedy in said if remedy))
    return BadInput(
        f"{where}: " + "; ".join(text for text, _ in said) + more,
        remedy="; ".join((*remedies, HELP)),
    )


def _problem(error: "ErrorDetails") -> tuple[str, str]:
    """Put one validation error into words: what is wrong where, and what to do."""
    place = tuple(str(part) for part in error["loc"])
    name = _short(".".join(place)) or "the file"
    if error["type"] in {"unexpected_keyword_argument", "extra_forbidden"}:
        owner = OperatorTable if len(place) > 1 else GateFile
        known = [item.name for item in fields(owner)]
        near = get_close_matches(place[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
        return f"{name} is an unknown key", hint
    if error["type"] in {"float_type", "finite_number"}:
        return f"{name} is no number: {_short(error['input'])}", f"give {name} as a plain fraction"
    return f"{name}: {error['msg']}, not {_short(error['input'])}", ""


def _short(value: object, most: int = 120) -> str:
    """Write any value safely: an integer too long to print must not raise in turn."""
    try:
        text = str(value) if isinstance(value, (str, Exception)) else repr(value)
    except (ValueError, RecursionError):
        return "a value too long to print"
    return text if len(text) <= most else text[:most] + "..."
