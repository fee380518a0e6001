"""The lint: every shipped card is clean, and each mistake known from print is caught by its rule.

A test plants one mistake into a good card and expects exactly the rule made for it, so that a
finding says what went wrong and not merely that something did.
"""

import re
from dataclasses import replace
from datetime import date

import pytest

from solkit.gpu import Gpu, Link, Pipe, Source
from solkit.plan.devices import DRIVER_NAMES, is_vgpu, pci_id
from solkit.plan.finding import Finding
from solkit.plan.links import expected
from solkit.plan.lint import lint
from solkit.plan.rates import ABSENT, RATES
from solkit.plan.specs import load_specs, parse_spec
from solkit.resources import folder

SPECS = load_specs()


def with_pipe(gpu: Gpu, name: str, **changes: object) -> Gpu:
    """Return a card with one pipe changed."""
    return replace(gpu, pipes=gpu.pipes | {name: replace(gpu.pipes[name], **changes)})


def findings(gpu: Gpu) -> list[Finding]:
    """Return what the lint says of all cards with this one in place of the shipped one."""
    return lint(SPECS | {gpu.id: gpu})


def rules(gpu: Gpu) -> set[str]:
    """Return the rules that a planted card breaks."""
    found = findings(gpu)
    assert all(item.message and item.remedy and item.where for item in found)
    return {item.rule for item in found if item.gpu == gpu.id}


def test_every_shipped_card_is_clean() -> None:
    """No finding at all: the files hold to every rule."""
    assert [] == lint(SPECS)


def test_every_peak_is_its_product_within_two_percent_or_says_why() -> None:
    """SMs x rate x clock, recomputed here and not by the lint."""
    for gpu in SPECS.values():
        for name, pipe in gpu.pipes.items():
            product = gpu.sm_count * pipe.flop_per_clock_per_sm * pipe.clock_hz
            off = abs(pipe.flop_per_s / product - 1)
            assert off <= 0.02 or (pipe.reason and off <= 0.15), (gpu.id, name, off)


@pytest.mark.parametrize(
    ("card", "name", "printed"),
    [("h100_sxm", "bf16_tensor", 1979e12), ("h200_sxm", "fp8_tensor", 3958e12),
     ("l4", "bf16_tensor", 242e12), ("l40s", "fp8_tensor", 1466e12),
     ("b200", "bf16_tensor", 4.5e15), ("rtx_5090", "fp4_tensor", 3352e12),
     ("jetson_agx_orin_64gb", "int8_tensor", 170e12), ("jetson_thor", "fp4_tensor", 2070e12),
     ("gb10", "fp4_tensor", 1000e12)],
)  # fmt: skip
def test_a_sparse_figure_as_dense_is_caught(card: str, name: str, printed: float) -> None:
    """The sheet's headline with sparsity is twice what dense work can do."""
    planted = with_pipe(SPECS[card], name, flop_per_s=printed, sparse_flop_per_s=None)
    assert {"sparse-as-dense"} == rules(planted)


def test_a_reason_does_not_excuse_a_sparse_figure() -> None:
    """Beyond 15 % no words help: it is another number."""
    planted = with_pipe(
        SPECS["h100_sxm"],
        "bf16_tensor",
        flop_per_s=1979e12,
        sparse_flop_per_s=None,
        reason="this is what the data sheet prints in bold",
    )
    assert {"sparse-as-dense"} == rules(planted)


@pytest.mark.parametrize(
    ("card", "name", "value"),
    [("l40s", "bf16_tensor", 181e12), ("a40", "fp16_tensor", 74.85e12),
     ("a100_sxm4_80gb", "bf16_tensor", 156e12), ("rtx_6000_ada", "fp8_tensor", 364.25e12)],
)  # fmt: skip
def test_a_dense_figure_halved_again_is_caught(card: str, name: str, value: float) -> None:
    """The L40S and A40 sheets print dense figures first: halving them is wrong."""
    planted = with_pipe(SPECS[card], name, flop_per_s=value, sparse_flop_per_s=None)
    assert {"halved-twice"} == rules(planted)


@pytest.mark.parametrize(
    ("card", "tf32"), [("a100_sxm4_80gb", 156e12), ("h200_sxm", 494.7e12), ("b200", 1125e12)]
)
def test_a_tf32_figure_as_fp32_is_caught(card: str, tf32: float) -> None:
    """No card does more fp32 than SMs x 256 x its highest clock."""
    assert {"tf32-as-fp32"} == rules(with_pipe(SPECS[card], "fp32", flop_per_s=tf32))


def test_multiply_adds_counted_as_one_are_caught() -> None:
    """A fused multiply-add is two FLOP, in the rate and in the peak."""
    h100 = SPECS["h100_sxm"]
    rate_only = with_pipe(h100, "bf16_tensor", flop_per_clock_per_sm=2048)
    both = with_pipe(h100, "fp32", flop_per_clock_per_sm=128, flop_per_s=33.45e12)
    assert {"mac-as-flop"} == rules(rate_only)
    assert {"mac-as-flop"} == rules(both)


@pytest.mark.parametrize(
    ("card", "name"),
    [("rtx_4090", "bf16_tensor"), ("rtx_4090", "fp8_tensor"), ("rtx_3090", "tf32_tensor"),
     ("rtx_5090", "fp16_tensor")],
)  # fmt: skip
def test_the_professional_rate_on_geforce_is_caught(card: str, name: str) -> None:
    """GeForce halves fp32 accumulation; the fp16-accumulate figure fits the doubled rate."""
    pipe = SPECS[card].pipes[name]
    planted = with_pipe(
        SPECS[card],
        name,
        flop_per_s=2 * pipe.flop_per_s,
        flop_per_clock_per_sm=2 * pipe.flop_per_clock_per_sm,
        sparse_flop_per_s=None,
    )
    assert {"geforce-half-rate"} == rules(planted)


def test_a_fp16_accumulate_figure_is_caught_by_its_accumulate_type() -> None:
    """The pipe means fp32 accumulation."""
    assert {"accumulate"} == rules(with_pipe(SPECS["a10"], "fp16_tensor", accumulate="fp16"))


@pytest.mark.parametrize(
    ("card", "name", "rate"),
    [("h100_sxm", "bf16_tensor", 512.0), ("rtx_5090", "fp64", 128.0), ("b200", "fp32", 592.0),
     ("b300", "int8_tensor", 16384.0), ("b200", "fp16", 512.0), ("a30", "sfu", 32.0)],
)  # fmt: skip
def test_a_neighbours_rate_is_caught(card: str, name: str, rate: float) -> None:
    """The rate comes from this chip's row, whatever peak it is made to fit."""
    pipe = SPECS[card].pipes[name]
    peak = SPECS[card].sm_count * rate * pipe.clock_hz
    planted = with_pipe(SPECS[card], name, flop_per_clock_per_sm=rate, flop_per_s=peak, reason="")
    found = rules(planted)
    assert found & {"rate", "mac-as-flop"}
    assert found <= {"rate", "mac-as-flop", "magnitude"}


def test_a_rate_that_nobody_knows_needs_a_reason() -> None:
    """The GB10's 16-bit tensor rate is unknown: a file that gives one must say where from."""
    pipe = Pipe(flop_per_s=125e12, flop_per_clock_per_sm=1024, clock_hz=2.543e9, accumulate="fp32")
    gb10 = SPECS["gb10"]
    source = gb10.sources["pipes.fp4_tensor"]
    planted = replace(
        gb10,
        pipes=gb10.pipes | {"bf16_tensor": pipe},
        sources=gb10.sources | {"pipes.bf16_tensor": source},
    )
    told = with_pipe(planted, "bf16_tensor", reason="measured with cuBLAS on two boards")
    assert {"rate-unknown"} == rules(planted)
    assert set() == rules(told)


def test_a_peak_off_by_more_than_two_percent_needs_a_reason() -> None:
    """3 % off: refused without words, accepted with them; 20 % off: never."""
    a10 = SPECS["a10"]
    near = with_pipe(a10, "bf16_tensor", flop_per_s=129e12)
    far = with_pipe(a10, "bf16_tensor", flop_per_s=150e12)
    said = "the sheet rounds generously here"
    assert {"product"} == rules(near)
    assert set() == rules(with_pipe(near, "bf16_tensor", reason=said))
    assert {"product"} == rules(with_pipe(near, "bf16_tensor", reason="ok"))
    assert {"product"} == rules(with_pipe(far, "bf16_tensor", reason=said))


@pytest.mark.parametrize("card", ["h100_sxm", "h200_sxm", "h100_pcie", "b200", "b300", "gb200"])
def test_the_boost_clock_behind_a_tensor_peak_is_caught(card: str) -> None:
    """Hopper and Blackwell quote tensor peaks below the clock they boost to: 1830, not 1980."""
    gpu = SPECS[card]
    pipe = gpu.pipes["bf16_tensor"]
    peak = gpu.sm_count * pipe.flop_per_clock_per_sm * gpu.max_clock_hz
    only_clock = with_pipe(gpu, "bf16_tensor", clock_hz=gpu.max_clock_hz)
    clock_and_peak = with_pipe(only_clock, "bf16_tensor", flop_per_s=peak)
    assert pipe.clock_hz < 0.99 * gpu.max_clock_hz
    assert {"tensor-clock"} == rules(only_clock)
    assert {"tensor-clock"} == rules(clock_and_peak)


def test_a_clock_outside_the_cards_range_is_caught() -> None:
    """No peak is quoted at 2.2 GHz on a card that boosts to 1.98, nor below its base clock."""
    for card, clock_hz in (("h100_sxm", 2.2e9), ("a10", 0.8e9)):
        assert {"clock-range"} == rules(with_pipe(SPECS[card], "fp32", clock_hz=clock_hz)), card


def test_a_clock_solved_from_a_wrong_peak_is_caught() -> None:
    """Solving the clock makes the product empty, so the clock itself must be believable."""
    gpu = SPECS["h200_sxm"]
    solved = 989.4e12 * 0.8 / (132 * 4096)
    planted = with_pipe(
        gpu, "bf16_tensor", flop_per_s=0.8 * 989.4e12, clock_hz=solved, sparse_flop_per_s=None
    )
    assert {"derived-clock"} == rules(planted)


@pytest.mark.parametrize(("count", "factor"), [(8, 8.0), (8, 1 / 8), (2, 2.0), (72, 72.0)])
def test_a_table_for_many_gpus_is_divided_once(count: int, factor: float) -> None:
    """HGX prints eight, NVL72 seventy-two, the H100 NVL's launch two."""
    pipe = SPECS["b200"].pipes["bf16_tensor"]
    planted = with_pipe(
        SPECS["b200"],
        "bf16_tensor",
        flop_per_s=factor * pipe.flop_per_s,
        source_gpu_count=count,
        sparse_flop_per_s=None,
    )
    found = findings(planted)
    expected_rule = "magnitude" if factor * pipe.flop_per_s > 1e17 else "per-gpu"
    assert {expected_rule} == {item.rule for item in found}


def test_sparse_beside_dense_is_at_most_twice_it() -> None:
    """A B300's FP4 with sparsity is 1.33 x dense, never 4 x, and never less than dense."""
    b300 = SPECS["b300"]
    assert b300.pipes["fp4_tensor"].sparse_flop_per_s == 18e15
    for sparse in (54e15, 9e15):
        planted = with_pipe(b300, "fp4_tensor", sparse_flop_per_s=sparse)
        assert {"sparse-ratio"} == rules(planted)


@pytest.mark.parametrize(
    ("card", "name"),
    [("a100_sxm4_80gb", "fp8_tensor"), ("v100_sxm2_32gb", "int8_tensor"), ("t4", "bf16_tensor"),
     ("h200_sxm", "fp4_tensor"), ("l4", "fp64_tensor")],
)  # fmt: skip
def test_a_unit_that_the_chip_lacks_is_caught(card: str, name: str) -> None:
    """No fp8 on A100, no int8 tensor on V100, no bf16 on 7.x, no FP4 on Hopper."""
    gpu = SPECS[card]
    pipe = gpu.pipes["fp16_tensor"]
    planted = replace(
        gpu,
        pipes=gpu.pipes | {name: pipe},
        sources=gpu.sources | {f"pipes.{name}": gpu.sources["pipes.fp16_tensor"]},
    )
    assert {"absent-pipe"} == rules(planted)


def test_absent_units_are_listed_and_no_others() -> None:
    """What the chip lacks is named, so that a plan can say why a case is skipped."""
    a100 = SPECS["a100_sxm4_80gb"]
    assert {"absent-pipe"} == rules(replace(a100, absent_pipes=()))
    assert {"absent-pipe"} == rules(replace(a100, absent_pipes=(*a100.absent_pipes, "bf16_tensor")))


@pytest.mark.parametrize(
    ("card", "other"),
    [("a100_sxm4_80gb", "a100_sxm4_40gb"), ("h100_sxm", "h100_pcie"), ("h200_sxm", "h100_sxm")],
)
def test_another_boards_bandwidth_is_caught(card: str, other: str) -> None:
    """PCIe numbers on an SXM card: the sheet no longer fits the pins."""
    published = SPECS[other].dram_published_bytes_per_s
    planted = replace(SPECS[card], dram_published_bytes_per_s=published)
    assert {"sheet-pin"} == rules(planted)


def test_pcie_numbers_through_and_through_are_caught_by_the_pci_id() -> None:
    """A file of the SXM card with the PCIe card's memory and SMs contradicts the real device."""
    pcie = SPECS["h100_pcie"]
    planted = replace(
        pcie,
        id="h100_sxm",
        name="NVIDIA H100 80GB HBM3",
        aliases=SPECS["h100_sxm"].aliases,
        pci_ids=("2330",),
        family_default=True,
    )
    found = {(item.rule, item.where) for item in findings(planted) if item.gpu == "h100_sxm"}
    assert ("as-read", "sm_count") in found
    assert ("as-read", "memory_clock_hz") in found


def test_an_id_and_a_name_of_different_boards_are_caught() -> None:
    """`h100_sxm` is not called `NVIDIA H100 PCIe`."""
    h100 = SPECS["h100_sxm"]
    planted = replace(h100, name="NVIDIA H100 PCIe", aliases=(), pci_ids=())
    assert "form-factor" in rules(planted)
    wrong_id = replace(h100, pci_ids=("2331",))
    assert {"name-and-id", "as-read", "ambiguous-name"} >= rules(wrong_id)
    assert "name-and-id" in rules(wrong_id)


def test_a_bus_width_of_the_full_card_is_caught_for_the_h200() -> None:
    """6144 bits would be 4917 GB/s against 4800 on the sheet; the device reads 6016."""
    h200 = SPECS["h200_sxm"]
    planted = replace(h200, bus_bits=6144, dram_pin_bytes_per_s=2 * 3.201e9 * 6144 / 8)
    assert {"sheet-pin", "as-read"} == rules(planted)


def test_a_memory_clock_doubled_twice_is_caught() -> None:
    """NVML's clock is half the data rate: the factor is 2, once."""
    h100 = SPECS["h100_sxm"]
    pin = h100.dram_pin_bytes_per_s
    assert pin is not None
    assert {"pin-rate"} == rules(replace(h100, dram_pin_bytes_per_s=2 * pin))
    assert {"sheet-pin"} == rules(replace(h100, dram_published_bytes_per_s=4893.7e9))


def test_a_sheet_above_its_pins_needs_a_reason() -> None:
    """B200: 8 TB/s on 7680 bits stands only because the file says so, and by 6 % at most."""
    b200 = SPECS["b200"]
    assert "dram_published_bytes_per_s" in b200.reasons
    silent = {key: value for key, value in b200.reasons.items() if key.startswith("same_as")}
    assert {"sheet-pin"} == rules(replace(b200, reasons=silent))
    assert {"sheet-pin"} == rules(replace(b200, dram_published_bytes_per_s=8.4e12))


@pytest.mark.parametrize(
    ("card", "field", "value"),
    [("rtx_5090", "dram_published_bytes_per_s", 1.792e15), ("h200_sxm", "power_w", 0.7),
     ("h200_sxm", "dram_published_bytes_per_s", 4.8e9), ("l4", "max_clock_hz", 2040.0),
     ("a40", "dram_bytes", 48), ("a40", "l2_bytes", 6), ("a40", "memory_clock_hz", 7251.0)],
)  # fmt: skip
def test_a_value_a_thousand_times_off_is_caught(card: str, field: str, value: float) -> None:
    """TB for GB, MHz for Hz, kW for W."""
    found = rules(replace(SPECS[card], **{field: value}))
    assert "magnitude" in found


def test_tflop_for_flop_is_caught() -> None:
    """989.4 is no number of FLOP/s."""
    assert {"magnitude"} == rules(
        with_pipe(SPECS["h100_sxm"], "bf16_tensor", flop_per_s=989.4, sparse_flop_per_s=None)
    )


@pytest.mark.parametrize(("card", "label"), [("a100_sxm4_80gb", 80e9), ("h200_nvl", 141e9)])
def test_a_capacity_label_in_powers_of_ten_is_caught(card: str, label: float) -> None:
    """Memory is whole MiB as the device reports it, never 80e9."""
    assert {"gb-or-gib"} == rules(replace(SPECS[card], dram_bytes=int(label)))


def test_a_binary_label_for_the_h200_is_caught_by_the_device() -> None:
    """141 GiB is a whole number of MiB, but the device reports 143771."""
    assert {"as-read"} == rules(replace(SPECS["h200_sxm"], dram_bytes=141 * 2**30))


def test_an_l2_label_in_powers_of_ten_is_caught() -> None:
    """50e6 is no cache size."""
    assert {"gb-or-gib"} == rules(replace(SPECS["h100_sxm"], l2_bytes=50_000_000))


def test_a_slice_of_memory_is_whole_mib_too() -> None:
    """18gb in a MIG profile's name is 16384 MiB."""
    h200 = SPECS["h200_sxm"]
    one = replace(h200.mig["1g.18gb"], dram_bytes=18_000_000_000)
    assert {"gb-or-gib"} == rules(replace(h200, mig=h200.mig | {"1g.18gb": one}))


@pytest.mark.parametrize(
    ("card", "field", "value"),
    [("h200_sxm", "l2_bytes", 52428800), ("l4", "sm_count", 60), ("b200", "l2_bytes", 192 * 2**20),
     ("b200", "bus_bits", 8192), ("l40s", "max_clock_hz", 2.535e9)],
)  # fmt: skip
def test_a_table_that_contradicts_the_device_is_caught(card: str, field: str, value: float) -> None:
    """Databases say 60 SMs for the L4, 50 MB of L2 for the H200, 8192 bits for the B200."""
    assert "as-read" in rules(replace(SPECS[card], **{field: value}))


@pytest.mark.parametrize(
    ("card", "rule", "planted"),
    [
        # tables that are, or were, in public projects
        ("h100_sxm", "product", {"pipe": "tf32_tensor", "flop_per_s": 156e12}),
        ("l4", "sheet-pin", {"dram_published_bytes_per_s": 3350e9}),
        ("h100_sxm", "as-read", {"memory_clock_hz": 1593e6, "dram_pin_bytes_per_s": 2039e9}),
        ("b200", "clock-range", {"pipe": "fp32", "clock_hz": 2.3e9}),
        ("b200", "rate", {"pipe": "fp32", "flop_per_clock_per_sm": 544.0}),
        ("a100_sxm4_80gb", "mac-as-flop", {"pipe": "bf16_tensor", "flop_per_clock_per_sm": 1024}),
        ("h200_sxm", "magnitude", {"dram_pin_bytes_per_s": 4814.0}),
    ],
)
def test_mistakes_that_others_have_published_are_caught(
    card: str, rule: str, planted: dict[str, object]
) -> None:
    """Each was in print: A100's TF32 for the H100, another card's bandwidth, MAC for FLOP."""
    changes = dict(planted)
    pipe = changes.pop("pipe", None)
    gpu = SPECS[card]
    wrong = with_pipe(gpu, str(pipe), **changes) if pipe else replace(gpu, **changes)
    assert rule in rules(wrong)


def test_links_are_counted_in_one_direction() -> None:
    """PCIe 5 x16 is 64 GB/s each way; sheets print 128, and 900 for NVLink's 450."""
    h200 = SPECS["h200_sxm"]
    assert expected("PCIe 3 x16") == 16e9
    assert expected("PCIe 4 x16") == 32e9
    assert expected("PCIe 5 x16") == 64e9
    assert expected("PCIe 6 x16") == 128e9
    assert expected("NVLink 4 x18") == 450e9
    assert expected("NVLink 5 x18") == 900e9
    assert expected("carrier pigeon") is None
    for name, both in (("pcie", 128e9), ("nvlink", 900e9)):
        link = Link(kind=h200.links[name].kind, bytes_per_s_per_direction=both)
        assert {"link-direction"} == rules(replace(h200, links=h200.links | {name: link}))


def test_shared_memory_is_that_of_the_chip() -> None:
    """228 KiB per SM on Hopper, one less for a block."""
    assert {"shared-memory"} == rules(replace(SPECS["h100_sxm"], shared_bytes_per_sm=228_000))
    assert {"shared-memory"} == rules(replace(SPECS["h100_sxm"], shared_bytes_per_block=228 * 1024))


def test_geforce_cards_say_so_and_no_others() -> None:
    """The segment decides the rates, so it cannot disagree with the name."""
    assert "segment" in rules(replace(SPECS["rtx_4090"], segment="professional"))
    assert "segment" in rules(replace(SPECS["l40s"], segment="geforce"))


def test_every_number_has_a_source() -> None:
    """A number without a source is a finding; so is a source of no number."""
    h200 = SPECS["h200_sxm"]
    for key in ("dram_published_bytes_per_s", "pipes.bf16_tensor", "links.nvlink", "l2_bytes"):
        rest = {name: source for name, source in h200.sources.items() if name != key}
        assert {"source"} == rules(replace(h200, sources=rest)), key
    stray = h200.sources | {"pipes.fp4_tensor": h200.sources["pipes.fp8_tensor"]}
    assert {"source"} == rules(replace(h200, sources=stray))


def test_a_source_has_a_title_and_an_address() -> None:
    """`somewhere` is not a source."""
    h200 = SPECS["h200_sxm"]
    bad = Source(title=" ", url="somewhere", accessed=date(2026, 11, 30), mark="read")
    assert {"source"} == rules(replace(h200, sources=h200.sources | {"l2_bytes": bad}))


def test_cards_with_equal_peaks_say_why() -> None:
    """Three equal peaks are a copied file until the reason says otherwise."""
    h200 = SPECS["h200_sxm"]
    others = {key: value for key, value in h200.reasons.items() if key != "same_as_h100_sxm"}
    found = findings(replace(h200, reasons=others))
    assert {("twins", "h200_sxm")} == {(item.rule, item.gpu) for item in found}


def test_a_copied_file_is_caught_by_its_names() -> None:
    """Two files cannot claim one name, alias or PCI id."""
    copy = replace(SPECS["l40s"], id="l40s_copy")
    found = {item.rule for item in lint(SPECS | {"l40s_copy": copy})}
    assert {"ambiguous-name", "twins", "family"} == found


def test_no_alias_joins_two_pci_ids() -> None:
    """An A10G is not an A10, whatever an alias says."""
    a10 = SPECS["a10"]
    assert {"ambiguous-name"} == rules(replace(a10, aliases=("NVIDIA A10G",)))


def test_every_known_driver_name_matches_one_file_at_most() -> None:
    """Exact names: L4 is not in L40S, A10 not in A100, H20 not in H200, B200 not in GB200."""
    for name in set(DRIVER_NAMES.values()):
        owners = [
            gpu.id
            for gpu in SPECS.values()
            if name.casefold() in {known.casefold() for known in (gpu.name, *gpu.aliases)}
        ]
        assert len(owners) <= 1, name
    for device, name in DRIVER_NAMES.items():
        for gpu in SPECS.values():
            if device in gpu.pci_ids:
                assert name in (gpu.name, *gpu.aliases), (gpu.id, device)


def test_a_name_that_no_driver_prints_needs_its_source() -> None:
    """`NVIDIA RTX A6000 ADA` is in tables and on no device."""
    gpu = SPECS["rtx_6000_ada"]
    sources = {key: source for key, source in gpu.sources.items() if key != "name"}
    planted = replace(gpu, name="NVIDIA RTX A6000 ADA", pci_ids=(), sources=sources)
    assert {"name-unknown", "source"} >= rules(planted)
    assert "name-unknown" in rules(planted)


def test_a_shared_family_has_one_default() -> None:
    """`h200` must mean one card."""
    none = replace(SPECS["h200_sxm"], family_default=False)
    two = replace(SPECS["h200_nvl"], family_default=True)
    for gpu in (none, two):
        found = findings(gpu)
        assert ["family"] == [item.rule for item in found]


def test_capability_alone_does_not_give_a_rate() -> None:
    """8.6, 8.9 and 12.0 have two rates each, 9.0 an export row; half2 doubles on 9.0 only."""
    for capability in ("8.6", "8.9", "12.0"):
        pro, geforce = RATES[capability, "full"], RATES[capability, "geforce"]
        assert pro["bf16_tensor"][0] == 2 * geforce["bf16_tensor"][0]
    assert 1024.0 in RATES["9.0", "export"]["bf16_tensor"]
    assert RATES["9.0", "full"]["fp16"][0] == 2 * RATES["9.0", "full"]["fp32"][0]
    assert RATES["10.0", "full"]["fp16"] == RATES["10.0", "full"]["fp32"]
    assert RATES["10.3", "full"]["fp64"] == (4.0,)


def test_no_rate_is_given_for_a_unit_that_is_absent() -> None:
    """The two tables agree."""
    for (capability, grade), row in RATES.items():
        assert not ABSENT[capability] & set(row), (capability, grade)


@pytest.mark.parametrize(
    ("name", "virtual"),
    [("GRID A100D-7-80C", True), ("NVIDIA H100-1-10C", True), ("NVIDIA A10G-4", True),
     ("NVIDIA H200X-2-35C", True), ("NVIDIA L40S-48Q", True), ("GRID T4-16Q", True),
     ("NVIDIA A100-SXM4-80GB", False), ("NVIDIA A100-PG509-200", False), ("NVIDIA H20-3e", False),
     ("Tesla V100-SXM2-16GB", False), ("NVIDIA GH200 144G HBM3e", False), ("NVIDIA H200", False)],
)  # fmt: skip
def test_vgpu_names_are_told_from_cards(name: str, virtual: bool) -> None:  # noqa: FBT001  # table
    """A slice's name ends in its size; a card's does not, however it looks."""
    assert virtual == is_vgpu(name)


@pytest.mark.parametrize(
    ("device", "subsystem", "ids"),
    [("233510DE", "18BE10DE", ("2335", "2335:18BE")), ("0x233510de", "", ("2335", "")),
     ("2335", "18be", ("2335", "2335:18BE")), ("10DE:2335", "", ("2335", "")), ("", "", ("", "")),
     ("N/A", "N/A", ("", ""))],
)  # fmt: skip
def test_pci_ids_are_read_in_every_form_drivers_print(
    device: str, subsystem: str, ids: tuple[str, str]
) -> None:
    """nvidia-smi writes device and vendor in one word, others only the device."""
    assert ids == pci_id(device, subsystem)


def test_the_documented_example_is_complete_and_clean() -> None:
    """The file that docs/add-a-gpu.md shows loads, and the lint has nothing to say."""
    page = (folder("hardware_specs").parent / "docs" / "add-a-gpu.md").read_text(encoding="utf-8")
    text = page.split("```toml\n")[1].split("```")[0]
    gpu = parse_spec(text, where="docs/add-a-gpu.md", stem="example_100")
    assert [] == lint(SPECS | {gpu.id: gpu})


def test_the_documentation_names_every_rule() -> None:
    """A finding's rule can be looked up."""
    page = (folder("hardware_specs").parent / "docs" / "add-a-gpu.md").read_text(encoding="utf-8")
    source = "".join(
        (folder("hardware_specs").parent / "solkit" / "plan" / name).read_text(encoding="utf-8")
        for name in ("lint.py", "neighbours.py", "peaks.py")
    )
    rules_in_code = set(re.findall(r'^ +"([a-z]+(?:-[a-z0-9]+)+)",$', source, re.MULTILINE))
    assert len(rules_in_code) > 15
    assert set() == {rule for rule in rules_in_code if f"`{rule}`" not in page}


def test_a_pin_rate_is_given_wherever_clock_and_bus_are() -> None:
    """Bus and clock without the pin rate is half an answer; without all three there is no check."""
    h200 = SPECS["h200_sxm"]
    assert "pin-rate" in rules(replace(h200, dram_pin_bytes_per_s=None))
    fields = ("dram_pin_bytes_per_s", "memory_clock_hz", "bus_bits")
    sources = {key: source for key, source in h200.sources.items() if key not in fields}
    nothing = replace(
        h200, dram_pin_bytes_per_s=None, memory_clock_hz=None, bus_bits=None, sources=sources
    )
    assert {"as-read"} == rules(nothing)
