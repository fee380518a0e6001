"""Units: SI base units inside, scaled for people here and nowhere else.

Rates and times go in powers of ten, capacities in powers of two (GiB); traffic counts as a rate's
numerator and goes in powers of ten (MB). Three significant digits, so that columns line up.
"""

import math

_STEPS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def digits(value: float, significant: int = 3) -> str:
    """Write a number with so many significant digits, no exponent: 0.5 -> '0.500'."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    places = significant - 1 - math.floor(math.log10(abs(value)))
    text = f"{value:.{max(places, 0)}f}"
    # 9.996 rounds up to 10.00: one digit too many, so ask again from the rounded value
    rounded = float(text)
    if rounded and significant - 1 - math.floor(math.log10(abs(rounded))) < places:
        text = f"{rounded:.{max(places - 1, 0)}f}"
    return text


def _scaled(value: float, unit: str) -> str:
    for factor, prefix in _STEPS:
        if abs(value) >= factor * 0.9995:
            return f"{digits(value / factor)} {prefix}{unit}"
    return f"{digits(value)} {unit}"


def seconds(value_s: float) -> str:
    """Write a time: 12.4e-6 -> '12.4 µs'."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if abs(value_s) >= factor * 0.9995:
            return f"{digits(value_s / factor)} {unit}"
    return "0 s" if value_s == 0 else f"{digits(value_s / 1e-9)} ns"


def duration(value_s: float) -> str:
    """Write a wait for people: 75 -> '1 min 15 s'."""
    whole = max(0, round(value_s))
    if whole < 60:  # noqa: PLR2004  # seconds in a minute
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:  # noqa: PLR2004
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def traffic(value_bytes: float) -> str:
    """Write bytes moved, in powers of ten: 138.9e6 -> '139 MB'."""
    return _scaled(value_bytes, "B")


def capacity(value_bytes: float) -> str:
    """Write bytes held, in powers of two: 62914560 -> '60.0 MiB'."""
    for factor, unit in _BINARY:
        if abs(value_bytes) >= factor:
            return f"{digits(value_bytes / factor)} {unit}"
    return f"{digits(value_bytes)} B"


def bandwidth(value_bytes_per_s: float) -> str:
    """Write a data rate: 4.8e12 -> '4.80 TB/s'."""
    return _scaled(value_bytes_per_s, "B/s")


def flop_rate(value_flop_per_s: float) -> str:
    """Write an arithmetic rate: 989.4e12 -> '989 TFLOP/s'."""
    return _scaled(value_flop_per_s, "FLOP/s")


def pipe_rate(pipe: str, value_per_s: float) -> str:
    """Write the peak of a pipe; `sfu` counts results, all others FLOP."""
    return _scaled(value_per_s, "result/s") if pipe == "sfu" else flop_rate(value_per_s)


def flop_count(value_flop: float) -> str:
    """Write an operation count: 107.4e9 -> '107 GFLOP'."""
    return _scaled(value_flop, "FLOP")


def intensity(value_flop_per_byte: float) -> str:
    """Write an arithmetic intensity: 772.8 -> '773 FLOP/B'."""
    return f"{digits(value_flop_per_byte)} FLOP/B"


def frequency(value_hz: float) -> str:
    """Write a clock in MHz, as drivers and data sheets do: 1.98e9 -> '1980 MHz'."""
    return f"{value_hz / 1e6:.0f} MHz"


def power(value_w: float) -> str:
    """Write a power: 700.0 -> '700 W'."""
    return f"{value_w:.0f} W"


def energy(value_j: float) -> str:
    """Write an energy: 0.0842 -> '84.2 mJ'."""
    for factor, unit in ((1.0, "J"), (1e-3, "mJ")):
        if abs(value_j) >= factor * 0.9995:
            return _scaled(value_j / factor, unit)
    return f"{digits(value_j / 1e-6)} µJ"


def flop_per_joule(value_flop_per_j: float) -> str:
    """Write arithmetic over energy: 1.3e12 -> '1.30 TFLOP/J'."""
    return _scaled(value_flop_per_j, "FLOP/J")


def bytes_per_joule(value_bytes_per_j: float) -> str:
    """Write traffic over energy: 9.1e9 -> '9.10 GB/J'."""
    return _scaled(value_bytes_per_j, "B/J")


def percent(value_fraction: float) -> str:
    """Write a fraction as a percentage: 0.873 -> '87.3 %'."""
    return f"{value_fraction * 100:.1f} %"


def count(value: int) -> str:
    """Write a whole number with thin groups: 10485760 -> '10,485,760'."""
    return f"{value:,}"
