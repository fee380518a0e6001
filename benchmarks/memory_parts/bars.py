"""What solkit's memory-bound kernels are held to on an H200, and which shapes keep it. Pure.

All is measured in one run, with a cold L2, against the measured roof at the same traffic.
"""

from collections.abc import Callable, Sequence

from accuracy_parts.limits import ROUNDING, Verdict
from beside_parts.bars import EVERY_SHAPE, Bar, Held, Margin, held, peer_text, share, share_text
from beside_parts.standing import COMPILED, Standing, mean_gain

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


def _time_text(shape: Standing) -> str:
    if shape.ours is None or shape.roof_s is None:
        return "no ceilings"
    took, roof = units.seconds(shape.ours.median_s), units.seconds(shape.roof_s)
    return f"{took} where the roof is {roof}"


def _shares(title: str, operators: Sequence[str], least_bytes: int, least: float) -> Bar:
    return Bar(
        f"{title}, {units.traffic(least_bytes)} and more",
        f"SOL@measured {units.percent(least)}",
        _class(operators, least_bytes),
        share(least),
        share_text,
    )


PEER_BAR = Bar(
    "every operator and shape with a peer",
    f"at most {PEER_FRACTION:g} x the fastest peer, or {TICKS_ALIKE} timer ticks more",
    lambda shape: bool(shape.peers),
    _beside_peer,
    peer_text,
)
BARS = (
    EVERY_SHAPE,
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
