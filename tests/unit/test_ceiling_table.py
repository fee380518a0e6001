"""Ceilings in words: what a person sees of them."""

from collections.abc import Callable

import pytest

from solkit.cli.ceiling_table import half_bytes, text
from solkit.gpu import DeviceFacts
from solkit.model import Ceilings, DramCeiling, PipeCeiling
from solkit.plan.specs import find, load_specs

H200 = DeviceFacts("cuda", "NVIDIA H200", uuid="GPU-12ab", driver="580.159.04")


def curve(stream: str, start_s: float, bytes_per_s: float) -> list[DramCeiling]:
    """Return a stream that takes a start and then runs at one rate."""
    variants = {16: "one_load", 30: "strided"}
    points = []
    for power in (16, 20, 24, 30):
        read = {"read": 1.0, "triad": 2 / 3, "copy": 0.5, "write": 0.0}[stream]
        read_bytes = round(read * 2**power)
        time_s = start_s + 2**power / bytes_per_s
        variant = variants.get(power, "solkit")
        points.append(DramCeiling(stream, read_bytes, 2**power - read_bytes, time_s, variant))
    return points


CEILINGS = Ceilings(
    "cupti, cold",
    (
        *curve("read", 1.9e-6, 4.38e12),
        *curve("triad", 1.3e-6, 4.37e12),
        *curve("copy", 1.2e-6, 4.32e12),
        *curve("write", 1.1e-6, 4.65e12),
    ),
    (
        PipeCeiling("fp32", 64 * 10**12, 1.0, "FMA, 8 chains a thread, burst", "burst", 1.98e9),
        PipeCeiling("bf16_tensor", 683 * 10**12, 1.0, "cuBLAS bf16 4096^3, burst", "burst"),
        PipeCeiling("bf16_tensor", 793 * 10**12, 1.0, "cuBLAS bf16 8192^3, burst", "burst", 1.75e9),
        PipeCeiling(
            "bf16_tensor",
            661 * 10**12,
            1.0,
            "cuBLAS bf16 8192^3, sustained",
            "sustained",
            1.425e9,
        ),
        PipeCeiling(
            "fp8_tensor",
            1307 * 10**12,
            1.0,
            "e4m3 8192^3 fast sums, cublasLt, burst",
            "burst",
            1.6e9,
        ),
    ),
    l2=(DramCeiling("read", 7 * 10**12, 0, 1.0, "15.0 MiB, 8 loads in flight"),),
    floors_s={"cupti": 6.2e-7, "event_blocked": 2.7e-6, "graph": 1.04e-6},
    created="2026-11-30T14:02:11Z",
    notes=("int8_tensor has no further ceiling: CUBLAS_STATUS_NOT_SUPPORTED",),
)


def test_the_table_of_a_card(golden: Callable[[str, str], None]) -> None:
    """Streams, L2, pipes beside the sheet with their clocks, floors, notes: in 80 columns."""
    card = find("h200_sxm", load_specs())[0]
    found = text(CEILINGS, H200, card)
    golden("ceilings.txt", found + "\n")
    assert max(map(len, found.splitlines())) <= 80


def test_what_nobody_measured_has_no_column() -> None:
    """A host has neither a data sheet nor a clock of its own, and its streams no variants."""
    host = Ceilings(
        "perf_counter",
        (DramCeiling("copy", 8, 8, 1e-9),),
        (PipeCeiling("fp64", 9, 1e-9, "numpy.matmul 1024^3, the fastest call"),),
    )
    found = text(host, DeviceFacts("cpu", "A CPU"), None)
    assert "of sheet" not in found
    assert "clock" not in found
    assert "numpy.matmul 1024^3, the fastest call" in found
    assert "best by" not in found
    assert "L2" not in found


@pytest.mark.parametrize(
    ("start_s", "bytes_per_s"), [(1e-6, 4e12), (2e-6, 4.3e12), (1e-5, 1e12), (3e-6, 5e11)]
)
def test_half_of_a_streams_rate_is_where_its_start_takes_as_long(
    start_s: float, bytes_per_s: float
) -> None:
    """Time s + x / B is half the rate r of its largest point at x = s r / (2 - r / B)."""
    points = curve("copy", start_s, bytes_per_s)
    best = points[-1].traffic_bytes / points[-1].median_s
    assert start_s * best / (2 - best / bytes_per_s) == pytest.approx(half_bytes(points))


def test_a_stream_that_begins_above_half_has_no_smaller_point() -> None:
    """Below the first point nothing was measured."""
    assert 2**16 == half_bytes(curve("copy", 1e-12, 4e12))
    assert 2**16 == half_bytes(curve("copy", 1.0, 4e12)[:1])
