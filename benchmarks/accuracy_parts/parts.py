"""The parts of the benchmark, and how what a part found goes into the one record. Pure."""

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]
Save = Callable[[Record], None]  # a part calls it as often as it has more to keep

# The parts in their order: the keys of the record that each fills, and how long it may take.
PARTS: dict[str, tuple[str, ...]] = {
    "environment": ("environment",),
    "spin": ("spin",),
    "copy": ("copy", "read"),
    "cache": ("cache",),
    "throughput": ("throughput",),
    "order": ("order",),
    "aa": ("aa",),
}
LIMIT_S = {"environment": 60, "spin": 60, "copy": 300, "cache": 220}
PIPELINE_LIMIT_S = 260


def limit_s(part: str) -> int:
    """Return how many seconds a part may take before it is ended."""
    return LIMIT_S.get(part, PIPELINE_LIMIT_S)


def chosen(text: str) -> list[str]:
    """Return the parts that `spin,copy` names, in their own order; ValueError names a stranger."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    strangers = [name for name in names if name not in PARTS]
    if strangers or not names:
        message = (
            f"no part is called {', '.join(strangers) or 'nothing'}; known: {', '.join(PARTS)}"
        )
        raise ValueError(message)
    return [part for part in PARTS if part in names]


def merged(record: Record, part: str, found: Record) -> Record:
    """Return the record with what a part found in the place of what it had found before.

    A key that the part fills and did not find is dropped, and its old reasons for what is missing
    go: an old figure beside a new one would not be of one run. A part that found nothing at all
    changes no figure; its reasons are kept where there was none. `cards` says on which card each
    part was measured, since parts may come from several runs.
    """
    own = PARTS[part]
    found_now = {name: found[name] for name in own if found.get(name)}
    reasons = dict(record.get("missing") or {})
    if found_now or not any(record.get(name) for name in own):
        theirs = {part, *own}
        reasons = {at: why for at, why in reasons.items() if at.split("/")[0] not in theirs}
        reasons |= found.get("missing") or {}
        record = {name: value for name, value in record.items() if name not in own}
    everything = record | found_now
    names = [name for fills in PARTS.values() for name in fills if name in everything]
    ordered = {name: everything[name] for name in names}
    cards = dict(record.get("cards") or {})
    card = (everything.get("environment") or {}).get("uuid")
    if found_now and part != "environment" and card:
        cards[part] = card
    ordered |= {"cards": cards} if cards else {}
    return ordered | ({"missing": dict(sorted(reasons.items()))} if reasons else {})
