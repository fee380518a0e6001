"""The course of a run: clocks, power and temperature from case to case, in the order of the run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from solkit import units
from solkit.judge.score import Judged, Scored
from solkit.model import Run
from solkit.report.fact import between
from solkit.report.plain import counted, line, listed
from solkit.report.trouble import CaseLink, case_link
from solkit.stats import median

THROTTLED_MOST = 8  # cases named; the table marks all
REASONS_MOST = 6


@dataclass(frozen=True, slots=True)
class Station:
    """One measured case on the way: its place in the run and what was read meanwhile."""

    row: int
    scored: Scored

    @property
    def sm_hz(self) -> float | None:
        """The median SM clock of its samples, else what the driver told."""
        clocks = self.scored.outcome.clocks
        return clocks.sm_hz if clocks.sm_hz is not None else clocks.driver_sm_hz

    @property
    def power_w(self) -> float | None:
        """The highest power that was read."""
        return self.scored.outcome.clocks.power_w

    @property
    def temperature_c(self) -> float | None:
        """The highest temperature that was read."""
        return self.scored.outcome.clocks.temperature_c

    @property
    def throttled(self) -> bool:
        """Whether samples ran at a lowered clock while the driver named a reason."""
        return self.scored.outcome.throttled_count > 0

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the driver held clocks down, in its words."""
        return self.scored.outcome.clocks.event_reasons


class Quantity(NamedTuple):
    """One thing that was read along the way."""

    name: str
    read: Callable[[Station], float | None]
    write: Callable[[float], str]


def degrees(value_c: float) -> str:
    """Write a temperature: '43 °C'."""
    return f"{value_c:.0f} °C"


QUANTITIES = (
    Quantity("SM clock", lambda station: station.sm_hz, units.frequency),
    Quantity("Power", lambda station: station.power_w, units.power),
    Quantity("Temperature", lambda station: station.temperature_c, degrees),
)


class CourseLine(NamedTuple):
    """One quantity over the run: its ends with the cases where they were read, and its middle."""

    name: str
    lowest: str
    lowest_case: CaseLink
    middle: str
    highest: str
    highest_case: CaseLink


@dataclass(frozen=True, slots=True)
class CourseView:
    """The course in words: a line for each quantity, and the cases that were throttled."""

    lines: tuple[CourseLine, ...]
    throttled: tuple[CaseLink, ...]
    throttled_more: str
    reasons: str


def stations(judged: Sequence[Judged]) -> list[Station]:
    """Return the measured cases in the order in which they were measured."""
    return [Station(row, item) for row, item in enumerate(judged) if isinstance(item, Scored)]


def known(way: Sequence[Station], quantity: Quantity) -> list[tuple[Station, float]]:
    """Return the cases for which a quantity was read, with what was read."""
    found = ((station, quantity.read(station)) for station in way)
    return [(station, value) for station, value in found if value is not None]


def seen(way: Sequence[Station]) -> list[Quantity]:
    """Return the quantities that were read at all."""
    return [quantity for quantity in QUANTITIES if known(way, quantity)]


def reasons_of(way: Sequence[Station]) -> dict[str, list[Station]]:
    """Return the cases of each event reason, the commonest first; only so many are told apart."""
    found: dict[str, list[Station]] = {}
    for station in way:
        for reason in station.reasons:
            found.setdefault(reason, []).append(station)
    ranked = sorted(found.items(), key=lambda each: (-len(each[1]), each[0]))
    return dict(ranked[:REASONS_MOST])


def course(judged: Sequence[Judged]) -> CourseView | None:
    """Put the course of a run into words; None where nothing was read."""
    way = stations(judged)
    if not seen(way):
        return None
    throttled = [station for station in way if station.throttled]
    named = tuple(case_link(each.scored, each.row) for each in throttled[:THROTTLED_MOST])
    rest = len(throttled) - len(named)
    reasons = [
        f"{line(reason)} in {counted(len(cases), 'case')}"
        for reason, cases in reasons_of(way).items()
    ]
    return CourseView(
        lines=tuple(_line(quantity, way) for quantity in seen(way)),
        throttled=named,
        throttled_more=f"and {rest:,} more, marked in the table" if rest else "",
        reasons=listed(reasons, REASONS_MOST),
    )


def course_alt(run: Run, way: Sequence[Station]) -> str:
    """Say in words what the chart of the course shows."""
    parts = []
    for quantity in seen(way):
        values = [value for _, value in known(way, quantity)]
        parts.append(
            f"{quantity.name} {between(values, quantity.write)}, "
            f"{quantity.write(median(values))} at the median"
        )
    if run.facts.power_limit_w and any(station.power_w is not None for station in way):
        parts.append(f"power limit {units.power(run.facts.power_limit_w)}")
    slowed = sum(station.throttled for station in way)
    reasons = [
        f"{line(reason, 60)} in {counted(len(cases), 'case')}"
        for reason, cases in reasons_of(way).items()
    ]
    parts.append(f"samples of {counted(slowed, 'case')} throttled" if slowed else "none throttled")
    parts.append(f"clock events: {listed(reasons)}" if reasons else "no clock events")
    return f"{counted(len(way), 'case')} in the order of the run. {'; '.join(parts)}."


def _line(quantity: Quantity, way: Sequence[Station]) -> CourseLine:
    found = known(way, quantity)
    low = min(found, key=lambda pair: pair[1])
    high = max(found, key=lambda pair: pair[1])
    return CourseLine(
        name=quantity.name,
        lowest=quantity.write(low[1]),
        lowest_case=case_link(low[0].scored, low[0].row),
        middle=quantity.write(median([value for _, value in found])),
        highest=quantity.write(high[1]),
        highest_case=case_link(high[0].scored, high[0].row),
    )
