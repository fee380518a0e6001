"""What the gate is held to, and whether the recorded runs keep it. Pure."""

from collections.abc import Mapping
from typing import Any

from accuracy_parts.limits import Verdict

Record = Mapping[str, Any]

FALSE_ALARMS_FRACTION, FEWEST_CASES = 0.01, 200
FOUND_FRACTION = 0.95
PLANTED = ("p1", "p2", "p5", "p10")
MUST_BE_FOUND = ("p5", "p10")


def verdicts(record: Record) -> list[Verdict]:
    """Return a verdict for everything that has a limit, in the order of the page."""
    return [
        _false_alarms(record),
        *(_found(record, name) for name in MUST_BE_FOUND),
        _right_way(record),
    ]


def _comparison(record: Record, name: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (record.get("comparisons") or {}).get(name)
    return found


def _false_alarms(record: Record) -> Verdict:
    test = "the same code twice: cases called FASTER or SLOWER"
    limit = f"{FALSE_ALARMS_FRACTION * 100:g} % of {FEWEST_CASES} cases or more"
    found = _comparison(record, "a2")
    if found is None:
        return Verdict(test, limit, "not measured", None)
    alarms = found["alarms"]
    kept = alarms["of"] >= FEWEST_CASES and alarms["count"] <= FALSE_ALARMS_FRACTION * alarms["of"]
    return Verdict(test, limit, rate(alarms), kept)


def _found(record: Record, name: str) -> Verdict:
    planted = int(name[1:])
    test = f"{planted} % planted, cases over 10 µs: called SLOWER"
    limit = f"{FOUND_FRACTION * 100:g} % of cases"
    found = _comparison(record, name)
    if found is None or not found["found_over_10_us"]["of"]:
        return Verdict(test, limit, "not measured", None)
    share = found["found_over_10_us"]
    return Verdict(test, limit, rate(share), share["count"] >= FOUND_FRACTION * share["of"])


def _right_way(record: Record) -> Verdict:
    test = "any change planted: cases called FASTER"
    limit = f"{FALSE_ALARMS_FRACTION * 100:g} %"
    planted = [each for name in PLANTED if (each := _comparison(record, name)) is not None]
    if not planted:
        return Verdict(test, limit, "not measured", None)
    count, cases = (sum(each[key] for each in planted) for key in ("faster", "cases"))
    return Verdict(test, limit, f"{count} of {cases}", count <= FALSE_ALARMS_FRACTION * cases)


def rate(share: Mapping[str, Any]) -> str:
    """Write a rate with its exact interval: '2 of 224 (95 %: 0.11 to 3.19 %)'."""
    low, high = share["low"] * 100, share["high"] * 100
    return f"{share['count']} of {share['of']} (95 %: {low:.2f} to {high:.2f} %)"
