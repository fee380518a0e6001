"""Activity records -> samples: which kernels, copies and fills belong to which call. Pure.

Stamps (kernels of our own) stand before and after each call. The driver numbers its calls in order,
and a record carries the number of the call that caused it: what lies between the numbers of two
stamps belongs to the call between them, whatever launched it, on whatever stream.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from solkit.errors import SolkitError
from solkit.measure.device.base import NothingRan, Sample

STAMP, HOLD = "solkit_stamp", "solkit_hold"
EARLY = "it works before its stream lets it: on a stream of its own, which its time does not hold"
LATE = "it leaves work on another stream, which goes on after its own stream is idle"
Places = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Record:
    """One kernel, copy or fill as the GPU did it; the name of a copy or fill is empty."""

    name: str
    start_ns: int
    end_ns: int
    correlation_id: int


class RecordsLost(SolkitError):
    """Records are missing, so that the calls they belong to can't be timed."""


def places(count: int, *, flushed: bool) -> list[tuple[int, int]]:
    """Return the stamps before and after each call; neighbours share one but for a flush."""
    if flushed:
        return [(2 * index, 2 * index + 1) for index in range(count)]
    return [(index, index + 1) for index in range(count)]


def windows(records: Sequence[Record], around: Places) -> list[list[Record]]:
    """Return the records between the stamps of each pair; RecordsLost where stamps are missing."""
    ordered = sorted(records, key=lambda record: record.correlation_id)
    fences = _fences(ordered, max(after for _, after in around) + 1)
    return [ordered[fences[first] + 1 : fences[last]] for first, last in around]


def sample_of(records: Sequence[Record], sm_hz: float | None) -> Sample:
    """Return the span of a call's records, and the time in which at least one of them ran.

    Span: from the first start to the last end. NothingRan for a call without records.
    """
    if not records:
        raise NothingRan(
            "no kernel ran: the call gave the device nothing to do",
            remedy="launch the kernel in each call; a result that was kept is no run",
        )
    if any(not 0 < each.start_ns <= each.end_ns for each in records):
        raise RecordsLost(
            "a record has no times: CUPTI could not have them",
            remedy="measure again, or take --timer event_blocked",
        )
    span_ns = max(each.end_ns for each in records) - min(each.start_ns for each in records)
    busy_s = sum(_stretches_ns(records)) * 1e-9 if len(records) > 1 else None
    return Sample(span_ns * 1e-9, sm_hz, busy_s)


def stray(records: Sequence[Record], around: tuple[int, int]) -> str:
    """Say what of one call's work escapes its stream, or nothing, from a batch that was blocked.

    What starts while the stream is blocked was not ordered behind it; what ends after the stamp
    behind the call has started was not waited for.
    """
    ordered = sorted(records, key=lambda record: record.correlation_id)
    first, last = around
    fences = _fences(ordered, last + 1)
    released_ns = max((each.end_ns for each in ordered if each.name == HOLD), default=0)
    closed_ns = ordered[fences[last]].start_ns
    inside = ordered[fences[first] + 1 : fences[last]]
    if any(record.start_ns < released_ns for record in inside):
        return EARLY
    return LATE if any(record.end_ns > closed_ns for record in inside) else ""


def _fences(ordered: Sequence[Record], wanted: int) -> list[int]:
    """Return the places of the stamps among the records."""
    found = [place for place, record in enumerate(ordered) if record.name == STAMP]
    if len(found) != wanted:
        raise RecordsLost(
            f"{len(found)} of {wanted} stamps were recorded",
            remedy="take --timer event_blocked; a call must not start a batch of its own",
        )
    return found


def _stretches_ns(records: Sequence[Record]) -> Iterator[int]:
    """Yield the length of each stretch in which at least one record ran."""
    ordered = sorted(records, key=lambda record: record.start_ns)
    start_ns, end_ns = ordered[0].start_ns, ordered[0].end_ns
    for record in ordered[1:]:
        if record.start_ns > end_ns:
            yield end_ns - start_ns
            start_ns = record.start_ns
        end_ns = max(end_ns, record.end_ns)
    yield end_ns - start_ns
