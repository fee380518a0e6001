"""What the accuracy of solkit is held to, and whether the recorded figures keep it. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Record = Mapping[str, Any]

MIB = 2**20
# After its own floor is subtracted, a spin kernel must read its length: so near in us, or in 1 %.
SPIN_US = {"cupti": 0.1, "event_blocked": 0.3, "event_unblocked": 0.3, "graph": 0.5}
SPIN_FRACTION = 0.01
NCU_FROM_BYTES, NCU_FRACTION = 256 * MIB, 0.02
RUN_FRACTION, RUN_US = 0.02, 0.096  # `solkit run` against a settled rotation; 3 ticks
READS = (0.99, 1.01)  # "1.00" of the input, in every size where the counters are read
WRITES_FROM_BYTES, WRITES = 16 * MIB, (0.95, 1.02)
AA_PAIRS, AA_FRACTION = 400, 0.01
ORDER_FRACTION = 0.99
CASES_PER_S, WITHIN_FRACTION = 10.0, 0.95
ROUNDING = 1 + 1e-9  # a figure that is the limit itself keeps it, however floats divide


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the summary. passed: None where it was not measured; figure then says why."""

    test: str
    limit: str
    figure: str
    passed: bool | None


def verdicts(record: Record) -> list[Verdict]:
    """Return a verdict for everything that has a limit, in the order of the page."""
    return [
        *(_spin(record, method) for method in SPIN_US),
        _against_ncu(record),
        _as_run(record),
        _reads(record),
        _writes(record),
        _aa(record),
        _order(record),
        _speed(record),
        _precision(record),
    ]


def spin_kept(row: Row) -> bool:
    """Return whether one spin row keeps its method's limit."""
    limit_us = max(SPIN_US[row["method"]], SPIN_FRACTION * row["us"])
    return bool(abs(row["error_us"]) <= limit_us * ROUNDING)


def rows_of(record: Record, part: str, **wanted: object) -> list[Row]:
    """Return the rows of a part that hold these values."""
    rows: Sequence[Row] = record.get(part) or []
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def why_missing(record: Record, *places: str) -> str:
    """Return why a part, or a place in it such as `spin/cupti`, has no figures."""
    missing: Mapping[str, str] = record.get("missing") or {}
    reasons = [missing[place] for place in places if place in missing]
    return f"not measured: {reasons[0]}" if reasons else "not measured"


def _spin(record: Record, method: str) -> Verdict:
    rows = rows_of(record, "spin", method=method)
    test = f"spin kernels, {method}"
    limit = f"{SPIN_US[method]:g} µs or 1 %"
    if not rows:
        return Verdict(test, limit, why_missing(record, f"spin/{method}", "spin"), None)
    worst = max(rows, key=lambda row: abs(row["error_us"]))
    figure = f"{worst['error_us']:+.3f} µs at {worst['us']:g} µs"
    return Verdict(test, limit, figure, all(map(spin_kept, rows)))


def _against_ncu(record: Record) -> Verdict:
    test, limit = "copy against Nsight Compute, from 256 MiB", f"{NCU_FRACTION * 100:g} %"
    rows = [
        row
        for row in rows_of(record, "copy")
        if row["buffer_bytes"] >= NCU_FROM_BYTES and row.get("ncu_us") and row.get("solkit_us")
    ]
    if not rows:
        return Verdict(test, limit, why_missing(record, "copy/ncu", "copy"), None)
    worst = max((row["solkit_us"] / row["ncu_us"] - 1 for row in rows), key=abs)
    return Verdict(test, limit, f"{worst * 100:+.2f} %", abs(worst) <= NCU_FRACTION * ROUNDING)


def _as_run(record: Record) -> Verdict:
    """Hold what a person gets against the same calls after a whole rotation over the buffers."""
    test = "solkit run, copy and read, against a settled rotation"
    limit = f"{RUN_FRACTION * 100:g} % or 3 ticks"
    rows = [
        row
        for part in ("copy", "read")
        for row in rows_of(record, part)
        if row.get("run_us") and row.get("solkit_us")
    ]
    if not rows:
        return Verdict(test, limit, why_missing(record, "copy/run", "copy"), None)

    def apart(row: Row) -> float:
        """Return the difference in allowances: 1 is just allowed."""
        own_us = row["solkit_us"]
        return float(abs(row["run_us"] - own_us) / max(RUN_US, RUN_FRACTION * own_us))

    worst = max(rows, key=apart)
    more_us = worst["run_us"] - worst["solkit_us"]
    figure = (
        f"{more_us:+.3f} µs on {worst['solkit_us']:.3f} µs "
        f"({worst['kernel']}, {worst['buffer_bytes'] // 1024} KiB)"
    )
    return Verdict(test, limit, figure, apart(worst) <= ROUNDING)


def _reads(record: Record) -> Verdict:
    test = "cold: bytes read from DRAM over the input"
    return _share(record, test, "read_fraction", READS, rows_of(record, "cache", mode="cold"))


def _writes(record: Record) -> Verdict:
    test = "cold: bytes written to DRAM over the output, copy from 16 MiB"
    rows = rows_of(record, "cache", mode="cold", kernel="copy")
    large = [row for row in rows if row["buffer_bytes"] >= WRITES_FROM_BYTES]
    return _share(record, test, "write_fraction", WRITES, large)


def _share(
    record: Record, test: str, name: str, within: tuple[float, float], rows: Iterable[Row]
) -> Verdict:
    low, high = within
    limit = f"{low:.2f} to {high:.2f}"
    shares = [row[name] for row in rows if row.get(name) is not None]
    if not shares:
        return Verdict(test, limit, why_missing(record, "cache/ncu", "cache"), None)
    kept = all(low <= share <= high for share in shares)
    return Verdict(test, limit, f"{min(shares):.3f} to {max(shares):.3f}", kept)


def _aa(record: Record) -> Verdict:
    test, limit = (
        "one kernel measured as two: called changed",
        f"{AA_FRACTION * 100:g} % of {AA_PAIRS} pairs or more",
    )
    return _one(record, "aa", test, limit, _aa_figure)


def _aa_figure(found: Row) -> tuple[str, bool]:
    low, high = found["interval"]
    rate = f"95 %: {low * 100:.2f} to {high * 100:.2f} %"
    figure = f"{found['changed']} of {found['pairs']} pairs ({rate})"
    enough = found["pairs"] >= AA_PAIRS
    return figure, enough and found["changed"] <= AA_FRACTION * found["pairs"]


def _order(record: Record) -> Verdict:
    test = "forwards, backwards, shuffled: medians that agree"
    return _one(record, "order", test, f"{ORDER_FRACTION * 100:g} % of cases", _order_figure)


def _order_figure(found: Row) -> tuple[str, bool]:
    share = found["agree_fraction"]
    return f"{share * 100:.1f} % of {found['cases']} cases", share >= ORDER_FRACTION


def _speed(record: Record) -> Verdict:
    test = "a sweep of short cases: cases a second, wall time"
    return _one(record, "throughput", test, f"{CASES_PER_S:g}", _speed_figure)


def _speed_figure(found: Row) -> tuple[str, bool]:
    rate = found["cases"] / found["seconds"]
    return f"{rate:.1f} ({found['cases']} in {found['seconds']:.1f} s)", rate >= CASES_PER_S


def _precision(record: Record) -> Verdict:
    test = "the same sweep: intervals within 0.5 % or 3 ticks"
    return _one(
        record, "throughput", test, f"{WITHIN_FRACTION * 100:g} % of cases", _precision_figure
    )


def _precision_figure(found: Row) -> tuple[str, bool]:
    share = found["within_half_percent_fraction"]
    return f"{share * 100:.1f} %", share >= WITHIN_FRACTION


def _one(
    record: Record, part: str, test: str, limit: str, figure: Callable[[Row], tuple[str, bool]]
) -> Verdict:
    found = record.get(part)
    if not found:
        return Verdict(test, limit, why_missing(record, part), None)
    said, kept = figure(found)
    return Verdict(test, limit, said, kept)
