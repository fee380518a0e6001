"""A class of shapes, what each of them must keep, and which do. Pure.

A shape's margin is what it was allowed over what it took: 1 and more keep the bar, the least is the
worst.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accuracy_parts.limits import ROUNDING, Verdict
from beside_parts.standing import Standing

from solkit import units

Margin = Callable[[Standing], float | None]


@dataclass(frozen=True, slots=True)
class Bar:
    """One class of shapes and what each of them must keep.

    margin: None where the shape has no such figure (no ceilings, no peer), so it proves nothing.
    """

    title: str
    limit: str
    takes: Callable[[Standing], bool]
    margin: Margin
    figure: Callable[[Standing], str]


@dataclass(frozen=True, slots=True)
class Held:
    """A bar with what became of it: every shape of its class with its margin, the worst first.

    A kernel of solkit without a time has a margin of 0. unknown: shapes that have no figure.
    """

    bar: Bar
    shapes: tuple[tuple[float, Standing], ...]
    unknown: tuple[Standing, ...]

    @property
    def missed(self) -> tuple[Standing, ...]:
        """The shapes that don't keep it, the worst first."""
        return tuple(shape for margin, shape in self.shapes if margin * ROUNDING < 1)

    @property
    def verdict(self) -> Verdict:
        """How many shapes keep it, and the worst one."""
        return self.verdict_by(told)

    def verdict_by(self, told: Callable[[Bar, Standing], str]) -> Verdict:
        """Return the verdict, with the worst shape's figure as `told` writes it."""
        if not self.shapes:
            return Verdict(self.bar.title, self.bar.limit, "not measured", None)
        kept = len(self.shapes) - len(self.missed)
        worst = self.shapes[0][1]
        figure, said = f"{kept} of {len(self.shapes)}", told(self.bar, worst)
        figure += f"; worst: {worst.where}, {said}" if said else ""
        return Verdict(self.bar.title, self.bar.limit, figure, not self.missed)


def told(bar: Bar, shape: Standing) -> str:
    """Return a shape's figure under a bar, or why solkit's kernel has none."""
    if shape.ours is not None:
        return bar.figure(shape)
    reasons = [each.reason for each in shape.absent if each.kernel == shape.case.kernel]
    return f"no time: {reasons[0] if reasons else 'it was not measured'}"


def held(bar: Bar, shapes: Sequence[Standing]) -> Held:
    """Hold the shapes of a bar's class to it."""
    known, unknown = [], []
    for shape in filter(bar.takes, shapes):
        margin = bar.margin(shape) if shape.ours is not None else 0.0
        if margin is None:
            unknown.append(shape)
        else:
            known.append((margin, shape))
    known.sort(key=lambda each: each[0])
    return Held(bar, tuple(known), tuple(unknown))


def share(least: float) -> Margin:
    """Return the margin of shapes that must reach a share of the measured roof."""

    def margin(shape: Standing) -> float | None:
        reached = shape.ours.sol_measured if shape.ours else None
        return None if reached is None else reached / least

    return margin


def share_text(shape: Standing) -> str:
    """Say which share of the measured roof a shape reaches."""
    reached = shape.ours.sol_measured if shape.ours else None
    return "no ceilings" if reached is None else f"SOL@measured {units.percent(reached)}"


def peer_text(shape: Standing) -> str:
    """Say how long solkit takes, how long the fastest peer, and their ratio with its interval."""
    change = shape.against
    if shape.ours is None or shape.fastest is None or change is None:
        return "no peer"
    low, high = change.ratio_low_fraction, change.ratio_high_fraction
    return (
        f"{units.seconds(shape.ours.median_s)} beside {units.seconds(shape.fastest.median_s)} of "
        f"{shape.fastest.outcome.case.kernel}, {change.ratio_fraction:.3f} x ({low:.3f} to "
        f"{high:.3f})"
    )


EVERY_SHAPE = Bar(
    "every shape that was reached",
    "a kernel of solkit ran, was right, and was timed",
    lambda _shape: True,
    lambda _shape: 1.0,
    lambda _shape: "",
)
