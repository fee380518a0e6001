"""gate.toml: read whole or refused, with file, key and remedy."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solkit.errors import BadInput
from solkit.judge.gate import Floors, Gate
from solkit.judge.gate_file import parse_gate, read_gate

KNOWN = ("add_rmsnorm", "copy", "softmax")
FULL = """version = 1
roof = "clock"
fail_under = 0.80
min_effect = 0.02
allow = ["driver", "power"]
[operators.softmax]
fail_under = 0.70
min_effect = 0.05
[operators.copy]
min_effect = 0.01
"""


def test_a_gate_file_says_floors_effects_and_what_may_differ(tmp_path: Path) -> None:
    """Every key goes where it belongs; an operator that gives one number keeps the other."""
    path = tmp_path / "gate.toml"
    path.write_text(FULL, encoding="utf-8")
    assert read_gate(path, KNOWN) == Gate(
        floors=Floors(0.8, {"softmax": 0.7}, "clock"),
        min_effect_fraction=0.02,
        operators_min_effect_fraction={"softmax": 0.05, "copy": 0.01},
        allow=("driver", "power"),
    )


def test_what_a_gate_file_leaves_out_stays_open() -> None:
    """The command then decides: no roof, no least effect."""
    gate = parse_gate("version = 1\nfail_under = 1", KNOWN, where="gate.toml")
    assert gate == Gate(floors=Floors(1.0))


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("fail_under = 0.8", "g: version is missing", "write version = 1"),
        ("version = 2\nfloor = 1", "g: version is 2, this solkit reads 1", "write version = 1, or"),
        ("version = true", "g: version is True, this", "write version = 1"),
        ('version = "1"', "g: version is 1, this", "write version = 1"),
        ("version = 1", "g: asks for nothing", "give it fail_under = 0.8"),
        ("version = 1\n[operators.copy]", "g: asks for nothing", "give it fail_under"),
        ("version = 1\nfail_unter = 1", "g: fail_unter is an unknown", "mean 'fail_under'?"),
        (
            "version = 1\n[operators.copy]\nroof = 'spec'",
            "g: operators.copy.roof is an unknown key",
            "known keys: fail_under, min_effect",
        ),
        ("version = 1\nfail_under = 80", "g: fail_under is 80, no fraction", "write e.g. 0.8 for"),
        ("version = 1\nfail_under = 0", "g: fail_under is 0, no fraction", "write e.g. 0.8"),
        ("version = 1\nfail_under = nan", "g: fail_under is nan, no fraction", "e.g. 0.8"),
        ("version = 1\nmin_effect = inf", "g: min_effect is inf, no fraction", "e.g. 0.02"),
        ("version = 1\nfail_under = true", "g: fail_under is no number", "as a plain fraction"),
        ("version = 1\nfail_under = '0.8'", "g: fail_under is no number", "as a plain fraction"),
        ("version = 1\nmin_effect = 1", "g: min_effect is 1, no fraction above 0", "0.02 for 2 %"),
        (
            "version = 1\n[operators.copy]\nfail_under = -1",
            "g: operators.copy.fail_under is -1",
            "write e.g.",
        ),
        ("version = 1\n[operators.sofmax]\nfail_under = 0.7", "'sofmax'", "mean 'softmax'?"),
        ("version = 1\nallow = ['drivers']", "g: allow: unknown condition", "mean 'driver'?"),
        ("version = 1\nroof = 'sky'", "g: roof: Input should be 'spec', 'clock'", "docs/ci.md"),
        ("version = 1\noperators = 3", "g: operators: Input should be", "docs/ci.md"),
        ("version = 1\nfail_under = ", "g: not TOML: ", "mend that line"),
        ("version = 1\nversion = 1", "g: not TOML: ", "mend that line"),
        ("version = 1\nx = " + "[" * 5000, "g: ", "docs/ci.md"),
        ("version = 1\nfail_under = " + "9" * 5000, "g: ", "docs/ci.md"),
    ],
)
def test_a_wrong_gate_file_is_bad_input_with_its_remedy(
    text: str, message: str, remedy: str
) -> None:
    """It names the file and the key, and what to write instead."""
    with pytest.raises(BadInput) as told:
        parse_gate(text, KNOWN, where="g")
    assert message in told.value.message
    assert remedy in told.value.remedy
    assert len(told.value.message) < 1000


def test_a_gate_file_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    """Missing, no text, too big: the file is named."""
    with pytest.raises(BadInput, match=r"none\.toml: cannot be read: No such file"):
        read_gate(tmp_path / "none.toml", KNOWN)
    path = tmp_path / "gate.toml"
    path.write_bytes(b"version = 1 # \xff")
    with pytest.raises(BadInput, match=r"gate\.toml: not UTF-8 text \(byte 14\)"):
        read_gate(path, KNOWN)
    path.write_bytes(b"#" * 200_000)
    with pytest.raises(BadInput, match="is over 100,000 bytes"):
        read_gate(path, KNOWN)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_gate_file_may_come_from_any_editor(tmp_path: Path, mark: bytes, end: bytes) -> None:
    """A byte order mark and the line ends of Windows are no part of what it says."""
    path = tmp_path / "gate.toml"
    path.write_bytes(mark + b"version = 1" + end + b"fail_under = 0.8" + end)
    assert Gate(floors=Floors(0.8)) == read_gate(path, KNOWN)


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    """It is a gate, or it is bad input."""
    for whole in (text, f"version = 1\nfail_under = 0.5\n{text}"):
        said = "g: "
        try:
            parse_gate(whole, KNOWN, where="g")
        except BadInput as error:
            said = error.message
        assert said.startswith("g: ")
