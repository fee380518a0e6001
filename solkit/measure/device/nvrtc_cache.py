"""Compiled kernels on disk: one file each, named by a hash of all that shapes it.

A file holds a line that says what it is, a line of JSON (symbols, log, checksum), and the cubin. It
is written whole under another name and renamed. Removing files, or the folder, is always safe.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

_MAGIC = b"solkit-kernel/1\n"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a cache entry holds: the cubin, the symbol of each entry in it, the compiler's log."""

    cubin: bytes
    lowered: dict[str, str]
    log: str


def folder() -> Path:
    """Return where compiled kernels are kept: $SOLKIT_CACHE_DIR, else the user's cache folder."""
    own = os.environ.get("SOLKIT_CACHE_DIR")
    if own:
        return Path(own).expanduser() / "kernels"
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        home = Path(base) if base else Path.home() / ".cache"
    except RuntimeError:  # no home folder is known
        home = Path(tempfile.gettempdir())
    return home / "solkit" / "kernels"


def key(source: str, parts: Iterable[str], include_dirs: tuple[Path, ...]) -> str:
    """Return the name of an entry: a hash of the source, its headers and every other part."""
    digest = sha256()
    for part in (*parts, source, *_headers(source, include_dirs)):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def _headers(source: str, include_dirs: tuple[Path, ...]) -> list[str]:
    """Return the text of every header of ours that the source includes, directly or through others.

    CUDA's own headers are not read: the compiler's version and their folder stand for them.
    """
    texts: dict[Path, str] = {}
    waiting = [(source, include_dirs)]
    while waiting:
        text, folders = waiting.pop()
        for included in _INCLUDE.findall(text):
            for folder in folders:
                path = (folder / included).resolve()
                if path in texts or not path.is_file():
                    continue
                texts[path] = path.read_text(encoding="utf-8", errors="replace")
                waiting.append((texts[path], (path.parent, *include_dirs)))
    return [text for _, text in sorted(texts.items())]


def read(path: Path) -> Stored | None:
    """Return a cache entry, or None when there is none or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    header, separator, cubin = content.removeprefix(_MAGIC).partition(b"\n")
    if not content.startswith(_MAGIC) or not separator:
        return None
    try:
        facts = json.loads(header)
        lowered = {str(entry): str(symbol) for entry, symbol in facts["lowered"].items()}
        log = str(facts["log"])
        if facts["sha256"] != _checksum(cubin, log):
            return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return Stored(cubin, lowered, log)


_told: set[Path] = set()


def write(path: Path, stored: Stored) -> tuple[str, ...]:
    """Write a cache entry whole or not at all; return a note, once a folder, when it can't."""
    facts = {
        "lowered": stored.lowered,
        "log": stored.log,
        "sha256": _checksum(stored.cubin, stored.log),
    }
    content = _MAGIC + json.dumps(facts).encode() + b"\n" + stored.cubin
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if path.parent in _told:
            return ()
        _told.add(path.parent)
        why = error.strerror or str(error)
        remedy = "set SOLKIT_CACHE_DIR to a folder that can be written"
        return (f"compiled kernels are not kept: {path.parent}: {why} ({remedy})",)
    return ()


def _checksum(cubin: bytes, log: str) -> str:
    return sha256(cubin + log.encode()).hexdigest()
