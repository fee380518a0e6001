"""The instruments of the CUDA device compile for every generation, without a GPU."""

import os
import re
from pathlib import Path

import pytest
from test_compile_all import ARCHS

from solkit.dtypes import DTYPES
from solkit.measure.device import nvrtc

pytestmark = pytest.mark.skipif(
    os.name == "nt" or os.uname().sysname != "Linux", reason="NVRTC's wheels are for Linux"
)
SOURCE = Path(nvrtc.__file__).parent / "cuda" / "instruments.cu"
TEMPLATES = ("fill_normal", "fill_uniform", "count_marks", "checksum")


def test_the_templates_are_those_of_the_source() -> None:
    """A new one is compiled here, or this test says so."""
    declared = re.findall(
        r"template <typename T>\s+__global__ void (\w+)", SOURCE.read_text(encoding="utf-8")
    )
    assert list(TEMPLATES) == declared


@pytest.mark.parametrize("arch", ARCHS)
def test_the_instruments_compile_without_spills_and_warnings(arch: str) -> None:
    """Every dtype of every template, and every plain function."""
    if int(arch[3:].rstrip("af")) not in nvrtc.targets():
        pytest.skip(f"NVRTC {nvrtc.version()} has no {arch}")
    text = SOURCE.read_text(encoding="utf-8")
    plain = re.findall(r'extern "C" __global__ void (\w+)', text)
    entries = (*plain, *(f"{name}<{kind.ctype}>" for name in TEMPLATES for kind in DTYPES.values()))
    result = nvrtc.compile_source(text, name=SOURCE.name, entries=entries, arch=arch)
    assert dict.fromkeys(entries, 0) == {
        name: info.spill_bytes for name, info in result.functions.items()
    }
    assert [] == [warning for info in result.functions.values() for warning in info.warnings]
