"""NVML and the doctor on a real card."""

import pytest

from solkit.measure.device.health import health
from solkit.measure.device.nvml import Nvml
from solkit.measure.device.readings import conditions
from solkit.measure.doctor import examine, exit_code, lines
from solkit.measure.probe import choose, cuda_devices

pytestmark = pytest.mark.gpu
FOUND = cuda_devices()
if not FOUND.devices:
    pytest.skip(FOUND.reason, allow_module_level=True)


def test_a_real_card_tells_what_a_score_needs() -> None:
    """Name, ids, SMs, memory, clocks and power limit are all there, in plausible sizes."""
    facts = FOUND.devices[0]
    assert facts.uuid.startswith(("GPU-", "MIG-"))
    assert 4 == len(facts.pci_device_id)
    assert 1 <= (facts.sm_count or 0) <= 1000
    assert 2**30 <= (facts.dram_bytes or 0) <= 2**40
    assert 5e8 <= (facts.max_clock_hz or 0) <= 5e9
    assert 5e8 <= (facts.memory_clock_hz or 0) <= 2e10
    assert 10 <= (facts.power_limit_w or 0) <= 3000


def test_a_real_cards_conditions_are_read() -> None:
    """Clock, temperature and power are numbers of a living card; its health answers too."""
    with Nvml() as nvml:
        facts = nvml.devices()[0]
        now, state = conditions(nvml, facts.uuid), health(nvml, facts.uuid)
    assert 1e8 <= (now.sm_hz or 0) <= 5e9
    assert 5 <= (now.temperature_c or 0) <= 120
    assert 5 <= (now.power_w or 0) <= 3000
    assert "prohibited" != state.compute_mode
    assert state.events_known


def test_the_doctor_lets_this_machine_measure() -> None:
    """Where the GPU tests run, nothing is in the way, and CUDA opens the card NVML named."""
    found = examine()
    assert 0 == exit_code(found), "\n".join(lines(found))
    assert {"ok"} == {finding.status for finding in found if finding.id == "cuda.context"}


def test_auto_takes_the_card() -> None:
    """With a driver and CuPy, `auto` measures on the card."""
    choice = choose()
    assert ("cuda", FOUND.devices[0].uuid) == (choice.kind, choice.facts.uuid)
