"""What NVML tells of a card at work, in SI units; what it does not tell is None, never zero."""

from typing import Any

import pytest
from fake_nvml import H200, FakeNvml, instance
from hypothesis import given
from hypothesis import strategies as st

from solkit.errors import NoDevice
from solkit.measure.device.nvml import Nvml
from solkit.measure.device.readings import conditions, energy_j, power_limit_w
from solkit.model import Clocks

UUID = H200["uuid"]


def nvml_of(**changes: Any) -> Nvml:
    return Nvml(binding=FakeNvml(H200 | changes), environ={})


def without(query: str) -> Nvml:
    return Nvml(
        binding=FakeNvml({name: told for name, told in H200.items() if name != query}), environ={}
    )


def test_an_idle_h200_reads_345_mhz_80_w_and_idle() -> None:
    """MHz as Hz, mW as W, the mask in words."""
    assert Clocks(
        sm_hz=345e6,
        memory_hz=3201e6,
        temperature_c=35.0,
        power_w=80.25,
        event_reasons=("idle",),
    ) == conditions(nvml_of(), UUID)


def test_power_is_that_of_the_moment_where_the_driver_tells_it() -> None:
    """NVML's usual reading is the mean of a second: after work it still tells of the work."""
    nvml = nvml_of(instant_power=612_000, power=388_000)
    assert 612.0 == conditions(nvml, UUID).power_w


@pytest.mark.parametrize("lacks", [{}, {"instant_power": 0}, {"fields": "refused"}])
def test_without_it_the_usual_power_is_taken(lacks: dict[str, Any]) -> None:
    """The field is not supported, or zero, or the driver has no fields at all."""
    assert 388.0 == conditions(nvml_of(power=388_000, **lacks), UUID).power_w


def test_a_binding_that_does_not_know_the_field_is_not_asked_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An older nvidia-ml-py on a new driver."""
    monkeypatch.delattr(FakeNvml, "NVML_FI_DEV_POWER_INSTANT")
    assert 388.0 == conditions(nvml_of(power=388_000, instant_power=1), UUID).power_w


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("clocks", "sm_hz"),
        ("clocks", "memory_hz"),
        ("temperature", "temperature_c"),
        ("power", "power_w"),
    ],
)
def test_a_reading_that_is_not_supported_is_unknown(query: str, field: str) -> None:
    """Some cards have no sensor; the others are read all the same."""
    found = conditions(without(query), UUID)
    assert getattr(found, field) is None
    assert ("idle",) == found.event_reasons


def test_zero_is_unknown() -> None:
    """No card runs at 0 MHz, 0 W and 0 degrees."""
    nvml = nvml_of(clocks={1: 0, 2: 0}, power=0, temperature=0, events=0)
    assert Clocks() == conditions(nvml, UUID)


def test_events_of_drivers_before_535_have_another_name() -> None:
    """The same mask."""
    card = {name: told for name, told in H200.items() if name != "events"}
    nvml = Nvml(binding=FakeNvml(card | {"throttle_reasons": 0x4 | 0x40}), environ={})
    assert ("software power cap", "hardware thermal") == conditions(nvml, UUID).event_reasons


def test_without_any_events_none_is_named() -> None:
    """The driver tells neither."""
    assert () == conditions(without("events"), UUID).event_reasons


def test_the_power_limit_is_the_one_in_force() -> None:
    """Lowered by an administrator from 700 to 500 W."""
    assert 500.0 == power_limit_w(nvml_of(power_limit=500_000), UUID)
    assert power_limit_w(without("power_limit"), UUID) is None


def test_energy_is_the_counter_in_joules() -> None:
    """It counts millijoules since the driver was loaded; cards before Volta don't count."""
    assert 2_127_000.5 == energy_j(nvml_of(energy=2_127_000_500), UUID)
    assert energy_j(nvml_of(), UUID) is None


@given(mw=st.integers(1, 2**32 - 1))
def test_milliwatts_are_watts_by_a_thousand(mw: int) -> None:
    """On every road."""
    told = conditions(nvml_of(instant_power=mw), UUID).power_w
    assert pytest.approx(mw / 1000) == told == power_limit_w(nvml_of(power_limit=mw), UUID)


def test_an_instance_is_read_by_the_card_it_lies_on() -> None:
    """A MIG instance has neither clock nor power of its own; CUDA writes GPU- before its UUID."""
    part = instance()
    nvml = Nvml(
        binding=FakeNvml(H200 | {"mig": [1, 1], "instances": [part], "energy": 5000}), environ={}
    )
    cuda_name = part["uuid"].replace("MIG-", "GPU-", 1)
    assert 345e6 == conditions(nvml, cuda_name).sm_hz
    assert (700.0, 5.0) == (power_limit_w(nvml, cuda_name), energy_j(nvml, cuda_name))


@pytest.mark.parametrize("read", [conditions, power_limit_w, energy_j])
def test_a_card_is_found_by_its_uuid_alone(read: Any) -> None:
    """Another card's readings are never taken for this one's."""
    with pytest.raises(NoDevice, match="no card with the UUID 'GPU-other'") as caught:
        read(nvml_of(), "GPU-other")
    assert UUID in caught.value.remedy
