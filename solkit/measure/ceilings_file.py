"""Stored ceilings: one file for each card, driver and timing method, with every sample.

A file that is broken, of another schema or solkit, or of another card is told and measured anew. It
is written whole under another name and renamed. Removing files, or the folder, is always safe.
"""

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from solkit import __version__
from solkit.errors import BadInput, NoDevice
from solkit.files import read_whole
from solkit.gpu import DeviceFacts
from solkit.measure.device import nvrtc_cache
from solkit.model import Ceilings
from solkit.soundness import ceilings_problem
from solkit.wire import from_json, loads, to_json

SCHEMA = "solkit.ceilings/1"
MOST_BYTES = 8 << 20  # sixty points of 41 samples and twenty rates are 0.1 MB
Say = Callable[[str], None]


def folder() -> Path:
    """Return where ceilings are kept: beside the compiled kernels, in $SOLKIT_CACHE_DIR first."""
    return nvrtc_cache.folder().parent / "ceilings"


def path_of(facts: DeviceFacts, method: str) -> Path:
    """Return the file of a card, its driver and a timing method."""
    parts = (*_key(facts), method)
    return folder() / ("_".join(re.sub(r"[^A-Za-z0-9.]+", "-", part) for part in parts) + ".json")


def stamped(ceilings: Ceilings, facts: DeviceFacts, now: datetime) -> Ceilings:
    """Return ceilings that say when and where they were measured."""
    uuid, driver = _key(facts)
    created = f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return replace(ceilings, created=created, uuid=uuid, driver=driver)


def document(ceilings: Ceilings, facts: DeviceFacts, method: str) -> dict[str, Any]:
    """Return what a file holds, as plain data."""
    uuid, driver = _key(facts)
    return {
        "schema": SCHEMA,
        "solkit": __version__,
        "device": facts.name,
        "uuid": uuid,
        "driver": driver,
        "timer": method,
        "ceilings": json.loads(to_json(ceilings)),
    }


def text(ceilings: Ceilings, facts: DeviceFacts, method: str) -> str:
    """Return what a file holds, as its text."""
    return json.dumps(document(ceilings, facts, method), indent=1, allow_nan=False) + "\n"


def save(ceilings: Ceilings, facts: DeviceFacts, method: str) -> Path:
    """Write ceilings to their file whole or not at all; NoDevice when that fails."""
    target = path_of(facts, method)
    # Opened by name: a file of the tempfile module would be its owner's alone, whatever the umask.
    part = target.with_name(f".{uuid4().hex}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text(ceilings, facts, method), encoding="utf-8")
        part.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            part.unlink(missing_ok=True)
        raise NoDevice(
            f"{target}: the ceilings can't be written: {error.strerror or error}",
            remedy="free some space, or set SOLKIT_CACHE_DIR to a folder that can be written",
        ) from error
    return target


def load(facts: DeviceFacts, method: str, *, say: Say) -> Ceilings | None:
    """Return the stored ceilings of this card, driver and method; None where there are none.

    `say` hears why a file that is there is not used.
    """
    path = path_of(facts, method)
    try:
        data = read_whole(path, most_bytes=MOST_BYTES, remedy="delete it")
    except FileNotFoundError:
        return None
    except (OSError, BadInput) as error:
        say(f"{path}: can't be read ({error}): the ceilings are measured anew")
        return None
    try:
        return _read(data, facts, method)
    except BadInput as error:
        say(f"{path}: {error.message}: the ceilings are measured anew")
        return None


def _read(data: bytes, facts: DeviceFacts, method: str) -> Ceilings:
    found = loads(data)
    if found.get("schema") != SCHEMA:
        raise BadInput(f"its schema is {str(found.get('schema'))[:40]!r}, not {SCHEMA!r}")
    if found.get("solkit") != __version__:  # its kernels, or its ways to time them, may be others
        writer = str(found.get("solkit"))[:40]
        raise BadInput(f"it was measured by solkit {writer!r}, this is {__version__!r}")
    uuid, driver = _key(facts)
    for name, value in (("uuid", uuid), ("driver", driver), ("timer", method)):
        _same(name, found.get(name), value)
    ceilings = from_json(Ceilings, json.dumps(found.get("ceilings")), finite=True)
    # What is read, and what a run's header then holds, says the same once more.
    _same("uuid", ceilings.uuid, uuid)
    _same("driver", ceilings.driver, driver)
    _same("timer", ceilings.method.partition(",")[0], method)
    problem = ceilings_problem(ceilings) or ("" if ceilings.dram else "it holds no DRAM ceiling")
    if problem:
        raise BadInput(problem)
    return ceilings


def _same(name: str, found: object, wanted: str) -> None:
    if found != wanted:
        raise BadInput(f"it is of the {name} {str(found)[:80]!r}, not {wanted!r}")


def _key(facts: DeviceFacts) -> tuple[str, str]:
    """Return what a card is known by (without a UUID: its name and place), and its driver."""
    uuid = facts.uuid or "-".join(filter(None, (facts.name, facts.pci_bus_id)))
    return uuid, facts.driver
