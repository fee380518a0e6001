"""Link figures, one direction each: sheets print the sum of both."""

import re
from collections.abc import Iterator

from solkit.gpu import Gpu

# bytes/s of one lane (PCIe, before encoding, as sheets round it) or one link, in one direction.
PCIE_LANE = {3: 1e9, 4: 2e9, 5: 4e9, 6: 8e9}
NVLINK = {2: 25e9, 3: 25e9, 4: 25e9, 5: 50e9}
_KIND = re.compile(r"(PCIe|NVLink) (\d) x(\d{1,2})")


def expected(kind: str) -> float | None:
    """Return what a link of this kind carries in one direction, or None for another kind.

    `PCIe 5 x16` is sixteen lanes of generation 5; `NVLink 4 x18` eighteen links of generation 4.
    """
    match = _KIND.fullmatch(kind)
    if match is None:
        return None
    generation, count = int(match[2]), int(match[3])
    each = (PCIE_LANE if match[1] == "PCIe" else NVLINK).get(generation)
    return each * count if each else None


def link_findings(gpu: Gpu) -> Iterator[tuple[str, str, str]]:
    """Yield (link, message, remedy) for each link that is not one direction of its kind."""
    for name, link in gpu.links.items():
        right = expected(link.kind)
        if right is None or abs(link.bytes_per_s_per_direction / right - 1) <= 0.02:  # noqa: PLR2004
            continue
        ratio = link.bytes_per_s_per_direction / right
        yield (
            name,
            f"{link.bytes_per_s_per_direction:.4g} B/s: {ratio:.2f} x one direction of {link.kind}",
            f"write {right:.4g}: sheets add both directions",
        )
