"""How a card fares: what decides whether, and how well, it can be measured."""

import os
from dataclasses import dataclass

from solkit.measure.device.nvml import Handle, Nvml

COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
RECOVERY_ACTIONS = {
    0: "none",
    1: "reset the card",
    2: "reboot the node",
    3: "drain peer-to-peer work",
    4: "drain and reset the card",
    5: "recover the IMEX domain",
    6: "reset the bus",
    7: "reboot the system",
}


@dataclass(frozen=True, slots=True)
class Health:
    """What decides whether, and how well, a card can be measured. None: the driver does not say.

    processes: ids of other processes with a CUDA context on the device. slowdown_c: where the
    hardware slows itself down. application_clock_hz: the SM clock asked for; max_clock_hz: the
    highest there is. events_known: whether the driver tells why clocks are lowered.
    """

    compute_mode: str | None = None
    persistence: bool | None = None
    mig: bool | None = None
    mig_pending: bool | None = None
    ecc_pending: bool | None = None
    ecc_uncorrected_count: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    recovery_action: str | None = None
    processes: tuple[int, ...] | None = None
    memory_reserved_bytes: int | None = None
    slowdown_c: float | None = None
    application_clock_hz: float | None = None
    max_clock_hz: float | None = None
    events_known: bool = True
    notes: tuple[str, ...] = ()


def health(nvml: Nvml, uuid: str) -> Health:
    """Read the state of one device; what the driver does not support is None, with a note."""
    names, notes = nvml.binding, list[str]()
    own, card = nvml.handles(uuid).own, nvml.handles(uuid).card
    mode = nvml.ask("nvmlDeviceGetComputeMode", card, what="compute mode", notes=notes)
    mig = nvml.ask("nvmlDeviceGetMigMode", card, what="MIG mode", notes=notes)
    ecc = nvml.ask("nvmlDeviceGetEccMode", card, what="ECC mode", notes=notes)
    remap = nvml.ask("nvmlDeviceGetRemappedRows", card, what="row remapping", notes=notes)
    persistence = nvml.ask(
        "nvmlDeviceGetPersistenceMode", card, what="persistence mode", notes=notes
    )
    running = nvml.ask("nvmlDeviceGetComputeRunningProcesses", own, what="processes", notes=notes)
    errors = nvml.ask(
        "nvmlDeviceGetTotalEccErrors",
        card,
        names.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        names.NVML_VOLATILE_ECC,
        what="ECC errors",
        notes=notes,
    )
    memory = nvml.memory(own, notes)
    return Health(
        compute_mode=None if mode is None else COMPUTE_MODES.get(mode, f"mode {mode}"),
        persistence=None if persistence is None else persistence == 1,
        mig=None if mig is None else mig[0] == 1,
        mig_pending=None if mig is None else mig[0] != mig[1],
        ecc_pending=None if ecc is None else ecc[0] != ecc[1],
        ecc_uncorrected_count=errors,
        remap_pending=None if remap is None else bool(remap[2]),
        remap_failed=None if remap is None else bool(remap[3]),
        recovery_action=_recovery_action(nvml, card, notes),
        processes=None
        if running is None
        else tuple(process.pid for process in running if process.pid != os.getpid()),
        memory_reserved_bytes=getattr(memory, "reserved", None),
        slowdown_c=nvml.number(
            "nvmlDeviceGetTemperatureThreshold",
            card,
            names.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
            what="slowdown temperature",
            notes=notes,
        ),
        application_clock_hz=nvml.number(
            "nvmlDeviceGetApplicationsClock", card, names.NVML_CLOCK_SM, scale=1e6
        ),
        max_clock_hz=nvml.number("nvmlDeviceGetMaxClockInfo", card, names.NVML_CLOCK_SM, scale=1e6),
        events_known=nvml.event_bits(card) is not None,
        notes=tuple(notes),
    )


def _recovery_action(nvml: Nvml, card: Handle, notes: list[str]) -> str | None:
    field = getattr(nvml.binding, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
    values = nvml.ask("nvmlDeviceGetFieldValues", card, [field]) if field is not None else None
    if values is None or values[0].nvmlReturn != 0:  # each field has its own return code
        notes.append("recovery action: not supported (driver and binding 570 or newer have it)")
        return None
    action = values[0].value.uiVal
    return RECOVERY_ACTIONS.get(action, f"action {action}")
