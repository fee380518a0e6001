"""The record as the page docs/accuracy.md. Pure: the same record gives the same bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

from accuracy_parts import prose
from accuracy_parts.limits import (
    SPIN_US,
    Record,
    Row,
    Verdict,
    rows_of,
    spin_kept,
    verdicts,
    why_missing,
)

from solkit import units

METHODS = tuple(SPIN_US)
MODES = ("cold", "clean", "zeroed", "hot")
# Column of the record, and what the page calls the tool.
TOOLS = {
    "solkit_us": "solkit (CUPTI)",
    "run_us": "solkit run",
    "ncu_us": "Nsight Compute",
    "nvbench_us": "nvbench",
    "do_bench_us": "do_bench",
    "do_bench_cudagraph_us": "do_bench_cudagraph",
    "cupyx_us": "cupyx",
}
WORDS = {True: "PASS", False: "**FAIL**", None: "not measured"}
REASON_LENGTH = 200


def render(record: Record) -> str:
    """Return the page in Markdown."""
    sections = [
        prose.INTRO + "\n" + _environment(record),
        "## Limits and results\n\n" + _summary(verdicts(record)),
        prose.SPIN + "\n" + _spin(record),
        prose.COPY + "\n" + _against_ncu(record),
        prose.TOOLS + "\n" + _tools(record),
        prose.CACHE + "\n" + _caches(record),
        prose.AA + "\n" + _aa(record),
        prose.ORDER + "\n" + _order(record),
        prose.SPEED + "\n" + _speed(record),
        prose.NOT_COVERED,
    ]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> str:
    """Return a Markdown table; its first `words` columns are set left, the numbers right."""
    rule = ["---" if place < words else "---:" for place in range(len(head))]
    lines = [f"| {' | '.join(line)} |" for line in (head, rule, *rows)]
    return "\n".join(lines) + "\n"


def _environment(record: Record) -> str:
    found: Mapping[str, Any] = record.get("environment") or {}
    if not found:
        return f"Where it was measured is {why_missing(record, 'environment')}.\n"
    tools = ("solkit", "cupti", "cupy", "torch", "triton", "nvbench", "ncu")
    versions = ", ".join(f"{name} {found[name]}" for name in tools if found.get(name))
    clock_hz = (found.get("clocks") or {}).get("max_sm_hz")
    clock = f", SM clock up to {units.frequency(clock_hz)}" if clock_hz else ""
    power_w = found.get("power_limit_w")
    power = f", power limit {units.power(power_w)}" if power_w else ""
    return (
        f"Measured on {found['date']}: {found['card']}, driver {found['driver']}, "
        f"CUDA {found['cuda']}{clock}{power}; {versions}.\n{_cards(record)}"
    )


def _cards(record: Record) -> str:
    """Say which parts were measured on which card, where it was not one and the same."""
    cards: Mapping[str, str] = record.get("cards") or {}
    by_card: dict[str, list[str]] = {}
    for part, card in cards.items():
        by_card.setdefault(card, []).append(part)
    if len(by_card) < 2:  # noqa: PLR2004  # one card needs no words
        return ""
    listed = "; ".join(f"{', '.join(parts)} on {card}" for card, parts in by_card.items())
    return (
        "\nThe parts come from several runs, between which solkit was changed, on cards of one "
        f"model: {listed}.\n"
    )


def _summary(found: Sequence[Verdict]) -> str:
    rows = [(each.test, each.limit, _short(each.figure), WORDS[each.passed]) for each in found]
    kept = sum(each.passed is True for each in found)
    return f"{kept} of {len(found)} are kept.\n\n" + table(
        ("test", "limit", "measured", ""), rows, words=4
    )


def _short(text: str) -> str:
    """Put a text into a cell: on one line, no bars, not too long."""
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= REASON_LENGTH else line[: REASON_LENGTH - 1] + "…"


def _spin(record: Record) -> str:
    lengths = sorted({row["us"] for row in rows_of(record, "spin")})
    if not lengths:
        return _absent(record, "spin")
    held = {(row["us"], row["method"]): row for row in rows_of(record, "spin")}
    methods = [each for each in METHODS if any(method == each for _, method in held)]
    floors = {method: row["floor_us"] for (_, method), row in held.items()}
    rows = [("floor", *(f"{floors[method]:.3f}" for method in methods))]
    for length in lengths:
        cells = [_spin_cell(held.get((length, method))) for method in methods]
        rows.append((f"error at {length:g} µs", *cells))
    rows.append(("limit", *(f"±{SPIN_US[method]:g} or 1 %" for method in methods)))
    absent = [method for method in METHODS if method not in methods]
    notes = [f"`{method}` was {why_missing(record, f'spin/{method}')}." for method in absent]
    return "\n".join([table(("µs", *methods), rows), *map(_short, notes)])


def _spin_cell(row: Row | None) -> str:
    if row is None:
        return ""
    text = f"{row['error_us']:+.3f}"
    return text if spin_kept(row) else f"**{text}**"


def _against_ncu(record: Record) -> str:
    rows = [
        (
            size(row["buffer_bytes"]),
            *(_time(row.get(name)) for name in ("solkit_us", "ncu_us")),
            _apart_us(row.get("solkit_us"), row.get("ncu_us")),
            _apart(row.get("solkit_us"), row.get("ncu_us")),
        )
        for row in rows_of(record, "copy")
    ]
    if not rows:
        return _absent(record, "copy")
    head = ("buffer", "solkit, µs", "Nsight Compute, µs", "difference, µs", "difference")
    return table(head, rows)


def _tools(record: Record) -> str:
    texts = []
    for part in ("copy", "read"):
        rows = rows_of(record, part)
        if not rows:
            continue
        tools = [name for name in TOOLS if any(row.get(name) for row in rows)]
        others = [name for name in tools if name != "solkit_us"]
        texts.append(f"**{part}**, median in µs:\n\n{_times(rows, tools)}")
        texts.append(
            f"**{part}**, apart from solkit, in µs and as a share:\n\n"
            f"{_errors(rows, others, 'solkit_us')}"
        )
        if "ncu_us" in tools:
            against = [name for name in tools if name != "ncu_us"]
            texts.append(
                f"**{part}**, apart from Nsight Compute, as a share:\n\n"
                f"{_errors(rows, against, 'ncu_us', in_us=False)}"
            )
    if not texts:
        return _absent(record, "copy")
    missing: Mapping[str, str] = record.get("missing") or {}
    notes = [
        f"- `{place.removeprefix('copy/')}` is absent: {_short(reason)}"
        for place, reason in missing.items()
        if place.startswith("copy/")
    ]
    return "\n".join([*texts, *notes])


def _times(rows: Sequence[Row], tools: Sequence[str]) -> str:
    return table(
        ("buffer", *(TOOLS[name] for name in tools)),
        [(size(row["buffer_bytes"]), *(_time(row.get(name)) for name in tools)) for row in rows],
    )


def _errors(rows: Sequence[Row], tools: Sequence[str], base: str, *, in_us: bool = True) -> str:
    def cell(row: Row, name: str) -> str:
        share = _apart(row.get(name), row.get(base))
        return f"{_apart_us(row.get(name), row.get(base))} ({share})" if in_us and share else share

    return table(
        ("buffer", *(TOOLS[name] for name in tools)),
        [(size(row["buffer_bytes"]), *(cell(row, name) for name in tools)) for row in rows],
    )


def _caches(record: Record) -> str:
    texts = []
    for kernel in ("copy", "read"):
        rows = rows_of(record, "cache", kernel=kernel)
        if rows:
            texts.append(f"**{kernel}**:\n\n{_modes(rows, writes=kernel == 'copy')}")
    if not texts:
        return _absent(record, "cache")
    if not any(row.get("read_fraction") is not None for row in rows_of(record, "cache")):
        texts.append(f"The bytes were {_short(why_missing(record, 'cache/ncu'))}.")
    return "\n".join(texts)


def _modes(rows: Sequence[Row], *, writes: bool) -> str:
    held = {(row["buffer_bytes"], row["mode"]): row for row in rows}
    sizes = sorted({size for size, _ in held})
    head = ["buffer", *(f"{mode}, µs" for mode in MODES), "overcharge of zeroed"]
    head.append(f"bytes read / input ({', '.join(MODES)})")
    if writes:
        head.append(f"bytes written / output ({', '.join(MODES)})")
    lines = []
    for each_bytes in sizes:
        each = [held.get((each_bytes, mode), {}) for mode in MODES]
        times = [row.get("time_us") for row in each]
        line = [size(each_bytes), *map(_time, times), _apart(times[2], times[0])]
        line.append(_shares(each, "read_fraction"))
        if writes:
            line.append(_shares(each, "write_fraction"))
        lines.append(line)
    return table(head, lines)


def _shares(rows: Sequence[Row], name: str) -> str:
    shares = [row.get(name) for row in rows]
    if all(share is None for share in shares):
        return ""
    return ", ".join("-" if share is None else f"{share:.2f}" for share in shares)


def _aa(record: Record) -> str:
    found: Row = record.get("aa") or {}
    if not found:
        return _absent(record, "aa")
    words = ("SAME", "UNSURE", "FASTER", "SLOWER")
    lengths: Mapping[str, Mapping[str, int]] = found["by_length"]
    rows = [
        (name.replace("us", "µs"), *(str(counts.get(word, 0)) for word in words))
        for name, counts in lengths.items()
    ]
    rows.append(("all", *(str(found["words"].get(word, 0)) for word in words)))
    low, high = found["interval"]
    text = (
        f"{found['changed']} of {found['pairs']} pairs were called changed; with 95 % confidence "
        f"the rate lies between {percent(low, 2)} and {percent(high, 2)} (exact interval). UNSURE "
        f"is no alarm: the rule says so where the noise of {found['budget_s']:g} s of sampling is "
        "as large as the least effect.\n"
    )
    wrong = [
        f"- {each['case']}: {each['base_us']:.3f} µs, then {each['head_us']:.3f} µs: {each['word']}"
        for each in found["changed_cases"]
    ]
    return "\n".join([table(("length", *words), rows), text, *wrong, *_left_out(found)])


def _order(record: Record) -> str:
    found: Row = record.get("order") or {}
    if not found:
        return _absent(record, "order")
    text = (
        f"{percent(found['agree_fraction'])} of {found['cases']} cases agree over "
        f"{len(found['orders'])} orders; the two medians furthest apart differ by "
        f"{percent(found['furthest_fraction'], 2)}.\n"
    )
    apart = [
        f"- {each['case']}: "
        + ", ".join(f"{each[f'{name}_us']:.3f} µs {name}" for name in found["orders"])
        for each in found["apart"]
    ]
    return "\n".join([text, *apart, *_left_out(found)])


def _speed(record: Record) -> str:
    found: Row = record.get("throughput") or {}
    if not found:
        return _absent(record, "throughput")
    within = percent(found["within_half_percent_fraction"])
    text = (
        f"{found['cases']} cases in {found['seconds']:.1f} s are "
        f"{found['cases'] / found['seconds']:.1f} a second; the run itself counts "
        f"{found['run_seconds']:.1f} s. {within} of the medians "
        f"have a 95 % interval within ±0.5 % or 3 ticks. The longest case took "
        f"{found['longest_us']:.1f} µs; {found['over_50_us']} were over 50 µs.\n"
    )
    return "\n".join([text, *_left_out(found)])


def _left_out(found: Row) -> list[str]:
    if not found.get("left_out_count"):
        return []
    first = _short(found["left_out"][0]) if found["left_out"] else ""
    return [f"\nCases that gave no figure: {found['left_out_count']}; the first: {first}"]


def _absent(record: Record, part: str) -> str:
    return f"This part was {_short(why_missing(record, part))}.\n"


def _time(value_us: float | None) -> str:
    if value_us is None:
        return ""
    return f"{value_us:.3f}" if value_us < 100 else f"{value_us:.2f}"  # noqa: PLR2004  # the step of the clock is no longer a visible share


def _apart_us(value_us: float | None, base_us: float | None) -> str:
    return "" if value_us is None or base_us is None else f"{value_us - base_us:+.2f}"


def size(buffer_bytes: int) -> str:
    """Write a buffer's size, a power of two: 4096 -> '4 KiB'."""
    for unit_bytes, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if buffer_bytes >= unit_bytes:
            return f"{buffer_bytes / unit_bytes:g} {unit}"
    return f"{buffer_bytes} B"


def percent(fraction: float, places: int = 1, sign: str = "") -> str:
    """Write a fraction in percent: 0.0132 -> '1.3 %'."""
    return f"{fraction * 100:{sign}.{places}f} %"


def _apart(value_us: float | None, base_us: float | None) -> str:
    """Write how far a time is from another: in percent, from twice as much on as a factor."""
    if value_us is None or base_us is None:
        return ""
    ratio = value_us / base_us
    return f"{ratio:.1f}x" if ratio >= 2 else percent(ratio - 1, sign="+")  # noqa: PLR2004  # twice
