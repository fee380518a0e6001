"""NVML: what the driver says of the cards, and how they fare. The only importer of pynvml.

NVML lists every card; this module hands out those that CUDA_VISIBLE_DEVICES leaves, in PCI order
(visible.py says how that relates to CUDA's numbers), and joins the two sides by UUID. A query that
a card or a driver does not support gives None and a note, never an exception and never 0.
Clocks come from NVML in MHz, power in mW: they leave here in Hz and W.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from solkit.errors import NoDevice
from solkit.gpu import DeviceFacts
from solkit.measure.remedies import known, remedy_for
from solkit.measure.visible import Card, Instance, normal_pci_bus_id, visible

Binding = Any  # the pynvml module, or a stand-in with the same functions
Handle = Any  # NVML's handle of a card or of a MIG instance

# The bits of nvmlDeviceGetCurrentClocksEventReasons, in words.
EVENT_REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clock",
}

# NVML counts CUDA cores (FP32 lanes); an SM has 64 of them on data center parts up to the A100
# and 128 on every other design since: H200 16896 / 128 = 132. Unlisted: unknown, never guessed.
CORES_PER_SM = {"7.0": 64, "7.5": 64, "8.0": 64} | dict.fromkeys(
    ("8.6", "8.7", "8.9", "9.0", "10.0", "10.1", "10.3", "11.0", "12.0", "12.1"), 128
)


@dataclass(frozen=True, slots=True)
class Handles:
    """NVML's handles of what is measured (card or MIG instance) and of the card it lies on."""

    own: Handle
    card: Handle
    profile: str = ""


def reason_words(bits: int) -> tuple[str, ...]:
    """Name the set bits of a clock event mask, lowest first; an unknown bit keeps its number."""
    return tuple(
        EVENT_REASONS.get(1 << place, f"reason {1 << place:#x}")
        for place in range(bits.bit_length())
        if bits >> place & 1
    )


def load_binding() -> Binding:
    """Import pynvml (it needs no driver for that); NoDevice when it is not installed."""
    try:
        import pynvml  # noqa: PLC0415  # the one door to NVML, opened only when asked
    except ImportError as error:
        raise NoDevice(
            f"the NVML binding cannot be imported: {error}", remedy="pip install nvidia-ml-py"
        ) from error
    return pynvml


class Nvml:
    """One NVML session: opened by `with`, else at its first question; safe to nest.

    binding: a stand-in for pynvml (tests); environ: where CUDA_VISIBLE_DEVICES is read.
    Opening raises NoDevice, with its remedy, where there is no driver.
    """

    def __init__(
        self, *, binding: Binding | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._given = binding
        self._open: Binding | None = None
        self._environ = os.environ if environ is None else environ
        self._known: dict[str, Handles] = {}

    @property
    def binding(self) -> Binding:
        """The pynvml module with its session started; NoDevice where that fails."""
        return self._open if self._open is not None else self.open()

    def open(self) -> Binding:
        """Load the library and start the session, unless it is open; return the pynvml module."""
        if self._open is None:
            binding = self._given if self._given is not None else load_binding()
            try:
                binding.nvmlInit()
            except binding.NVMLError as error:
                # nvidia-smi puts these words first, and people know NVML's messages that way.
                message = f"Failed to initialize NVML: {error}"
                raise NoDevice(
                    message, remedy=remedy_for(message, known("no_driver").remedy)
                ) from error
            self._open = binding
        return self._open

    def __enter__(self) -> Self:
        """Start the session."""
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the session."""
        self.close()

    def close(self) -> None:
        """End the session; nothing happens where none was started."""
        if self._open is not None:
            self._known.clear()
            self._open.nvmlShutdown()
            self._open = None

    @property
    def driver(self) -> str:
        """The driver's version, e.g. '580.159.04'; empty when it does not say."""
        return _text(self.ask("nvmlSystemGetDriverVersion") or "")

    @property
    def cuda_driver(self) -> str:
        """The newest CUDA this driver serves, e.g. '13.0'; empty when it does not say."""
        number = self.ask("nvmlSystemGetCudaDriverVersion")
        return f"{number // 1000}.{number % 1000 // 10}" if number else ""

    def devices(self) -> list[DeviceFacts]:
        """Return the facts of each usable device; `index` is its place in this list, N of `cuda:N`.

        A card in MIG mode is replaced by its instances: name and PCI ids are the card's,
        `mig_profile`, UUID, SMs and memory the instance's, clocks and power limits the card's.
        """
        found = visible(self.cards(), self._environ)
        return [self._facts(index, uuid, found.notes) for index, uuid in enumerate(found.uuids)]

    def process_ids(self, uuid: str) -> tuple[int, ...]:
        """Return which processes have a CUDA context on a device, through MPS too, in order.

        Empty where the driver does not tell, or is not there. The ids are the driver's: inside a
        container they may be of other processes than those that have these numbers there.
        """
        try:
            own = self.handles(uuid).own
        except NoDevice:
            return ()
        running = [
            *(self.ask("nvmlDeviceGetComputeRunningProcesses", own) or ()),
            *(self.ask("nvmlDeviceGetMPSComputeRunningProcesses", own) or ()),
        ]
        return tuple(sorted({int(process.pid) for process in running}))

    # -- what CUDA sees ---------------------------------------------------------------------------

    def cards(self) -> list[Card]:
        """Return every card NVML lists, visible to CUDA or not, with its MIG instances."""
        cards = []
        for index in range(self.ask("nvmlDeviceGetCount") or 0):
            handle = self.ask("nvmlDeviceGetHandleByIndex", index)
            if handle is None:  # a card that fell off its bus must not hide the others
                continue
            # Orin answers no UUID: the PCI bus id, else the index, stands in for the join here.
            pci = self.ask("nvmlDeviceGetPciInfo", handle)
            bus = normal_pci_bus_id(_text(pci.busId)) if pci is not None else ""
            uuid = _text(self.ask("nvmlDeviceGetUUID", handle) or bus or f"nvml-index-{index}")
            mig = (self.ask("nvmlDeviceGetMigMode", handle) or [0])[0] == 1
            self._known[uuid] = Handles(handle, handle)
            cards.append(
                Card(
                    uuid,
                    bus,
                    _text(self.ask("nvmlDeviceGetName", handle) or ""),
                    mig,
                    self._instances(handle) if mig else (),
                )
            )
        return cards

    def _instances(self, card: Handle) -> tuple[Instance, ...]:
        instances = []
        for place in range(self.ask("nvmlDeviceGetMaxMigDeviceCount", card) or 0):
            own = self.ask("nvmlDeviceGetMigDeviceHandleByIndex", card, place)
            uuid = self.ask("nvmlDeviceGetUUID", own) if own is not None else None
            if uuid is None:  # an empty place
                continue
            name = _text(self.ask("nvmlDeviceGetName", own) or "")
            self._known[_text(uuid)] = Handles(own, card, name.rpartition("MIG ")[2])
            instances.append(
                Instance(
                    _text(uuid),
                    self.ask("nvmlDeviceGetGpuInstanceId", own),
                    self.ask("nvmlDeviceGetComputeInstanceId", own),
                )
            )
        return tuple(instances)

    def handles(self, uuid: str) -> Handles:
        """Return the handles of a device; NoDevice for a UUID that is not here.

        CUDA writes a MIG instance's UUID with GPU- in front, NVML with MIG-: both are understood.
        """
        if not self._known:
            self.cards()
        for name in (uuid, uuid.replace("GPU-", "MIG-", 1)):
            if name in self._known:
                return self._known[name]
        raise NoDevice(
            f"no card with the UUID {uuid!r} is here",
            remedy=f"cards here: {', '.join(self._known) or 'none'}",
        )

    # -- facts ------------------------------------------------------------------------------------

    def _facts(self, index: int, uuid: str, order_notes: tuple[str, ...]) -> DeviceFacts:
        nvml, notes, handles = self.binding, list(order_notes), self.handles(uuid)
        own, card = handles.own, handles.card

        def ask(what: str, function: str, *args: object) -> Any:  # noqa: ANN401  # whatever NVML answers
            return self.ask(function, *args, what=what, notes=notes)

        def number(what: str, scale: float, function: str, *args: object) -> float | None:
            return self.number(function, *args, scale=scale, what=what, notes=notes)

        capability = ask("compute capability", "nvmlDeviceGetCudaComputeCapability", card)
        version = ".".join(map(str, capability)) if capability else ""
        pci = ask("PCI ids", "nvmlDeviceGetPciInfo", card)
        ecc = ask("ECC mode", "nvmlDeviceGetEccMode", card)
        memory = self.memory(own, notes)
        bus_bits = number("memory bus width", 1, "nvmlDeviceGetMemoryBusWidth", card)
        return DeviceFacts(
            kind="cuda",
            name=_text(ask("name", "nvmlDeviceGetName", card) or "unknown NVIDIA device"),
            index=index,
            uuid=uuid,
            pci_bus_id=normal_pci_bus_id(_text(pci.busId)) if pci is not None else "",
            # Both ids are 32 bits with the vendor in the low half: 0x233510DE is an H200 by NVIDIA.
            pci_device_id=f"{pci.pciDeviceId >> 16:04X}" if pci is not None else "",
            pci_subsystem_id=f"{pci.pciSubSystemId >> 16:04X}" if pci is not None else "",
            compute_capability=version,
            driver=self.driver,
            cuda_driver=self.cuda_driver,
            mig_profile=handles.profile,
            ecc=None if ecc is None else ecc[0] == 1,
            sm_count=self._sm_count(handles, version, notes),
            dram_bytes=(memory.total or None) if memory is not None else None,
            dram_free_bytes=memory.free if memory is not None and memory.total else None,
            bus_bits=None if bus_bits is None else int(bus_bits),
            memory_clock_hz=number(
                "maximum memory clock", 1e6, "nvmlDeviceGetMaxClockInfo", card, nvml.NVML_CLOCK_MEM
            ),
            max_clock_hz=number(
                "maximum SM clock", 1e6, "nvmlDeviceGetMaxClockInfo", card, nvml.NVML_CLOCK_SM
            ),
            power_limit_w=number("power limit", 1e-3, "nvmlDeviceGetEnforcedPowerLimit", card),
            power_default_w=number(
                "default power limit", 1e-3, "nvmlDeviceGetPowerManagementDefaultLimit", card
            ),
            notes=tuple(notes),
        )

    def _sm_count(self, handles: Handles, version: str, notes: list[str]) -> int | None:
        if (
            handles.own is not handles.card
        ):  # an instance's SMs are its own, and no sevenths of the card
            attributes = self.ask(
                "nvmlDeviceGetAttributes_v2", handles.own, what="SM count", notes=notes
            )
            return None if attributes is None else attributes.multiprocessorCount or None
        cores = self.number("nvmlDeviceGetNumGpuCores", handles.card, what="SM count", notes=notes)
        if cores is None:
            return None
        if version not in CORES_PER_SM:
            notes.append(
                f"SM count: cores per SM of compute capability {version or '?'} are not known"
            )
            return None
        return int(cores) // CORES_PER_SM[version]

    def memory(self, handle: Handle, notes: list[str]) -> Any:  # noqa: ANN401  # NVML's struct
        """Read memory with its version argument: without it NVML leaves `reserved` out."""
        second = self.ask(
            "nvmlDeviceGetMemoryInfo", handle, getattr(self.binding, "nvmlMemory_v2", None)
        )
        if second is not None:
            return second
        return self.ask("nvmlDeviceGetMemoryInfo", handle, what="memory", notes=notes)

    def event_bits(self, card: Handle) -> int | None:
        """Read the clock event mask; None where the driver does not tell."""
        bits: int | None = self.ask("nvmlDeviceGetCurrentClocksEventReasons", card)
        if bits is None:  # its name before driver 535
            bits = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons", card)
        return bits

    # -- asking -----------------------------------------------------------------------------------

    def ask(
        self, function: str, *args: object, what: str = "", notes: list[str] | None = None
    ) -> Any:  # noqa: ANN401  # whatever NVML answers
        """Call one NVML function; what is not supported becomes None, and a note to `notes`."""
        call: Callable[..., Any] | None = getattr(self.binding, function, None)
        if call is None:
            reason = f"the installed nvidia-ml-py has no {function}"
        else:
            try:
                return call(*args)
            except self.binding.NVMLError as error:
                reason = str(error)
        if notes is not None:
            notes.append(f"{what}: {reason}")
        return None

    def number(
        self,
        function: str,
        *args: object,
        scale: float = 1.0,
        what: str = "",
        notes: list[str] | None = None,
    ) -> float | None:
        """Ask for a quantity that cannot be zero: a 0 means that NVML does not know."""
        answer = self.ask(function, *args, what=what, notes=notes)
        if answer is None:
            return None
        if answer <= 0:
            if notes is not None:
                notes.append(f"{what}: the driver answers {answer}, which means unknown")
            return None
        return float(answer * scale)


def _text(value: str | bytes) -> str:
    """Decode what older bindings give as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
