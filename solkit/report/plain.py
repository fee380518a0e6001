"""Text from elsewhere (names, messages, compiler logs) made safe to print: no control, no spoofing.

A name may hold ANSI codes, bidirectional marks, lone surrogates or ten thousand characters. What
is left after this module is printable text of bounded length; escaping for HTML, Markdown or CSV
is the renderer's part.
"""

import re
import unicodedata
from functools import lru_cache

NAME_MOST = 160  # a demangled C++ kernel name fits; a hostile one doesn't fill the page
MESSAGE_MOST = 4_000  # the end of a compiler's log that a person would read

# First strong isolate and its end: what `<bdi>` is in plain text. A name that could turn the
# direction of its sentence is wrapped in them; no other bidirectional control survives `line`.
ISOLATE, END_ISOLATE = "\u2068", "\u2069"
TIMES, DASH = "\u00d7", "\u2013"  # the signs of a factor and of a range

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])|\x9b[0-?]*[ -/]*[@-~]"
)
_SPACES = re.compile(r"\s+")
_SPACE_LIKE = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co"})


@lru_cache(maxsize=8_192)
def line(text: str, most: int = NAME_MOST) -> str:
    """Return the text on one line: controls dropped, spaces squeezed, shortened by an ellipsis."""
    if not (text.isascii() and text.isprintable()):
        text = _seen(_ANSI.sub("", text[: 8 * most]), keep="")
    text = _SPACES.sub(" ", text).strip()
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def block(text: str, most: int = MESSAGE_MOST) -> str:
    """Return the text with its line breaks; controls dropped; both ends of a long log kept."""
    if len(text) > most:
        dropped = len(text) - most
        text = f"{text[: most // 2]}\n… {dropped:,} characters left out …\n{text[-(most // 2) :]}"
    lines = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(_seen(each, keep="\t").rstrip() for each in lines).strip("\n")


def isolated(text: str) -> str:
    """Return a cleaned name that can stand in a sentence, isolated where it could turn it."""
    name = line(text)
    return name if name.isascii() else f"{ISOLATE}{name}{END_ISOLATE}"


def listed(names: tuple[str, ...] | list[str], most: int = 6) -> str:
    """Join names for a sentence: 'a, b and 7 more'."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return ", ".join(names)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun: 1 case, 2 cases."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def named(text: str) -> str:
    """Return a cleaned name that can be a heading or a link: never empty."""
    return line(text) or "(no name)"


def percent_span(low_fraction: float, high_fraction: float) -> str:
    """Write two scores in whole per cent; below 1 % in tenths, so that 0.5 % is not nothing."""
    low, high = (
        f"{100 * each:.{0 if each >= 0.01 else 1}f}"  # noqa: PLR2004  # 1 %
        for each in (low_fraction, high_fraction)
    )
    return f"{low}{DASH}{high} %"


def _seen(text: str, *, keep: str) -> str:
    return "".join(_visible(char, keep) for char in text)


def _visible(char: str, keep: str) -> str:
    if char in keep or " " <= char <= "~":
        return char
    if char in _SPACE_LIKE:
        return " "
    category = unicodedata.category(char)
    if category == "Cs":
        return "\ufffd"  # half a character can't be written to a file
    return "" if category in _UNSEEN else char
