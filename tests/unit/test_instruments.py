"""The instruments of the CUDA device compile for every generation, without a GPU."""

import os
import re
from pathlib import Path

import pytest
from test_compile_all import ARCHS

from solkit.measure.device import nvrtc
from solkit.measure.device.cuda.entries import BITS, ENTRIES, MARKED, PLAIN, TEMPLATES

pytestmark = pytest.mark.skipif(
    os.name == "nt" or os.uname().sysname != "Linux", reason="NVRTC's wheels are for Linux"
)
SOURCE = Path(nvrtc.__file__).parent / "cuda" / "instruments.cu"


def test_the_entries_are_those_of_the_source() -> None:
    """A new one is compiled, or this test says so."""
    text = SOURCE.read_text(encoding="utf-8")
    templates = re.findall(r"template <typename \w+>\s+__global__ void (\w+)", text)
    plain = re.findall(r'extern "C" __global__ void (\w+)', text)
    assert (templates, plain) == (list(TEMPLATES), list(PLAIN))


def test_marks_are_counted_of_every_type_that_has_some() -> None:
    """8-bit integers have no value to spare for what nobody wrote; their bits are summed up."""
    assert ["fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "int32"] == list(MARKED)
    assert [1, 2, 4, 8] == list(BITS)


@pytest.mark.parametrize("arch", ARCHS)
def test_the_instruments_compile_without_spills_and_warnings(arch: str) -> None:
    """Every type of every template, and every plain function."""
    if int(arch[3:].rstrip("af")) not in nvrtc.targets():
        pytest.skip(f"NVRTC {nvrtc.version()} has no {arch}")
    text = SOURCE.read_text(encoding="utf-8")
    result = nvrtc.compile_source(text, name=SOURCE.name, entries=ENTRIES, arch=arch)
    assert dict.fromkeys(ENTRIES, 0) == {
        name: info.spill_bytes for name, info in result.functions.items()
    }
    assert [] == [warning for info in result.functions.values() for warning in info.warnings]
