"""How every picture looks: colours, marks, type, axes, whatever a user's matplotlibrc says."""

import io
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from solkit.report.plain import line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#1a1a1a", "#595959", "#e4e4e4", "#ffffff"
BAD = "#b00020"

# Okabe-Ito without its yellow (1.3:1 on white), each with a darker edge of its hue (>= 4.5:1).
COLOURS = (
    ("#0072b2", "#004c77"),
    ("#d55e00", "#8f3f00"),
    ("#009e73", "#00654a"),
    ("#cc79a7", "#8a4569"),
    ("#56b4e9", "#1f6f9f"),
    ("#e69f00", "#7d5600"),
    ("#4d4d4d", "#000000"),
)
# Seven colours and eight marks have no common factor: 56 pairs before one comes again.
MARKERS = ("o", "s", "^", "D", "v", "P", "h", "<")
INVALID_MARKER = "X"
# The face of a compute-bound mark: its own colour, and open beside a filled one where all is grey.
COMPUTE_FACE = "#ffeb8a"
MARK_PX = 8.0

_RC: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 11,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "figure.dpi": 72,  # one point is one pixel of the SVG's own grid
    "figure.facecolor": PAPER,
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.fontsize": 10,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",
    "svg.hashsalt": "solkit",
    "text.color": INK,
    "text.parse_math": False,  # names may hold a $; ticks are written by `ticks` below
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 10,
    "xtick.minor.visible": False,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 10,
    "ytick.minor.visible": False,
}


@contextmanager
def look() -> Iterator[None]:
    """Draw inside this: matplotlib's defaults with our settings, nothing of the user's."""
    # Read while matplotlib loads, where an unknown name is an error; nothing opens a window here.
    os.environ["MPLBACKEND"] = "agg"
    import matplotlib as mpl  # noqa: PLC0415  # 0.7 s, and most commands draw nothing

    with mpl.rc_context(), warnings.catch_warnings():
        # DejaVu lacks some scripts; the text stays text, and the reader's browser has a font for it
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        settings: Any = mpl.rcParams  # each release of matplotlib types its keys differently
        settings.update(_RC)
        yield


def canvas(width_px: float, height_px: float) -> "Figure":
    """Return an empty figure of so many pixels."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(width_px / 72, height_px / 72))


def axes_at(figure: "Figure", *, left: float, top: float, right: float, bottom: float) -> "Axes":
    """Add axes at distances in pixels from the figure's left, top, right and bottom."""
    width, height = figure.get_figwidth() * 72, figure.get_figheight() * 72
    box = (
        left / width,
        bottom / height,
        (width - left - right) / width,
        (height - top - bottom) / height,
    )
    return figure.add_axes(box)


def svg_text(figure: "Figure") -> str:
    """Return matplotlib's own SVG of a figure: the same bytes for the same figure."""
    buffer = io.StringIO()
    nothing: Mapping[str, None] = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(buffer, format="svg", metadata=nothing)
    return buffer.getvalue()


def png_bytes(figure: "Figure", dots_per_inch: int = 160) -> bytes:
    """Return a figure as PNG, without the name and version of its writer."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dots_per_inch, metadata={"Software": None})
    return buffer.getvalue()


def clean(text: object, most: int = 40) -> str:
    """Return a name as one printable line of at most `most` characters."""
    return line(str(text), most)


def legend_text(text: str, most: int = 28) -> str:
    """Return a name for a legend, where matplotlib before 3.10 drops one that starts with `_`."""
    name = clean(text, most)
    return f"\u2009{name}" if name.startswith("_") else name


def text_px(text: str, size: float = 10) -> float:
    """Estimate the width of a text: DejaVu Sans is 0.64 of its size wide per digit."""
    return 0.64 * size * len(text)


def brief(text: str) -> str:
    """Drop a number's idle zeros: '1.00 MB' -> '1 MB', '2.50 TB/s' -> '2.5 TB/s'."""
    return re.sub(r"(\d)\.(\d*?)0+(?= |$)", lambda m: f"{m[1]}.{m[2]}" if m[2] else m[1], text)


def log_limits(
    values: Sequence[float], *, pad: float = 1.6, decades: float = 1.0
) -> tuple[float, float]:
    """Return limits around positive values: `pad` on both sides, at least so many decades."""
    low, high = math.log10(min(values) / pad), math.log10(max(values) * pad)
    short = max(0.0, decades - (high - low)) / 2
    return 10 ** (low - short), 10 ** (high + short)


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Return round numbers between two limits: 1, 2 and 5 of a decade, or decades alone."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades * 3 <= most else (1, 3) if decades * 2 <= most else (1,)
    stride = max(1, math.ceil(decades / most))
    return [
        step * 10.0**power
        for power in range(first, last + 1, stride)
        for step in steps
        if low <= step * 10.0**power <= high
    ]


def log_axis(
    axes: "Axes",
    which: str,
    limits: tuple[float, float],
    write: Callable[[float], str],
    most: int = 7,
) -> None:
    """Make one axis logarithmic, with ticks in units people read."""
    places = log_ticks(*limits, most=most)
    texts = [brief(write(place)) for place in places]
    if which == "x":
        axes.set_xscale("log")
        axes.set_xlim(*limits)
        axes.set_xticks(places, texts)
        axes.set_xticks([], minor=True)
    else:
        axes.set_yscale("log")
        axes.set_ylim(*limits)
        axes.set_yticks(places, texts)
        axes.set_yticks([], minor=True)


KINK_PERCENT, STRAIGHT_PERCENT = 120.0, 250.0


def sol_axis(axes: "Axes", which: str, top: float) -> bool:
    """Make one axis SOL in %, from 0 to `top`; return whether it is logarithmic above 120 %.

    A score far past the limit must be seen for what it is, without flattening all the others.
    """
    kinked = top > STRAIGHT_PERCENT
    if kinked:
        import numpy as np  # noqa: PLC0415  # loaded with matplotlib anyway

        def forward(value: Any) -> Any:  # noqa: ANN401  # arrays of any shape
            value = np.asarray(value, dtype=float)
            bent = KINK_PERCENT + 30 * np.log10(np.maximum(value, KINK_PERCENT) / KINK_PERCENT)
            return np.where(value > KINK_PERCENT, bent, value)

        def backward(place: Any) -> Any:  # noqa: ANN401
            place = np.asarray(place, dtype=float)
            bent = KINK_PERCENT * 10 ** ((np.maximum(place, KINK_PERCENT) - KINK_PERCENT) / 30)
            return np.where(place > KINK_PERCENT, bent, place)

        (axes.set_xscale if which == "x" else axes.set_yscale)(
            "function", functions=(forward, backward)
        )
    ticks = [float(tick) for tick in range(0, 101, 20)]
    if kinked:
        ticks += [10.0**power for power in range(3, math.floor(math.log10(top)) + 1)] or [200.0]
    else:
        ticks += [float(tick) for tick in range(120, int(top) + 1, 20)]
    texts = [f"{tick:,.0f}" for tick in ticks]
    if which == "x":
        axes.set_xlim(
            -0.022 * min(top, STRAIGHT_PERCENT), top
        )  # marks at 0 stay off the names beside them
        axes.set_xticks(ticks, texts)
        axes.set_xticks([], minor=True)
    else:
        axes.set_ylim(0, top)
        axes.set_yticks(ticks, texts)
        axes.set_yticks([], minor=True)
    return kinked
