"""Where every limit comes from: the spec file's numbers with their sources, and the ceilings."""

from typing import NamedTuple

from solkit import units
from solkit.gpu import Gpu, Source
from solkit.model import Ceilings, DramCeiling, PipeCeiling
from solkit.report.manner import method_means
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
    """Return the best of each streaming kernel, of the L2 and of each pipe, and the floors."""
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
    if measured.l2:
        best = max(measured.l2, key=lambda point: point.traffic_bytes / point.median_s)
        made.append(
            Ceiling(
                f"L2, {line(best.kernel)}",
                units.bandwidth(best.traffic_bytes / best.median_s),
                f"of {line(best.variant, 300)}" if best.variant else "of a buffer that stays in it",
            )
        )
    fastest: dict[tuple[str, str], PipeCeiling] = {}
    for each in measured.pipes:
        before = fastest.setdefault((each.pipe, each.settle), each)
        if each.flop / each.median_s > before.flop / before.median_s:
            fastest[each.pipe, each.settle] = each
    several = len({settle for _, settle in fastest}) > 1
    made += [
        Ceiling(
            f"{line(pipe)}, {settle}" if several else line(pipe),
            units.flop_rate(each.flop / each.median_s),
            line(each.how, 300) + (f", at {units.frequency(each.sm_hz)}" if each.sm_hz else ""),
        )
        for (pipe, settle), each in fastest.items()
    ]
    made += [
        Ceiling(f"Empty kernel, {line(method)}", units.seconds(floor_s), method_means(method))
        for method, floor_s in measured.floors_s.items()
    ]
    return tuple(made)


def ceilings_when(measured: Ceilings | None) -> str:
    """Say how, when and under which driver the ceilings were measured, as far as it is known."""
    if measured is None:
        return ""
    parts = [line(measured.method)]
    if measured.created:
        parts.append(line(measured.created))
    if measured.driver:
        parts.append(f"driver {line(measured.driver)}")
    return " · ".join(parts)


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
