"""Spec files: one TOML a card becomes a Gpu; a wrong file a BadInput that says what to mend."""

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solkit.errors import BadInput, unknown
from solkit.files import read_whole
from solkit.gpu import PIPES, Gpu, Link, MigProfile, Pipe, Source
from solkit.resources import folder

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

MAX_FILE_BYTES = 100_000
HELP = "see docs/add-a-gpu.md"
_HUGE = 1e20  # ten times the FLOP/s of the largest machine there is: a unit is wrong, not the card
_MOST_SHOWN = 5  # problems named in one message
_ID = re.compile(r"[a-z0-9][a-z0-9_]*")
_CAPABILITY = re.compile(r"\d{1,2}\.\d|gfx[0-9a-f]+")
_PCI = re.compile(r"[0-9A-F]{4}(:[0-9A-F]{4})?")
_CLASS_OF = {"pipes": Pipe, "sources": Source, "links": Link, "mig": MigProfile}
_FRACTIONS = frozenset({"dram_slice_fraction"})


@cache
def _adapter() -> "TypeAdapter[Gpu]":
    from pydantic import TypeAdapter  # noqa: PLC0415  # 0.1 s that most commands don't need

    return TypeAdapter(Gpu)


def load_spec(path: Path) -> Gpu:
    """Read one spec file. Its id is the file's name without `.toml`.

    Raises BadInput, naming file, field and remedy, for whatever is wrong with it: unreadable, too
    big, not TOML, an unknown or missing key, a wrong type, a number not finite and positive.
    """
    return parse_spec(_read(path), where=str(path), stem=path.stem)


def parse_spec(text: str, *, where: str, stem: str) -> Gpu:
    """Turn the text of a spec file into a Gpu; `where` names the file in errors."""
    try:
        table = tomllib.loads(text)
    except RecursionError as error:
        raise BadInput(f"{where}: nested too deeply", remedy=HELP) from error
    except (
        ValueError
    ) as error:  # TOMLDecodeError gives line and column; a number may also be too long
        raise BadInput(
            f"{where}: not TOML: {_short(error)}", remedy=f"mend that line; {HELP}"
        ) from error
    _check_pipe_names(table, where)
    from pydantic import ValidationError  # noqa: PLC0415  # 0.1 s that most commands don't need

    # Through JSON: strict validation takes tables for dataclasses and arrays for tuples only there.
    try:
        gpu = _adapter().validate_json(json.dumps(table, default=str))
    except ValidationError as error:
        raise _wrong(error.errors(include_url=False), where) from error
    except (ValueError, OverflowError, RecursionError) as error:  # an integer too long to print
        raise BadInput(
            f"{where}: a value is beyond any range: {_short(error)}",
            remedy=f"check the units; {HELP}",
        ) from error
    _check_values(gpu, where, stem)
    return gpu


def load_specs(place: Path | None = None) -> dict[str, Gpu]:
    """Read every spec file of a folder (default: the bundled one), keyed and ordered by id."""
    place = folder("hardware_specs") if place is None else place
    if not place.is_dir():
        raise BadInput(
            f"{place}: no such folder of spec files", remedy="name a folder with *.toml files"
        )
    specs: dict[str, Gpu] = {}
    files: dict[str, Path] = {}
    for path in sorted(place.glob("*.toml")):
        gpu = load_spec(path)
        known = files.setdefault(gpu.id.casefold(), path)
        if known != path:
            raise BadInput(
                f"{path}: the id {gpu.id!r} is taken by {known.name}",
                remedy="give each card its own id and file name",
            )
        specs[gpu.id] = gpu
    if not specs:
        raise BadInput(f"{place}: no spec files (*.toml) here", remedy=HELP)
    return specs


def find(name: str, specs: Mapping[str, Gpu]) -> tuple[Gpu, str]:
    """Return the card a person means, and what to say on stderr ("" where the name is exact).

    By id, NVML name, alias (case does not matter) or family, which means its default member.
    """
    wanted = name.strip().casefold()
    for gpu in specs.values():
        if wanted in {known.casefold() for known in (gpu.id, gpu.name, *gpu.aliases)}:
            return gpu, ""
    members = [gpu for gpu in specs.values() if gpu.family and gpu.family.casefold() == wanted]
    if members:
        chosen = next((gpu for gpu in members if gpu.family_default), members[0])
        others = ", ".join(gpu.id for gpu in members if gpu is not chosen)
        note = f"{name} means {chosen.id} ({chosen.name})"
        return chosen, f"{note}; also there: {others}" if others else note
    families = {gpu.family.casefold() for gpu in specs.values() if gpu.family}
    near = get_close_matches(wanted, sorted({*specs, *families}), n=3, cutoff=0.6)
    guess = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise BadInput(
        f"unknown card {name[:200]!r}",
        remedy=f"{guess}`solkit gpus` lists them; for another add a file: docs/add-a-gpu.md",
    )


def gpus_document(specs: Mapping[str, Gpu]) -> dict[str, Any]:
    """Return what `solkit gpus --json` prints: every field of every card, in SI units."""
    return {"gpus": [gpu_document(gpu) for gpu in specs.values()]}


def gpu_document(gpu: Gpu) -> dict[str, Any]:
    """Return one card as plain JSON data; `dram_bytes_per_s` is what scores are taken against."""
    document = {"id": gpu.id, "name": gpu.name, "aliases": list(gpu.aliases)}
    for key in (
        "compute_capability",
        "sm_count",
        "dram_bytes_per_s",
        "dram_bytes",
        "l2_bytes",
        "power_w",
    ):
        document[key] = getattr(gpu, key)
    plain = _plain(gpu)
    return document | {key: value for key, value in plain.items() if key not in document}


def _plain(value: Any) -> Any:  # noqa: ANN401  # walks any field of any dataclass
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


def _read(path: Path) -> str:
    try:
        data = read_whole(
            path,
            most_bytes=MAX_FILE_BYTES,
            remedy="a spec file holds one card; is this the right file?",
        )
    except OSError as error:
        raise BadInput(
            f"{path}: cannot be read: {error.strerror}", remedy="check the path and its rights"
        ) from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path}: not UTF-8 text (byte {error.start})", remedy="save the file as UTF-8"
        ) from error


def _check_pipe_names(table: Mapping[str, Any], where: str) -> None:
    pipes = table.get("pipes")
    absent = table.get("absent_pipes")
    names = list(pipes) if isinstance(pipes, dict) else []
    names += [name for name in absent if isinstance(name, str)] if isinstance(absent, list) else []
    for name in names:
        if name not in PIPES:
            raise unknown("pipe", name, PIPES, where=where, hint=HELP)


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
    kind = error["type"]
    if kind in {"missing", "missing_argument"}:
        return f"{name} is missing", f"add {name}"
    if kind in {"unexpected_keyword_argument", "extra_forbidden"}:
        known = _keys_at(place)
        near = get_close_matches(place[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
        return f"{name} is an unknown key", hint
    if kind in {"float_type", "int_type", "int_from_float", "finite_number", "int_parsing_size"}:
        return (
            f"{name} is not a number of its kind: {_short(error['input'])}",
            f"give {name} as a plain number",
        )
    return f"{name}: {error['msg']}, not {_short(error['input'])}", ""


def _keys_at(place: tuple[str, ...]) -> list[str]:
    """Return the keys known where an unknown one was found."""
    owner = _CLASS_OF.get(place[0], Gpu) if len(place) > 1 else Gpu
    return [item.name for item in fields(owner)]


def _short(value: object, most: int = 120) -> str:
    """Write any value safely: an integer too long to print must not raise in turn."""
    try:
        text = str(value) if isinstance(value, (str, Exception)) else repr(value)
    except (ValueError, RecursionError):
        return "a value too long to print"
    return text if len(text) <= most else text[:most] + "..."


def _check_values(gpu: Gpu, where: str, stem: str) -> None:
    """Refuse what the types cannot: ill-formed names, numbers not finite and positive."""
    for problem, remedy in (*_text_problems(gpu, stem), *_number_problems(gpu)):
        raise BadInput(f"{where}: {problem}", remedy=remedy)


def _text_problems(gpu: Gpu, stem: str) -> Iterator[tuple[str, str]]:
    if gpu.id != stem:
        yield (
            f"the id {_short(gpu.id)!r} is not the file's name",
            f"write id = {_short(stem)!r}, or rename the file",
        )
    if not _ID.fullmatch(gpu.id):
        yield (
            f"the id {_short(gpu.id)!r} is not lower-case letters, digits and underscores",
            "name the file like h200_sxm.toml",
        )
    if not _CAPABILITY.fullmatch(gpu.compute_capability):
        yield (
            f"compute_capability is {_short(gpu.compute_capability)!r}",
            'write it like "9.0", or "gfx942"',
        )
    for number in gpu.pci_ids:
        if not _PCI.fullmatch(number):
            yield (
                f"pci_ids holds {_short(number)!r}",
                'write four upper-case hex digits, "2335", or "2335:18BE" with the subsystem',
            )
    for name in (gpu.name, *gpu.aliases):
        if not name.strip() or not name.isprintable():
            yield f"a card's name is {_short(name)!r}", "copy it from nvidia-smi -L"
    if not gpu.pipes:
        yield "pipes is empty", f"give at least pipes.fp32; {HELP}"


def _number_problems(gpu: Gpu) -> Iterator[tuple[str, str]]:
    for field, value in _numbers(gpu, ""):
        most = 1.0 if field.rpartition(".")[2] in _FRACTIONS else _HUGE
        if not math.isfinite(value) or not 0 < value <= most:
            yield (
                f"{field} is {_short(value)}, not a positive number up to {most:g}",
                "leave out what is unknown or absent (absent_pipes); never write 0",
            )


def _numbers(value: object, name: str) -> list[tuple[str, float]]:
    """Return every number of a card with its dotted name."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, (int, float)):
        # an int beyond float's range compares, but would overflow isfinite
        return [(name, math.copysign(math.inf, value > 0 or -1) if abs(value) > _HUGE else value)]
    if isinstance(value, Mapping):
        return [
            found
            for key, item in value.items()
            for found in _numbers(item, f"{name}.{key}".lstrip("."))
        ]
    if is_dataclass(value) and not isinstance(value, (type, datetime)):
        return [
            found
            for item in fields(value)
            for found in _numbers(getattr(value, item.name), f"{name}.{item.name}".lstrip("."))
        ]
    return []


def numbers(gpu: Gpu) -> dict[str, float]:
    """Return every number of a card by its dotted name, as `sources` must cover them."""
    return dict(_numbers(gpu, ""))
