"""The manner of measuring: everything a person can choose about how times are taken."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from solkit.errors import BadInput, unknown
from solkit.measure.device.base import TIMERS, Timer
from solkit.model import CacheMode, Settle

MOST_BUDGET_S = 600.0
MOST_TIMEOUT_S = 86_400.0
MOST_PRECISION_FRACTION = 0.5
CACHE_MODES: tuple[CacheMode, ...] = get_args(CacheMode)


@dataclass(frozen=True, slots=True)
class Manner:
    """How to measure.

    timer: the method, `auto` for the best that is here. modes: the cache modes of each case.
    budget_s: sampling time of a case. precision_fraction: half the 95 % interval of the median over
    the median, at which sampling stops. settle: rest between batches, or run until clocks settle.
    energy: measure the energy of a call, too (a second a case). timeout_s: how long a case may go
    on without a word before its worker is stopped. seed: of the inputs.
    """

    timer: Timer = "auto"
    modes: tuple[CacheMode, ...] = ("cold",)
    budget_s: float = 0.5
    precision_fraction: float = 0.005
    settle: Settle = "burst"
    energy: bool = False
    timeout_s: float = 60.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what can't be meant."""
        if not (math.isfinite(self.budget_s) and 0 < self.budget_s <= MOST_BUDGET_S):
            raise BadInput(
                f"--budget {self.budget_s:g} is no time to sample for",
                remedy=f"give seconds, above 0 and up to {MOST_BUDGET_S:g}",
            )
        precision = self.precision_fraction
        if not (math.isfinite(precision) and 0 < precision <= MOST_PRECISION_FRACTION):
            raise BadInput(
                f"--precision {precision:g} is no precision to stop at",
                remedy="give a fraction of the median, above 0 and up to 0.5, e.g. 0.005",
            )
        if not (math.isfinite(self.timeout_s) and 1 <= self.timeout_s <= MOST_TIMEOUT_S):
            raise BadInput(
                f"--timeout {self.timeout_s:g} is no time to wait for",
                remedy=f"give seconds, 1 to {MOST_TIMEOUT_S:g}",
            )


def timer_named(name: str) -> Timer:
    """Return the timer a person names; BadInput lists those there are."""
    for timer in TIMERS:
        if name == timer:
            return timer
    raise unknown("timer", name, TIMERS, where="--timer")


def modes_named(text: str) -> tuple[CacheMode, ...]:
    """Return the cache modes of `cold,hot`, each once; BadInput lists those there are."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise BadInput("--cache names no mode", remedy=f"known: {', '.join(CACHE_MODES)}")
    return tuple(dict.fromkeys(_modes(names)))


def _modes(names: Iterable[str]) -> Iterable[CacheMode]:
    known = {str(mode): mode for mode in CACHE_MODES}
    for name in names:
        if name not in known:
            raise unknown("cache mode", name, CACHE_MODES, where="--cache")
        yield known[name]
