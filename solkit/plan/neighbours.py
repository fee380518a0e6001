"""Rules between cards: every name means one of them, a family has one default, none is a copy."""

from collections.abc import Iterator, Mapping
from itertools import combinations

from solkit.gpu import Gpu
from solkit.plan.devices import DRIVER_NAMES
from solkit.plan.finding import Finding
from solkit.plan.peaks import LEAST_REASON

SAME_PIPES = 3  # cards that share so many peaks must say why


def between(specs: Mapping[str, Gpu]) -> Iterator[Finding]:
    """Yield what is wrong with the cards as neighbours of each other."""
    yield from _names(specs)
    yield from _families(specs)
    yield from _twins(specs)


def _names(specs: Mapping[str, Gpu]) -> Iterator[Finding]:
    """Every name and PCI id means one card, whatever its case."""
    owners: dict[str, str] = {}
    for gpu in specs.values():
        words = {f"pci {number}": "pci_ids" for number in gpu.pci_ids}
        words |= {word.casefold(): "aliases" for word in gpu.aliases}
        words |= {gpu.name.casefold(): "name", gpu.id.casefold(): "id"}
        for word, field in words.items():
            owner = owners.setdefault(word, gpu.id)
            if owner != gpu.id:
                yield Finding(
                    gpu.id,
                    "ambiguous-name",
                    field,
                    f"{word!r} already means {owner}",
                    "a name means one card: remove it here or there",
                )
    by_name = {name.casefold(): gpu for gpu in specs.values() for name in (gpu.name, *gpu.aliases)}
    for number, driver in DRIVER_NAMES.items():
        card = by_name.get(driver.casefold())
        ids = {known[:4] for known in card.pci_ids} if card else set()
        if card and ids and number[:4] not in ids:
            yield Finding(
                card.id,
                "ambiguous-name",
                "aliases",
                f"the driver's {driver!r} is the device {number}, which is not this card's",
                "an alias never joins two PCI ids",
            )


def _families(specs: Mapping[str, Gpu]) -> Iterator[Finding]:
    """Demand one default of a family that several cards share."""
    families: dict[str, list[Gpu]] = {}
    for gpu in specs.values():
        if gpu.family:
            families.setdefault(gpu.family, []).append(gpu)
    for family, members in families.items():
        defaults = [gpu.id for gpu in members if gpu.family_default]
        if len(members) > 1 and len(defaults) != 1:
            yield Finding(
                members[0].id,
                "family",
                "family_default",
                f"the family {family!r} has {len(defaults)} default members",
                "write family_default = true in one file of the family",
            )


def _twins(specs: Mapping[str, Gpu]) -> Iterator[Finding]:
    """Cards that share three or more peaks say why: a copied file is the usual reason."""
    for one, other in combinations(specs.values(), 2):
        shared = [
            name
            for name, pipe in one.pipes.items()
            if name in other.pipes and other.pipes[name].flop_per_s == pipe.flop_per_s
        ]
        said = one.reasons.get(f"same_as_{other.id}") or other.reasons.get(f"same_as_{one.id}")
        if len(shared) >= SAME_PIPES and len(said or "") < LEAST_REASON:
            yield Finding(
                other.id,
                "twins",
                "pipes",
                f"{', '.join(shared)} equal those of {one.id}",
                f"write reasons.same_as_{one.id}, or mend the copied numbers",
            )
