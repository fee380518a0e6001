"""What each kind of number can be: GB for bytes or TFLOP for FLOP is a thousand times off."""

# Least and most by the last part of a field's name, with room for the next generations of cards.
RANGES: dict[str, tuple[float, float]] = {
    "flop_per_s": (1e10, 1e17),
    "clock_hz": (1e8, 5e9),
    "base_clock_hz": (1e8, 5e9),
    "boost_clock_hz": (1e8, 5e9),
    "max_clock_hz": (1e8, 5e9),
    "memory_clock_hz": (1e8, 3e10),
    "dram_published_bytes_per_s": (2e10, 5e13),
    "dram_pin_bytes_per_s": (2e10, 5e13),
    "bytes_per_s_per_direction": (1e9, 5e12),
    "dram_bytes": (2**29, 2**41),
    "l2_bytes": (2**18, 2**30),
    "power_w": (5, 5000),
    "sm_count": (1, 1000),
}


def out_of_range(field: str, value: float | None) -> bool:
    """Return whether a value can't be of its unit; what has no range is never out of it."""
    span = RANGES.get(field)
    return span is not None and value is not None and not span[0] <= value <= span[1]
