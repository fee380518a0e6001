"""What solkit's memory-bound kernels are held to on an H200, and which shapes keep it. Pure.

A shape's margin is what it was allowed over what it took: 1 and more keep the bar, the least is the
worst. All is measured in one run, with a cold L2, against the measured roof at the same traffic.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accuracy_parts.limits import ROUNDING, Verdict
from memory_parts.standing import COMPILED, Standing, mean_gain

from solkit import units
from solkit.judge.compare import TICK_S
from solkit.report.plain import counted
from solkit.stats import TICKS_ALIKE

STREAMS = ("copy", "read", "write", "triad")
PLAIN = ("rmsnorm", "add_rmsnorm", "add_layernorm", "swiglu", "geglu", "embedding", *STREAMS)
# More arithmetic for each byte, or more streams at once.
HEAVY = ("adamw", "bias_gelu", "quant_fp8", "rope")
ROWS = ("softmax", "cross_entropy")
SMALL_BYTES, LARGE_BYTES = 8_000_000, 200_000_000
PEER_FRACTION, GAIN = 1.03, 1.15
RAMP_S, SMALL_S = 0.6e-6, 1e-6

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


def judged(shapes: Sequence[Standing]) -> list[Held]:
    """Hold the shapes to every bar, in the order of the page."""
    return [held(bar, shapes) for bar in BARS]


def mean_verdict(shapes: Sequence[Standing]) -> Verdict:
    """Hold the geometric mean over all operators and shapes to its bar."""
    mean, count = mean_gain(shapes)
    compiled, compiled_count = mean_gain(shape for shape in shapes if shape.compiled)
    test, limit = "geometric mean over all operators and shapes", f"{GAIN:g} x the fastest peer"
    if mean is None:
        return Verdict(test, limit, "not measured", None)
    figure = f"{mean:.3f} x, over {counted(count, 'shape')}"
    if compiled is not None:
        figure += f" ({compiled:.3f} x over the {compiled_count} with {COMPILED} among the peers)"
    return Verdict(test, limit, figure, mean * ROUNDING >= GAIN)


def _class(
    operators: Sequence[str], least_bytes: int = 0, most_bytes: float = float("inf")
) -> Callable[[Standing], bool]:
    """Take shapes of these operators from `least_bytes` of traffic up to below `most_bytes`."""
    return lambda shape: (
        shape.case.operator in operators
        and shape.traffic_bytes is not None
        and least_bytes <= shape.traffic_bytes < most_bytes
    )


def _share(least: float) -> Margin:
    def margin(shape: Standing) -> float | None:
        reached = shape.ours.sol_measured if shape.ours else None
        return None if reached is None else reached / least

    return margin


def _within(allowed_s: Callable[[float], float]) -> Margin:
    def margin(shape: Standing) -> float | None:
        if shape.ours is None or shape.roof_s is None:
            return None
        return allowed_s(shape.roof_s) / shape.ours.median_s

    return margin


def _beside_peer(shape: Standing) -> float | None:
    if shape.ours is None or shape.fastest is None:
        return None
    peer_s = shape.fastest.median_s
    return max(PEER_FRACTION * peer_s, peer_s + TICKS_ALIKE * TICK_S) / shape.ours.median_s


def _share_text(shape: Standing) -> str:
    reached = shape.ours.sol_measured if shape.ours else None
    return "no ceilings" if reached is None else f"SOL@measured {units.percent(reached)}"


def _time_text(shape: Standing) -> str:
    if shape.ours is None or shape.roof_s is None:
        return "no ceilings"
    took, roof = units.seconds(shape.ours.median_s), units.seconds(shape.roof_s)
    return f"{took} where the roof is {roof}"


def _peer_text(shape: Standing) -> str:
    change = shape.against
    if shape.ours is None or shape.fastest is None or change is None:
        return "no peer"
    low, high = change.ratio_low_fraction, change.ratio_high_fraction
    return (
        f"{units.seconds(shape.ours.median_s)} beside {units.seconds(shape.fastest.median_s)} of "
        f"{shape.fastest.outcome.case.kernel}, {change.ratio_fraction:.3f} x ({low:.3f} to "
        f"{high:.3f})"
    )


def _shares(title: str, operators: Sequence[str], least_bytes: int, least: float) -> Bar:
    return Bar(
        f"{title}, {units.traffic(least_bytes)} and more",
        f"SOL@measured {units.percent(least)}",
        _class(operators, least_bytes),
        _share(least),
        _share_text,
    )


PEER_BAR = Bar(
    "every operator and shape with a peer",
    f"at most {PEER_FRACTION:g} x the fastest peer, or {TICKS_ALIKE} timer ticks more",
    lambda shape: bool(shape.peers),
    _beside_peer,
    _peer_text,
)
BARS = (
    Bar(
        "every shape that was reached",
        "a kernel of solkit ran, was right, and was timed",
        lambda _: True,
        lambda _: 1.0,
        lambda _: "",
    ),
    _shares("elementwise and norms", PLAIN, LARGE_BYTES, 0.96),
    _shares(", ".join(HEAVY), HEAVY, LARGE_BYTES, 0.93),
    Bar(
        "elementwise and norms, 8 to 200 MB",
        "time at most roof / 0.92, or roof + 0.6 µs",
        _class((*PLAIN, *HEAVY), SMALL_BYTES, LARGE_BYTES),
        _within(lambda roof_s: max(roof_s / 0.92, roof_s + RAMP_S)),
        _time_text,
    ),
    Bar(
        "elementwise and norms, under 8 MB",
        "time at most roof + 1 µs",
        _class((*PLAIN, *HEAVY), 0, SMALL_BYTES),
        _within(lambda roof_s: roof_s + SMALL_S),
        _time_text,
    ),
    _shares("softmax, cross_entropy", ROWS, LARGE_BYTES, 0.94),
    _shares("attention_decode", ("attention_decode",), 500_000_000, 0.90),
    _shares("dequant_gemv", ("dequant_gemv",), 120_000_000, 0.80),
    PEER_BAR,
)
