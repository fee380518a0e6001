"""An array that begins between two vectors is refused before the launch."""

import pytest

from solkit.measure.aligned import refuse_unaligned
from solkit.measure.verdict import CheckFailed
from solkit.model import Case

CASE = Case("copy", "solkit", {"elements": 64}, "fp32")


def test_an_address_between_two_vectors_is_told_with_its_remainder() -> None:
    """4 bytes behind a multiple of 16: the argument, the remainder, what would do."""
    with pytest.raises(CheckFailed) as caught:
        refuse_unaligned(CASE, {"x": 0x7F0000000200, "y": 0x7F0000000204}, 16)
    assert (
        "copy/solkit elements=64 fp32: the array of 'y' begins 4 bytes behind a multiple of 16 "
        "bytes, which the kernel's vector accesses need"
    ) == caught.value.message
    assert "unaligned" == caught.value.verdict
    assert "not a slice" in caught.value.remedy


def test_what_a_kernel_declares_decides() -> None:
    """Multiples of 8 do for 8, not for 16; a kernel of single items takes any."""
    refuse_unaligned(CASE, {"x": 24}, 8)
    refuse_unaligned(CASE, {"x": 24}, 1)
    with pytest.raises(CheckFailed, match="8 bytes behind a multiple of 16"):
        refuse_unaligned(CASE, {"x": 24}, 16)
