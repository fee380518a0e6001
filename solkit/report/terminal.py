"""A roofline in the terminal: braille dots for the roofs, a letter for each series of points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from solkit import units
from solkit.bound import measured_roof
from solkit.errors import BadInput
from solkit.gpu import Gpu
from solkit.judge.score import Judged
from solkit.model import Run
from solkit.report.marks import Series, placed
from solkit.report.panels import ESTIMATED, charted_flop, series_of
from solkit.report.plotting import brief, clean, log_limits, log_ticks
from solkit.report.roofline import compared_pipes
from solkit.report.roofs import RoofLine, card_name

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CARDS_MOST = 8
_SEVERAL, _INVALID = "*", "!"
_COLOURS = (34, 31, 32, 35, 36, 33)
_DOTS = (
    (0x01, 0x08),
    (0x02, 0x10),
    (0x04, 0x20),
    (0x40, 0x80),
)  # bits of a braille cell, by row and column
_LEAST_WIDTH, _LEAST_HEIGHT, _LABEL_WIDTH = 40, 8, 9


@dataclass(frozen=True, slots=True)
class _Dot:
    """A point: intensity and FLOP/s, its series, and whether it is beyond the hard limit."""

    at: tuple[float, float]
    series: Series
    invalid: bool


@dataclass(frozen=True, slots=True)
class _Grid:
    """The plot's cells: dots of roofs, and characters over them."""

    width: int
    height: int
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]
    dots: dict[tuple[int, int], int] = field(default_factory=dict)
    chars: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return a place in cells, from the upper left."""
        across = math.log(x / self.x_limits[0]) / math.log(self.x_limits[1] / self.x_limits[0])
        up = math.log(y / self.y_limits[0]) / math.log(self.y_limits[1] / self.y_limits[0])
        return across * (self.width - 1), (1 - up) * (self.height - 1)

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """Return the cell that a place falls into, kept inside the plot."""
        across, down = self.place(x, y)
        return min(self.width - 1, max(0, round(across))), min(self.height - 1, max(0, round(down)))

    def dot(self, across: float, down: float) -> None:
        """Set one of the eight dots of a cell."""
        fine_x, fine_y = math.floor((across + 0.5) * 2), math.floor((down + 0.5) * 4)
        cell = fine_x // 2, fine_y // 4
        if 0 <= cell[0] < self.width and 0 <= cell[1] < self.height:
            self.dots[cell] = self.dots.get(cell, 0) | _DOTS[fine_y % 4][fine_x % 2]


def draw(
    *,
    gpus: Sequence[Gpu] = (),
    run: Run | None = None,
    judged: Sequence[Judged] = (),
    width: int = 80,
    height: int = 24,
    color: bool,
    unicode: bool = True,
) -> str:
    """Return a roofline as text, at most `width` columns wide and about `height` lines high.

    gpus: cards to draw; without any, the device of `run`. judged: the points. color: ANSI colours.
    unicode: braille dots for the roofs, else plain ASCII.
    Raises BadInput with nothing to draw, or with more cards than a terminal can tell apart.
    """
    if len(gpus) > _CARDS_MOST:
        raise BadInput(
            f"{len(gpus)} cards don't fit a terminal, {_CARDS_MOST} do",
            remedy="name fewer cards with --gpu, or draw a picture with -o roofline.svg",
        )
    dots = _points(judged)
    lines = _lines(gpus, run, _pipes(judged))
    if not lines:
        raise BadInput(
            "there is no card, no run and no measured ceiling to draw",
            remedy="name a card with --gpu (`solkit gpus` lists them) or a run with --run",
        )
    width, height = max(width, _LEAST_WIDTH), max(height, _LEAST_HEIGHT)
    series = sorted({dot.series for dot in dots})
    letters = {each: _LETTERS[index % len(_LETTERS)] for index, each in enumerate(series)}
    legend = _legend(lines, dots, letters, width)
    labels = _labels(lines)
    beside_width = min(max(map(len, labels), default=-1) + 1, width // 2 - _LABEL_WIDTH)
    grid = _grid(
        width - _LABEL_WIDTH - 1 - beside_width,
        max(_LEAST_HEIGHT, height - 3 - len(legend)),
        lines,
        dots,
    )
    for line in lines:
        _draw_line(grid, line)
    _draw_dots(grid, dots, letters)
    beside = _beside(grid, labels)
    body = [
        f"{row} {beside[number][: beside_width - 1]}" if number in beside else row
        for number, row in enumerate(_body(grid, color=color, unicode=unicode))
    ]
    rows = [*body, *_axis(grid), *legend]
    return "\n".join(row.rstrip() for row in rows) + "\n"


def _pipes(judged: Sequence[Judged]) -> set[str]:
    """Return the pipes that the points are drawn under; other roofs say nothing of them."""
    charted = [charted_flop(item.outcome.work) for item in judged if placed(item)]
    return {"fp32" if found[0] == ESTIMATED else found[0] for found in charted if found}


def _lines(gpus: Sequence[Gpu], run: Run | None, used: set[str]) -> list[RoofLine]:
    """Return the published roofs of the cards and, of a run's own device, the measured ones.

    used: the pipes to show; without any, those that cards are compared by.
    """
    cards = list(gpus) or ([run.gpu] if run and run.gpu else [])
    lines = [
        RoofLine(
            "spec",
            " ".join(
                ([card_name(gpu, 14)] if len(cards) > 1 else []) + [pipe.removesuffix("_tensor")]
            ),
            gpu.dram_bytes_per_s,
            gpu.pipes[pipe].flop_per_s,
            slope_name=card_name(gpu),
        )
        for gpu in cards
        for pipe in (
            [pipe for pipe in gpu.pipes if pipe in used] or compared_pipes(gpu, len(cards))
        )
    ]
    if run and run.ceilings and not gpus:
        roof = measured_roof(run.ceilings, settle=run.settle)
        known = {
            pipe: peak for pipe, peak in roof.pipes_flop_per_s.items() if not used or pipe in used
        }
        peaks = known or {"": 0.0}
        lines += [
            RoofLine(
                "measured",
                f"{pipe.removesuffix('_tensor')} measured",
                roof.dram_bytes_per_s,
                peak or None,
                slope_name="measured",
            )
            for pipe, peak in peaks.items()
        ]
    return [line for line in lines if line.dram_bytes_per_s > 0]


def _points(judged: Sequence[Judged]) -> list[_Dot]:
    dots: list[_Dot] = []
    for item in judged:
        charted = charted_flop(item.outcome.work) if placed(item) else None
        if placed(item) and charted is not None:
            at = (charted[1] / item.outcome.work.traffic_bytes, charted[1] / item.median_s)
            dots.append(
                _Dot(at, series_of(item.outcome.case, whose=True), item.status == "invalid")
            )
    return dots


def _grid(width: int, height: int, lines: Sequence[RoofLine], dots: Sequence[_Dot]) -> _Grid:
    ridges = [line.ridge_flop_per_byte for line in lines if line.ridge_flop_per_byte]
    xs = [dot.at[0] for dot in dots] + [ridge * factor for ridge in ridges for factor in (0.1, 8.0)]
    x_limits = log_limits(xs or [0.1, 100.0], pad=1.3, decades=2.0)
    ys = [dot.at[1] for dot in dots] + [line.at(x) for line in lines for x in x_limits]
    low, high = log_limits(ys, pad=1.5, decades=2.0)
    return _Grid(width, height, x_limits, (low, high))


def _draw_line(grid: _Grid, line: RoofLine) -> None:
    """Dot a roof: two dots a cell across; measured roofs leave every other one out."""
    steps = grid.width * 8
    low, high = grid.x_limits
    for step in range(steps + 1):
        x = low * (high / low) ** (step / steps)
        across, down = grid.place(x, line.at(x))
        if line.kind != "measured" or math.floor(across) % 2 == 0:
            grid.dot(across, down)


def _draw_dots(grid: _Grid, dots: Sequence[_Dot], letters: dict[Series, str]) -> None:
    held: dict[tuple[int, int], set[str]] = {}
    for dot in dots:
        held.setdefault(grid.cell(*dot.at), set()).add(
            _INVALID if dot.invalid else letters[dot.series]
        )
    order = sorted(set(letters.values()))
    for cell, marks in held.items():
        char = _INVALID if _INVALID in marks else min(marks) if len(marks) == 1 else _SEVERAL
        colour = (
            31
            if char == _INVALID
            else _COLOURS[order.index(char) % len(_COLOURS)]
            if char in order
            else 0
        )
        grid.chars[cell] = (char, colour)


def _labels(lines: Sequence[RoofLine]) -> dict[str, RoofLine]:
    """Return each ceiling's name with its number."""
    return {
        f"{line.name} {brief(units.flop_rate(line.flop_per_s))}": line
        for line in lines
        if line.flop_per_s
    }


def _beside(grid: _Grid, labels: dict[str, RoofLine]) -> dict[int, str]:
    """Give each label a line of its own, as near its ceiling as may be, the highest on top.

    Where there are more ceilings than lines, the lowest ones stay without.
    """
    right = grid.x_limits[1]
    order = sorted(labels, key=lambda text: (-labels[text].at(right), text))[: grid.height]
    places: list[int] = []
    for text in order:
        own = grid.cell(right, labels[text].at(right))[1]
        places.append(max(own, places[-1] + 1) if places else own)
    for index in reversed(range(len(places))):  # what ran off the bottom moves up
        most = grid.height - (len(places) - index)
        places[index] = min(places[index], most)
    return dict(zip(places, order, strict=True))


def _body(grid: _Grid, *, color: bool, unicode: bool) -> list[str]:
    """Return the plot's lines, with the y axis on their left."""
    ticks = {
        grid.cell(grid.x_limits[0], tick)[1]: brief(units.flop_rate(tick))
        .removesuffix("FLOP/s")
        .strip()
        for tick in log_ticks(*grid.y_limits, most=max(3, grid.height // 3))
    }
    bar, tick_bar = ("│", "┤") if unicode else ("|", "+")
    rows: list[str] = []
    for line in range(grid.height):
        name = ticks.get(line)
        row = f"{name or '':>{_LABEL_WIDTH - 1}} {tick_bar if name else bar}"
        for column in range(grid.width):
            char, colour = grid.chars.get((column, line), ("", 0))
            bits = grid.dots.get((column, line), 0)
            if char:
                row += f"\x1b[1;{colour}m{char}\x1b[0m" if color and colour else char
            elif bits:
                row += chr(0x2800 + bits) if unicode else "."
            else:
                row += " "
        rows.append(row)
    rows[0] = (
        f"{'FLOP/s':>{_LABEL_WIDTH - 1}}" + rows[0][_LABEL_WIDTH - 1 :]
        if not ticks.get(0)
        else rows[0]
    )
    return rows


def _axis(grid: _Grid) -> list[str]:
    """Return the x axis: its line with ticks, and their numbers."""
    numbers = [" "] * (grid.width + _LABEL_WIDTH + 1)
    for tick in log_ticks(*grid.x_limits, most=max(3, grid.width // 10)):
        text = brief(units.digits(tick))
        start = _LABEL_WIDTH + 1 + grid.cell(tick, grid.y_limits[0])[0] - len(text) // 2
        if (
            start >= 0
            and start + len(text) <= len(numbers)
            and "".join(numbers[max(0, start - 1) : start + len(text) + 1]).isspace()
        ):
            numbers[start : start + len(text)] = text
    unit = "FLOP/byte"
    if "".join(numbers[-len(unit) - 1 :]).isspace():
        numbers[-len(unit) :] = unit
        return ["".join(numbers)]
    return ["".join(numbers), f"{unit:>{len(numbers)}}"]


def _legend(
    lines: Sequence[RoofLine], dots: Sequence[_Dot], letters: dict[Series, str], width: int
) -> list[str]:
    """Return what letters and slopes mean, in as few lines as they need."""
    slopes = {line.slope_name: brief(units.bandwidth(line.dram_bytes_per_s)) for line in lines}
    words = [f"DRAM {clean(name, 24)} {rate}" for name, rate in slopes.items()]
    counts = {each: sum(dot.series == each for dot in dots) for each in letters}
    words += [
        f"{letter} {clean(str(each), 32)} ({counts[each]})" for each, letter in letters.items()
    ]
    if any(dot.invalid for dot in dots):
        words.append(f"{_INVALID} INVALID")
    if len(letters) > 1:  # only marks of different series share a cell as another character
        words.append(f"{_SEVERAL} several")
    rows = [""]
    for word in words:
        joined = f"{rows[-1]}   {word}" if rows[-1] else f"  {word}"
        if len(joined) > width:
            rows.append(f"  {word}"[:width])
        else:
            rows[-1] = joined
    return rows
