"""Which card a device is: fixtures are the few facts that real devices report."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solkit.bound import hard_roof, spec_roof
from solkit.errors import NoDevice
from solkit.gpu import DeviceFacts
from solkit.plan.match import match
from solkit.plan.specs import load_specs

SPECS = load_specs()
MIB = 1024 * 1024


def device(name: str, pci: str, sms: int | None, mib: int | None, **more: Any) -> DeviceFacts:
    """Return the facts of one CUDA device; `pci` as nvidia-smi prints it."""
    facts = DeviceFacts(
        kind="cuda",
        name=name,
        pci_device_id=f"{pci}10DE" if pci else "",
        sm_count=sms,
        dram_bytes=mib * MIB if mib else None,
    )
    return replace(facts, **more)


# An H200, driver 580.159.04, by NVML and CUDA.
H200 = device(
    "NVIDIA H200", "2335", 132, 143771, compute_capability="9.0", ecc=True, bus_bits=6016,
    memory_clock_hz=3201e6, max_clock_hz=1980e6, l2_bytes=62914560, power_limit_w=700.0,
    power_default_w=700.0, pci_subsystem_id="18BE10DE",
)  # fmt: skip


def test_an_h200_is_the_h200_and_nothing_is_left_to_say() -> None:
    """All four agree, and every device value is the file's."""
    found = match(H200, SPECS)
    assert found.gpu.id == "h200_sxm"
    assert found.notes == ()
    assert found.gpu.dram_bytes_per_s == 4.8e12
    assert spec_roof(found.gpu) == spec_roof(SPECS["h200_sxm"])


def test_cudas_smaller_memory_is_still_the_same_card() -> None:
    """CUDA reports 0.43 % less than NVML."""
    found = match(replace(H200, dram_bytes=150109880320), SPECS)
    assert found.gpu.id == "h200_sxm"
    assert found.gpu.dram_bytes == 150109880320


@pytest.mark.parametrize(
    ("facts", "card"),
    [
        (device("NVIDIA H100 80GB HBM3", "2330", 132, 81559), "h100_sxm"),
        (device("NVIDIA H100 PCIe", "2331", 114, 81559), "h100_pcie"),
        (device("NVIDIA H100 NVL", "2321", 132, 95830), "h100_nvl"),
        (device("NVIDIA H200 NVL", "233B", 132, 143771), "h200_nvl"),
        (device("NVIDIA L4", "27B8", 58, 23034), "l4"),
        (device("NVIDIA L40S", "26B9", 142, 46068), "l40s"),
        (device("NVIDIA A10", "2236", 72, 23028), "a10"),
        (device("Tesla T4", "1EB8", 40, 15360), "t4"),
        (device("NVIDIA H20", "2329", 78, 97871), "h20"),
        (device("NVIDIA B200", "2901", 148, 183359), "b200"),
        (device("NVIDIA GB200", "2941", 152, 189471), "gb200"),
        (device("Tesla V100-SXM2-16GB", "1DB1", 80, 16160), "v100_sxm2_16gb"),
    ],
)
def test_each_board_is_told_from_its_namesakes(facts: DeviceFacts, card: str) -> None:
    """SXM, PCIe and NVL share a chip, and L4, L40S, H20 and H200 share letters."""
    assert card == match(facts, SPECS).gpu.id


@pytest.mark.parametrize(
    ("name", "subsystem"),
    [("NVIDIA GH200 480GB", "180910DE"), ("NVIDIA GH200 120GB", "16EB10DE"),
     ("NVIDIA GH200 120GB", "180510DE")],
)  # fmt: skip
def test_gh200_is_told_by_its_subsystem(name: str, subsystem: str) -> None:
    """The names give the CPU's memory; the GPU has 96 GB in each, and CUDA shows 1 % less."""
    facts = device(name, "2342", 132, 96768, pci_subsystem_id=subsystem)
    assert match(facts, SPECS).gpu.id == "gh200_96gb"


@pytest.mark.parametrize(
    "facts",
    [
        replace(H200, sm_count=114),
        replace(H200, dram_bytes=81559 * MIB),
        replace(H200, name="NVIDIA H100 80GB HBM3"),
        replace(H200, pci_device_id="233010DE"),
        replace(H200, pci_device_id="FFFF10DE"),
    ],
)
def test_a_contradiction_is_an_error_that_prints_all_four(facts: DeviceFacts) -> None:
    """PCI id, SMs, memory and name: one that differs makes it another board."""
    with pytest.raises(NoDevice) as caught:
        match(facts, SPECS)
    for word in ("PCI id", "SMs", "memory", "name"):
        assert word in caught.value.message
    assert facts.name in caught.value.message
    assert "add-a-gpu" in caught.value.remedy


def test_the_96_gb_card_called_h100_is_no_h100_sxm() -> None:
    """`NVIDIA H100` (2339) has 2.4 TB/s of HBM2e: derived, never the HBM3 card's row."""
    facts = device(
        "NVIDIA H100", "2339", 132, 97871, compute_capability="9.0", bus_bits=6144,
        memory_clock_hz=1593e6, max_clock_hz=1980e6,
    )  # fmt: skip
    found = match(facts, SPECS)
    assert found.gpu.vendor == "derived"
    assert found.gpu.dram_bytes_per_s == pytest.approx(2.447e12, rel=1e-3)


def test_an_a10g_is_not_an_a10() -> None:
    """It has 80 SMs and its own PCI id; what the driver says is all that is used."""
    facts = device(
        "NVIDIA A10G", "2237", 80, 23028, compute_capability="8.6", bus_bits=384,
        memory_clock_hz=6251e6, max_clock_hz=1710e6, driver="580.159.04",
    )  # fmt: skip
    found = match(facts, SPECS, accessed=date(2026, 12, 1))
    gpu = found.gpu
    assert (gpu.id, gpu.vendor) == ("a10g", "derived")
    assert gpu.dram_bytes_per_s == pytest.approx(600.1e9, rel=1e-4)
    assert {"fp32", "sfu"} == set(gpu.pipes)
    assert gpu.pipes["fp32"].flop_per_s == 80 * 256 * 1710e6
    assert gpu.sources["pipes.fp32"].accessed == date(2026, 12, 1)
    assert gpu.sources["pipes.fp32"].mark == "derived"
    assert "580.159.04" in gpu.sources["pipes.fp32"].title
    assert "fp8_tensor" in gpu.absent_pipes
    assert "docs/add-a-gpu.md" in found.notes[0]
    assert "solkit gpus lint" in found.notes[0]
    assert any(note.startswith("L2") for note in found.notes)


def test_a_derived_card_takes_the_drivers_l2_where_it_is_told() -> None:
    """With the L2 known, nothing is assumed."""
    facts = device(
        "NVIDIA RTX PRO 6000 Blackwell Server Edition", "2BB5", 188, 97250,
        compute_capability="12.0", bus_bits=512, memory_clock_hz=12481e6, max_clock_hz=2430e6,
        l2_bytes=134217728,
    )  # fmt: skip
    found = match(facts, SPECS)
    assert found.gpu.l2_bytes == 134217728
    assert len(found.notes) == 1


def test_a_derived_card_of_an_unknown_capability_has_bandwidth_only() -> None:
    """No rate is borrowed from the nearest capability."""
    facts = device(
        "NVIDIA Graphics Device", "3FFF", 200, 294912, compute_capability="13.0", bus_bits=8192,
        memory_clock_hz=5000e6, max_clock_hz=2200e6,
    )  # fmt: skip
    found = match(facts, SPECS)
    assert found.gpu.pipes == {}
    assert any("13.0" in note for note in found.notes)
    assert hard_roof(found.gpu).dram_bytes_per_s == pytest.approx(10.24e12)


@pytest.mark.parametrize("missing", ["bus_bits", "memory_clock_hz", "sm_count", "max_clock_hz"])
def test_a_card_that_cannot_be_derived_is_no_device(missing: str) -> None:
    """Without a bandwidth, SMs or a clock there is no roof, and the remedy is a file."""
    facts = device(
        "NVIDIA A10G", "2237", 80, 23028, compute_capability="8.6", bus_bits=384,
        memory_clock_hz=6251e6, max_clock_hz=1710e6,
    )  # fmt: skip
    with pytest.raises(NoDevice) as caught:
        match(replace(facts, **{missing: None}), SPECS)
    assert "NVIDIA A10G" in caught.value.message
    assert "docs/add-a-gpu.md" in caught.value.remedy


@pytest.mark.parametrize("name", ["NVIDIA H200X-2-35C", "GRID H200-141C"])
def test_a_vgpu_never_gets_the_whole_cards_peaks(name: str) -> None:
    """It shares the card's PCI id, so the name decides."""
    found = match(replace(H200, name=name, dram_bytes=35 * 1024 * MIB), SPECS)
    assert found.gpu.vendor == "derived"
    assert "bf16_tensor" not in found.gpu.pipes
    assert "vGPU" in found.notes[0]


def test_a_cpu_has_no_spec_file() -> None:
    """Its roof is measured."""
    with pytest.raises(NoDevice, match="CPU"):
        match(DeviceFacts(kind="cpu", name="EPYC"), SPECS)


def test_a_mig_slice_has_its_sms_and_its_share_of_memory() -> None:
    """3g.71gb of an H200: 60 of 132 SMs and half of the bandwidth; the id stays."""
    found = match(replace(H200, mig_profile="3g.71gb"), SPECS)
    gpu = found.gpu
    assert gpu.id == "h200_sxm"
    assert gpu.sm_count == 60
    assert gpu.dram_bytes == 71424 * MIB
    assert gpu.dram_bytes_per_s == 2.4e12
    assert gpu.dram_pin_bytes_per_s == pytest.approx(2.407e12, rel=1e-3)
    assert gpu.l2_bytes == 31457280
    assert gpu.pipes["bf16_tensor"].flop_per_s == pytest.approx(989.4e12 * 60 / 132)
    assert gpu.mig == {}
    assert "60 of 132 SMs" in found.notes[0]


@pytest.mark.parametrize(
    ("profile", "sms", "fraction"),
    [("1g.18gb", 16, 1 / 8), ("1g.18gb+me", 16, 1 / 8), ("1g.35gb", 26, 2 / 8),
     ("2g.35gb", 32, 2 / 8), ("4g.71gb", 64, 4 / 8), ("7g.141gb", 132, 1.0),
     ("1c.3g.71gb", 16, 4 / 8), ("2c.3g.71gb", 32, 4 / 8), ("MIG 2g.35gb", 32, 2 / 8),
     ("3g.71gb+me.all", 60, 4 / 8), ("1g.18gb-me", 16, 1 / 8)],
)  # fmt: skip
def test_slices_follow_the_table_not_sevenths(profile: str, sms: int, fraction: float) -> None:
    """SMs from the table, bandwidth in eighths; compute instances share the slice's memory."""
    gpu = match(replace(H200, mig_profile=profile), SPECS).gpu
    assert sms == gpu.sm_count
    assert gpu.dram_bytes_per_s == pytest.approx(4.8e12 * fraction)


def test_inside_a_slice_cudas_sm_count_wins() -> None:
    """A compute instance of 16 SMs in the 60-SM slice keeps the slice's bandwidth."""
    facts = replace(H200, name="NVIDIA H200 MIG 1c.3g.71gb", mig_profile="1c.3g.71gb", sm_count=18)
    gpu = match(facts, SPECS).gpu
    assert gpu.sm_count == 18
    assert gpu.dram_bytes_per_s == 2.4e12


def test_an_unlisted_slice_is_taken_from_the_device_or_refused() -> None:
    """SMs by CUDA and memory by eighths; with neither, no guess."""
    told = replace(H200, mig_profile="5g.100gb", sm_count=80, dram_bytes=100_000 * MIB)
    gpu = match(told, SPECS).gpu
    assert gpu.sm_count == 80
    assert gpu.dram_bytes_per_s == pytest.approx(4.8e12 * 6 / 8)
    with pytest.raises(NoDevice, match=r"no MIG profile '5g\.100gb'"):
        match(replace(H200, mig_profile="5g.100gb"), SPECS)


def test_a_slice_has_the_memory_that_its_own_handle_reports() -> None:
    """The instance's own figure wins over the table; the parent's is not the slice's."""
    own = match(replace(H200, mig_profile="1g.18gb", dram_bytes=16_000 * MIB), SPECS).gpu
    assert own.dram_bytes == 16_000 * MIB
    parent = match(replace(H200, mig_profile="1g.18gb"), SPECS).gpu
    assert parent.dram_bytes == 16384 * MIB


def test_a_compute_instance_of_a_card_without_1g_slices_is_refused() -> None:
    """Nothing says how many SMs a compute slice has there, so nothing is guessed."""
    specs = SPECS | {
        "h200_sxm": replace(SPECS["h200_sxm"], mig={"3g.71gb": SPECS["h200_sxm"].mig["3g.71gb"]})
    }
    with pytest.raises(NoDevice):
        match(replace(H200, mig_profile="1c.3g.71gb"), specs)


NAMES = st.one_of(
    st.text(max_size=30),
    st.sampled_from([gpu.name for gpu in SPECS.values()]),
    st.sampled_from(["GRID T4-16Q", "NVIDIA Graphics Device"]),
)
PCI = st.one_of(
    st.text(max_size=10),
    st.sampled_from([f"{pci[:4]}10DE" for gpu in SPECS.values() for pci in gpu.pci_ids]),
)
COUNTS = st.one_of(st.none(), st.integers(1, 10**13))
HZ = st.one_of(st.none(), st.floats(1e6, 1e11))
FACTS = st.builds(
    DeviceFacts,
    kind=st.just("cuda"),
    name=NAMES,
    pci_device_id=PCI,
    sm_count=COUNTS,
    dram_bytes=COUNTS,
    bus_bits=COUNTS,
    memory_clock_hz=HZ,
    max_clock_hz=HZ,
    mig_profile=st.one_of(
        st.just(""), st.text(max_size=12), st.sampled_from(["1g.18gb", "1c.3g.71gb"])
    ),
    compute_capability=st.sampled_from(["", "7.5", "9.0", "99.9"]),
)


@settings(max_examples=500, deadline=None)
@given(facts=FACTS)
def test_any_facts_give_a_card_or_no_device(facts: DeviceFacts) -> None:
    """Whatever a driver says, the answer is a card with a bandwidth, or words and a remedy."""
    try:
        gpu = match(facts, SPECS).gpu
    except NoDevice as error:
        remedy = error.remedy
    else:
        remedy = "none needed"
        assert gpu.dram_bytes_per_s > 0
        assert gpu.sm_count > 0
        assert all(pipe.flop_per_s > 0 for pipe in gpu.pipes.values())
    assert remedy


def test_a_power_limit_below_the_default_is_told() -> None:
    """A capped card is slower for a reason that the report should name."""
    found = match(replace(H200, power_limit_w=450.0), SPECS)
    assert found.gpu.id == "h200_sxm"
    assert len(found.notes) == 1
    assert "450 W, below the default 700 W" in found.notes[0]


def test_ecc_off_on_gddr_is_the_same_card_with_more_memory() -> None:
    """An L40S with ECC off shows 1/16 more memory, and the note says why."""
    facts = device("NVIDIA L40S", "26B9", 142, 49140, ecc=False)
    found = match(facts, SPECS)
    assert found.gpu.id == "l40s"
    assert any("ECC is off" in note for note in found.notes)


def test_device_values_win_and_are_told_beyond_two_percent() -> None:
    """An early driver's 8192 bits on a B200, another clock: used, and said."""
    facts = device(
        "NVIDIA B200", "2901", 148, 183359, ecc=True, bus_bits=8192, memory_clock_hz=3996e6,
        max_clock_hz=1890e6, power_default_w=1000.0,
    )  # fmt: skip
    found = match(facts, SPECS)
    assert found.gpu.dram_pin_bytes_per_s == pytest.approx(8.184e12, rel=1e-3)
    assert found.gpu.max_clock_hz == 1890e6
    assert [note.split(":")[0] for note in found.notes] == ["bus width", "highest SM clock"]
    assert "8192 bits" in found.notes[0]


def test_a_difference_within_two_percent_is_used_silently() -> None:
    """A memory clock 0.5 % lower lowers the pin rate, and nobody needs to hear of it."""
    found = match(replace(H200, memory_clock_hz=3185e6), SPECS)
    assert found.notes == ()
    assert found.gpu.dram_bytes_per_s == pytest.approx(2 * 3185e6 * 6016 / 8)


def test_shared_memory_is_not_compared() -> None:
    """A GB10 reports no memory of its own; SMs, PCI id and name decide."""
    facts = device("NVIDIA GB10", "2E12", 48, None)
    assert match(facts, SPECS).gpu.id == "gb10"


def test_jetson_is_found_by_name_and_sm_count() -> None:
    """Without a PCI id the name decides, and an Orin with 8 SMs is another module."""
    agx = device("Orin (nvgpu)", "", 16, 62841)
    nano = device("Orin (nvgpu)", "", 8, 7618)
    assert match(agx, SPECS).gpu.id == "jetson_agx_orin_64gb"
    with pytest.raises(NoDevice, match="has no spec file"):
        match(nano, SPECS)
    with pytest.raises(NoDevice, match="may be jetson_agx_orin_64gb"):
        match(replace(agx, sm_count=None), SPECS)
