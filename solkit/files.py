"""A file that a person names, read whole: but never an endless one, and never one to wait for."""

import os
import stat
from pathlib import Path

from solkit.errors import BadInput

MOST_STREAM_BYTES = 64 * 1024 * 1024  # of a pipe or a device: /dev/zero has no size to look at
_CHUNK_BYTES = 1024 * 1024


def read_whole(path: Path, *, most_bytes: int, remedy: str) -> bytes:
    """Return the bytes of a file, a pipe or a device; BadInput (with `remedy`) over `most_bytes`.

    A named pipe that nobody writes to is empty instead of waited for; `<(command)` is read to its
    end. OSError where it can't be read.
    """
    chunks: list[bytes] = []
    size_bytes = 0
    with open(path, "rb", opener=_without_waiting) as file:  # Path.open has no opener
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            most_bytes = min(most_bytes, MOST_STREAM_BYTES)
        while chunk := file.read(_CHUNK_BYTES):
            size_bytes += len(chunk)
            if size_bytes > most_bytes:
                raise BadInput(f"{path}: is over {most_bytes:,} bytes", remedy=remedy)
            chunks.append(chunk)
    return b"".join(chunks)


def _without_waiting(path: str, flags: int) -> int:
    """Open as `open` does, but without waiting for a pipe's writer (Windows has no such pipes)."""
    if not hasattr(os, "O_NONBLOCK"):
        return os.open(path, flags)
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)  # a writer that is there may take its time
    return descriptor
