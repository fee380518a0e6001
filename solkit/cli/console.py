"""What a person sees: data on stdout, talk on stderr, tables that fit a terminal."""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TextIO

from solkit.errors import NoDevice
from solkit.report.plain import block

_GAP = "  "


@dataclass(slots=True)
class _Voice:
    """What --quiet turns off."""

    quiet: bool = False


VOICE = _Voice()


def say(text: str) -> None:
    """Tell the person something on stderr, unless --quiet."""
    if not VOICE.quiet:
        _tell(block(text))


def complain(message: str, remedy: str = "") -> None:
    """Write an error and its remedy on stderr, in colour on a terminal."""
    _tell(f"{_styled('error:', '1;31')} {block(message)}")
    if remedy:
        _tell(f"{_styled('remedy:', '1')} {block(remedy)}")


def show(text: str) -> None:
    """Write data on stdout; NoDevice where it can't be taken.

    A reader that left (`solkit compare A B | head`) has what it wants: the work goes on, and ends
    with the code that it would have had.
    """
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        abandon(sys.stdout)
    except OSError as error:
        abandon(sys.stdout)
        raise NoDevice(
            f"standard output can't be written: {error.strerror or error}",
            remedy="free some space, or send it elsewhere",
        ) from error


def show_json(document: object) -> None:
    """Write one JSON document on stdout."""
    show(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()
) -> str:
    """Align columns with two blanks between them; `right` names those that hold numbers.

    Plain text, so that 10,000 rows take a tenth of a second and grep and awk can read them.
    """
    columns = [[header, *cells] for header, *cells in zip(headers, *rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    lines = [_line(row, widths, right) for row in (headers, *rows)]
    lines[0] = _styled(lines[0], "1", to_stdout=True)
    return "\n".join(lines)


def room() -> int | None:
    """Return the columns of stdout's terminal, or $COLUMNS; None where lines may run on."""
    asked = os.environ.get("COLUMNS", "").isdecimal()
    return shutil.get_terminal_size().columns if asked or sys.stdout.isatty() else None


def heading(text: str) -> str:
    """Return a line that stands out on a terminal."""
    return _styled(text, "1;36", to_stdout=True)


def open_closed_streams() -> None:
    """Give a program that was started with stdout or stderr closed somewhere to write to."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # as long as the program
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # as long as the program


def abandon(stream: TextIO) -> None:
    """Let what is still in a stream's buffer go nowhere, so that nothing fails at the exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _tell(text: str) -> None:
    """Write on stderr; where nobody can hear it (closed, full), the work goes on all the same."""
    try:
        _write(sys.stderr, text)
    except OSError:
        with contextlib.suppress(OSError):  # there is no further place to say it
            abandon(sys.stderr)


def _write(stream: TextIO, text: str) -> None:
    """Write a line; what the stream's encoding lacks becomes `?`."""
    encoding = stream.encoding or "ascii"
    stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()


def _line(cells: Sequence[str], widths: Sequence[int], right: Collection[int]) -> str:
    placed = [
        cell.rjust(width) if index in right else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join(placed).rstrip()


def coloured(stream: TextIO) -> bool:
    """Return whether colours belong on a stream: a terminal, and no NO_COLOR."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def _styled(text: str, code: str, *, to_stdout: bool = False) -> str:
    stream = sys.stdout if to_stdout else sys.stderr
    return f"\x1b[{code}m{text}\x1b[0m" if coloured(stream) else text
