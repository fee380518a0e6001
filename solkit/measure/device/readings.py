"""What NVML tells of a card while it works: clocks, power, temperature, events, energy.

A value takes 2 to 13 us (measured on H200s), so it is read between batches, never inside one.
"""

from solkit.measure.device.nvml import Handle, Nvml, reason_words
from solkit.model import Clocks


def conditions(nvml: Nvml, uuid: str) -> Clocks:
    """Read clocks, temperature, power and clock events as they are now."""
    card = nvml.handles(uuid).card
    names = nvml.binding
    return Clocks(
        sm_hz=nvml.number("nvmlDeviceGetClockInfo", card, names.NVML_CLOCK_SM, scale=1e6),
        memory_hz=nvml.number("nvmlDeviceGetClockInfo", card, names.NVML_CLOCK_MEM, scale=1e6),
        temperature_c=nvml.number(
            "nvmlDeviceGetTemperature", card, names.NVML_TEMPERATURE_GPU, scale=1.0
        ),
        power_w=_power_w(nvml, card),
        event_reasons=reason_words(nvml.event_bits(card) or 0),
    )


def power_limit_w(nvml: Nvml, uuid: str) -> float | None:
    """Read the power limit in force."""
    card = nvml.handles(uuid).card
    return nvml.number("nvmlDeviceGetEnforcedPowerLimit", card, scale=1e-3)


def energy_j(nvml: Nvml, uuid: str) -> float | None:
    """Read the energy used since the driver was loaded; its counter steps every 100 ms."""
    card = nvml.handles(uuid).card
    return nvml.number("nvmlDeviceGetTotalEnergyConsumption", card, scale=1e-3)


def _power_w(nvml: Nvml, card: Handle) -> float | None:
    """Read the power of this moment; NVML's usual reading is the mean of the last second."""
    field = getattr(nvml.binding, "NVML_FI_DEV_POWER_INSTANT", None)
    values = nvml.ask("nvmlDeviceGetFieldValues", card, [field]) if field is not None else None
    if values and values[0].nvmlReturn == 0 and values[0].value.uiVal > 0:
        return float(values[0].value.uiVal) * 1e-3
    return nvml.number("nvmlDeviceGetPowerUsage", card, scale=1e-3)
