"""Where arrays begin: a vector access between two vectors would end the CUDA context."""

from collections.abc import Mapping

from solkit.measure.verdict import CheckFailed
from solkit.model import Case


def refuse_unaligned(case: Case, addresses: Mapping[str, int], align_bytes: int) -> None:
    """Raise CheckFailed (unaligned) unless each array begins at a multiple of so many bytes."""
    for name, address in addresses.items():
        remainder = address % align_bytes
        if remainder:
            raise CheckFailed(
                f"{case}: the array of {name!r} begins {remainder} bytes behind a multiple of "
                f"{align_bytes} bytes, which the kernel's vector accesses need",
                remedy="pass an array that begins there (a fresh one, not a slice), or declare "
                "what the kernel needs: Kernel(align_bytes=...)",
                verdict="unaligned",
            )
