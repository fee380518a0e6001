"""The budget of a run drawn: a stacked bar for each regime and operator, in seconds."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from solkit import units
from solkit.judge.score import Judged
from solkit.report import svg
from solkit.report.budget import Share, Spent, budget_alt, regime_shares, shares
from solkit.report.legend import Entry, framed
from solkit.report.plotting import MUTED, brief, clean, look, svg_text, text_px

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE_PX, _BAR, _GAP = 24.0, 0.62, 0.5
_TICKS_MOST = 6


class Part(NamedTuple):
    """One part of a bar: which seconds, its words, and how it looks without its colour."""

    name: str
    words: str
    colour: str
    edge: str
    hatch: str


# From what no kernel can help to what it can: dark and plain, then light, then warm and hatched.
PARTS = (
    Part("memory_s", "memory bound", "#0b4f7d", "#0b4f7d", ""),
    Part("compute_s", "compute bound", "#56b4e9", "#0b4f7d", ""),
    Part("floor_s", "launch floor", "#6b6b6b", "#3d3d3d", ""),
    Part("loss_s", "loss above both", "#f3c98b", "#a35c00", "////"),
)


def budget_chart(judged: Sequence[Judged]) -> tuple[str, str]:
    """Return the budget of a run as SVG (empty where nothing was measured), and what it says."""
    operators = [part for part in shares(judged) if part.spent.time_s > 0]
    if not operators:
        return "", "Nothing was measured, so there is no time to divide."
    regimes = [part for part in regime_shares(judged) if part.spent.time_s > 0]
    alt = budget_alt(regimes, operators)
    with look():
        return _draw(regimes, operators, alt), alt


def _draw(regimes: Sequence[Share], operators: Sequence[Share], alt: str) -> str:
    title = "What the time of one call of each case is made of"
    parts = [*regimes, *operators]
    # regimes above, operators below a gap: the same time, divided twice
    heights = [place + (_GAP if place >= len(regimes) else 0.0) for place in range(len(parts))]
    heads = [clean(part.name, 26) for part in parts]
    asides = [_aside(part.spent) for part in parts]
    left = min(190.0, max(text_px(head, 10.5) for head in heads) + 18)
    right = max(text_px(aside, 9.5) for aside in asides) * 0.94 + 10
    figure, (axes,) = framed(
        title, _entries(operators), [(len(parts) + _GAP) * _LINE_PX], left=left, right=right
    )
    longest_s = max(part.spent.time_s for part in parts)
    axes.set_xlim(0, longest_s * 1.02)
    axes.set_ylim(heights[-1] + 0.5, -0.5)
    axes.set_yticks(heights, heads, fontsize=10.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.axhline(len(regimes) - 0.5 + _GAP / 2, color=MUTED, linewidth=0.8, zorder=1)
    ticks = _ticks(longest_s)
    axes.set_xticks(ticks, [brief(units.seconds(tick)) if tick else "0" for tick in ticks])
    axes.set_xlabel("time: the sum of the cases' medians")
    _draw_bars(axes, parts, heights)
    tips = {}
    for place, (part, aside) in enumerate(zip(parts, asides, strict=True)):
        axes.annotate(
            aside,
            (1, heights[place]),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=9.5,
            color=MUTED,
            annotation_clip=False,
        )
        if part.anchor:
            axes.get_yticklabels()[place].set_url(f"#{part.anchor}")
            tips[f"#{part.anchor}"] = f"{heads[place]}: {_words(part.spent)}"
    return svg.sanitise(
        svg_text(figure), prefix="b-", title=title, description=f"{alt} {svg.SEE_TABLE}", tips=tips
    )


def _draw_bars(axes: "Axes", parts: Sequence[Share], heights: Sequence[float]) -> None:
    starts = [0.0] * len(parts)
    for kind in PARTS:
        widths = [float(getattr(part.spent, kind.name)) for part in parts]
        bars = [
            (height, width, start)
            for height, width, start in zip(heights, widths, starts, strict=True)
            if width
        ]
        if bars:
            axes.barh(
                [height for height, _, _ in bars],
                [width for _, width, _ in bars],
                left=[start for _, _, start in bars],
                height=_BAR,
                facecolor=kind.colour,
                edgecolor=kind.edge,
                hatch=kind.hatch,
                linewidth=0.6,
                zorder=3,
            )
        starts = [start + width for start, width in zip(starts, widths, strict=True)]


def _entries(parts: Sequence[Share]) -> list[Entry]:
    from matplotlib.patches import Patch  # noqa: PLC0415  # matplotlib loads when something is drawn

    styles: list[tuple[Part, dict[str, Any]]] = [
        (kind, {"facecolor": kind.colour, "edgecolor": kind.edge, "hatch": kind.hatch})
        for kind in PARTS
        if any(getattr(part.spent, kind.name) for part in parts)
    ]
    return [(Patch(linewidth=0.6, **style), kind.words) for kind, style in styles]


def _aside(of: Spent) -> str:
    return f"{units.seconds(of.time_s)}, {100 * of.loss_s / of.time_s:.0f} % lost"


def _words(of: Spent) -> str:
    said = [
        f"{units.seconds(getattr(of, kind.name))} {kind.words}"
        for kind in PARTS
        if getattr(of, kind.name)
    ]
    return f"{units.seconds(of.time_s)}: {', '.join(said)}"


def _ticks(longest_s: float) -> list[float]:
    """Return round times from 0 that fit: steps of 1, 2 or 5 of a decade."""
    power = 10.0 ** math.floor(math.log10(longest_s / _TICKS_MOST))
    step_s = next(lead * power for lead in (1, 2, 5, 10) if longest_s <= lead * power * _TICKS_MOST)
    return [place * step_s for place in range(int(longest_s / step_s) + 1)]
