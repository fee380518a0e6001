"""Where every limit comes from: the spec file's numbers with their sources, and the ceilings."""

from typing import NamedTuple

from solkit import units
from solkit.bound import measured_roof
from solkit.gpu import Gpu, Source
from solkit.model import Ceilings, DramCeiling
from solkit.report.plain import TIMES, line

_MARKS = {
    "read": "read in the source",
    "second_hand": "second hand",
    "derived": "derived",
    "unverified": "unverified",
}


class Origin(NamedTuple):
    """Where a number was read. `url` is empty unless it is a plain web address."""

    title: str = ""
    url: str = ""
    accessed: str = ""
    mark: str = ""
    note: str = ""


class Peak(NamedTuple):
    """One limit of the card: its value, what it is made of, and its source."""

    name: str
    value: str
    detail: str
    origin: Origin


class Ceiling(NamedTuple):
    """One limit measured on the device itself: the best rate and how it was had."""

    name: str
    best: str
    detail: str


def peaks(gpu: Gpu) -> tuple[Peak, ...]:
    """Return DRAM (sheet, pin, and which one scores), every pipe, then the other numbers."""
    sheet, pin = gpu.dram_published_bytes_per_s, gpu.dram_pin_bytes_per_s
    used_pin = pin is not None and pin < sheet
    made = [
        Peak(
            "DRAM, data sheet",
            units.bandwidth(sheet),
            "not used: the pins carry less" if used_pin else "the score's DRAM roof",
            _origin(gpu, "dram_published_bytes_per_s", "dram_bytes_per_s"),
        )
    ]
    if pin is not None:
        bus = f"{gpu.bus_bits} bits" if gpu.bus_bits else "bus width times data rate"
        used = (
            "the score's DRAM roof" if used_pin else "the hard limit: beyond it a time is invalid"
        )
        made.append(
            Peak(
                "DRAM, pins",
                units.bandwidth(pin),
                f"{bus}; {used}",
                _origin(gpu, "dram_pin_bytes_per_s", "memory_clock_hz"),
            )
        )
    for name, pipe in gpu.pipes.items():
        detail = (
            f"{gpu.sm_count} SMs {TIMES} {pipe.flop_per_clock_per_sm:g} a clock {TIMES} "
            f"{units.frequency(pipe.clock_hz)} ({pipe.clock_mark})"
        )
        if pipe.accumulate != "none":
            detail += f", {pipe.accumulate} accumulation"
        if pipe.reason:
            detail += f"; {line(pipe.reason, 300)}"
        made.append(
            Peak(
                line(name),
                units.pipe_rate(name, pipe.flop_per_s),
                detail,
                _origin(gpu, f"pipes.{name}"),
            )
        )
    made += [
        Peak(
            "Highest SM clock",
            units.frequency(gpu.max_clock_hz),
            "sets the hard limit",
            _origin(gpu, "max_clock_hz"),
        ),
        Peak(
            "L2",
            units.capacity(gpu.l2_bytes),
            "the last written lines may stay in it",
            _origin(gpu, "l2_bytes"),
        ),
        Peak("SMs", units.count(gpu.sm_count), "", _origin(gpu, "sm_count")),
    ]
    return tuple(made)


def ceilings(measured: Ceilings | None) -> tuple[Ceiling, ...]:
    """Return the best bandwidth of each streaming kernel, and the best rate of each pipe."""
    if measured is None:
        return ()
    kinds: dict[str, list[DramCeiling]] = {}
    for point in measured.dram:
        kinds.setdefault(point.kernel, []).append(point)
    made = []
    for kind, points in kinds.items():
        best = max(points, key=lambda point: point.traffic_bytes / point.median_s)
        smallest = min(points, key=lambda point: point.traffic_bytes)
        made.append(
            Ceiling(
                f"DRAM, {line(kind)}",
                units.bandwidth(best.traffic_bytes / best.median_s),
                f"at {units.traffic(best.traffic_bytes)}; {units.traffic(smallest.traffic_bytes)} "
                f"took {units.seconds(smallest.median_s)}",
            )
        )
    rates = measured_roof(measured).pipes_flop_per_s
    for name, rate in rates.items():
        how = next(
            each.how
            for each in measured.pipes
            if each.pipe == name and each.flop / each.median_s == rate
        )
        made.append(Ceiling(line(name), units.flop_rate(rate), line(how, 300)))
    return tuple(made)


def _origin(gpu: Gpu, *keys: str) -> Origin:
    """Return the source of the first key that has one; a number without one says so."""
    source: Source | None = next((gpu.sources[key] for key in keys if key in gpu.sources), None)
    if source is None:
        return Origin(mark="no source recorded")
    url = line(source.url, 500)
    web = url.startswith(("https://", "http://")) and url.isascii() and " " not in url
    return Origin(
        title=line(source.title),
        url=url if web else "",
        accessed=source.accessed.isoformat(),
        mark=_MARKS[source.mark],
        note=line(source.note, 300),
    )
