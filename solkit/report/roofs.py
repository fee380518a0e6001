"""The roofs of a roofline: which lines a device has for a pipe, and how axes show them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from solkit import units
from solkit.bound import Roof, clock_roof, measured_roof, spec_roof
from solkit.gpu import Gpu
from solkit.judge.score import Scored
from solkit.model import Ceilings, Settle
from solkit.report.marks import Box
from solkit.report.plotting import INK, MUTED, PAPER, brief, clean, text_px
from solkit.stats import median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RoofKind = Literal["spec", "clock", "measured"]
LINE_STYLES: dict[RoofKind, Any] = {"spec": "-", "clock": (0, (5, 2)), "measured": (0, (1, 1.5))}
LABEL_SIZE = 9.5
_LABEL_STEP_PX = 13.0
_RIDGES_MOST = 4
_RIDGE_STEP_PX = 26.0
_SLOPES_MOST = 4  # more bandwidths stand in the legend alone
_NEAR_RATIO = 1.6  # slopes closer than this have no room for a text between them
_SAME_FRACTION = 0.005  # bandwidths this close share one label


@dataclass(frozen=True, slots=True)
class RoofLine:
    """One line of one panel. flop_per_s is None where the pipe was never measured: just a slope."""

    kind: RoofKind
    name: str
    dram_bytes_per_s: float
    flop_per_s: float | None
    colour: str = INK
    slope_name: str = ""

    @property
    def ridge_flop_per_byte(self) -> float | None:
        """The intensity at which the slope meets the ceiling."""
        if self.flop_per_s is None or not self.dram_bytes_per_s:
            return None
        return self.flop_per_s / self.dram_bytes_per_s

    def at(self, intensity_flop_per_byte: float) -> float:
        """Return the FLOP/s that can be had at an intensity."""
        if not self.dram_bytes_per_s:
            return self.flop_per_s or 0.0
        slope = intensity_flop_per_byte * self.dram_bytes_per_s
        return slope if self.flop_per_s is None else min(slope, self.flop_per_s)


def held_hz(scored: Sequence[Scored]) -> float | None:
    """Return the median of the SM clocks held by these cases; None where none is known."""
    clocks = [item.outcome.clocks.sm_hz for item in scored if item.outcome.clocks.sm_hz]
    return median(clocks) if clocks else None


def device_roofs(
    gpu: Gpu | None, ceilings: Ceilings | None, clock_hz: float | None, settle: Settle = "burst"
) -> list[tuple[RoofKind, str, Roof]]:
    """Return a device's roofs in the order spec, clock, measured: those it has.

    settle: whether the measured rates are those from rest or those at the clock of steady work.
    """
    roofs: list[tuple[RoofKind, str, Roof]] = []
    if gpu is not None:
        roofs.append(("spec", "spec", spec_roof(gpu)))
        if clock_hz:
            roofs.append(("clock", f"at {units.frequency(clock_hz)}", clock_roof(gpu, clock_hz)))
    if ceilings is not None:
        roofs.append(("measured", "measured", measured_roof(ceilings, settle=settle)))
    return roofs


def lines_for(pipes: Sequence[str], roofs: Sequence[tuple[RoofKind, str, Roof]]) -> list[RoofLine]:
    """Return the lines of a panel that holds these pipes; equal ceilings are drawn once."""
    lines: list[RoofLine] = []
    for kind, name, roof in roofs:
        found: dict[float, list[str]] = {}
        for pipe in pipes:
            if roof.pipes_flop_per_s.get(pipe):
                found.setdefault(roof.pipes_flop_per_s[pipe], []).append(pipe)
        for peak, sharing in found.items():
            which = f" {sharing[0].removesuffix('_tensor')}" if len(found) > 1 else ""
            lines.append(RoofLine(kind, f"{name}{which}", roof.dram_bytes_per_s, peak))
        if not found:
            lines.append(RoofLine(kind, name, roof.dram_bytes_per_s, None))
    return [line for line in lines if line.dram_bytes_per_s > 0 or line.flop_per_s]


def ceiling_text(line: RoofLine) -> str:
    """Return the label of a ceiling: its name with number and unit."""
    return f"{line.name} {brief(units.flop_rate(line.flop_per_s or 0.0))}"


def margin_px(lines: Sequence[RoofLine]) -> float:
    """Return the room on the right that the labels of these ceilings need."""
    return (
        max(
            (text_px(ceiling_text(line), LABEL_SIZE) for line in lines if line.flop_per_s),
            default=0.0,
        )
        + 22
    )


def draw_roofs(axes: "Axes", lines: Sequence[RoofLine]) -> list[Box]:
    """Draw labelled roofs into log-log axes whose limits are set, and mark the ridges.

    Returns boxes in pixels along the lines and their labels, for the points' names to keep off.
    """
    low, high = axes.get_xlim()
    for line in lines:
        ridge = line.ridge_flop_per_byte
        xs = [low, *([ridge] if ridge and low < ridge < high else []), high]
        ys = [line.at(x) for x in xs]
        axes.plot(
            xs, ys, color=line.colour, linestyle=LINE_STYLES[line.kind], linewidth=1.5, zorder=2
        )
    _label_ceilings(axes, lines)
    _mark_ridges(axes, lines)
    return _along(axes, lines) + _label_slopes(axes, lines)


def _along(axes: "Axes", lines: Sequence[RoofLine]) -> list[Box]:
    """Return small boxes along every line."""
    low, high = axes.get_xlim()
    xs = [low * (high / low) ** (step / 60) for step in range(61)]
    places = [(x, line.at(x)) for line in lines if line.dram_bytes_per_s for x in xs]
    if not places:
        return []
    return [(x - 4, y - 2, x + 4, y + 2) for x, y in axes.transData.transform(places).tolist()]


def _label_ceilings(axes: "Axes", lines: Sequence[RoofLine]) -> None:
    """Write each ceiling's number at its right end, apart from each other, a leader to its line."""
    right = axes.get_xlim()[1]
    ends = sorted(
        ((line.at(right), line) for line in lines if line.flop_per_s), key=lambda end: end[0]
    )
    if not ends:
        return
    heights = [float(axes.transData.transform((right, value))[1]) for value, _ in ends]
    spread = _apart(heights, _LABEL_STEP_PX)
    for (value, line), height, label_height in zip(ends, heights, spread, strict=True):
        axes.annotate(
            ceiling_text(line),
            (right, value),
            xytext=(14, label_height - height),
            textcoords="offset points",
            fontsize=LABEL_SIZE,
            color=line.colour,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": MUTED,
                "linewidth": 0.7,
                "shrinkA": 1,
                "shrinkB": 0,
            },
        )


def _apart(heights: Sequence[float], step: float) -> list[float]:
    """Return ascending heights moved as little as need be to stand at least `step` apart."""
    blocks: list[tuple[float, int]] = []  # centre and count of labels that touch
    for height in heights:
        centre, count = height, 1
        while (
            blocks
            and centre - (count - 1) * step / 2 - step
            < blocks[-1][0] + (blocks[-1][1] - 1) * step / 2
        ):
            before, members = blocks.pop()
            centre = (before * members + centre * count) / (members + count)
            count += members
        blocks.append((centre, count))
    return [
        centre + (place - (count - 1) / 2) * step
        for centre, count in blocks
        for place in range(count)
    ]


def _label_slopes(axes: "Axes", lines: Sequence[RoofLine]) -> list[Box]:
    """Write the two highest bandwidths along their slopes; return the boxes they take."""
    boxes: list[Box] = []
    shared: list[tuple[float, list[str], str]] = []
    for line in sorted(lines, key=lambda line: -line.dram_bytes_per_s):
        word = line.slope_name or line.kind
        if not line.dram_bytes_per_s:
            continue
        if shared and abs(line.dram_bytes_per_s / shared[-1][0] - 1) < _SAME_FRACTION:
            if word not in shared[-1][1]:
                shared[-1][1].append(word)
        else:
            shared.append((line.dram_bytes_per_s, [word], line.colour))
    if len(shared) > _SLOPES_MOST:
        return boxes
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    for index, (rate, words, colour) in enumerate(shared[:2]):
        ridges = [
            line.ridge_flop_per_byte or high
            for line in lines
            if abs(line.dram_bytes_per_s / rate - 1) < _SAME_FRACTION
        ]
        below = index == 1 and shared[0][0] / rate < _NEAR_RATIO
        start = max(low, bottom / rate)
        end = min(high, top / rate, min(ridges) if below else max(ridges))
        if end <= start:
            continue
        (x0, y0), (x1, y1) = axes.transData.transform([(start, start * rate), (end, end * rate)])
        text = f"DRAM {brief(units.bandwidth(rate))} ({', '.join(words)})"
        length = math.dist((x0, y0), (x1, y1))
        share = 0.5 if length < text_px(text, LABEL_SIZE) * 1.2 else 0.42
        place = math.exp(math.log(start) + share * (math.log(end) - math.log(start)))
        angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
        away = -4.0 if below else 4.0
        axes.annotate(
            text,
            (place, place * rate),
            xytext=(-away * math.sin(math.radians(angle)), away * math.cos(math.radians(angle))),
            textcoords="offset points",
            rotation=angle,
            rotation_mode="anchor",
            ha="center",
            va="top" if below else "bottom",
            fontsize=LABEL_SIZE,
            color=colour,
        )
        slant, half = math.radians(angle), text_px(text, LABEL_SIZE) / 2
        ((middle_x, middle_y),) = axes.transData.transform([(place, place * rate)])
        for step in range(-6, 7):
            x = middle_x + step / 6 * half * math.cos(slant) - 2.5 * away * math.sin(slant)
            y = middle_y + step / 6 * half * math.sin(slant) + 2.5 * away * math.cos(slant)
            boxes.append((x - 7, y - 6, x + 7, y + 6))
    return boxes


def _mark_ridges(axes: "Axes", lines: Sequence[RoofLine]) -> None:
    """Drop a thin line from the ridges of the first roof to the axis; name their intensity."""
    low, high = axes.get_xlim()
    bottom = axes.get_ylim()[0]
    ridges: dict[float, RoofLine] = {}
    for line in lines:
        ridge = line.ridge_flop_per_byte
        if (
            ridge
            and low < ridge < high
            and line.kind == lines[0].kind
            and line.colour == lines[0].colour
        ):
            ridges[ridge] = line
    named_x = -math.inf
    for index, (ridge, line) in enumerate(sorted(ridges.items())[:_RIDGES_MOST]):
        place_x = float(axes.transData.transform((ridge, bottom))[0])
        if place_x - named_x < _RIDGE_STEP_PX:
            continue  # its number would cover that of the ridge before it
        named_x = place_x
        dots = (0, (2, 3))
        axes.plot(
            [ridge, ridge],
            [bottom, line.at(ridge)],
            color=MUTED,
            linewidth=0.8,
            linestyle=dots,
            zorder=1,
        )
        number = brief(units.intensity(ridge))
        axes.annotate(
            number.removesuffix(" FLOP/B") if index else f"ridge {number}",
            (ridge, bottom),
            xytext=(-4, 5),
            textcoords="offset points",
            fontsize=LABEL_SIZE,
            color=MUTED,
            ha="right",
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
        )


def card_name(gpu: Gpu, most: int = 24) -> str:
    """Return a card's name for a label, without its vendor."""
    return clean(gpu.name.removeprefix("NVIDIA ").removeprefix("AMD "), most)
