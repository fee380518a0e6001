"""MIG slices: compute follows SMs, bandwidth and L2 follow memory slices."""

import math
import re
from dataclasses import replace

from solkit import units
from solkit.errors import NoDevice
from solkit.gpu import DeviceFacts, Gpu

_PROFILE = re.compile(r"(?:MIG )?(?:(\d)c\.)?(\d+g\.\d+gb)(?:[+-].*)?")
_EIGHTH = 8  # memory comes in eighths of the card (A30: quarters)
_WHOLE_FRACTION = 0.95  # CUDA and NVML differ by up to 1.4 % on a whole card


def mig_slice(card: Gpu, facts: DeviceFacts) -> tuple[Gpu, str]:
    """Return the card cut down to the slice of `facts.mig_profile`, and a sentence that says so.

    Inside a slice CUDA's SM count is that of the compute instance, so it wins over the table; the
    bandwidth is that of the GPU instance, which all its compute instances share. Raises NoDevice
    where neither the file nor the device says how large the slice is.
    """
    match = _PROFILE.fullmatch(facts.mig_profile.strip())
    profile = match[2] if match else facts.mig_profile
    known = card.mig.get(profile)
    sm_count = _sm_count(card, facts, profile, int(match[1]) if match and match[1] else None)
    fraction = known.dram_slice_fraction if known else None
    # The parent's handle reports the whole memory; only the instance's own says how much it has.
    seen = facts.dram_bytes or card.dram_bytes
    seen_bytes = seen if seen < _WHOLE_FRACTION * card.dram_bytes else None
    if fraction is None and seen_bytes:
        # A slice reports a little less than its share, and the share is a whole number of eighths.
        fraction = math.ceil(seen_bytes / card.dram_bytes * _EIGHTH) / _EIGHTH
    if sm_count is None or fraction is None:
        raise NoDevice(
            f"{card.id}.toml has no MIG profile {profile!r} (it has"
            f" {', '.join(card.mig) or 'none'}),"
            " and the device does not say how large the slice is",
            remedy=f'add it under [mig] in {card.id}.toml, from "nvidia-smi mig -lgip"',
        )
    share = sm_count / card.sm_count
    pin = card.dram_pin_bytes_per_s
    stated_bytes = known.dram_bytes if known else None
    memory = seen_bytes or stated_bytes or round(card.dram_bytes * fraction)
    gpu = replace(
        card,
        sm_count=sm_count,
        pipes={
            name: replace(pipe, flop_per_s=pipe.flop_per_s * share)
            for name, pipe in card.pipes.items()
        },
        dram_bytes=memory,
        dram_published_bytes_per_s=card.dram_published_bytes_per_s * fraction,
        dram_pin_bytes_per_s=pin * fraction if pin else None,
        l2_bytes=max(1, round(card.l2_bytes * fraction)),
        mig={},
        links={},  # NVLink is off inside a slice, and PCIe is shared
    )
    note = (
        f"MIG slice {facts.mig_profile} of {card.id}: {sm_count} of {card.sm_count} SMs, "
        f"{units.bandwidth(gpu.dram_bytes_per_s)} ({fraction:g} of the card), "
        f"{units.capacity(memory)}; power and clocks are shared with the other slices"
    )
    return gpu, note


def _sm_count(card: Gpu, facts: DeviceFacts, profile: str, compute: int | None) -> int | None:
    """Return the SMs of the instance: CUDA's count, else the table's, by compute slices if told."""
    if facts.sm_count and facts.sm_count < card.sm_count:
        return facts.sm_count
    known = card.mig.get(profile)
    if known is None:
        return None
    if compute is None:
        return known.sm_count
    ones = [one.sm_count for name, one in card.mig.items() if name.startswith("1g.")]
    return min(known.sm_count, compute * min(ones)) if ones else None
