"""A comparison as workflow commands beside a job: what fails it first, ten lines at most."""

from solkit.report.annotations import Annotation, commands
from solkit.report.changes import ChangeRow, ChangesView
from solkit.report.table import NONE

# SLOWER, MISSING and INVALID end the command with an error; UNSURE passes, and is said.
_ERRORS = ("SLOWER", "MISSING", "INVALID")


def render(view: ChangesView) -> str:
    """Write the commands, a line each; nothing where every case is the same, faster or new."""
    return commands(annotations(view))


def annotations(view: ChangesView) -> tuple[Annotation, ...]:
    """Return all there is to say of a comparison: what fails it first."""
    found = [
        Annotation("error" if row.word in _ERRORS else "warning", row.word, _message(row))
        for row in view.changed
        if row.word in (*_ERRORS, "UNSURE")
    ]
    if view.overall == "NOTHING":
        found.insert(0, Annotation("error", "NOTHING", view.verdict))
    if view.missed:
        found.insert(0, Annotation("error", "below the floor", view.missed))
    return tuple(found)


def _message(row: ChangeRow) -> str:
    parts = [f"{row.name}: {row.base} -> {row.head}"]
    if row.change != NONE:
        parts.append(f"{row.change} ({row.span})")
    return "\n".join(filter(None, (", ".join(parts), row.explanation, row.reason)))
