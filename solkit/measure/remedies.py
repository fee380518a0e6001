"""The error catalogue: what a driver's or a compiler's message means, and what to do about it."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("errors.toml")


@dataclass(frozen=True, slots=True)
class KnownError:
    """One row of the catalogue. `codes` are numbers of the CUDA runtime API."""

    id: str
    codes: tuple[int, ...]
    pattern: str
    cause: str
    remedy: str
    sample: str

    def fits(self, message: str) -> bool:
        """Say whether a message is of this kind."""
        return re.search(self.pattern, message, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All known errors, the codes after which a process must end, and the oldest drivers."""

    errors: tuple[KnownError, ...]
    dead_context_codes: frozenset[int]
    driver_minimum: dict[int, str]


@cache
def catalogue() -> Catalogue:
    """Read the catalogue (once a process)."""
    data = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return Catalogue(
        errors=tuple(KnownError(**{**row, "codes": tuple(row["codes"])}) for row in data["error"]),
        dead_context_codes=frozenset(data["dead_context_codes"]),
        driver_minimum={int(family): least for family, least in data["driver_minimum"].items()},
    )


def recognise(message: str) -> KnownError | None:
    """Find the row a message belongs to; None when nobody knows it."""
    return next((row for row in catalogue().errors if row.fits(message)), None)


def known(error_id: str) -> KnownError:
    """Return a row by its id (KeyError for one not in the file: a mistake in the code)."""
    return {row.id: row for row in catalogue().errors}[error_id]


def remedy_for(message: str, default: str = "") -> str:
    """Return the remedy for a message, else `default`."""
    row = recognise(message)
    return row.remedy if row else default


def kills_context(code: int) -> bool:
    """Say whether a CUDA error leaves the process without a usable context."""
    return code in catalogue().dead_context_codes
