"""The doctor's checks of each card: may it be opened, is it sound, will its times be steady."""

from dataclasses import replace

from solkit.gpu import DeviceFacts
from solkit.measure.device.health import Health
from solkit.measure.finding import Finding
from solkit.measure.remedies import known
from solkit.model import Clocks
from solkit.units import capacity, frequency, power

# Reasons that mean heat or a fault; the others are how a card under load or at rest looks.
_GRAVE_REASONS = {"hardware slowdown", "software thermal", "hardware thermal", "power brake"}
_HOT_MARGIN_C = 5.0


def card(
    facts: DeviceFacts, state: Health, now: Clocks, *, need_bytes: int | None
) -> list[Finding]:
    """Judge one device; its findings carry its name as their subject."""
    found = [
        _mig(facts, state),
        _compute_mode(state),
        _ecc(facts, state),
        _remap(state),
        _recovery(state),
        _processes(state),
        _memory(facts, state, need_bytes),
        _persistence(state),
        _clocks(state, now),
        _power(facts),
        _events(state, now),
        _temperature(state, now),
    ]
    return [replace(finding, subject=subject(facts)) for finding in found]


def subject(facts: DeviceFacts) -> str:
    """Name a device as the findings about it do."""
    name = f"{facts.name} MIG {facts.mig_profile}" if facts.mig_profile else facts.name
    return f"cuda:{facts.index} {name} {facts.uuid}"


def _mig(facts: DeviceFacts, state: Health) -> Finding:
    if state.mig is None:
        return Finding("gpu.mig", "unknown", "the card tells no MIG mode (most have none)")
    if state.mig_pending:
        return Finding(
            "gpu.mig",
            "warn",
            "a change of the MIG mode waits for a reset",
            "nvidia-smi --gpu-reset",
        )
    if facts.mig_profile:
        return Finding(
            "gpu.mig",
            "ok",
            f"instance {facts.mig_profile}, {facts.sm_count or '?'} SMs of the card",
        )
    return Finding("gpu.mig", "ok", "off: the whole card is measured")


def _compute_mode(state: Health) -> Finding:
    if state.compute_mode is None:
        return Finding("gpu.compute_mode", "unknown", "the card tells no compute mode")
    if state.compute_mode == "prohibited":
        return Finding(
            "gpu.compute_mode",
            "fail",
            "no program may open the card",
            "nvidia-smi --compute-mode=0",
        )
    if state.compute_mode.startswith("exclusive") and state.processes:
        return Finding(
            "gpu.compute_mode",
            "fail",
            f"{state.compute_mode}, and another process holds the card",
            "end the other process, or nvidia-smi --compute-mode=0",
        )
    return Finding("gpu.compute_mode", "ok", state.compute_mode)


def _ecc(facts: DeviceFacts, state: Health) -> Finding:
    if facts.ecc is None:
        return Finding("gpu.ecc", "unknown", "the card tells no ECC mode")
    if state.ecc_uncorrected_count:
        return Finding(
            "gpu.ecc",
            "warn",
            f"{state.ecc_uncorrected_count} uncorrectable memory errors since the driver started",
            "reset the card; have it checked when they return",
        )
    if state.ecc_pending:
        return Finding(
            "gpu.ecc",
            "warn",
            "a change of the ECC mode waits for a reset",
            "nvidia-smi --gpu-reset",
        )
    return Finding("gpu.ecc", "ok", f"ECC {'on' if facts.ecc else 'off'}")


def _remap(state: Health) -> Finding:
    if state.remap_pending is None:
        return Finding("gpu.remap", "unknown", "the card tells no row remapping")
    if state.remap_failed:
        return Finding(
            "gpu.remap", "warn", "a memory row could not be remapped", "have the card replaced"
        )
    if state.remap_pending:
        return Finding(
            "gpu.remap", "warn", "a memory row waits to be remapped", "nvidia-smi --gpu-reset"
        )
    return Finding("gpu.remap", "ok", "no memory row waits")


def _recovery(state: Health) -> Finding:
    if state.recovery_action is None:
        return Finding(
            "gpu.recovery", "unknown", "the driver tells no recovery action (570 or newer does)"
        )
    if state.recovery_action == "none":
        return Finding("gpu.recovery", "ok", "the driver asks for nothing")
    if state.recovery_action == "drain peer-to-peer work":
        return Finding(
            "gpu.recovery",
            "warn",
            "the driver asks: drain peer-to-peer work",
            "end peer-to-peer work",
        )
    return Finding(
        "gpu.recovery", "fail", f"the driver asks: {state.recovery_action}", state.recovery_action
    )


def _processes(state: Health) -> Finding:
    if state.processes is None:
        return Finding("gpu.processes", "unknown", "the driver does not tell who uses the card")
    if state.processes:
        listed = ", ".join(map(str, state.processes[:8]))
        return Finding(
            "gpu.processes",
            "warn",
            f"{len(state.processes)} other processes use the card: {listed}",
            "end them, or expect their work in the times",
        )
    return Finding("gpu.processes", "ok", "nobody else uses the card")


def _memory(facts: DeviceFacts, state: Health, need_bytes: int | None) -> Finding:
    if facts.dram_free_bytes is None:
        return Finding("gpu.memory", "unknown", "the driver does not tell the card's memory")
    told = f"{capacity(facts.dram_free_bytes)} free of {capacity(facts.dram_bytes or 0)}"
    if state.memory_reserved_bytes:
        told += f", {capacity(state.memory_reserved_bytes)} reserved by the driver"
    if need_bytes is not None and need_bytes > facts.dram_free_bytes:
        return Finding(
            "gpu.memory",
            "fail",
            f"{capacity(need_bytes)} needed, {told}",
            known("out_of_memory").remedy,
        )
    needed = f"{capacity(need_bytes)} needed, " if need_bytes is not None else ""
    return Finding("gpu.memory", "ok", f"{needed}{told}")


def _persistence(state: Health) -> Finding:
    if state.persistence is None:
        return Finding("gpu.persistence", "unknown", "the driver tells no persistence mode")
    if not state.persistence:
        return Finding(
            "gpu.persistence",
            "warn",
            "off: the driver unloads between programs, and each start takes seconds",
            "nvidia-smi -pm 1",
        )
    return Finding("gpu.persistence", "ok", "on")


def _clocks(state: Health, now: Clocks) -> Finding:
    if now.sm_hz is None or state.max_clock_hz is None:
        return Finding("gpu.clocks", "unknown", "the driver tells no SM clock")
    told = f"SM clock {frequency(now.sm_hz)} now, {frequency(state.max_clock_hz)} at most"
    asked = state.application_clock_hz
    if asked is not None and asked < state.max_clock_hz:
        return Finding(
            "gpu.clocks",
            "warn",
            f"{told}, held to {frequency(asked)} by the application clocks",
            "keep it for steady times, or nvidia-smi -rac",
        )
    return Finding(
        "gpu.clocks", "ok", f"{told}; the driver does not tell whether clocks are locked"
    )


def _power(facts: DeviceFacts) -> Finding:
    if facts.power_limit_w is None:
        return Finding("gpu.power", "unknown", "the driver tells no power limit")
    if facts.power_default_w is not None and facts.power_limit_w < facts.power_default_w:
        return Finding(
            "gpu.power",
            "warn",
            f"limited to {power(facts.power_limit_w)} of {power(facts.power_default_w)} by default",
            f"nvidia-smi -pl {facts.power_default_w:.0f}",
        )
    return Finding("gpu.power", "ok", f"limit {power(facts.power_limit_w)}")


def _events(state: Health, now: Clocks) -> Finding:
    if not state.events_known:
        return Finding("gpu.events", "unknown", "the driver does not tell why clocks are lowered")
    grave = [reason for reason in now.event_reasons if reason in _GRAVE_REASONS]
    if grave:
        return Finding(
            "gpu.events",
            "warn",
            f"clocks are lowered now: {', '.join(grave)}",
            "see to cooling and power before measuring",
        )
    return Finding("gpu.events", "ok", ", ".join(now.event_reasons) or "nothing lowers the clocks")


def _temperature(state: Health, now: Clocks) -> Finding:
    if now.temperature_c is None:
        return Finding("gpu.temperature", "unknown", "the driver tells no temperature")
    told = f"{now.temperature_c:.0f} °C"
    if state.slowdown_c is None:
        return Finding("gpu.temperature", "ok", told)
    told += f", slows down at {state.slowdown_c:.0f} °C"
    if now.temperature_c >= state.slowdown_c - _HOT_MARGIN_C:
        return Finding("gpu.temperature", "warn", told, "let the card cool, see to its air")
    return Finding("gpu.temperature", "ok", told)
