"""Spec files: what loads, what is refused and in which words, and what people see of a card."""

import json
import math
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solkit.bound import bound, hard_roof, spec_roof
from solkit.errors import BadInput
from solkit.gpu import PIPES, Gpu
from solkit.model import Work
from solkit.plan.specs import (
    MAX_FILE_BYTES,
    find,
    gpus_document,
    load_spec,
    load_specs,
    numbers,
    parse_spec,
)
from solkit.resources import folder

SPECS = load_specs()
GOOD = (folder("hardware_specs") / "h200_sxm.toml").read_text(encoding="utf-8")
WANTED = {
    "v100_sxm2_16gb", "v100_sxm2_32gb", "v100_pcie_16gb", "v100_pcie_32gb", "t4",
    "a100_sxm4_40gb", "a100_sxm4_80gb", "a100_pcie_80gb", "a10", "a30", "a40", "l4", "l40s",
    "rtx_3090", "rtx_4090", "rtx_5090", "rtx_6000_ada", "h100_sxm", "h100_pcie", "h100_nvl",
    "h200_sxm", "h200_nvl", "gh200_96gb", "gh200_144gb", "h20", "h800_sxm", "b200", "b300",
    "gb200", "jetson_agx_orin_64gb", "jetson_thor", "gb10", "mi300x",
}  # fmt: skip


def edited(old: str, new: str) -> str:
    """Return the good file with one passage replaced, which must be there once or more."""
    assert old in GOOD
    return GOOD.replace(old, new)


def refusal(text: str) -> BadInput:
    """Return the error that a file's text gives."""
    with pytest.raises(BadInput) as caught:
        parse_spec(text, where="h200_sxm.toml", stem="h200_sxm")
    return caught.value


def test_every_wanted_card_has_a_file() -> None:
    """The folder holds the cards that people are promised, and each loads."""
    assert WANTED == set(SPECS)


def test_h200_holds_the_numbers_that_others_rely_on() -> None:
    """One card, written out: the sheet, the pins and what a device reports."""
    h200 = SPECS["h200_sxm"]
    assert h200.name == "NVIDIA H200"
    assert h200.sm_count == 132
    assert h200.dram_published_bytes_per_s == 4.8e12
    assert h200.dram_pin_bytes_per_s == 4.814e12
    assert h200.dram_bytes_per_s == 4.8e12
    assert (h200.bus_bits, h200.memory_clock_hz) == (6016, 3.201e9)
    assert (h200.l2_bytes, h200.dram_bytes) == (62914560, 150754820096)
    assert h200.pipes["bf16_tensor"].flop_per_s == 989.4e12
    assert h200.pipes["bf16_tensor"].clock_hz == 1.83e9
    assert h200.pipes["fp8_tensor"].flop_per_s == 1978.9e12
    assert h200.pipes["tf32_tensor"].flop_per_s == 494.7e12
    assert h200.pipes["sfu"].flop_per_s == pytest.approx(4.18e12, rel=1e-3)
    assert h200.max_clock_hz == 1.98e9
    assert h200.power_w == 700


def test_b200_is_scored_against_its_pins_not_its_sheet() -> None:
    """The sheet says 8 TB/s; 7680 bits at 3996 MHz give 7.67, and the lesser counts."""
    b200 = SPECS["b200"]
    assert b200.dram_published_bytes_per_s == 8e12
    assert b200.dram_bytes_per_s == pytest.approx(7.672e12, rel=1e-3)


def test_a_matmul_on_the_h200_has_the_hand_computed_bound() -> None:
    """8192 x 2560 x 2560 in bf16: 28.95 us of memory, 108.5 us of tensor work."""
    work = Work(138_936_320, 0, {"bf16_tensor": 2 * 8192 * 2560 * 2560})
    limit = bound(work, spec_roof(SPECS["h200_sxm"]))
    assert limit.memory_s == pytest.approx(28.945e-6, rel=1e-3)
    assert limit.sol_s == pytest.approx(108.5e-6, rel=1e-3)
    assert limit.limiter == "compute:bf16_tensor"


def test_the_hard_roof_never_lies_below_the_published_one() -> None:
    """What physics allows is at least what the sheet says, on every card and pipe."""
    for gpu in SPECS.values():
        hard = hard_roof(gpu).pipes_flop_per_s
        assert all(hard[name] >= pipe.flop_per_s for name, pipe in gpu.pipes.items()), gpu.id


def test_a_geforce_sm_does_half_the_work_of_the_professional_one() -> None:
    """Same die, same clock, half the fp32-accumulate rate: 4090 against 6000 Ada."""
    geforce, pro = SPECS["rtx_4090"], SPECS["rtx_6000_ada"]
    for name in ("tf32_tensor", "fp16_tensor", "bf16_tensor", "fp8_tensor"):
        half = geforce.pipes[name].flop_per_clock_per_sm
        assert pro.pipes[name].flop_per_clock_per_sm == 2 * half, name


def test_unknown_pipes_are_left_out_and_absent_ones_are_listed() -> None:
    """No card carries a pipe it lacks, and absent pipes are named."""
    assert SPECS["a100_sxm4_80gb"].absent_pipes == ("fp8_tensor", "fp4_tensor")
    assert "bf16_tensor" in SPECS["t4"].absent_pipes
    assert "bf16_tensor" not in SPECS["gb10"].pipes
    assert "bf16_tensor" not in SPECS["gb10"].absent_pipes


def test_importing_the_module_does_not_load_pydantic() -> None:
    """It costs 0.1 s, and commands that read no spec file should not pay it."""
    code = "import sys, solkit.plan.specs; print('pydantic' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("name", "card"),
    [("h200_sxm", "h200_sxm"), ("NVIDIA H200", "h200_sxm"), ("nvidia h200", "h200_sxm"),
     ("H200 SXM", "h200_sxm"), (" h200_nvl ", "h200_nvl"), ("NVIDIA L4", "l4"),
     ("NVIDIA L40S", "l40s"), ("rtx 4090", "rtx_4090")],
)  # fmt: skip
def test_a_card_is_found_by_its_exact_names_without_a_word(name: str, card: str) -> None:
    """Id, NVML name and alias match exactly, in any case, and need no note."""
    gpu, note = find(name, SPECS)
    assert card == gpu.id
    assert note == ""


@pytest.mark.parametrize(
    ("family", "card"),
    [("h200", "h200_sxm"), ("H100", "h100_sxm"), ("a100", "a100_sxm4_80gb"),
     ("gh200", "gh200_96gb"), ("v100", "v100_sxm2_32gb"), ("h800", "h800_sxm"),
     ("orin", "jetson_agx_orin_64gb")],
)  # fmt: skip
def test_a_family_means_its_default_member_and_says_so(family: str, card: str) -> None:
    """`h200` is the SXM card; the note for stderr names the choice and the others."""
    gpu, note = find(family, SPECS)
    assert card == gpu.id
    assert card in note
    for other in SPECS.values():
        if other.family == gpu.family and other is not gpu:
            assert other.id in note


def test_a_name_is_never_matched_by_a_part_of_it() -> None:
    """`H10` or `NVIDIA` match nothing; the error says the nearest, and what lists them."""
    with pytest.raises(BadInput) as caught:
        find("h200_sxn", SPECS)
    assert "unknown card 'h200_sxn'" in caught.value.message
    assert "h200_sxm" in caught.value.remedy
    assert "solkit gpus" in caught.value.remedy
    with pytest.raises(BadInput) as caught:
        find("h2000", SPECS)
    assert "'h200'" in caught.value.remedy, "a family is a name, too"
    for part in ("NVIDIA", "H10", "RTX", ""):
        with pytest.raises(BadInput):
            find(part, SPECS)


def test_the_json_document_holds_every_field_in_plain_data() -> None:
    """`solkit gpus --json` is JSON with the promised keys first and no field left out."""
    document = gpus_document(SPECS)
    assert document == json.loads(json.dumps(document, allow_nan=False))
    cards = {card["id"]: card for card in document["gpus"]}
    assert list(cards) == list(SPECS)
    h200 = cards["h200_sxm"]
    assert list(h200)[:9] == [
        "id", "name", "aliases", "compute_capability", "sm_count",
        "dram_bytes_per_s", "dram_bytes", "l2_bytes", "power_w",
    ]  # fmt: skip
    assert {item.name for item in fields(Gpu)} | {"dram_bytes_per_s"} == set(h200)
    assert h200["pipes"]["bf16_tensor"]["flop_per_s"] == 989.4e12
    assert h200["pipes"]["bf16_tensor"]["clock_hz"] == 1.83e9
    assert h200["sources"]["pipes.bf16_tensor"]["accessed"] == "2026-11-30"
    assert cards["b200"]["dram_bytes_per_s"] < cards["b200"]["dram_published_bytes_per_s"]


def test_numbers_names_each_number_by_its_dotted_path() -> None:
    """What `sources` must cover: top-level numbers, pipes, links and slices."""
    found = numbers(SPECS["h200_sxm"])
    assert found["sm_count"] == 132
    assert found["pipes.bf16_tensor.clock_hz"] == 1.83e9
    assert found["links.nvlink.bytes_per_s_per_direction"] == 450e9
    assert found["mig.3g.71gb.sm_count"] == 60
    assert not any(name.startswith("sources") for name in found)


def test_a_missing_peak_is_named() -> None:
    """The error says file, field and what to add."""
    error = refusal(edited("bf16_tensor = { flop_per_s = 989.4e12, ", "bf16_tensor = { "))
    assert error.message.startswith("h200_sxm.toml: ")
    assert "pipes.bf16_tensor.flop_per_s is missing" in error.message
    assert "add pipes.bf16_tensor.flop_per_s" in error.remedy


@pytest.mark.parametrize("value", ['"989.4e12"', "true", "[1.0]", "{}", "2026-11-30"])
def test_a_peak_that_is_no_number_is_named(value: str) -> None:
    """Strings, booleans, arrays, tables and dates are not numbers, whatever they hold."""
    error = refusal(
        edited("bf16_tensor = { flop_per_s = 989.4e12", f"bf16_tensor = {{ flop_per_s = {value}")
    )
    assert "pipes.bf16_tensor.flop_per_s" in error.message
    assert "number" in error.message


@pytest.mark.parametrize(
    "value", ["0", "-1", "nan", "inf", "-inf", "1e25", "0.0", "9" * 400, "-" + "9" * 400]
)
def test_a_number_that_is_not_finite_and_positive_is_refused(value: str) -> None:
    """Unknown means absent: zero, negative, endless and absurd numbers are no peaks."""
    error = refusal(
        edited("bf16_tensor = { flop_per_s = 989.4e12", f"bf16_tensor = {{ flop_per_s = {value}")
    )
    assert "pipes.bf16_tensor.flop_per_s" in error.message or "range" in error.message
    assert error.remedy


def test_a_slice_is_at_most_the_whole_memory() -> None:
    """A MIG fraction above 1 is refused."""
    error = refusal(edited("dram_slice_fraction = 1.0", "dram_slice_fraction = 7"))
    assert "mig.7g.141gb.dram_slice_fraction is 7" in error.message


@pytest.mark.parametrize(
    ("wrong", "place", "nearest"),
    [("sm_cuont = 1\n", "sm_cuont", "'sm_count'"), ("zzz = 1\n", "zzz", "known keys: id, name")],
)
def test_an_unknown_key_is_named_with_the_nearest(wrong: str, place: str, nearest: str) -> None:
    """A typo gets the key it meant."""
    error = refusal(wrong + GOOD)
    assert f"{place} is an unknown key" in error.message
    assert nearest in error.remedy


def test_an_unknown_key_of_a_pipe_is_named_with_the_nearest() -> None:
    """Keys inside a pipe are compared with a pipe's keys."""
    error = refusal(edited("clock_hz = 1.98e9, accumulate", "clock_hz = 1.98e9, acumulate"))
    assert "pipes.fp64_tensor.acumulate is an unknown key" in error.message
    assert "'accumulate'" in error.remedy


def test_an_unknown_pipe_is_named_with_the_nearest() -> None:
    """`bf16_tensr` is told from `bf16_tensor`."""
    error = refusal(GOOD.replace("\nbf16_tensor = {", "\nbf16_tensr = {"))
    assert "unknown pipe 'bf16_tensr'" in error.message
    assert "did you mean 'bf16_tensor'?" in error.remedy
    assert PIPES[0] in error.remedy


def test_a_syntax_error_gives_its_line() -> None:
    """TOML errors keep line and column."""
    error = refusal('id = "h200_sxm"\nname = \n')
    assert "not TOML" in error.message
    assert "line 2" in error.message


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [('id = "h200_sxm"', 'id = "h100_sxm"', "not the file's name"),
     ('name = "NVIDIA H200"', 'name = "\\u001b[31mH200"', "name is"),
     ('name = "NVIDIA H200"', 'name = " "', "name is"),
     ('compute_capability = "9.0"', 'compute_capability = "sm_90"', "compute_capability"),
     ('pci_ids = ["2335"]', 'pci_ids = ["0x2335"]', "pci_ids holds"),
     ('accumulate = "fp64"', 'accumulate = "fp65"', "accumulate"),
     ("accessed = 2026-11-30", 'accessed = "yesterday"', "accessed")],
)  # fmt: skip
def test_texts_that_do_not_fit_are_refused(old: str, new: str, said: str) -> None:
    """Ids, names, capabilities, PCI ids, accumulate types and dates have their form."""
    assert said in refusal(edited(old, new)).message


def test_a_file_that_cannot_be_read_is_an_error_with_its_path(tmp_path: Path) -> None:
    """Missing, binary and oversized files are refused by name."""
    for name, data, said in (
        ("missing.toml", None, "cannot be read"),
        ("binary.toml", b"id = \xff", "not UTF-8"),
        ("big.toml", b"#" * (MAX_FILE_BYTES + 1), "is over 100,000 bytes"),
    ):
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(BadInput) as caught:
            load_spec(path)
        assert str(path) in caught.value.message
        assert said in caught.value.message
        assert caught.value.remedy


def test_an_empty_or_missing_folder_is_refused(tmp_path: Path) -> None:
    """A folder without spec files is a mistake, not an empty answer."""
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(BadInput, match="spec files"):
            load_specs(place)


def test_a_users_folder_is_read_like_the_bundled_one(tmp_path: Path) -> None:
    """The same loader reads any folder."""
    (tmp_path / "h200_sxm.toml").write_text(GOOD, encoding="utf-8")
    assert load_specs(tmp_path) == {"h200_sxm": SPECS["h200_sxm"]}


def test_an_id_used_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files cannot hold one id, as on a file system that knows no upper case."""
    for name in ("one.toml", "two.toml"):
        (tmp_path / name).write_text(GOOD, encoding="utf-8")
    monkeypatch.setattr("solkit.plan.specs.load_spec", lambda _path: SPECS["h200_sxm"])
    with pytest.raises(BadInput, match=r"two\.toml: the id 'h200_sxm' is taken by one\.toml"):
        load_specs(tmp_path)


def test_every_file_is_small() -> None:
    """Spec files stay far below the size limit, so that people can read them."""
    for path in folder("hardware_specs").glob("*.toml"):
        assert path.stat().st_size < 20_000, path.name


def loads_or_refuses(text: str) -> None:
    """Assert the contract: a Gpu or a BadInput with a remedy, nothing else."""
    said: Gpu | BadInput
    try:
        said = parse_spec(text, where="garbage.toml", stem="h200_sxm")
    except BadInput as error:
        said = error
    if isinstance(said, BadInput):
        assert "garbage.toml" in said.message
        assert said.remedy
    else:
        assert all(math.isfinite(value) and value > 0 for value in numbers(said).values())


TOML_WORDS = st.sampled_from(
    ["[pipes]", "[sources]", "id", "=", '"', "'''", "[", "]", "{", "}", "\n", ".", ",", "1e999",
     "nan", "0x" + "f" * 9000, "9" * 5000, "2026-11-30", "07:32:00", "true", "\u0000", "\ud7ff",
     "é",      "fp32", "flop_per_s", "[" * 3000, "a." * 500]
)  # fmt: skip


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.one_of(st.text(max_size=300), st.lists(TOML_WORDS, max_size=30).map("".join)))
def test_garbage_is_refused_with_words(text: str) -> None:
    """Whatever the text, the answer is a BadInput (or, never seen, a card)."""
    loads_or_refuses(text)


VALUES = st.one_of(
    st.floats(), st.integers(), st.integers(min_value=10**300, max_value=10**320), st.booleans(),
    st.text(max_size=20), st.lists(st.integers(), max_size=3), st.just({}), st.dates(),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)  # fmt: skip


def paths_of(table: dict[str, Any], before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the path of every key of a nested table."""
    found = []
    for key, value in table.items():
        found.append((*before, key))
        if isinstance(value, dict):
            found += paths_of(value, (*before, key))
    return found


PATHS = paths_of(tomllib.loads(GOOD))


def toml(value: object) -> str:  # noqa: PLR0911  # one line a kind of value
    """Write a value as inline TOML; enough for what the mutations hold."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if math.isnan(value):
            return "nan"
        case float() | int():
            return repr(value)
        case date():
            return value.isoformat() if value.year > 999 else "1000-01-01"
        case dict():
            inner = ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items())
            return "{ " + inner + " }"
        case list() | tuple():
            return "[" + ", ".join(toml(item) for item in value) + "]"
        case _:
            return json.dumps(str(value))


def mutate(change: Callable[[dict[str, Any], str], None], path: tuple[str, ...]) -> str:
    """Return the good file with one key changed, as TOML."""
    table = tomllib.loads(GOOD)
    owner = table
    for key in path[:-1]:
        owner = owner[key]
    change(owner, path[-1])
    return "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in table.items())


def test_the_mutation_writer_keeps_a_good_file_good() -> None:
    """Without a change, what the property below writes loads to the same card."""
    text = mutate(lambda _owner, _key: None, ("id",))
    assert SPECS["h200_sxm"] == parse_spec(text, where="copy", stem="h200_sxm")


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(path=st.sampled_from(PATHS), value=VALUES, how=st.sampled_from(["drop", "set", "rename"]))
def test_a_mutated_file_loads_or_is_refused_with_words(
    path: tuple[str, ...], value: object, how: str
) -> None:
    """Dropped keys, renamed keys, wrong types and wild numbers never raise anything else."""

    def change(owner: dict[str, Any], key: str) -> None:
        old = owner.pop(key)
        if how == "set":
            owner[key] = value
        if how == "rename":
            owner[key + "x"] = old

    loads_or_refuses(mutate(change, path))


@pytest.mark.parametrize(
    ("text", "said"),
    [("a = " + "[" * 40_000, "nested too deeply"),
     ("sm_count = 0x" + "f" * 9000, "beyond any range"),
     ("sm_count = " + "9" * 5000, "not TOML")],
)  # fmt: skip
def test_texts_made_to_break_a_parser_are_refused(text: str, said: str) -> None:
    """Deep nesting and endless integers are told in a short message."""
    error = refusal(text)
    assert said in error.message
    assert len(error.message) < 300


def test_a_card_without_pipes_is_refused() -> None:
    """A card that can do nothing is a file cut short."""
    table = tomllib.loads(GOOD) | {"pipes": {}}
    text = "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in table.items())
    assert "pipes is empty" in refusal(text).message


def test_an_id_is_lower_case() -> None:
    """The id is a file name and an argument: letters, digits, underscores."""
    text = edited('id = "h200_sxm"', 'id = "H200-SXM"')
    with pytest.raises(BadInput, match="not lower-case letters"):
        parse_spec(text, where="H200-SXM.toml", stem="H200-SXM")
