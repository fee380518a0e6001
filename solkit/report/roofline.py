"""`solkit roofline`: the roofline of cards, of a run's device, or both, with a run's points."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from solkit import units
from solkit.bound import spec_roof
from solkit.errors import BadInput
from solkit.gpu import Gpu
from solkit.judge.score import Judged, Scored
from solkit.model import Ceilings, Run
from solkit.report import marks, svg
from solkit.report.drawing import looks
from solkit.report.legend import Entry, framed
from solkit.report.panels import Panel, panels_of
from solkit.report.plain import listed
from solkit.report.plotting import COLOURS, INK, brief, clean, look, png_bytes, svg_text
from solkit.report.roofmap import (
    PANELS_MOST,
    Manner,
    alt_text,
    draw_panel,
    dress,
    framed_panels,
    roof_text,
    set_limits,
)
from solkit.report.roofs import (
    RoofLine,
    card_name,
    device_roofs,
    draw_roofs,
    held_hz,
    lines_for,
    margin_px,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What people compare cards by, the fastest first; bf16 falls back to fp16 on cards before it.
_FEW, _SOME = (
    2,
    4,
)  # so many cards show all of them, or the matrix pipe and fp32; more, the matrix pipe
CARDS_MOST = 12  # labels of more ceilings would leave the picture
_MARKS_MOST = 240
_PICTURE_PX = 420.0


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with its title and what it says in words."""

    figure: "Figure"
    title: str
    alt: str


def draw(
    path: Path, *, gpus: Sequence[Gpu] = (), run: Run | None = None, judged: Sequence[Judged] = ()
) -> None:
    """Write a roofline as SVG or PNG, by the suffix of `path`.

    gpus: cards to draw; without any, the device of `run`. judged: the points, scored from `run`.
    Raises BadInput on another suffix, with nothing to draw, with more cards than a picture can
    tell apart, or where the file can't be written.
    """
    suffix = path.suffix.lower()
    if suffix not in {".svg", ".png"}:
        raise BadInput(
            f"{path}: a roofline is written as .svg or .png, not as {suffix or 'no suffix'!r}",
            remedy=f"name the file {path.stem}.svg or {path.stem}.png",
        )
    with look():
        picture = roofline_figure(gpus=gpus, run=run, judged=judged)
        if suffix == ".png":
            data = png_bytes(picture.figure)
        else:
            text = svg.sanitise(
                svg_text(picture.figure), prefix="r-", title=picture.title, description=picture.alt
            )
            data = svg.standalone(text).encode()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise BadInput(
            f"{path} can't be written: {error.strerror or error}",
            remedy="choose a file in a folder that can be written",
        ) from error


def roofline_figure(
    *, gpus: Sequence[Gpu] = (), run: Run | None = None, judged: Sequence[Judged] = ()
) -> Picture:
    """Return the figure for `draw`. Call inside `plotting.look()`."""
    scored = {row: item for row, item in enumerate(judged) if marks.placed(item)}
    if len(gpus) > CARDS_MOST:
        raise BadInput(
            f"{len(gpus)} cards don't fit one picture, {CARDS_MOST} do",
            remedy="name fewer cards with --gpu",
        )
    panels = panels_of(scored, run.gpu if run else None, whose=True)[:PANELS_MOST]
    if panels and run is not None:
        return _with_points(panels, scored, gpus, run)
    cards = list(gpus) or ([run.gpu] if run and run.gpu else [])
    lines = _card_lines(cards)
    if run is not None and (not gpus or _own(gpus, run)):
        lines += _measured_lines(run.ceilings, run.facts.name)
    return _roofs_alone(lines, cards, run)


def _own(gpus: Sequence[Gpu], run: Run) -> bool:
    """Say whether the run was made on one of these cards."""
    return run.gpu is not None and any(gpu.id == run.gpu.id for gpu in gpus)


def compared_pipes(gpu: Gpu, card_count: int) -> list[str]:
    """Return the pipes of a card that a picture with so many cards shows."""
    matrix = "bf16_tensor" if "bf16_tensor" in gpu.pipes else "fp16_tensor"
    wanted = ["fp8_tensor", matrix, "tf32_tensor", "fp32"]
    if card_count > _FEW:
        wanted = [matrix, "fp32"] if card_count <= _SOME else [matrix]
    fastest = sorted(gpu.pipes, key=lambda pipe: -gpu.pipes[pipe].flop_per_s)
    spare = ["fp32"] if "fp32" in gpu.pipes else fastest[:1]
    return [pipe for pipe in wanted if pipe in gpu.pipes] or spare


def _card_lines(cards: Sequence[Gpu]) -> list[RoofLine]:
    lines: list[RoofLine] = []
    for index, gpu in enumerate(cards):
        name = card_name(gpu)
        colour = COLOURS[index % len(COLOURS)][1] if len(cards) > 1 else INK
        roof = spec_roof(gpu)
        for pipe in compared_pipes(gpu, len(cards)) or [""]:
            short = pipe.removesuffix("_tensor")
            label = f"{name} {short}" if len(cards) > 1 else f"{pipe.replace('_', ' ')}"
            word = name if len(cards) > 1 else "spec"
            lines.append(
                RoofLine(
                    "spec",
                    label,
                    roof.dram_bytes_per_s,
                    roof.pipes_flop_per_s.get(pipe),
                    colour,
                    word,
                )
            )
    return lines


def _measured_lines(ceilings: Ceilings | None, name: str) -> list[RoofLine]:
    """Return the measured roofs: every pipe that was measured, or the bandwidth alone."""
    if ceilings is None:
        return []
    (roof,) = [roof for _, _, roof in device_roofs(None, ceilings, None)]
    lines = [
        RoofLine("measured", f"{pipe.replace('_', ' ')}, measured", roof.dram_bytes_per_s, peak)
        for pipe, peak in sorted(roof.pipes_flop_per_s.items(), key=lambda item: -item[1])
    ]
    return lines or [RoofLine("measured", f"{clean(name)}, measured", roof.dram_bytes_per_s, None)]


def _roofs_alone(lines: Sequence[RoofLine], cards: Sequence[Gpu], run: Run | None) -> Picture:
    """Draw roofs without points: every card over each other, in one panel."""
    if not lines:
        raise BadInput(
            "there is no card, no run and no measured ceiling to draw",
            remedy="name a card with --gpu (`solkit gpus` lists them) or a run with --run",
        )
    names = [card_name(gpu, 40) for gpu in cards] or [
        clean(run.facts.name if run else "this device", 50)
    ]
    title = f"Roofline: {listed(names, 3)}"
    figure, (axes,) = framed(
        title, _card_entries(lines, cards), [_PICTURE_PX], right=margin_px(lines)
    )
    set_limits(axes, (), lines)
    dress(axes, Panel((), estimated=False, points=()), titled=False)
    axes.set_ylabel("attainable FLOP/s, dense")
    draw_roofs(axes, lines)
    return Picture(figure, title, f"{title}. {'; '.join(roof_text(line) for line in lines)}.")


def _card_entries(lines: Sequence[RoofLine], cards: Sequence[Gpu]) -> list[Entry]:
    from matplotlib.lines import Line2D  # noqa: PLC0415  # matplotlib loads when something is drawn

    from solkit.report.roofs import LINE_STYLES  # noqa: PLC0415

    if len(cards) > 1:
        firsts = {line.slope_name: line for line in reversed(lines)}
        return [
            (
                Line2D([], [], color=line.colour, linewidth=1.8),
                f"{name}, DRAM {brief(units.bandwidth(line.dram_bytes_per_s))}",
            )
            for name, line in reversed(firsts.items())
            if name
        ]
    words = {
        "spec": "published (spec file)",
        "clock": "at the held clock",
        "measured": "measured on this device",
    }
    kinds = dict.fromkeys(line.kind for line in lines)
    return [
        (Line2D([], [], color=INK, linestyle=LINE_STYLES[kind], linewidth=1.5), words[kind])
        for kind in kinds
    ]


def _with_points(
    panels: Sequence[Panel], scored: dict[int, Scored], gpus: Sequence[Gpu], run: Run
) -> Picture:
    """Draw the points of a run under its own roofs, with the published roofs of other cards."""
    roofs = device_roofs(run.gpu, run.ceilings, held_hz(list(scored.values())), run.settle)
    others = [gpu for gpu in gpus if run.gpu is None or gpu.id != run.gpu.id]
    lines = [lines_for(panel.pipes, roofs) + _other_lines(panel, others) for panel in panels]
    look_of = looks(sorted({point.series for panel in panels for point in panel.points}))
    title = f"Roofline: {clean(run.gpu.name if run.gpu else run.facts.name, 50)}"
    figure, all_axes = framed_panels(title, panels, lines, look_of)
    manner = Manner(look_of, _MARKS_MOST, titled=True, table=False)
    for index, (axes, panel, panel_lines) in enumerate(zip(all_axes, panels, lines, strict=True)):
        draw_panel(axes, panel, panel_lines, manner, gid=f"map{index}")
    return Picture(figure, title, alt_text(title, panels, lines, list(scored.values())))


def _other_lines(panel: Panel, gpus: Sequence[Gpu]) -> list[RoofLine]:
    lines: list[RoofLine] = []
    for index, gpu in enumerate(gpus):
        pipe = next((pipe for pipe in panel.pipes if pipe in gpu.pipes), "")
        peak = gpu.pipes[pipe].flop_per_s if pipe else None
        colour = COLOURS[(index + 1) % len(COLOURS)][1]
        lines.append(
            RoofLine("spec", card_name(gpu), gpu.dram_bytes_per_s, peak, colour, card_name(gpu))
        )
    return lines
