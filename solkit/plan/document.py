"""A YAML document whose every value knows its line, so that an error can name it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from solkit.errors import BadInput, unknown
from solkit.files import read_whole
from solkit.model import Param

if TYPE_CHECKING:
    from collections.abc import Iterable

    from yaml.nodes import Node

MOST_BYTES = 16 * 1024 * 1024  # 10,000 explicit points are half a megabyte
COMMAND_LINE = "command line"  # a document made of it has no lines that a person could look up
_MOST_DIGITS = 40  # beyond any size that is allowed anywhere
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)")
_TAG = "tag:yaml.org,2002:"
# How a person would call what stands there.
_WORDS = {
    "str": "text",
    "int": "a number",
    "float": "a fraction",
    "bool": "true or false",
    "null": "nothing",
    "map": "a mapping",
    "seq": "a list",
    "timestamp": "a date",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One value of a document: read it as what it should be, or get an error with file and line."""

    node: "Node"
    file: str

    @property
    def line(self) -> int:
        """The line it starts in, from 1."""
        line: int = self.node.start_mark.line
        return line + 1

    @property
    def where(self) -> str:
        """File and line, as errors name them."""
        return self.file if self.file == COMMAND_LINE else f"{self.file}: line {self.line}"

    @property
    def word(self) -> str:
        """What a person would call it: its text, or `a list` and the like."""
        kind = self.node.tag.removeprefix(_TAG)
        if isinstance(self.node.value, str) and kind != "null":
            return repr(self.node.value[:60])
        return _WORDS.get(kind, f"the tag {kind[:60]!r}")

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return self.node.tag == f"{_TAG}map"

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.node.tag == f"{_TAG}seq"

    def mapping(self, what: str, known: "Iterable[str] | None" = None) -> "dict[str, Item]":
        """Read a mapping with text keys; unknown and repeated keys are errors."""
        if not self.is_mapping:
            raise BadInput(
                f"{self.where}: {what} must be a mapping, not {self.word}",
                remedy="see the commented file that `solkit new shapes` writes",
            )
        held: dict[str, Item] = {}
        for key_node, value_node in self.node.value:
            key = Item(key_node, self.file)
            name = key.text(f"a key of {what}")
            if name in held:
                raise BadInput(
                    f"{key.where}: {what} has the key {name[:60]!r} twice, "
                    f"first in line {held[name].line}",
                    remedy="keep one of them",
                )
            if known is not None and name not in known:
                raise unknown(f"key of {what}", name, known, where=key.where)
            held[name] = Item(value_node, self.file)
        return held

    def items(self, what: str) -> "list[Item]":
        """Read a list."""
        if not self.is_list:
            raise BadInput(
                f"{self.where}: {what} must be a list, not {self.word}",
                remedy="see the commented file that `solkit new shapes` writes",
            )
        return [Item(node, self.file) for node in self.node.value]

    def each(self, what: str) -> "list[Item]":
        """Read a list, or one value as a list of one; an empty list is an error."""
        found = self.items(what) if self.is_list else [self]
        if not found:
            raise BadInput(
                f"{self.where}: {what} is an empty list",
                remedy="name at least one, or leave it out",
            )
        return found

    def text(self, what: str) -> str:
        """Read text; a number stands for itself (fp32, 2048 and true are all words here)."""
        value = self.node.value
        if not isinstance(value, str) or not value or self.node.tag == f"{_TAG}null":
            raise BadInput(
                f"{self.where}: {what} must be a name, not {self.word}",
                remedy="write one word; see `solkit new shapes` and `solkit list`",
            )
        return value

    def whole(self, what: str, *, least: int, most: int) -> int:
        """Read a whole number written in decimal."""
        value = self.node.value
        if (
            self.node.tag != f"{_TAG}int"
            or not isinstance(value, str)
            or not _WHOLE.fullmatch(value)
        ):
            raise BadInput(
                f"{self.where}: {what} must be a whole number, not {self.word}",
                remedy="write it in decimal digits, without quotes, e.g. 8192",
            )
        # Bounded before int(): a number of a million digits takes minutes to convert.
        number = int(value) if len(value) <= _MOST_DIGITS else most + 1
        if not least <= number <= most:
            raise BadInput(
                f"{self.where}: {what} is {value[:40]}, which is out of range",
                remedy=f"give a number from {least} to {most}",
            )
        return number

    def param(self, what: str) -> Param:
        """Read text, a number or a truth value."""
        kind, value = self.node.tag.removeprefix(_TAG), self.node.value
        if isinstance(value, str):
            if kind == "bool":
                return value.lower() in ("true", "yes", "on")
            if kind == "int" and _WHOLE.fullmatch(value) and len(value) <= _MOST_DIGITS:
                return int(value)
            if kind == "float":
                try:
                    return float(value.replace("_", ""))
                except ValueError:  # .nan and .inf: text, which no operator allows
                    return value
            if value and kind != "null":
                return value
        raise BadInput(
            f"{self.where}: {what} must be a name or a number, not {self.word}",
            remedy="write one of the values that `solkit list` shows",
        )


def load(path: Path) -> Item:
    """Read a YAML file as one document; raise BadInput with the line of what is wrong."""
    try:
        raw = read_whole(path, most_bytes=MOST_BYTES, remedy="use grid: instead of listing points")
    except OSError as error:
        raise BadInput(
            f"{path}: can't be read: {error.strerror or error}",
            remedy="write one with `solkit new shapes`",
        ) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise BadInput(
            f"{path}: line {line}: is not UTF-8 text", remedy="save the file as UTF-8"
        ) from error
    return parse(text, str(path))


def parse(text: str, file: str) -> Item:
    """Parse YAML text as one document; `file` is the name that errors give."""
    import yaml  # noqa: PLC0415  # not at CLI start-up

    # 10,000 points: 0.3 s with libyaml, 2.9 s without; composing keeps lines and builds no objects
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        said = " ".join(str(error.problem or error.context).split())
        raise BadInput(
            f"{file}: {line}is not YAML: {said[:200]}",
            remedy="check the indentation, the colons and the brackets around that line",
        ) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        said = " ".join(str(error).split())
        raise BadInput(
            f"{file}: is not YAML: {said[:200]}", remedy="see `solkit new shapes`"
        ) from error
    if node is None:
        raise BadInput(f"{file}: is empty", remedy="write a commented one with `solkit new shapes`")
    root = Item(node, file)
    _refuse_aliases(root)
    return root


def _refuse_aliases(root: Item) -> None:
    """Refuse anchors used again: ten lines of them can stand for billions of values."""
    seen: set[int] = set()
    waiting = [root.node]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            raise BadInput(
                f"{Item(node, root.file).where}: is used again through an alias (*name)",
                remedy="write the values out, or put them into defaults: or grid:",
            )
        seen.add(id(node))
        if isinstance(node.value, list):
            for child in node.value:
                waiting.extend(child if isinstance(child, tuple) else (child,))
