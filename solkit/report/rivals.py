"""Kernels of one operator side by side: their times in each group, and who is how far ahead.

A group is the cases that differ in the kernel only; they were measured together, round-robin, so
that clocks and heat are shared. INVALID times win nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from solkit import units
from solkit.judge.score import Judged, Scored
from solkit.model import Failed
from solkit.report.fact import present
from solkit.report.heat import LONG, LONG_ROWS
from solkit.report.plain import counted, line
from solkit.report.table import NONE, ratio, shape_text
from solkit.report.trouble import case_of
from solkit.stats import median

GROUPS_MOST, KERNELS_MOST = 40, 6
_GROUPS_IN_ALL = 500  # over a report: about 500 bytes each
_GROUPS_LEAST = 1
NOT_NAMED = "no baseline kernel was named"  # the reason of judge/score.py


@dataclass(frozen=True, slots=True)
class Group:
    """The outcomes of one shape, dtype and params, by kernel, each with its place in the run."""

    outcomes: dict[str, tuple[int, Judged]]

    @property
    def timed(self) -> dict[str, tuple[int, Scored]]:
        """The kernels whose time counts here."""
        return {
            kernel: (index, item)
            for kernel, (index, item) in self.outcomes.items()
            if isinstance(item, Scored) and item.status == "measured"
        }

    @property
    def fastest(self) -> Scored | None:
        """The shortest time; None where no kernel has one."""
        return min((item for _, item in self.timed.values()), key=_median_s, default=None)

    @property
    def spread(self) -> float:
        """The slowest time over the fastest, by which groups are ranked."""
        times = [item.median_s for _, item in self.timed.values()]
        return max(times) / min(times) if times and min(times) > 0 else 1.0


class RivalCell(NamedTuple):
    """One kernel in one group: its time, what stands beside it, a style, the row it leads to."""

    text: str
    aside: str = ""
    style: str = ""
    anchor: str = ""


class RivalRow(NamedTuple):
    """One group: shape and dtype, and a cell for each kernel."""

    where: str
    cells: tuple[RivalCell, ...]


@dataclass(frozen=True, slots=True)
class RivalsView:
    """The kernels of an operator compared: a line on each, then group by group."""

    caption: str
    kernels: tuple[str, ...]
    tallies: tuple[str, ...]
    rows: tuple[RivalRow, ...]
    more: str
    long: str = ""


def _median_s(item: Scored) -> float:
    return item.median_s


def groups_of(items: Sequence[tuple[int, Judged]]) -> list[Group]:
    """Return the groups in which at least two kernels have a time, in the order of the run."""
    found: dict[object, dict[str, tuple[int, Judged]]] = {}
    for index, item in items:
        case = case_of(item)
        found.setdefault(case.group_key, {})[case.kernel] = (index, item)
    return [group for group in map(Group, found.values()) if len(group.timed) > 1]


def widest(groups: Sequence[Group], most: int) -> list[Group]:
    """Return all groups, or those in which the kernels differ most, the widest first."""
    if len(groups) <= most:
        return list(groups)
    return sorted(groups, key=lambda group: -group.spread)[:most]


def rivals(judged: Sequence[Judged]) -> dict[str, RivalsView]:
    """Return the comparison for each operator that has one, by its name as declared."""
    items: dict[str, list[tuple[int, Judged]]] = {}
    for index, item in enumerate(judged):
        items.setdefault(case_of(item).operator, []).append((index, item))
    grouped = {operator: groups_of(members) for operator, members in items.items()}
    compared = {operator: groups for operator, groups in grouped.items() if groups}
    most = min(GROUPS_MOST, max(_GROUPS_LEAST, _GROUPS_IN_ALL // max(1, len(compared))))
    return {operator: _view(groups, most) for operator, groups in compared.items()}


def names_of(groups: Sequence[Group]) -> list[str]:
    """Return the kernels, the one that is nearest to the fastest over all groups first.

    Those without a time that counts stand last.
    """
    ratios = ratios_of(groups)
    found = {kernel for group in groups for kernel in group.outcomes}
    return sorted(
        found, key=lambda name: (_mean(ratios[name]) if name in ratios else math.inf, name)
    )


def ratios_of(groups: Sequence[Group]) -> dict[str, list[float]]:
    """Return each kernel's times over the fastest of their groups."""
    ratios: dict[str, list[float]] = {}
    for group in groups:
        fastest = group.fastest
        for kernel, (_, item) in group.timed.items():
            if fastest is not None and fastest.median_s > 0:
                ratios.setdefault(kernel, []).append(item.median_s / fastest.median_s)
    return ratios


def rivals_alt(operator: str, groups: Sequence[Group]) -> str:
    """Say in words what the chart of an operator's kernels shows."""
    names = names_of(groups)[:KERNELS_MOST]
    said = "; ".join(_tally(name, groups) for name in names)
    return f"Kernels of {line(operator, 40)} in {counted(len(groups), 'group')}: {said}."


def _view(groups: Sequence[Group], most: int) -> RivalsView:
    names = names_of(groups)
    shown_names, shown = names[:KERNELS_MOST], widest(groups, most)
    named = any(
        item.gap_reason != NOT_NAMED for group in groups for _, item in group.timed.values()
    )
    rest = len(groups) - len(shown)
    notes = [
        f"{counted(rest, 'more group')} in which they differ less" if rest else "",
        f"{counted(len(names) - KERNELS_MOST, 'more kernel')}, slower than these"
        if len(names) > KERNELS_MOST
        else "",
    ]
    more = " and ".join(filter(None, notes))
    gap = "; S: gap score, 0.5 at the baseline, 1 at the bound" if named else ""
    return RivalsView(
        caption=(
            "Times of the kernels, measured together, and over the fastest of each group "
            f"(≈ the intervals meet){gap}"
        ),
        kernels=tuple(line(name) for name in shown_names),
        tallies=tuple(_tally(name, groups) for name in shown_names),
        rows=tuple(_row(group, shown_names) for group in shown),
        more=f"{more}: in the table of every case." if more else "",
        long=LONG if len(shown) > LONG_ROWS else "",
    )


def _tally(name: str, groups: Sequence[Group]) -> str:
    """Write one kernel's line: how often it is the fastest, and how far it is behind."""
    timed = [group.timed[name][1] for group in groups if name in group.timed]
    if not timed:
        return f"{line(name, 80)} has no time that counts"
    fastest = sum(
        group.fastest is not None and group.fastest.outcome.case.kernel == name for group in groups
    )
    mean = _mean(ratios_of(groups)[name])
    gaps = [item.gap_score for item in timed if item.gap_score is not None]
    gap = f", median gap score {units.digits(median(gaps))}" if gaps else ""
    launches = present(item.outcome.launch_s for item in timed)
    cost = f"; launching it costs the host {units.seconds(median(launches))}" if launches else ""
    return (
        f"{line(name, 80)} is the fastest in {fastest:,} of {counted(len(timed), 'group')}, "
        f"{ratio(mean)} the fastest at the geometric mean{gap}{cost}"
    )


def _row(group: Group, names: Sequence[str]) -> RivalRow:
    case = case_of(next(iter(group.outcomes.values()))[1])
    where = f"{shape_text(case)} {line(case.dtype)}"
    return RivalRow(where, tuple(_cell(group, name) for name in names))


def _cell(group: Group, name: str) -> RivalCell:
    if name not in group.outcomes:
        return RivalCell(NONE)
    index, item = group.outcomes[name]
    anchor, fastest = f"r{index}", group.fastest
    if isinstance(item, Failed):
        return RivalCell("✕ failed", "", "bad", anchor)
    if not isinstance(item, Scored) or fastest is None:
        return RivalCell("○ skipped", "", "off", anchor)
    if item.status == "invalid":
        return RivalCell("✕ INVALID", units.seconds(item.median_s), "bad", anchor)
    gap = f"S {units.digits(item.gap_score, 2)}" if item.gap_score is not None else ""
    if item is fastest:
        said, style = "fastest", "win"
    else:
        level = "≈ " if item.low_s <= fastest.high_s else ""
        times = item.median_s / fastest.median_s if fastest.median_s else math.inf
        said, style = f"{level}{ratio(times)}", ""
    return RivalCell(
        units.seconds(item.median_s), ", ".join(filter(None, (said, gap))), style, anchor
    )


def _mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean: a ratio and its inverse cancel."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
