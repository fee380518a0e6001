"""The distribution of scores as a small chart: attributes alone, so it shows where styles don't."""

from collections.abc import Sequence

from solkit.report.page import escaped
from solkit.report.view import Bin

_HEIGHT, _TOP, _AXIS, _GAP_PERCENT = 132, 18, 110, 0.35  # pixels from the top; of the width


def spread_svg(bins: Sequence[Bin], *, prefix: str) -> str:
    """Return the bars as an inline `<svg>` that is as wide as its place; type keeps its size.

    bins: from left to right; their heights are shares of the tallest, 0 to 100. prefix: of ids.
    """
    step = 100 / len(bins)
    told = "; ".join(f"{bin_.label}: {bin_.cases}" for bin_ in bins if bin_.count)
    drawn = "".join(_bar(bin_, place * step, step) for place, bin_ in enumerate(bins))
    return (
        f'<svg class="hist" width="100%" height="{_HEIGHT}" role="img" font-size="12" '
        'font-family="system-ui, sans-serif" fill="currentColor" '
        f'aria-labelledby="{prefix}title {prefix}desc">'
        f'<title id="{prefix}title">Cases by SOL score</title>'
        f'<desc id="{prefix}desc">{escaped(told)}.</desc>{drawn}'
        f'<line x1="0" x2="100%" y1="{_AXIS}" y2="{_AXIS}" stroke="currentColor"/></svg>'
    )


def _bar(bin_: Bin, left: float, step: float) -> str:
    """Write one bar from `left` on, its count above it and its label below, in percent of width."""
    high = max(1, round((_AXIS - _TOP) * int(bin_.height or 0) / 100)) if bin_.count else 0
    top = _AXIS - high
    wide = step - _GAP_PERCENT
    drawn = ""
    if bin_.count:
        drawn += (
            f"<g><title>{escaped(bin_.label)}: {escaped(bin_.cases)}</title>"
            f'<rect x="{left:.2f}%" y="{top}" width="{wide:.2f}%" height="{high}" '
            'rx="2" fill="#2b6cb0"/>'
            f'<text x="{left + wide / 2:.2f}%" y="{top - 5}" '
            f'text-anchor="middle">{escaped(bin_.count)}</text></g>'
        )
    if bin_.tick:
        last = left + step > 100 - step / 2
        at, anchor = (100.0, "end") if last else (left, "start")
        drawn += (
            f'<text x="{at:.2f}%" y="{_AXIS + 16}" text-anchor="{anchor}">'
            f"{escaped(bin_.tick)}</text>"
        )
    return drawn
