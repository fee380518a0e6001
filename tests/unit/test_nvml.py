from dataclasses import fields

import pytest
from fake_nvml import H200, FakeNvml, instance
from hypothesis import given
from hypothesis import strategies as st

from solkit.errors import NoDevice
from solkit.gpu import DeviceFacts
from solkit.measure.device.health import Health, health
from solkit.measure.device.nvml import Nvml, reason_words
from solkit.measure.device.readings import conditions
from solkit.measure.visible import Card, Instance, normal_pci_bus_id, visible
from solkit.model import Clocks

SECOND = H200 | {"uuid": "GPU-8f5c2a10-0000-4000-8000-000000000002", "bus": "00000000:3B:00.0"}
THIRD = H200 | {"uuid": "GPU-aaaaaaaa-0000-4000-8000-000000000003", "bus": "00000000:5D:00.0"}


def facts_of(*cards: dict, **environ: str) -> list[DeviceFacts]:
    with Nvml(binding=FakeNvml(*cards), environ=environ) as nvml:
        return nvml.devices()


def test_a_card_is_described_in_si_units_with_its_ids() -> None:
    """An H200 as driver 580.159.04 reports it, with MHz as Hz, mW as W and cores as SMs."""
    expected = DeviceFacts(
        kind="cuda",
        name="NVIDIA H200",
        index=0,
        uuid="GPU-8f5c2a10-0000-4000-8000-000000000001",
        pci_bus_id="0000:19:00.0",
        pci_device_id="2335",
        pci_subsystem_id="18BE",
        compute_capability="9.0",
        driver="580.159.04",
        cuda_driver="13.0",
        ecc=True,
        sm_count=132,
        dram_bytes=150754820096,
        dram_free_bytes=150093430784,
        bus_bits=6016,
        memory_clock_hz=3201e6,
        max_clock_hz=1980e6,
        power_limit_w=700.0,
        power_default_w=700.0,
    )
    assert [expected] == facts_of(H200)


@pytest.mark.parametrize(
    ("query", "fields_left_empty", "what"),
    [
        ("device_id", {"pci_bus_id", "pci_device_id", "pci_subsystem_id"}, "PCI ids"),
        ("capability", {"compute_capability", "sm_count"}, "compute capability"),
        ("cores", {"sm_count"}, "SM count"),
        ("memory", {"dram_bytes", "dram_free_bytes"}, "memory"),
        ("bus_bits", {"bus_bits"}, "memory bus width"),
        ("power_limit", {"power_limit_w"}, "power limit"),
        ("power_default", {"power_default_w"}, "default power limit"),
        ("max_clocks", {"memory_clock_hz", "max_clock_hz"}, "maximum SM clock"),
        ("ecc", {"ecc"}, "ECC mode"),
    ],
)
def test_an_unsupported_query_is_absent_and_noted(
    query: str, fields_left_empty: set[str], what: str
) -> None:
    """What a card does not tell is None or empty, with a note that names it; the rest stands."""
    (whole,) = facts_of(H200)
    (less,) = facts_of({key: value for key, value in H200.items() if key != query})
    changed = {
        field.name
        for field in fields(DeviceFacts)
        if getattr(whole, field.name) != getattr(less, field.name)
    }
    assert fields_left_empty | {"notes"} == changed
    assert {None, ""} >= {getattr(less, name) for name in fields_left_empty}
    assert [what] == [note.partition(":")[0] for note in less.notes if note.startswith(f"{what}:")]


@pytest.mark.parametrize("query", ["bus_bits", "power_limit", "cores"])
def test_a_zero_from_the_driver_means_unknown(query: str) -> None:
    """NVML answers 0 for what it does not know; no fact is ever 0."""
    (facts,) = facts_of(H200 | {query: 0})
    assert 0 not in {facts.bus_bits, facts.power_limit_w, facts.sm_count}
    assert len(facts.notes) == 1


@pytest.mark.parametrize(
    ("capability", "cores", "sm_count"),
    [
        ((7, 0), 5120, 80),
        ((7, 5), 2560, 40),
        ((8, 0), 6912, 108),
        ((8, 6), 10752, 84),
        ((8, 9), 18176, 142),
        ((10, 0), 18944, 148),
        ((12, 0), 21760, 170),
        ((99, 0), 12800, None),
    ],
)
def test_sms_are_counted_from_cores_where_their_ratio_is_known(
    capability: tuple[int, int], cores: int, sm_count: int | None
) -> None:
    """V100, T4, A100, RTX A6000, L40S, B200 and RTX 5090; a design nobody knows stays unknown."""
    (facts,) = facts_of(H200 | {"capability": capability, "cores": cores})
    assert sm_count == facts.sm_count


def test_memory_of_an_old_driver_is_read_without_its_reserved_part() -> None:
    """A driver without the second version of the call still tells total and free."""
    (facts,) = facts_of(H200 | {"memory": {"total": 100, "free": 60}})
    assert (100, 60) == (facts.dram_bytes, facts.dram_free_bytes)


def test_a_mig_card_is_replaced_by_its_instances() -> None:
    """Each instance is a device with its own UUID, SMs and memory; the name is the card's."""
    second = instance(
        uuid="MIG-b",
        name="NVIDIA H200 MIG 3g.71gb",
        sm_count=60,
        gpu_instance=1,
        memory={"total": 5, "free": 4},
    )
    found = facts_of(H200 | {"mig": [1, 1], "instances": [instance(), second]})
    assert [
        (0, "NVIDIA H200", "1g.18gb", 16, 16384 * 2**20, "2335", "9.0"),
        (1, "NVIDIA H200", "3g.71gb", 60, 5, "2335", "9.0"),
    ] == [
        (
            facts.index,
            facts.name,
            facts.mig_profile,
            facts.sm_count,
            facts.dram_bytes,
            facts.pci_device_id,
            facts.compute_capability,
        )
        for facts in found
    ]


def test_a_lost_card_does_not_hide_the_others() -> None:
    """A card that fell off its bus is left out; the next one keeps working."""
    assert [SECOND["uuid"]] == [facts.uuid for facts in facts_of(H200 | {"lost": True}, SECOND)]


def test_a_card_without_a_uuid_goes_by_its_bus_id() -> None:
    """Orin answers no UUID: its PCI bus id serves, and its conditions can be asked for."""
    card = {key: value for key, value in H200.items() if key != "uuid"}
    with Nvml(binding=FakeNvml(card), environ={}) as nvml:
        (facts,) = nvml.devices()
        assert "0000:19:00.0" == facts.uuid
        assert 345e6 == conditions(nvml, facts.uuid).sm_hz


def test_devices_stand_in_pci_order() -> None:
    """CUDA under CUDA_DEVICE_ORDER=PCI_BUS_ID counts by bus id, whatever NVML's order is."""
    assert [H200["uuid"], SECOND["uuid"], THIRD["uuid"]] == [
        facts.uuid for facts in facts_of(THIRD, H200, SECOND)
    ]


def test_conditions_are_what_the_card_reads_now() -> None:
    """Clocks in Hz, power in W, and the event mask in words."""
    card = H200 | {
        "clocks": {1: 1425, 2: 3201},
        "power": 692_000,
        "temperature": 56,
        "events": 0x24,
    }
    with Nvml(binding=FakeNvml(card), environ={}) as nvml:
        found = conditions(nvml, card["uuid"])
    assert (
        Clocks(
            sm_hz=1425e6,
            memory_hz=3201e6,
            temperature_c=56.0,
            power_w=692.0,
            event_reasons=("software power cap", "software thermal"),
        )
        == found
    )


def test_conditions_of_a_silent_card_are_empty() -> None:
    """Nothing supported, nothing invented: every condition is None."""
    card = {"uuid": "GPU-x", "bus": "00000000:01:00.0"}
    with Nvml(binding=FakeNvml(card), environ={}) as nvml:
        assert Clocks() == conditions(nvml, "GPU-x")


def test_conditions_of_a_mig_instance_are_its_cards() -> None:
    """Clocks and heat belong to the card; CUDA's spelling of an instance's UUID is understood."""
    card = H200 | {"mig": [1, 1], "instances": [instance()]}
    with Nvml(binding=FakeNvml(card), environ={}) as nvml:
        for prefix in ("MIG", "GPU"):
            found = conditions(nvml, f"{prefix}-00000000-0000-4000-8000-00000000000a")
            assert (345e6, 80.25) == (found.sm_hz, found.power_w)


def test_event_reasons_come_from_the_older_call_where_the_newer_is_missing() -> None:
    """Drivers before 535 know the mask as throttle reasons."""
    card = {key: value for key, value in H200.items() if key != "events"} | {
        "throttle_reasons": 0x4
    }
    with Nvml(binding=FakeNvml(card), environ={}) as nvml:
        assert ("software power cap",) == conditions(nvml, card["uuid"]).event_reasons


def test_an_unknown_uuid_is_no_device() -> None:
    """Asking for a card that is not here names those that are."""
    with Nvml(binding=FakeNvml(H200), environ={}) as nvml, pytest.raises(NoDevice) as caught:
        conditions(nvml, "GPU-nobody")
    assert "no card with the UUID 'GPU-nobody' is here" == caught.value.message
    assert H200["uuid"] in caught.value.remedy


def test_a_session_opens_at_its_first_question_and_closes_once() -> None:
    """Without `with`, the first question opens the session; closing twice is harmless."""
    binding = FakeNvml(H200)
    nvml = Nvml(binding=binding, environ={})
    assert 0 == binding.open_count
    assert "580.159.04" == nvml.driver
    assert 1 == binding.open_count
    nvml.close()
    nvml.close()
    assert 0 == binding.open_count


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("NVML Shared Library Not Found", "install the NVIDIA driver"),
        ("Driver Not Loaded", "install the NVIDIA driver"),
        ("Driver/library version mismatch", "reboot"),
        ("Unknown Error", "start the container again"),
        ("Insufficient Permissions", "install the NVIDIA driver"),
    ],
)
def test_a_driver_that_cannot_be_asked_is_no_device_with_its_remedy(said: str, remedy: str) -> None:
    """NVML's refusal to start becomes NoDevice (exit 4), with the catalogue's remedy."""
    with pytest.raises(NoDevice) as caught, Nvml(binding=FakeNvml(init_error=said)):
        pass
    assert f"Failed to initialize NVML: {said}" == caught.value.message
    assert caught.value.remedy.startswith(remedy)


def test_health_of_a_sound_card() -> None:
    """Every state that decides about a measurement, from a card in good order."""
    with Nvml(binding=FakeNvml(H200 | {"processes": ["self", 4242]}), environ={}) as nvml:
        found = health(nvml, H200["uuid"])
    assert (
        Health(
            compute_mode="default",
            persistence=True,
            mig=False,
            mig_pending=False,
            ecc_pending=False,
            ecc_uncorrected_count=0,
            remap_pending=False,
            remap_failed=False,
            recovery_action="none",
            processes=(4242,),
            memory_reserved_bytes=660602880,
            slowdown_c=95.0,
            application_clock_hz=1980e6,
            max_clock_hz=1980e6,
        )
        == found
    )


def test_health_of_a_silent_card_is_unknown_and_noted() -> None:
    """Nothing supported: every state is None, and the notes name what was asked."""
    with Nvml(binding=FakeNvml({"uuid": "GPU-x"}), environ={}) as nvml:
        found = health(nvml, "GPU-x")
    assert Health(events_known=False, notes=found.notes) == found
    assert {"compute mode", "MIG mode", "row remapping", "recovery action", "ECC errors"} <= {
        note.partition(":")[0] for note in found.notes
    }


@given(st.integers(0, 2**16))
def test_every_set_bit_of_an_event_mask_has_one_word(bits: int) -> None:
    """No reason is dropped, known or not, and none appears twice."""
    words = reason_words(bits)
    assert bits.bit_count() == len(words) == len(set(words))


# -- CUDA_VISIBLE_DEVICES ------------------------------------------------------------------------

CARDS = [
    Card("GPU-bb", "0000:3b:00.0", "NVIDIA H200"),
    Card("GPU-aa11", "0000:19:00.0", "NVIDIA H200"),
    Card("GPU-aa22", "0000:5d:00.0", "NVIDIA H200"),
]
SLICED = [
    Card(
        "GPU-cc",
        "0000:19:00.0",
        "NVIDIA H200",
        mig=True,
        instances=(Instance("MIG-one", 7, 0), Instance("MIG-two", 8, 0)),
    )
]


@pytest.mark.parametrize(
    ("setting", "uuids"),
    [
        (None, ("GPU-aa11", "GPU-bb", "GPU-aa22")),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("0", ("GPU-aa11",)),
        ("2,1", ("GPU-aa22", "GPU-bb")),
        (" 1 , 0 ", ("GPU-bb", "GPU-aa11")),
        ("0,2,-1,1", ("GPU-aa11", "GPU-aa22")),
        ("0,7,1", ("GPU-aa11",)),
        ("1,1", ("GPU-bb",)),
        ("GPU-bb", ("GPU-bb",)),
        ("GPU-b", ("GPU-bb",)),
        ("GPU-aa", ()),
        ("GPU-aa2,GPU-bb", ("GPU-aa22", "GPU-bb")),
        ("9" * 5000, ()),
        ("²", ()),
    ],
)
def test_visible_cards_follow_cudas_rules(setting: str | None, uuids: tuple[str, ...]) -> None:
    """Indices count in PCI order, a UUID may be cut short, the first bad entry ends the list."""
    environ = {} if setting is None else {"CUDA_VISIBLE_DEVICES": setting}
    assert uuids == visible(CARDS, environ).uuids


@pytest.mark.parametrize(
    ("setting", "uuids"),
    [
        (None, ("MIG-one", "MIG-two")),
        ("0", ("MIG-one", "MIG-two")),
        ("GPU-cc", ("MIG-one", "MIG-two")),
        ("MIG-two", ("MIG-two",)),
        ("MIG-", ()),
        ("MIG-GPU-cc/8/0", ("MIG-two",)),
        ("MIG-GPU-cc/9/0", ()),
    ],
)
def test_mig_instances_go_by_uuid_or_by_numbers(
    setting: str | None, uuids: tuple[str, ...]
) -> None:
    """Both notations of a MIG instance are understood; the whole card stands for all of them."""
    environ = {} if setting is None else {"CUDA_VISIBLE_DEVICES": setting}
    assert uuids == visible(SLICED, environ).uuids


def test_cards_of_several_models_are_numbered_with_a_warning() -> None:
    """CUDA's default order is by speed, which NVML cannot know: a note says so."""
    mixed = [*CARDS, Card("GPU-dd", "0000:01:00.0", "NVIDIA L4")]
    assert "GPU-dd" == visible(mixed, {}).uuids[0]
    assert 1 == len(visible(mixed, {}).notes)
    assert () == visible(mixed, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).notes
    assert () == visible(CARDS, {}).notes


@given(st.text(max_size=40))
def test_any_setting_yields_known_cards_once_each(setting: str) -> None:
    """Whatever CUDA_VISIBLE_DEVICES holds, nothing is invented, repeated or raised."""
    found = visible([*CARDS, *SLICED], {"CUDA_VISIBLE_DEVICES": setting}).uuids
    assert {uuid for card in (*CARDS, *SLICED) for uuid in card.usable} >= set(found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000:3b:00.0", "0000:3b:00.0"),
        ("3B:00.0", "0000:3b:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
    ],
)
def test_bus_ids_of_both_sides_become_equal(text: str, expected: str) -> None:
    """NVML writes eight digits of domain, CUDA four, people none."""
    assert expected == normal_pci_bus_id(text)
