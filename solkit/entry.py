"""One run as a history keeps it: what it is known by, and every case's time and score."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from solkit.errors import BadInput
from solkit.model import Case, Failed, Measured, Run, Skipped
from solkit.wire import adapter, compact, first, loads, to_json

SCHEMA = "solkit.history/1"
MOST_TEXT = 200  # of a commit or a branch: what CI systems give fits
_BEGIN = b'{"schema":"%s",' % SCHEMA.encode()
_FIRST_YEAR, _LAST_YEAR = 1970, 9000
_DIGITS = 6  # of a time: a millionth is far below any run's noise

Status = Literal["measured", "invalid", "failed", "skipped"]


class Seen(Protocol):
    """What a history keeps of a judged case: its time with the interval, and its score."""

    @property
    def outcome(self) -> Measured: ...  # noqa: D102  # the class says it

    @property
    def status(self) -> Literal["measured", "invalid"]: ...  # noqa: D102  # the class says it

    @property
    def median_s(self) -> float: ...  # noqa: D102  # the class says it

    @property
    def low_s(self) -> float: ...  # noqa: D102  # the class says it

    @property
    def high_s(self) -> float: ...  # noqa: D102  # the class says it

    @property
    def sol_score(self) -> float | None: ...  # noqa: D102  # the class says it


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """One case of one run; times only where it was measured, or invalid.

    method, cache: how this case was timed, where that differs from the run and from the case's own
    cache mode (a state that was not proved is `unknown`); empty where it does not.
    """

    case: Case
    status: Status
    median_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    sol_score: float | None = None
    method: str = ""
    cache: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One run: what it is known by, what it was made on and how, and its cases.

    created: ISO 8601. spec_hash: SHA-256 of the recorded spec as JSON; empty without one (CPU).
    device_uuid tells cards of one model apart, solkit is the version that measured.
    """

    id: str
    created: str
    gpu_id: str
    device_name: str
    method: str
    seed: int
    settle: str
    commit: str = ""
    branch: str = ""
    driver: str = ""
    spec_hash: str = ""
    device_uuid: str = ""
    power_limit_w: float | None = None
    solkit: str = ""
    cases: tuple[CaseEntry, ...] = ()

    @property
    def moment(self) -> datetime:
        """When the run began, comparable with any other; UTC where no zone is given."""
        found = datetime.fromisoformat(self.created)
        return found if found.tzinfo else found.replace(tzinfo=UTC)


def entry(
    run: Run,
    judged: Sequence[Seen | Failed | Skipped],
    *,
    commit: str = "",
    branch: str = "",
) -> Entry:
    """Return what a history keeps of a run and its judgements. Raises BadInput on no date."""
    made = Entry(
        id=run.id,
        created=run.created,
        gpu_id=_gpu_id(run),
        device_name=run.facts.name,
        method=run.method,
        seed=run.seed,
        settle=run.settle,
        commit=commit.strip()[:MOST_TEXT],
        branch=branch.strip()[:MOST_TEXT],
        driver=run.facts.driver,
        spec_hash=hashlib.sha256(to_json(run.gpu)).hexdigest() if run.gpu else "",
        device_uuid=run.facts.uuid,
        power_limit_w=run.facts.power_limit_w,
        solkit=run.versions.get("solkit", ""),
        cases=tuple(_case_entry(item, run.method) for item in judged),
    )
    problem = _problem(made)
    if problem:
        raise BadInput(
            f"run {run.id[:80]!r} can't enter a history: {problem}",
            remedy="mend the run's file, or leave --history out",
        )
    return made


def entry_line(made: Entry) -> bytes:
    """Write an entry as the line that a history holds, its newline included."""
    try:
        held = adapter(Entry).dump_python((made,), mode="json", exclude_defaults=True)[0]
    except ValueError as error:  # half a character: no run file holds one
        raise BadInput(
            f"run {made.id[:80]!r} can't enter a history: a name is no text",
            remedy="rename what holds half a character, or leave --history out",
        ) from error
    return compact({"schema": SCHEMA, **held}) + b"\n"


def entry_from(text: bytes) -> Entry:
    """Build an entry from its line; raise BadInput where it does not fit."""
    from pydantic import ValidationError  # noqa: PLC0415  # 0.1 s, not at CLI start-up

    try:
        if text.startswith(_BEGIN):  # as it was written: 0.6 of the time of the other way
            made: Entry = adapter(Entry).validate_json(b"[" + text + b"]")[0]
        else:
            held: dict[str, Any] = loads(text)
            schema = held.pop("schema", None)
            if schema != SCHEMA:
                raise BadInput(f"the schema is {str(schema)[:80]!r}, this solkit reads {SCHEMA!r}")
            made = adapter(Entry).validate_python((held,))[0]
    except ValidationError as error:
        raise BadInput(f"an entry that does not fit: {first(error)}") from error
    problem = _problem(made)
    if problem:
        raise BadInput(f"an entry that can't be: {problem}")
    return made


def _problem(made: Entry) -> str:
    """Return what makes an entry impossible, or nothing."""
    try:
        year = made.moment.year
    except ValueError:
        year = 0
    if not _FIRST_YEAR <= year <= _LAST_YEAR:  # at the ends of the calendar dates don't compare
        return f"created is {made.created[:40]!r}, no date of ISO 8601"
    for each in made.cases:
        if each.status in ("failed", "skipped"):
            continue
        low_s, median_s, high_s = each.low_s, each.median_s, each.high_s
        if low_s is None or median_s is None or high_s is None:
            return f"{str(each.case)[:120]} was measured, and has no time"
        if not 0 < low_s <= median_s <= high_s:
            return f"the times of {str(each.case)[:120]} are no interval above zero"
    return ""


def _gpu_id(run: Run) -> str:
    """Return the id of the card's model; a host's processors are a model, too."""
    return run.gpu.id if run.gpu else f"{run.device}-{run.facts.name}"


def _case_entry(item: Seen | Failed | Skipped, method: str) -> CaseEntry:
    if isinstance(item, Failed):
        return CaseEntry(item.case, "failed")
    if isinstance(item, Skipped):
        return CaseEntry(item.case, "skipped")
    outcome = item.outcome
    return CaseEntry(
        outcome.case,
        item.status,
        _rounded(item.median_s),
        _rounded(item.low_s),
        _rounded(item.high_s),
        None if item.sol_score is None else _rounded(item.sol_score),
        "" if outcome.method == method else outcome.method,
        "" if outcome.cache == outcome.case.cache_mode else outcome.cache,
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
