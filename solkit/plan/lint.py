"""Rules that spec files are held to: each catches one mistake that people have made in print.

Pure: a set of cards goes in, findings come out. A number off its product by more than 2 % needs a
written `reason`, and no reason excuses more than 15 %: beyond that it is another number.
"""

from collections.abc import Callable, Iterator, Mapping

from solkit.gpu import PIPES, Gpu
from solkit.plan.devices import DRIVER_NAMES, MIB, READINGS
from solkit.plan.finding import Finding
from solkit.plan.links import link_findings
from solkit.plan.magnitudes import RANGES, out_of_range
from solkit.plan.neighbours import between
from solkit.plan.peaks import LEAST_REASON, pipe_problem
from solkit.plan.rates import ABSENT, SHARED_KIB
from solkit.plan.specs import numbers

SHEET = 0.01  # data sheet against pin rate
SHEET_EXCUSED = 0.06


def lint(specs: Mapping[str, Gpu]) -> list[Finding]:
    """Hold every card to every rule; an empty list means that all is well."""
    found = [finding for gpu in specs.values() for rule in _RULES for finding in rule(gpu)]
    return [*found, *between(specs)]


def _pipes(gpu: Gpu) -> Iterator[Finding]:
    """Each peak against its rate, its clock and the chip: at most one finding a pipe."""
    for name, pipe in gpu.pipes.items():
        problem = pipe_problem(gpu, name, pipe)
        if problem:
            rule, message, remedy = problem
            yield Finding(gpu.id, rule, f"pipes.{name}", message, remedy)


def _magnitudes(gpu: Gpu) -> Iterator[Finding]:
    """GB for bytes, TFLOP for FLOP, MHz for Hz: a value 1000 times off."""
    for where, value in numbers(gpu).items():
        field = where.rpartition(".")[2]
        if out_of_range(field, value):
            low, high = RANGES[field]
            yield Finding(
                gpu.id,
                "magnitude",
                where,
                f"{value:.4g} is outside {low:.4g} to {high:.4g}",
                "write SI units: bytes, bytes/s, FLOP/s, Hz, W",
            )


def _bandwidth(gpu: Gpu) -> Iterator[Finding]:
    """Pin rate = 2 x memory clock x bus / 8; the data sheet agrees with it within 1 %."""
    sheet, pin = gpu.dram_published_bytes_per_s, gpu.dram_pin_bytes_per_s
    if any(out_of_range("dram_pin_bytes_per_s", value) for value in (sheet, pin)):
        return
    if gpu.memory_clock_hz and gpu.bus_bits:
        expected = 2 * gpu.memory_clock_hz * gpu.bus_bits / 8
        if pin is None or abs(pin / expected - 1) > 1e-3:  # noqa: PLR2004  # rounded to 4 digits
            yield Finding(
                gpu.id,
                "pin-rate",
                "dram_pin_bytes_per_s",
                f"2 x memory clock x bus bits / 8 = {expected:.5g}, the file says {pin}",
                "memory_clock_hz is NVML's, half the data rate: double it once",
            )
            return
    if pin is None:
        return
    off = abs(sheet / pin - 1)
    said = len(gpu.reasons.get("dram_published_bytes_per_s", "")) >= LEAST_REASON
    if off > SHEET and not (said and off <= SHEET_EXCUSED):
        yield Finding(
            gpu.id,
            "sheet-pin",
            "dram_published_bytes_per_s",
            f"data sheet {sheet:.5g} and pin rate {pin:.5g} differ by {off:.1%}: another card's"
            " bandwidth (PCIe on SXM), another bus width, or a clock doubled twice",
            "take this card's own figures; up to 6 % may stand with a reason under"
            " reasons.dram_published_bytes_per_s (scores use the lesser of both)",
        )


def _capacities(gpu: Gpu) -> Iterator[Finding]:
    """Memory is what a device reports: whole MiB, never the label's 80e9."""
    sizes = {"dram_bytes": gpu.dram_bytes} | {
        f"mig.{name}.dram_bytes": slice_.dram_bytes
        for name, slice_ in gpu.mig.items()
        if slice_.dram_bytes is not None
    }
    for where, size in sizes.items():
        if size % MIB:
            yield Finding(
                gpu.id,
                "gb-or-gib",
                where,
                f"{size} bytes are no whole number of MiB: a label in powers of ten?",
                "take the MiB that nvidia-smi shows, times 1048576",
            )
    if gpu.l2_bytes % 1024:
        yield Finding(
            gpu.id,
            "gb-or-gib",
            "l2_bytes",
            f"{gpu.l2_bytes} bytes are no whole number of KiB: a label in powers of ten?",
            "take the bytes that CUDA's device attribute shows",
        )


def _readings(gpu: Gpu) -> Iterator[Finding]:
    """Hold a file to what was read from the real device of its PCI id."""
    for number in gpu.pci_ids:
        reading = READINGS.get(number)
        if reading is None:
            continue
        read: dict[str, tuple[float | None, float | None]] = {
            "sm_count": (gpu.sm_count, reading.sm_count),
            "dram_bytes": (
                gpu.dram_bytes,
                reading.dram_mib_count * MIB if reading.dram_mib_count else None,
            ),
            "bus_bits": (gpu.bus_bits, reading.bus_bits),
            "memory_clock_hz": (gpu.memory_clock_hz, reading.memory_clock_hz),
            "max_clock_hz": (gpu.max_clock_hz, reading.max_clock_hz),
            "l2_bytes": (gpu.l2_bytes, reading.l2_bytes),
        }
        for where, (stated, seen) in read.items():
            if seen is not None and stated != seen and not out_of_range(where, stated):
                yield Finding(
                    gpu.id,
                    "as-read",
                    where,
                    f"{stated} against {seen:.10g} read from the device {number}",
                    "take the device's value: tables of full dies and sister cards lie",
                )


def _chip(gpu: Gpu) -> Iterator[Finding]:
    """Units that the chip lacks are listed, shared memory is the chip's, and so is the segment."""
    missing = ABSENT.get(gpu.compute_capability, frozenset()) - set(gpu.absent_pipes)
    both = set(gpu.absent_pipes) & set(gpu.pipes) - ABSENT.get(gpu.compute_capability, frozenset())
    for name in (pipe for pipe in PIPES if pipe in missing | both):
        yield Finding(
            gpu.id,
            "absent-pipe",
            "absent_pipes",
            f"{name} is given and listed as absent" if name in both else f"{name} is not listed",
            "list each unit that the chip does not have, and no other",
        )
    known = SHARED_KIB.get(gpu.compute_capability)
    stated = (gpu.shared_bytes_per_sm, gpu.shared_bytes_per_block)
    if known:
        for where, value, kib in zip(
            ("shared_bytes_per_sm", "shared_bytes_per_block"), stated, known, strict=True
        ):
            if value is not None and value != kib * 1024:
                yield Finding(
                    gpu.id,
                    "shared-memory",
                    where,
                    f"{value}; {gpu.compute_capability} has {kib} KiB",
                    f"write {kib * 1024}",
                )
    if ("GeForce" in gpu.name) != (gpu.segment == "geforce"):
        yield Finding(
            gpu.id,
            "segment",
            "segment",
            f"{gpu.name!r} as {gpu.segment!r}",
            'a GeForce card has segment = "geforce", and no other card has',
        )


def _form_factor(gpu: Gpu) -> Iterator[Finding]:
    """Refuse a file called SXM that describes the PCIe card."""
    forms = ("sxm", "pcie", "nvl")
    named = {form for form in forms if form in gpu.name.casefold()}
    claimed = {form for form in forms if form in gpu.id}
    if named and claimed and not named & claimed:
        yield Finding(
            gpu.id,
            "form-factor",
            "name",
            f"the id says {', '.join(sorted(claimed))}, the name {gpu.name!r} says otherwise",
            "one file a card: name, PCI id and numbers of the same board",
        )


def _sources(gpu: Gpu) -> Iterator[Finding]:
    """Every number has a source, and every source a number."""
    stated = numbers(gpu)
    texts = {"name", "aliases", "pci_ids", "absent_pipes", "ecc", "compute_capability", "notes"}
    for where in stated:
        if not any(key in gpu.sources for key in _prefixes(where)):
            yield Finding(
                gpu.id,
                "source",
                where,
                "no source",
                f'add [sources] "{_group(where)}" = {{ title, url, accessed, mark }}',
            )
    known = texts | {prefix for where in stated for prefix in _prefixes(where)}
    for key, source in gpu.sources.items():
        if key not in known:
            yield Finding(
                gpu.id, "source", f"sources.{key}", "names no number here", "remove or rename it"
            )
        if not source.title.strip() or not source.url.startswith(("https://", "http://")):
            yield Finding(
                gpu.id, "source", f"sources.{key}", "lacks a title or URL", "say where to look"
            )


def _prefixes(where: str) -> Iterator[str]:
    """Return the keys that cover a number: `mig.1g.18gb.sm_count` by itself, or by any parent."""
    parts = where.split(".")
    return (".".join(parts[:end]) for end in range(len(parts), 0, -1))


def _group(where: str) -> str:
    return where.rpartition(".")[0] or where


def _links(gpu: Gpu) -> Iterator[Finding]:
    for name, message, remedy in link_findings(gpu):
        yield Finding(gpu.id, "link-direction", f"links.{name}", message, remedy)


def _driver_names(gpu: Gpu) -> Iterator[Finding]:
    """Name and PCI id belong together, and the name is one that a driver prints."""
    names = (gpu.name, *gpu.aliases)
    for number in gpu.pci_ids:
        driver = DRIVER_NAMES.get(number) or DRIVER_NAMES.get(number[:4])
        if driver is not None and driver not in names:
            yield Finding(
                gpu.id,
                "name-and-id",
                "pci_ids",
                f"the driver calls {number} {driver!r}, not {gpu.name!r}",
                "one file a card: take name and id of the same board",
            )
    if (
        gpu.vendor == "nvidia"
        and gpu.name not in DRIVER_NAMES.values()
        and "name" not in gpu.sources
    ):
        yield Finding(
            gpu.id,
            "name-unknown",
            "name",
            f"{gpu.name!r} is not among the driver's names known here",
            'say in [sources] where "name" was read (nvidia-smi -L)',
        )


_RULES: tuple[Callable[[Gpu], Iterator[Finding]], ...] = (
    _magnitudes,
    _pipes,
    _bandwidth,
    _capacities,
    _readings,
    _chip,
    _form_factor,
    _links,
    _driver_names,
    _sources,
)
