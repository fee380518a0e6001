"""Why a comparison says what it says of a case, in words."""

from solkit.judge.compare import other_conditions
from solkit.judge.score import Judged, Scored
from solkit.judge.sides import Side
from solkit.model import Failed, Skipped

_MOST_REASON = 300  # characters of a failure's message


def doubt(base: Scored, head: Scored, *, method_allowed: bool) -> str:
    """Return why two times of a case say nothing of each other, or nothing."""
    if head.status == "invalid":
        return one_line(head.invalid_reason)
    if base.status == "invalid":
        return f"BASE is invalid: {one_line(base.invalid_reason)}"
    for what, one, other in other_conditions(base.outcome, head.outcome):
        if not (what == "method" and method_allowed):
            return f"can't be compared: the {what} was {one} and is {other}"
    return ""


def absent(where: Side, found: Judged | None) -> str:
    """Say why a side has no time of a case."""
    match found:
        case Failed():
            verdict = f" ({found.verdict.replace('_', ' ')})" if found.verdict else ""
            return f"failed in {where.name} at {found.stage}{verdict}: {one_line(found.message)}"
        case Skipped():
            return f"skipped in {where.name}: {one_line(found.reason)}"
        case _ if where.cut:
            return f"not in {where.name}, whose run was cut"
        case _:
            return f"not in {where.name}"


def other_work(base: Judged | None, head: Judged | None) -> str:
    """Say what differs in the work model of a case, if anything."""
    if not isinstance(base, Scored) or not isinstance(head, Scored):
        return ""
    one, other = base.outcome.work, head.outcome.work
    if one == other:
        return ""
    if one.traffic_bytes != other.traffic_bytes:
        return f"bytes differ: {one.traffic_bytes:,} and {other.traffic_bytes:,}"
    return "the work models differ, not in bytes"


def cases_were(count: int) -> str:
    """Begin a sentence on so many cases."""
    return "1 case was" if count == 1 else f"{count:,} cases were"


def one_line(text: str) -> str:
    """Return an author's text in one line, cut at 300 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_REASON else f"{line[:_MOST_REASON]}..."
