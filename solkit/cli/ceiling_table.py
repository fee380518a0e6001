"""Ceilings in words: tables that fit 80 columns."""

from collections.abc import Sequence
from itertools import pairwise

from solkit import units
from solkit.cli.console import heading, table
from solkit.gpu import DeviceFacts, Gpu
from solkit.model import Ceilings, DramCeiling, PipeCeiling
from solkit.report.plain import line

_COLUMNS = 80


def text(ceilings: Ceilings, facts: DeviceFacts, gpu: Gpu | None) -> str:
    """Write everything measured: streams, L2, pipes beside the data sheet, empty kernels."""
    title = ", ".join(
        filter(
            None,
            (
                line(facts.name, 30),
                facts.driver and f"driver {line(facts.driver, 20)}",
                line(ceilings.created[:16].replace("T", " "), 20),
            ),
        )
    )
    parts = [f"{heading(title)}\n{line(ceilings.method, 80)}", streams(ceilings.dram)]
    parts += ["\n".join(_l2(point) for point in ceilings.l2)] if ceilings.l2 else []
    parts += [pipes(ceilings.pipes, gpu)] if ceilings.pipes else []
    parts += [floors(ceilings.floors_s)] if ceilings.floors_s else []
    parts += [f"note: {line(note, 300)}" for note in ceilings.notes]
    return "\n\n".join(parts)


def streams(points: Sequence[DramCeiling]) -> str:
    """Write each stream's best rate, where half of it is reached, and what the least one takes."""
    kinds: dict[str, list[DramCeiling]] = {}
    for point in sorted(points, key=lambda point: point.traffic_bytes):
        kinds.setdefault(point.kernel, []).append(point)
    rows = []
    for kind, curve in kinds.items():
        best = max(curve, key=_rate)
        rows.append(
            (
                line(kind, 10),
                units.bandwidth(_rate(best)),
                units.traffic(best.traffic_bytes),
                units.traffic(half_bytes(curve)),
                f"{units.seconds(curve[0].median_s)} at {units.traffic(curve[0].traffic_bytes)}",
                line(best.variant),
            )
        )
    headers = ("DRAM", "best", "at", "half of it at", "the least takes", "best by")
    return _told(headers, rows, right=(1, 2, 3, 4))


def half_bytes(curve: Sequence[DramCeiling]) -> float:
    """Return the least traffic at which a stream reaches half of its best rate.

    curve: points in the order of their traffic. Times lie on straight lines between points, as
    they do in a bound; below the first point nothing is known, so that is the least there is.
    """
    half = max(map(_rate, curve)) / 2
    if _rate(curve[0]) >= half:
        return float(curve[0].traffic_bytes)
    for low, high in pairwise(curve):
        if _rate(high) < half:
            continue
        span_bytes = high.traffic_bytes - low.traffic_bytes
        slope_s_per_byte = (high.median_s - low.median_s) / span_bytes
        start_s = low.median_s - slope_s_per_byte * low.traffic_bytes
        return half * start_s / (1 - half * slope_s_per_byte)
    return float(curve[-1].traffic_bytes)


def pipes(ceilings: Sequence[PipeCeiling], gpu: Gpu | None) -> str:
    """Write the best rate of each pipe from rest and, where there is one, at the settled clock."""
    best: dict[tuple[str, str], PipeCeiling] = {}
    for ceiling in ceilings:
        key = (ceiling.pipe, ceiling.settle)
        if key not in best or _flop_rate(ceiling) > _flop_rate(best[key]):
            best[key] = ceiling
    rows = []
    for (pipe, settle), ceiling in sorted(best.items(), key=lambda item: item[0]):
        sheet = gpu.pipes.get(pipe) if gpu is not None else None
        rows.append(
            (
                line(pipe, 12),
                settle,
                units.flop_rate(_flop_rate(ceiling)),
                units.percent(_flop_rate(ceiling) / sheet.flop_per_s) if sheet else "",
                units.frequency(ceiling.sm_hz) if ceiling.sm_hz else "",
                line(ceiling.how.removesuffix(f", {settle}")),
            )
        )
    return _told(("pipe", "settle", "rate", "of sheet", "clock", "by"), rows, right=(2, 3, 4))


def floors(floors_s: dict[str, float]) -> str:
    """Write what an empty kernel reads by each timing method."""
    rows = [(line(name, 20), units.seconds(floor_s)) for name, floor_s in floors_s.items()]
    return table(("empty kernel", "reads"), rows, right=(1,))


def _told(headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int]) -> str:
    """Align columns; those that say nothing go, and the last one is cut to the room there is."""
    kept = [index for index in range(len(headers)) if any(row[index] for row in rows)]
    widths = [max(len(cells[index]) for cells in (headers, *rows)) for index in kept[:-1]]
    room = max(_COLUMNS - sum(widths) - 2 * len(widths), len(headers[kept[-1]]))
    return table(
        [headers[index] for index in kept],
        [[*(row[index] for index in kept[:-1]), line(row[kept[-1]], room)] for row in rows],
        right=[place for place, index in enumerate(kept[:-1]) if index in right],
    )


def _l2(point: DramCeiling) -> str:
    return (
        f"L2 {line(point.kernel, 10)}  {units.bandwidth(_rate(point))}  {line(point.variant, 56)}"
    )


def _rate(point: DramCeiling) -> float:
    return point.traffic_bytes / point.median_s


def _flop_rate(ceiling: PipeCeiling) -> float:
    return ceiling.flop / ceiling.median_s
