"""What the HTML pages share: templates, escaping, and the files beside them with their hashes."""

import base64
import functools
import hashlib
import html
from typing import TYPE_CHECKING

from solkit import resources
from solkit.report.plain import END_ISOLATE, ISOLATE

if TYPE_CHECKING:
    from jinja2 import Environment


@functools.lru_cache(maxsize=16_384)
def escaped(text: str) -> str:
    """Escape for HTML text and double-quoted attributes, isolating what `plain.isolated` marked."""
    return html.escape(text).replace(ISOLATE, "<bdi>").replace(END_ISOLATE, "</bdi>")


@functools.cache
def environment() -> "Environment":
    """Return the maker of pages: it escapes, and takes nothing but text and known names."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, Undefined  # noqa: PLC0415  # heavy
    from markupsafe import Markup  # noqa: PLC0415  # jinja2's

    def finalize(value: object) -> object:
        """Let strings alone through: a number in a template is a bug."""
        if isinstance(value, Undefined):
            return str(value)  # raises, and names what is missing
        if isinstance(value, Markup):
            return value
        if isinstance(value, str):
            return Markup(escaped(value))  # noqa: S704  # escaped here
        message = f"the template was given {type(value).__name__}, not text"
        raise TypeError(message)

    return Environment(
        loader=FileSystemLoader(resources.folder("reports")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def asset(name: str) -> str:
    """Return the text of a file beside the templates: a style sheet or a script."""
    return (resources.folder("reports") / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def sha256(text: str) -> str:
    """Return the hash by which a page's policy lets one style sheet or script through."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
