"""The record as the page docs/gate.md. Pure: the same record gives the same bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

from accuracy_parts.page import WORDS, percent, table
from gate_parts import prose
from gate_parts.judging import LENGTHS
from gate_parts.limits import PLANTED, rate, verdicts
from gate_parts.sweep import BASE_NS, FRACTIONS, STEP_NS

from solkit import units
from solkit.report.plain import line

Record = Mapping[str, Any]
SHOWN_WORDS = ("SAME", "UNSURE", "FASTER", "SLOWER")
REASON_LENGTH = 160


def render(record: Record) -> str:
    """Return the page in Markdown."""
    method = prose.METHOD.format(base=BASE_NS, step=STEP_NS)
    sections = [
        prose.INTRO + "\n" + _environment(record),
        "## Limits and results\n\n" + _summary(record),
        method + "\n" + _runs(record),
        prose.SAME + "\n" + _same(record),
        prose.PLANTED + "\n" + _planted(record),
        prose.TRUTH + "\n" + _truth(record),
        prose.NOT_COVERED,
    ]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _environment(record: Record) -> str:
    found = record.get("environment")
    if not found:
        return "Nothing was measured yet.\n"
    power_w = found["power_limit_w"]
    power = f", power limit {units.power(power_w)}" if power_w else ""
    versions = ", ".join(
        f"{name} {found['versions'][name]}"
        for name in ("solkit", "cupti", "cupy", "nvrtc")
        if name in found["versions"]
    )
    return (
        f"Measured on {found['date']}: {found['card']}, driver {found['driver']}{power}, timed by "
        f"{found['method']}; {versions}.\n"
    )


def _summary(record: Record) -> str:
    found = verdicts(record)
    rows = [(each.test, each.limit, each.figure, WORDS[each.passed]) for each in found]
    kept = sum(each.passed is True for each in found)
    return f"{kept} of {len(found)} are kept.\n\n" + table(
        ("test", "limit", "measured", ""), rows, words=4
    )


def _runs(record: Record) -> str:
    runs: Mapping[str, Mapping[str, Any]] = record.get("runs") or {}
    rows = []
    for name, fraction in FRACTIONS.items():
        said = runs.get(name)
        what = f"{fraction * 100:g} % planted" if fraction else "nothing planted"
        if said is None:
            rows.append((f"`{name}`", what, "", "", "not measured"))
            continue
        duration = f"{said['duration_s']:.1f} s" if said["duration_s"] else ""
        count = f"{said['measured']} of {said['planned']}"
        rows.append((f"`{name}`", what, count, duration, said["ended"]))
    text = table(("run", "", "cases measured", "took", "ended"), rows, words=2)
    cards = {said["card"] for said in runs.values()}
    if len(cards) > 1:
        text += f"\n**The runs are from {len(cards)} cards, and what differs may be the card.**\n"
    return text


def _same(record: Record) -> str:
    found = _comparison(record, "a2")
    if found is None:
        return "This part was not measured.\n"
    rows = [(_length(name), *_counts(words)) for name, words in found["by_length"].items()]
    rows.append(("all", *_counts(found["words"])))
    head = ("length of the call", "cases", *SHOWN_WORDS, "other")
    text = f"\nFalse alarms: {rate(found['alarms'])}; the interval is exact (Clopper-Pearson).\n"
    return table(head, rows) + text + _marked(found, "The false alarms")


def _planted(record: Record) -> str:
    held = {name: each for name in PLANTED if (each := _comparison(record, name)) is not None}
    if not held:
        return "This part was not measured.\n"
    head = ("planted", "cases", *SHOWN_WORDS, "other", "found")
    texts = []
    for title, words, share in (
        ("All cases", "words", "found"),
        ("Cases over 10 µs", "over_10_us", "found_over_10_us"),
    ):
        rows = [
            (_percent(each), *_counts(each[words]), _found(each[share])) for each in held.values()
        ]
        texts.append(f"{title}; in brackets the exact 95 % interval:\n\n{table(head, rows)}")
    texts.append(f"Found, and UNSURE, by the length of the call:\n\n{_by_length(held)}")
    for name, each in held.items():
        if name in ("p5", "p10") and each["marked_count"]:
            texts.append(_marked(each, f"Of {_percent(each)}, over 10 µs and not found").lstrip())
    return "\n".join(texts)


def _by_length(held: Mapping[str, Mapping[str, Any]]) -> str:
    head = ["length of the call", "cases"]
    for each in held.values():
        head += [f"{_percent(each)} found", "UNSURE"]
    rows = []
    for length in LENGTHS:
        words = [each["by_length"].get(length, {}) for each in held.values()]
        counts = [sum(found.values()) for found in words]
        if not any(counts):
            continue
        cells = [_length(length), str(max(counts))]
        for found, count in zip(words, counts, strict=True):
            cells += [_share(found.get(word, 0), count) for word in ("SLOWER", "UNSURE")]
        rows.append(cells)
    return table(head, rows)


def _truth(record: Record) -> str:
    rows = []
    for name in PLANTED:
        found = _comparison(record, name)
        if found is not None and found["off_ns"]:
            off = found["off_ns"]
            rows.append((_percent(found), *(f"{off[at]:+d}" for at in ("p05", "p50", "p95"))))
    if not rows:
        return "This part was not measured.\n"
    return table(("planted", "5 %, ns", "median, ns", "95 %, ns"), rows)


def _comparison(record: Record, name: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (record.get("comparisons") or {}).get(name)
    return found


def _counts(words: Mapping[str, int]) -> tuple[str, ...]:
    total = sum(words.values())
    other = total - sum(words.get(word, 0) for word in SHOWN_WORDS)
    return (str(total), *(str(words.get(word, 0)) for word in SHOWN_WORDS), str(other))


def _found(share: Mapping[str, Any]) -> str:
    if not share["of"]:
        return ""
    interval = f"{share['low'] * 100:.1f} to {share['high'] * 100:.1f}"
    return f"{_share(share['count'], share['of'])} ({interval})"


def _share(count: int, of: int) -> str:
    return percent(count / of) if of else ""


def _percent(found: Mapping[str, Any]) -> str:
    return f"{found['planted_fraction'] * 100:g} %"


def _length(name: str) -> str:
    return name.replace("us", "µs")


def _marked(found: Mapping[str, Any], title: str) -> str:
    if not found["marked_count"]:
        return ""
    shown: Sequence[Mapping[str, Any]] = found["marked"]
    cut = (
        f" ({len(shown)} of {found['marked_count']})" if len(shown) < found["marked_count"] else ""
    )
    lines = [f"\n{title}{cut}:\n"]
    for each in shown:
        step = "" if each["step_ns"] is None else f", the medians differ by {each['step_ns']:+d} ns"
        reason = f": {line(each['reason'], REASON_LENGTH)}" if each["reason"] else ""
        lines.append(
            f"- {line(each['case'])}, {each['base_us']:.3f} µs, {each['planted_ns']} ns planted"
            f"{step}: {each['word']}{reason}"
        )
    return "\n".join(lines) + "\n"
