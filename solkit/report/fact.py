"""One condition of a run as words: what a list of facts is made of."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from solkit.report.plain import DASH

UNKNOWN = "unknown"


class Fact(NamedTuple):
    """One condition: its name, its value, and a quieter remark."""

    label: str
    value: str
    aside: str = ""


class FactGroup(NamedTuple):
    """Conditions that belong together."""

    title: str
    facts: tuple[Fact, ...]


def present(values: Iterable[float | None]) -> list[float]:
    """Return the values that are known."""
    return [value for value in values if value is not None]


def between(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Write the extremes: one number where they read alike, `unknown` where there is none."""
    if not values:
        return UNKNOWN
    low, high = write(min(values)), write(max(values))
    if low == high:
        return low
    number, _, unit = low.rpartition(" ")
    return (
        f"{number}{DASH}{high}" if number and high.endswith(f" {unit}") else f"{low} {DASH} {high}"
    )
