"""The kind of a failure, in the one word that programs can rely on: from an error, or its words."""

from typing import cast, get_args

from solkit.errors import words
from solkit.measure.remedies import kills_context, recognise
from solkit.model import Verdict

_KNOWN = frozenset(get_args(Verdict))
_NO_MEMORY = ("MemoryError", "bad_alloc")  # Python's, NumPy's (_ArrayMemoryError), C++'s


def verdict_of(error: BaseException) -> Verdict:
    """Return the kind of an error: its own `verdict` where it has one, else what it says."""
    own = _own(error, "verdict")
    if isinstance(own, str) and own and own in _KNOWN:
        return cast("Verdict", own)
    if isinstance(error, MemoryError):
        return "out_of_memory"
    return verdict_in(f"{type(error).__name__}: {words(error)}")


def verdict_in(message: str, default: Verdict = "") -> Verdict:
    """Return the kind of failure that a message tells of, else `default`."""
    row = recognise(message)
    if row is not None and row.id == "out_of_memory":
        return "out_of_memory"
    return "out_of_memory" if any(word in message for word in _NO_MEMORY) else default


def ends_the_context(error: BaseException) -> bool:
    """Say whether nothing can run in this process after an error, on whichever road it came.

    CuPy's errors carry the driver's code as `status`; torch and Triton only have its words.
    """
    code = _own(error, "status")
    if isinstance(code, int):
        return kills_context(code)
    row = recognise(words(error))
    return isinstance(error, RuntimeError) and row is not None and row.id == "kernel_fault"


def _own(error: BaseException, name: str) -> object:
    """Return an attribute of an error; None where there is none, and where its property raises."""
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001  # the author's code; what it raised is recorded already
        return None
