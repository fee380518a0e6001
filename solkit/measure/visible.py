"""Which cards a process may use, and in which order: CUDA_VISIBLE_DEVICES against NVML's list.

NVML lists every card and ignores CUDA_VISIBLE_DEVICES, so an NVML index is not a CUDA index; UUID
and PCI bus id are what both sides share. Here cards stand in PCI order, which is CUDA's own order
under CUDA_DEVICE_ORDER=PCI_BUS_ID, and under the default (fastest first) whenever all cards are of
one model. `cuda:N` is place N in the list made here; the worker is then bound to that card by
UUID, so the number cannot mean another card there (see `Choice.environment` in probe.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Instance:
    """A MIG instance: its UUID, and the GPU and compute instance numbers of the older notation."""

    uuid: str
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """A card as NVML lists it; in MIG mode its instances stand for it."""

    uuid: str
    pci_bus_id: str
    name: str = ""
    mig: bool = False
    instances: tuple[Instance, ...] = ()

    @property
    def usable(self) -> tuple[str, ...]:
        """UUIDs of what a process can open: the card itself, or its MIG instances."""
        return tuple(instance.uuid for instance in self.instances) if self.mig else (self.uuid,)


@dataclass(frozen=True, slots=True)
class Visible:
    """UUIDs of the usable devices in CUDA's order, with what a person should know of it."""

    uuids: tuple[str, ...]
    notes: tuple[str, ...] = ()


def normal_pci_bus_id(text: str) -> str:
    """Write a PCI bus id as CUDA does: '00000000:19:00.0' -> '0000:19:00.0', in lower case."""
    domain, _, rest = text.strip().lower().partition(":")
    if not rest.count(":"):  # no domain was given
        return f"0000:{text.strip().lower()}"
    return f"{domain.lstrip('0'):0>4}:{rest}"


def visible(cards: Sequence[Card], environ: Mapping[str, str]) -> Visible:
    """Resolve CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER against the cards of a machine.

    An entry is an index, a UUID or its unambiguous beginning (GPU-..., MIG-...), or
    MIG-GPU-<uuid>/<gpu instance>/<compute instance>. As in CUDA, the first entry that means
    nothing ends the list; an entry given twice counts once.
    """
    ordered = sorted(cards, key=lambda card: card.pci_bus_id)
    setting = environ.get("CUDA_VISIBLE_DEVICES")
    order = environ.get("CUDA_DEVICE_ORDER", "")
    notes = []
    if order.upper() != "PCI_BUS_ID" and len({card.name for card in ordered}) > 1:
        notes.append(
            "cards of several models are numbered by PCI bus id; CUDA itself numbers the fastest "
            "first unless CUDA_DEVICE_ORDER=PCI_BUS_ID"
        )
    if setting is None:
        return Visible(tuple(uuid for card in ordered for uuid in card.usable), tuple(notes))
    uuids: list[str] = []
    for entry in (part.strip() for part in setting.split(",")):
        found = _meant(entry, ordered)
        if not found:
            notes.append(
                f"CUDA_VISIBLE_DEVICES={setting!r}: {entry!r} is no card here; "
                "it and what follows it are ignored"
            )
            break
        uuids.extend(uuid for uuid in found if uuid not in uuids)
    return Visible(tuple(uuids), tuple(notes))


def _meant(entry: str, cards: Sequence[Card]) -> tuple[str, ...]:
    """Return the UUIDs an entry means; none when it means nothing or several."""
    if entry.isascii() and entry.isdigit():
        place = int(entry.lstrip("0")[:6] or "0")  # int() refuses thousands of digits
        return cards[place].usable if place < len(cards) else ()
    if entry.startswith("MIG-GPU-"):
        uuid, _, numbers = entry.removeprefix("MIG-").partition("/")
        return tuple(
            instance.uuid
            for card in cards
            for instance in card.instances
            if card.uuid == uuid
            and f"{instance.gpu_instance}/{instance.compute_instance}" == numbers
        )
    if entry.startswith("GPU-"):
        named = [card.usable for card in cards if card.uuid.startswith(entry)]
        return named[0] if len(named) == 1 else ()
    if entry.startswith("MIG-"):
        instances = [
            uuid for card in cards if card.mig for uuid in card.usable if uuid.startswith(entry)
        ]
        return (instances[0],) if len(instances) == 1 else ()
    return ()
