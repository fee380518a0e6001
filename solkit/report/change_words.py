"""One change in words: how large, between which ends, and whether code or machine made it."""

from solkit import units
from solkit.judge.changes import CaseChange, Cause
from solkit.judge.compare import Change
from solkit.judge.score import Scored
from solkit.report.plain import TIMES

# Where a percentage stops being read at a glance: beyond, a change is a factor of the time.
_FACTOR_FROM, _FACTOR_MOST = 2.0, 1e4
_EQUAL_BYTES_FRACTION = 1e-9  # whole counts: any other number of bytes is another one
# Medians of a hundred clocks agree far better than one of them, which is read to 1.3 % over 5 us.
EQUAL_CLOCK_FRACTION = 0.005
_CAUSES: dict[Cause, str] = {"": "", "code": "the code", "machine": "the machine, not the code"}


def signed(ratio_fraction: float) -> str:
    """Write a ratio of times as a change: 1.121 -> '+12.1 %', 0.92 -> '-8.0 %', 2.5 -> a factor."""
    if not _is_near(ratio_fraction):
        return _factor(ratio_fraction)
    text = f"{(ratio_fraction - 1) * 100:+.1f} %"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def amount(ratio_fraction: float) -> str:
    """Write how large a change is, without its direction: 1.121 -> '12.1 %', 2.5 -> a factor."""
    if not _is_near(ratio_fraction):
        return f"a factor of {units.digits(_bounded(max(ratio_fraction, 1 / ratio_fraction)))}"
    return units.percent(abs(ratio_fraction - 1))


def span(change: Change) -> str:
    """Write the 95 % interval of a change: '+10.2 to +13.9 %'."""
    low, high = signed(change.ratio_low_fraction), signed(change.ratio_high_fraction)
    if low.endswith(" %") and high.endswith(" %"):
        low = low.removesuffix(" %")
    return f"{low} to {high}"


def explained(item: CaseChange, least_fraction: float) -> str:
    """Say what a change in time goes with, and so where it comes from; empty where there is none.

    least_fraction: two scores nearer than this are called equal, as two times are.
    """
    change = item.change
    if change is None or not item.cause or item.word not in ("SLOWER", "FASTER", "UNSURE"):
        return ""
    size = _size(change.ratio_fraction)
    traffic, clock = bytes_words(change), clock_words(change)
    if (traffic, clock) == ("bytes equal", "SM clock equal") and item.cause == "code":
        return f"{size} at the same clock and bytes: the code"
    facts = (traffic, clock, _score(item, least_fraction))
    return f"{size}: {', '.join(filter(None, facts))}: {_CAUSES[item.cause]}"


def bytes_words(change: Change) -> str:
    """Say whether both sides move as many bytes, by their work models."""
    ratio = change.bytes_ratio_fraction
    if abs(ratio - 1) <= _EQUAL_BYTES_FRACTION:
        return "bytes equal"
    return f"moves {_factor(ratio)} the bytes by its work model"


def clock_words(change: Change) -> str:
    """Say whether the SM ran as fast on both sides; that nobody knows where there are no clocks."""
    ratio = change.clock_ratio_fraction
    if ratio is None:
        return "SM clock unknown"
    if abs(ratio - 1) <= EQUAL_CLOCK_FRACTION:
        return "SM clock equal"
    return f"SM clock {signed(ratio)}"


def _size(ratio_fraction: float) -> str:
    if not _is_near(ratio_fraction):
        return f"{_factor(ratio_fraction)} the time"
    return f"{amount(ratio_fraction)} {'slower' if ratio_fraction >= 1 else 'faster'}"


def _score(item: CaseChange, least_fraction: float) -> str:
    """Compare SOL@clock, which a lower clock alone does not move where a pipe is the limit."""
    before, after = (
        side.sol_clock if isinstance(side, Scored) else None for side in (item.base, item.head)
    )
    if before is None or after is None:
        return ""
    if abs(after / before - 1) <= least_fraction:
        return "SOL@clock equal"
    return f"SOL@clock {units.percent(before)} -> {units.percent(after)}"


def _is_near(ratio_fraction: float) -> bool:
    return 1 / _FACTOR_FROM <= ratio_fraction <= _FACTOR_FROM


def _factor(ratio_fraction: float) -> str:
    return f"{units.digits(_bounded(ratio_fraction))}{TIMES}"


def _bounded(ratio_fraction: float) -> float:
    """Keep a factor printable: what is further off than this says nothing more."""
    return min(max(ratio_fraction, 1 / _FACTOR_MOST), _FACTOR_MOST)
