"""What matmul_add is held to on an H200, and what it would be proud of. Pure.

A ratio is solkit's time over another's, of one run with a cold L2, so below 1 solkit is the faster.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from accuracy_parts.limits import ROUNDING, Verdict
from beside_parts.bars import (
    EVERY_SHAPE,
    Bar,
    Held,
    Margin,
    held,
    peer_text,
    share,
    share_text,
    told,
)
from beside_parts.standing import Standing
from matmul_parts.segments import LARGE, SMALL

from solkit import units
from solkit.judge.score import Scored
from solkit.report.plain import counted

OPERATOR, PLAIN = "matmul_add", "matmul"
FLAGSHIP = {"M": 8192, "N": 2560, "K": 2560}
ADDMM = "torch"  # the peer that calls torch.addmm and, for the plain product, torch.matmul
WIDE = 4096 * 4096  # elements of a weight from which few rows must come near the memory's roof
SOL = 0.75
NOT_MEASURED = "not measured"

Takes = Callable[[Standing], bool]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the summary: what shapes are held to, and how they stand.

    bar, stretch: the most (or the least) allowed and aimed at, in words; empty where there is none.
    kept, reached: None where there is nothing to say.
    """

    shapes: str
    figure: str
    measured: str
    bar: str = ""
    kept: bool | None = None
    stretch: str = ""
    reached: bool | None = None

    @property
    def verdict(self) -> Verdict:
        """The bar's verdict; the stretch's where it has no bar."""
        test = f"{self.shapes}: {self.figure}"
        if self.bar:
            return Verdict(test, self.bar, self.measured, self.kept)
        return Verdict(test, f"stretch {self.stretch}", self.measured, self.reached)


@dataclass(frozen=True, slots=True)
class Class:
    """Shapes of one kind, the geometric mean of their ratios that is allowed, and the worst."""

    title: str
    takes: Takes
    most_mean: float
    most: float
    stretch: float

    @property
    def worst(self) -> Bar:
        """The bar of each of its shapes."""
        return Bar(
            self.title,
            f"at most {self.most:.2f} x the fastest peer",
            self.takes,
            _beside(self.most),
            peer_text,
        )


def _large(shape: Standing) -> bool:
    return _ours(shape) and shape.case.shape["M"] >= LARGE


def _medium(shape: Standing) -> bool:
    return _ours(shape) and SMALL < shape.case.shape["M"] < LARGE


def _small(shape: Standing) -> bool:
    return _ours(shape) and shape.case.shape["M"] <= SMALL


def _small_and_wide(shape: Standing) -> bool:
    return _small(shape) and shape.case.shape["N"] * shape.case.shape["K"] >= WIDE


def _flagship(shape: Standing) -> bool:
    return _ours(shape) and shape.case.shape == FLAGSHIP and shape.case.dtype == "bf16"


def _ours(shape: Standing) -> bool:
    return shape.case.operator == OPERATOR


def _beside(most: float) -> Margin:
    return lambda shape: None if shape.gain is None else most * shape.gain


CLASSES = (
    Class(f"M ≥ {LARGE}, all K, N", _large, 1.00, 1.06, 0.95),
    Class(f"128 ≤ M < {LARGE}", _medium, 1.00, 1.10, 0.85),
    Class(f"M ≤ {SMALL}", _small, 0.80, 1.03, 0.65),
)
FLAGSHIP_TITLE = "M = 8192, K = N = 2560, bf16"
FLAGSHIP_BAR = Bar(
    FLAGSHIP_TITLE, "at most 1.00 x the fastest peer", _flagship, _beside(1.0), peer_text
)
WIDE_BAR = Bar(
    f"M ≤ {SMALL}, from 4096 x 4096 up",
    f"SOL@measured at least {units.percent(SOL)}",
    _small_and_wide,
    share(SOL),
    share_text,
)


def judged(shapes: Sequence[Standing]) -> list[Held]:
    """Hold the shapes to every bar that is one of each shape, in the order of the page."""
    bars = (EVERY_SHAPE, FLAGSHIP_BAR, *(each.worst for each in CLASSES), WIDE_BAR)
    return [held(bar, shapes) for bar in bars]


def lines(shapes: Sequence[Standing]) -> list[Line]:
    """Return the summary, line by line."""
    reached, flagship, *worst, wide = judged(shapes)
    found = [
        _each(reached, "each", ""),
        _each(flagship, "time over the fastest peer's, the worst", "1.00 x"),
        _against(shapes, "torch.addmm's", _addmm, bar=0.90),
        _against(shapes, "the plain product's (torch.matmul)", _plain(shapes), stretch=1.00),
    ]
    for each, bar in zip(CLASSES, worst, strict=True):
        found += [
            _mean_line(each, shapes),
            _each(bar, "time over the fastest peer's, the worst", f"{each.most:.2f} x"),
        ]
    return [*found, _each(wide, "the least SOL@measured", units.percent(SOL))]


def _each(found: Held, figure: str, bar: str) -> Line:
    verdict = found.verdict
    return Line(verdict.test, figure, verdict.figure, bar or verdict.limit, verdict.passed)


def ratio_mean(shapes: Sequence[Standing]) -> tuple[float | None, int]:
    """Return the geometric mean of the ratios to the fastest peer, and their number."""
    ratios = [1 / shape.gain for shape in shapes if shape.gain is not None]
    return _mean(ratios), len(ratios)


def kernel_mean(name: str, shapes: Iterable[Standing]) -> float | None:
    """Return the geometric mean of solkit's times over one peer's, where both have one."""
    ratios = [
        shape.ours.median_s / peer.median_s
        for shape in shapes
        for peer in shape.peers
        if shape.ours is not None and peer.outcome.case.kernel == name
    ]
    return _mean(ratios)


def _mean(ratios: Sequence[float]) -> float | None:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _mean_line(each: Class, shapes: Sequence[Standing]) -> Line:
    """Hold a class's mean to its bar: a shape without a time of solkit's misses it."""
    held_shapes = [shape for shape in shapes if each.takes(shape)]
    mean, count = ratio_mean(held_shapes)
    figure, bar, stretch = (
        "geometric mean of the time over the fastest peer's",
        f"{each.most_mean:.2f} x",
        f"{each.stretch:.2f} x",
    )
    if mean is None:
        return Line(each.title, figure, NOT_MEASURED, bar, stretch=stretch)
    lost = sum(shape.ours is None for shape in held_shapes)
    measured = f"{mean:.3f} x over {counted(count, 'shape')}"
    measured += f", {lost} without a time" if lost else ""
    return Line(
        each.title,
        figure,
        measured,
        bar,
        not lost and mean <= each.most_mean * ROUNDING,
        stretch,
        not lost and mean <= each.stretch * ROUNDING,
    )


Other = Callable[[Standing], Scored | None]  # what a shape is held against, where it has a time


def _addmm(shape: Standing) -> Scored | None:
    return next(filter(_is_addmm, shape.peers), None)


def _is_addmm(peer: Scored) -> bool:
    return peer.outcome.case.kernel == ADDMM


def _plain(shapes: Sequence[Standing]) -> Other:
    """Return what finds the plain product of a shape, from the same run."""
    found = {_product_key(shape): _addmm(shape) for shape in shapes if shape.case.operator == PLAIN}
    return lambda shape: found.get(_product_key(shape))


def _product_key(shape: Standing) -> tuple[object, ...]:
    case = shape.case
    return (*sorted(case.shape.items()), case.dtype, case.params["weight"])


def _against(
    shapes: Sequence[Standing], whose: str, other: Other, *, bar: float = 0, stretch: float = 0
) -> Line:
    """Hold the flagship's shapes to a factor of another time; the worst of them counts."""
    figure = f"time over {whose}, the worst"
    words = [f"{most:.2f} x" if most else "" for most in (bar, stretch)]
    ratios = sorted(_ratios(shapes, other), reverse=True, key=lambda each: each[0])
    if not ratios:
        return Line(FLAGSHIP_TITLE, figure, NOT_MEASURED, words[0], stretch=words[1])
    worst, said = ratios[0]
    return Line(
        FLAGSHIP_TITLE,
        figure,
        f"{worst:.3f} x; {said}",
        words[0],
        worst <= bar * ROUNDING if bar else None,
        words[1],
        worst <= stretch * ROUNDING if stretch else None,
    )


def _ratios(shapes: Sequence[Standing], other: Other) -> Iterator[tuple[float, str]]:
    for shape in filter(_flagship, shapes):
        against = other(shape)
        if against is None:
            continue
        if shape.ours is None:
            yield math.inf, f"{shape.where}, {told(FLAGSHIP_BAR, shape)}"
            continue
        ours_s, theirs_s = shape.ours.median_s, against.median_s
        yield (
            ours_s / theirs_s,
            f"{shape.where}, {units.seconds(ours_s)} beside {units.seconds(theirs_s)}",
        )
