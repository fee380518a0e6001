"""Which spec file a device is: by PCI id, SM count, memory and name, never by likeness.

A card that no file describes is judged by what its driver says (`derived`), never by a neighbour's
row. What the device says of itself (bus, clocks, memory, power) wins over the file, and is told.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from solkit import units
from solkit.errors import NoDevice
from solkit.gpu import DeviceFacts, Gpu, Pipe, Source
from solkit.plan.devices import is_vgpu, pci_id
from solkit.plan.rates import ABSENT, RATES
from solkit.plan.slices import mig_slice

SAME = 0.02  # memory and device values this close are the same card's
_WIDE_BUS_BITS = 1024  # HBM from here on; on narrower buses ECC takes 1/16 of the memory
_NVML = "https://docs.nvidia.com/deploy/nvml-api/"


@dataclass(frozen=True, slots=True)
class Match:
    """The limits a device is judged by, and what a person should know of how they were found."""

    gpu: Gpu
    notes: tuple[str, ...] = ()


def match(facts: DeviceFacts, specs: Mapping[str, Gpu], *, accessed: date | None = None) -> Match:
    """Return the card a device is, with the device's own values, scaled to its MIG slice if any.

    A vGPU or a card without a spec file gives a Gpu of vendor `derived`, built from what the driver
    says alone (`accessed`: the day, today by default). Raises NoDevice where PCI id, SM count,
    memory and name contradict each other, or where not even a bandwidth can be derived.
    """
    if facts.kind == "cpu":
        raise NoDevice(
            f"{facts.name} is a CPU: it has no spec file",
            remedy="its roof is measured on it: solkit run --device cpu",
        )
    if is_vgpu(facts.name):
        return _derived(
            facts,
            specs,
            accessed,
            "a vGPU is a slice of a card, never judged by the whole card's peaks",
        )
    card = _identify(facts, specs)
    if card is None:
        return _derived(facts, specs, accessed, "no spec file describes this card")
    gpu, notes = _with_device_values(card, facts)
    if facts.mig_profile:
        gpu, said = mig_slice(gpu, facts)
        notes.append(said)
    return Match(gpu, tuple(notes))


def _plain_name(facts: DeviceFacts) -> str:
    """Return the card's name without the slice that CUDA appends under MIG."""
    return re.sub(r" MIG .*$", "", facts.name.strip())


def _identify(facts: DeviceFacts, specs: Mapping[str, Gpu]) -> Gpu | None:
    """Return the card of the PCI id, else of the exact name; all four must then agree."""
    name = _plain_name(facts).casefold()
    chip, board = pci_id(facts.pci_device_id, facts.pci_subsystem_id)
    by_id = [gpu for key in (board, chip) if key for gpu in specs.values() if key in gpu.pci_ids]
    by_name = [
        gpu
        for gpu in specs.values()
        if name in {known.casefold() for known in (gpu.name, *gpu.aliases)}
    ]
    if by_id:
        card = by_id[0]
        if card not in by_name or not _fits(card, facts):
            raise _disagreement(card, facts)
        return card
    if not by_name:
        return None
    card = by_name[0]
    if card.pci_ids and chip:
        raise _disagreement(card, facts)
    # Without a PCI id a name may cover several modules (every Orin is called alike): the SM count
    # tells which, and another size is another card.
    if facts.sm_count is None:
        raise NoDevice(
            f"{facts.name} may be {card.id}, but the driver gives neither a PCI id nor an SM count",
            remedy="boards of that name differ in size: add a spec file with the board's own name"
            " (docs/add-a-gpu.md), or update the driver",
        )
    return card if _fits(card, facts) else None


def _fits(card: Gpu, facts: DeviceFacts) -> bool:
    """Return whether SM count and memory are the card's; under MIG neither is the whole card's."""
    if facts.mig_profile:
        return True
    if facts.sm_count is not None and facts.sm_count != card.sm_count:
        return False
    if facts.dram_bytes is None or card.dram_shared:
        return True
    return abs(facts.dram_bytes / _memory_bytes(card, facts.ecc) - 1) <= SAME


def _memory_bytes(card: Gpu, ecc: bool | None) -> float:  # noqa: FBT001  # as the driver reports it
    """Return the card's memory in the ECC state the device is in: GDDR gives up 1/16 for it."""
    if ecc is None or ecc == card.ecc or (card.bus_bits or 0) >= _WIDE_BUS_BITS:
        return card.dram_bytes
    return card.dram_bytes * (15 / 16 if ecc else 16 / 15)


def _disagreement(card: Gpu, facts: DeviceFacts) -> NoDevice:
    chip, board = pci_id(facts.pci_device_id, facts.pci_subsystem_id)
    memory = "unknown" if facts.dram_bytes is None else units.capacity(facts.dram_bytes)
    return NoDevice(
        f"the device contradicts {card.id}.toml: "
        f"PCI id {board or chip or 'unknown'} (file: {', '.join(card.pci_ids) or 'none'}); "
        f"SMs {facts.sm_count or 'unknown'} (file: {card.sm_count}); "
        f"memory {memory} (file: {units.capacity(card.dram_bytes)}); "
        f"name {facts.name!r} (file: {', '.join((card.name, *card.aliases))})",
        remedy="it is another board: add its own spec file (docs/add-a-gpu.md), or mend this one",
    )


def _with_device_values(card: Gpu, facts: DeviceFacts) -> tuple[Gpu, list[str]]:
    """Put in what the device says of itself, and say where it differs by more than 2 %."""
    whole = not facts.mig_profile
    bus, clock = facts.bus_bits or card.bus_bits, facts.memory_clock_hz or card.memory_clock_hz
    pin = card.dram_pin_bytes_per_s
    if bus and clock and (facts.bus_bits or facts.memory_clock_hz):
        pin = 2 * clock * bus / 8
    gpu = replace(
        card,
        bus_bits=bus,
        memory_clock_hz=clock,
        dram_pin_bytes_per_s=pin,
        max_clock_hz=facts.max_clock_hz or card.max_clock_hz,
        dram_bytes=(facts.dram_bytes if whole else None) or card.dram_bytes,
        l2_bytes=(facts.l2_bytes if whole else None) or card.l2_bytes,
        power_w=facts.power_default_w or card.power_w,
    )
    notes = [
        f"{what}: the device says {write(now)}, {card.id}.toml {write(was)};"
        " the device's value is used"
        for what, was, now, write in (
            ("bus width", card.bus_bits, gpu.bus_bits, _bits),
            ("memory clock", card.memory_clock_hz, gpu.memory_clock_hz, units.frequency),
            ("highest SM clock", card.max_clock_hz, gpu.max_clock_hz, units.frequency),
            ("L2", card.l2_bytes, gpu.l2_bytes, units.capacity),
            ("default power limit", card.power_w, gpu.power_w, units.power),
        )
        if was and now and abs(now / was - 1) > SAME
    ]
    limit, default = facts.power_limit_w, facts.power_default_w or card.power_w
    if limit and default and limit < default * (1 - 1e-3):
        notes.append(
            f"the power limit is {units.power(limit)}, below the default {units.power(default)}:"
            " clocks fall earlier; read SOL@clock beside SOL"
        )
    if facts.ecc is not None and facts.ecc != card.ecc:
        notes.append(
            f"ECC is {'on' if facts.ecc else 'off'}; {card.id}.toml describes the card with it"
            f" {'on' if card.ecc else 'off'}: memory and bandwidth differ on GDDR"
        )
    return gpu, notes


def _bits(count: float) -> str:
    return f"{count:.0f} bits"


def _derived(
    facts: DeviceFacts, specs: Mapping[str, Gpu], accessed: date | None, reason: str
) -> Match:
    """Build a card from what its driver says: bandwidth, fp32 by capability, no tensor peaks."""
    if not (facts.bus_bits and facts.memory_clock_hz):
        raise _underivable(facts, "its bandwidth (the driver gives no bus width or memory clock)")
    if not (facts.sm_count and facts.max_clock_hz and facts.dram_bytes):
        raise _underivable(facts, "its SM count, highest clock and memory size")
    pin = 2 * facts.memory_clock_hz * facts.bus_bits / 8
    source = Source(
        title=f"what the driver {facts.driver} says of the device".replace("  ", " "),
        url=_NVML,
        accessed=accessed or datetime.now(tz=UTC).date(),
        mark="derived",
    )
    rates = RATES.get((facts.compute_capability, "full"), {})
    pipes: dict[str, Pipe] = {
        name: Pipe(
            flop_per_s=facts.sm_count * rates[name][0] * facts.max_clock_hz,
            flop_per_clock_per_sm=rates[name][0],
            clock_hz=facts.max_clock_hz,
        )
        for name in ("fp32", "sfu")
        if name in rates
    }
    notes = [
        (
            f"{facts.name}: {reason}. Its limits are derived from what the driver says: "
            f"{units.bandwidth(pin)} from {facts.bus_bits} bits at "
            f"{units.frequency(facts.memory_clock_hz)}, fp32 from {facts.sm_count} SMs at "
            f"{units.frequency(facts.max_clock_hz)}, no tensor peaks. For more, add a spec file: "
            "docs/add-a-gpu.md, then solkit gpus lint"
        )
    ]
    l2_bytes = facts.l2_bytes
    if not l2_bytes:
        l2_bytes = max((gpu.l2_bytes for gpu in specs.values()), default=2**27)
        notes.append(
            f"L2: the driver does not say; the largest known is assumed: {units.capacity(l2_bytes)}"
        )
    if not pipes:
        notes.append(
            f"compute capability {facts.compute_capability or 'unknown'}: no fp32 rate known"
        )
    gpu = Gpu(
        id=_slug(facts.name),
        name=facts.name,
        vendor="derived",
        compute_capability=facts.compute_capability,
        sm_count=facts.sm_count,
        dram_bytes=facts.dram_bytes,
        dram_published_bytes_per_s=pin,
        dram_pin_bytes_per_s=pin,
        memory_clock_hz=facts.memory_clock_hz,
        bus_bits=facts.bus_bits,
        l2_bytes=l2_bytes,
        max_clock_hz=facts.max_clock_hz,
        pipes=pipes,
        sources={"dram_pin_bytes_per_s": source, **{f"pipes.{name}": source for name in pipes}},
        segment="geforce" if "GeForce" in facts.name else "data_center",
        ecc=bool(facts.ecc),
        power_w=facts.power_default_w,
        absent_pipes=tuple(sorted(ABSENT.get(facts.compute_capability, frozenset()))),
        notes=tuple(notes),
    )
    return Match(gpu, tuple(notes))


def _underivable(facts: DeviceFacts, what: str) -> NoDevice:
    chip, board = pci_id(facts.pci_device_id, facts.pci_subsystem_id)
    return NoDevice(
        f"{facts.name or 'the device'} (PCI id {board or chip or 'unknown'},"
        f" {facts.sm_count or '?'} SMs) has no spec file, and the driver does not say {what}",
        remedy="add a spec file with its name: docs/add-a-gpu.md",
    )


def _slug(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_").removeprefix("nvidia_")
    return plain or "unknown"
