"""What can be measured here: the CUDA devices, the host's CPU, and the choice of one."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from solkit.errors import BadInput, NoDevice, unknown
from solkit.gpu import DeviceFacts
from solkit.measure.device.nvml import Binding, Nvml
from solkit.measure.host import cpu_facts
from solkit.measure.remedies import known

if TYPE_CHECKING:
    from solkit.gpu import Gpu

__all__ = [
    "Choice",
    "Probe",
    "choose",
    "cpu_facts",
    "cuda_devices",
    "cupy_extra",
    "cupy_is_installed",
    "find_device",
]


@dataclass(frozen=True, slots=True)
class Probe:
    """The CUDA devices of this machine; where there is none: why, and what to do."""

    devices: tuple[DeviceFacts, ...]
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The device a run takes.

    index: N of `cuda:N`, 0 for the CPU. why: what is said to the person.
    """

    kind: Literal["cuda", "cpu"]
    index: int
    facts: DeviceFacts
    why: str

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the process that measures: there CUDA sees the chosen card alone.

        Binding by UUID makes NVML's, CUDA's and solkit's numbers agree whatever the cards are.
        A card that tells no UUID (Jetson) is left as CUDA finds it.
        """
        if self.kind == "cpu" or not self.facts.uuid.startswith(("GPU-", "MIG-")):
            return {}
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": self.facts.uuid}

    @property
    def cuda_index(self) -> int:
        """The device's number in a process started with `environment`."""
        return 0 if self.environment else self.index


def cuda_devices(
    *, binding: Binding | None = None, environ: Mapping[str, str] | None = None
) -> Probe:
    """Ask NVML for the devices CUDA may use, in CUDA's order; no card is no error, but a reason."""
    environ = os.environ if environ is None else environ
    try:
        with Nvml(binding=binding, environ=environ) as nvml:
            devices = tuple(nvml.devices())
            listed = len(nvml.cards()) if not devices else 0
    except NoDevice as error:
        return Probe((), f"no NVIDIA driver found ({error.message})", error.remedy)
    if devices:
        return Probe(devices)
    hidden = environ.get("CUDA_VISIBLE_DEVICES")
    if listed and hidden is not None:
        return Probe(
            (),
            f"CUDA_VISIBLE_DEVICES={hidden!r} hides every card ({listed} here)",
            "unset CUDA_VISIBLE_DEVICES, or name a card that exists",
        )
    if listed:
        return Probe(
            (),
            "the card is in MIG mode and has no instance",
            "create one (nvidia-smi mig -cgi ... -C), or turn MIG off (nvidia-smi -mig 0)",
        )
    return Probe((), "an NVIDIA driver is loaded, but it lists no card", known("no_driver").remedy)


def cupy_is_installed() -> bool:
    """Say whether CuPy can be found, without importing it (a second, and a driver is wanted)."""
    return find_spec("cupy") is not None


def cupy_extra(facts: DeviceFacts) -> str:
    """Name the extra that fits a device: CUDA 13 needs driver 580 and a Turing card or newer."""
    driver_family = int(facts.cuda_driver.partition(".")[0] or 0)
    capability = (
        tuple(map(int, facts.compute_capability.split("."))) if facts.compute_capability else ()
    )
    return "cuda13" if driver_family >= 13 and capability >= (7, 5) else "cuda12"  # noqa: PLR2004  # the family and the CC named above


def choose(
    device: str = "auto",
    *,
    probe: Callable[[], Probe] = cuda_devices,
    cpu: Callable[[], DeviceFacts] = cpu_facts,
    has_cupy: Callable[[], bool] = cupy_is_installed,
    platform: str = sys.platform,
) -> Choice:
    """Choose what to measure on: `auto`, `cpu`, `cuda`, `cuda:N`, or a card.

    A card goes by its id, NVML name, alias, family, UUID (or its beginning) or PCI bus id.
    `auto` takes the first usable CUDA device, else the CPU, and says why. Anything else is taken
    at its word: NoDevice, with the remedy, where it can't be had; BadInput where it means nothing.
    """
    wanted = device.strip()
    if wanted.casefold() == "cpu":
        return Choice("cpu", 0, cpu(), "the CPU, as asked")
    found = probe()
    if wanted.casefold() == "auto":
        return _automatic(found, cpu, has_cupy=has_cupy(), platform=platform)
    facts = find_device(wanted, found)
    obstacle = _obstacle(facts, has_cupy=has_cupy(), platform=platform)
    if obstacle is not None:
        raise obstacle
    return Choice("cuda", facts.index, facts, f"cuda:{facts.index}, {_title(facts)}, as asked")


def _automatic(
    found: Probe, cpu: Callable[[], DeviceFacts], *, has_cupy: bool, platform: str
) -> Choice:
    if not found.devices:
        return Choice("cpu", 0, cpu(), f"{found.reason}; using the CPU")
    facts = found.devices[0]
    obstacle = _obstacle(facts, has_cupy=has_cupy, platform=platform)
    if obstacle is not None:
        return Choice("cpu", 0, cpu(), f"{obstacle.message}: {obstacle.remedy}; using the CPU")
    others = len(found.devices) - 1
    more = f"the first of {others + 1}: --device cuda:N" if others else "the card of this machine"
    return Choice("cuda", facts.index, facts, f"cuda:{facts.index}, {_title(facts)} ({more})")


def _obstacle(facts: DeviceFacts, *, has_cupy: bool, platform: str) -> NoDevice | None:
    """Return what keeps solkit from measuring on a card that is here, if anything does."""
    if not platform.startswith("linux"):
        return NoDevice(
            f"{_article(facts)} is here, but solkit measures on Linux only ({platform})",
            remedy="measure in Linux or WSL; plan and report work here",
        )
    if not has_cupy:
        return NoDevice(
            f"{_article(facts)} is here, but CuPy is not installed",
            remedy=f"pip install 'solkit[{cupy_extra(facts)}]'",
        )
    return None


def find_device(wanted: str, found: Probe) -> DeviceFacts:
    """Find the device a person names: `cuda`, `cuda:N`, or a card by any of its names.

    NoDevice where it is not here (with the reason, where no device is), BadInput for no name.
    """
    number = re.fullmatch(r"cuda(?::(\d{1,6}))?", wanted, re.IGNORECASE | re.ASCII)
    if number is not None:
        if not found.devices:
            raise NoDevice(found.reason, remedy=found.remedy)
        index = int(number[1] or 0)
        if index >= len(found.devices):
            raise NoDevice(
                f"there is no cuda:{index}: {len(found.devices)} usable here", remedy=_list(found)
            )
        return found.devices[index]
    card = _spec(wanted)
    if not found.devices and (card is not None or wanted.startswith(("GPU-", "MIG-"))):
        raise NoDevice(found.reason, remedy=found.remedy)
    matching = [facts for facts in found.devices if _is(facts, wanted, card)]
    if matching:
        return matching[0]
    if card is not None:
        raise NoDevice(f"no {card.name} is here", remedy=_list(found))
    names = ["auto", "cuda", "cuda:N", "cpu", *(facts.name for facts in found.devices)]
    raise unknown(
        "device", wanted, names, where="--device", hint="or the id of a card: solkit gpus"
    )


def _spec(wanted: str) -> "Gpu | None":
    """Return the card of hardware_specs a person means, if it is one."""
    from solkit.plan.specs import find, load_specs  # noqa: PLC0415  # most runs name no card, and reading them all takes time

    specs = load_specs()
    try:
        return find(wanted, specs)[0]
    except BadInput:  # no card's name: it may still be a UUID or a name only the driver knows
        return None


def _is(facts: DeviceFacts, wanted: str, card: "Gpu | None") -> bool:
    given = wanted.casefold()
    if given in {facts.name.casefold(), facts.pci_bus_id, facts.uuid.casefold()}:
        return True
    if given.startswith(("gpu-", "mig-")) and facts.uuid.casefold().startswith(given):
        return True
    if card is None:
        return False
    names = {name.casefold() for name in (card.name, *card.aliases)}
    ids = {facts.pci_device_id, f"{facts.pci_device_id}:{facts.pci_subsystem_id}"}
    return facts.name.casefold() in names or bool(ids & set(card.pci_ids))


def _list(found: Probe) -> str:
    return "here: " + "; ".join(f"cuda:{facts.index} {_title(facts)}" for facts in found.devices)


def _title(facts: DeviceFacts) -> str:
    return f"{facts.name} MIG {facts.mig_profile}" if facts.mig_profile else facts.name


def _article(facts: DeviceFacts) -> str:
    return f"{'an' if _title(facts)[:1].upper() in 'AEIN' else 'a'} {_title(facts)}"
