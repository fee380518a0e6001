"""The error tree, one exit code a branch.

SolkitError               what, where, and the remedy as a field
  BadInput         exit 2  a file, option or declaration is wrong
  NoDevice         exit 4  no usable device, driver, disk or library
  GateSaysNo       exit 1  a floor or a comparison was not met
  CasesFailed      exit 3  the run is complete, but some cases failed or are invalid
"""

from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable


_MOST_TEXT = 4000  # of an author's error: what a report can show; some print whole arrays
_MOST_NAME = 80  # of a known name in a remedy: a declaration may name things as it likes


class SolkitError(Exception):
    """What went wrong and where (`message`), and what the person can do about it (`remedy`)."""

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class BadInput(SolkitError):
    """A file, an option or a declaration is wrong."""


class NoDevice(SolkitError):
    """No usable device, driver, library or disk."""

    exit_code = 4


class GateSaysNo(SolkitError):
    """A floor or a comparison was not met."""

    exit_code = 1


class CasesFailed(SolkitError):
    """The run is complete, but some of its cases failed or are invalid."""

    exit_code = 3


def words(error: BaseException) -> str:
    """Return what an author's error says, whatever its class does when it is asked: see `told`."""
    try:
        return told(str(error))
    except Exception as second:  # noqa: BLE001  # __str__ is the author's code as well
        return f"(its text can't be had: __str__ raised {type(second).__name__})"


def told(text: str) -> str:
    """Return an author's text as UTF-8 can carry it, cut after 4,000 characters, saying so."""
    more_count = len(text) - _MOST_TEXT
    if more_count > 0:
        text = f"{text[:_MOST_TEXT]}... ({more_count:,} more characters)"
    return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate has no UTF-8


def unknown(
    what: str, name: object, known: "Iterable[str]", *, where: str = "", hint: str = ""
) -> BadInput:
    """Build the error for a name nobody knows: it lists the known ones and the nearest."""
    names = sorted(one if len(one) <= _MOST_NAME else f"{one[:_MOST_NAME]}..." for one in known)
    near = get_close_matches(str(name), names, n=1, cutoff=0.5)
    place = f"{where}: " if where else ""
    remedy = f"did you mean {near[0]!r}? " if near else ""
    listed = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")  # noqa: PLR2004
    remedy += f"known: {listed}" if names else "none are known here"
    if hint:
        remedy += f"; {hint}"
    return BadInput(f"{place}unknown {what} {str(name)[:200]!r}", remedy=remedy)
