"""What drivers say of cards: names by PCI id, and numbers that were read from real devices.

The names are those of NVIDIA's driver (595.45.04, `src/nvidia/generated/g_nv_name_released.h` of
https://github.com/NVIDIA/open-gpu-kernel-modules); the readings are from nvidia-smi and CUDA on the
cards themselves. They stand apart from the spec files so that each can catch the other's mistake.
"""

import re
from dataclasses import dataclass

MIB = 1024 * 1024

# PCI device id, with the subsystem where the device id alone is not enough -> the driver's name.
DRIVER_NAMES: dict[str, str] = {
    "1EB8": "Tesla T4",
    "20B0": "NVIDIA A100-SXM4-40GB",
    "20B0:1450": "NVIDIA A100-PG509-200",
    "20B2": "NVIDIA A100-SXM4-80GB",
    "20B3": "NVIDIA A100-SXM-64GB",
    "20B5": "NVIDIA A100 80GB PCIe",
    "20B7": "NVIDIA A30",
    "20BD": "NVIDIA A800-SXM4-40GB",
    "20F1": "NVIDIA A100-PCIE-40GB",
    "20F3": "NVIDIA A800-SXM4-80GB",
    "20F5": "NVIDIA A800 80GB PCIe",
    "20F6": "NVIDIA A800 40GB Active",
    "2204": "NVIDIA GeForce RTX 3090",
    "2235": "NVIDIA A40",
    "2236": "NVIDIA A10",
    "2237": "NVIDIA A10G",
    "2238": "NVIDIA A10M",
    "230E": "NVIDIA H20 NVL16",
    "2321": "NVIDIA H100 NVL",
    "2322": "NVIDIA H800 PCIe",
    "2324": "NVIDIA H800",
    "2329": "NVIDIA H20",
    "232C": "NVIDIA H20-3e",
    "2330": "NVIDIA H100 80GB HBM3",
    "2331": "NVIDIA H100 PCIe",
    "2335": "NVIDIA H200",
    "2339": "NVIDIA H100",
    "233A": "NVIDIA H800 NVL",
    "233B": "NVIDIA H200 NVL",
    "2342:16EB": "NVIDIA GH200 120GB",
    "2342:1805": "NVIDIA GH200 120GB",
    "2342:1809": "NVIDIA GH200 480GB",
    "2348": "NVIDIA GH200 144G HBM3e",
    "2684": "NVIDIA GeForce RTX 4090",
    "2685": "NVIDIA GeForce RTX 4090 D",
    "26B1": "NVIDIA RTX 6000 Ada Generation",
    "26B5": "NVIDIA L40",
    "26B9": "NVIDIA L40S",
    "26BA": "NVIDIA L20",
    "27B8": "NVIDIA L4",
    "2901": "NVIDIA B200",
    "2941": "NVIDIA GB200",
    "2B85": "NVIDIA GeForce RTX 5090",
    "2B87": "NVIDIA GeForce RTX 5090 D",
    "2B8C": "NVIDIA GeForce RTX 5090 D v2",
    "2BB1": "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
    "2BB4": "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    "2BB5": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "2E12": "NVIDIA GB10",
    "3182": "NVIDIA B300 SXM6 AC",
    "31C2": "NVIDIA GB300",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """Numbers read from a real device; None where that reading did not show it."""

    sm_count: int | None = None
    dram_mib_count: int | None = None
    bus_bits: int | None = None
    memory_clock_hz: float | None = None
    max_clock_hz: float | None = None
    l2_bytes: int | None = None


READINGS: dict[str, Reading] = {
    "1EB8": Reading(sm_count=40, dram_mib_count=15360),
    "20B0": Reading(
        sm_count=108, dram_mib_count=40960, memory_clock_hz=1215e6, max_clock_hz=1410e6
    ),
    "2237": Reading(sm_count=80),
    "2330": Reading(
        sm_count=132, dram_mib_count=81559, memory_clock_hz=2619e6, max_clock_hz=1980e6
    ),
    "2331": Reading(sm_count=114, memory_clock_hz=1593e6),
    "2335": Reading(
        sm_count=132,
        dram_mib_count=143771,
        bus_bits=6016,
        memory_clock_hz=3201e6,
        max_clock_hz=1980e6,
        l2_bytes=62914560,
    ),
    "2321": Reading(sm_count=132, bus_bits=6016, max_clock_hz=1785e6),
    "2342:1809": Reading(
        sm_count=132, bus_bits=6144, memory_clock_hz=2619e6, max_clock_hz=1980e6, l2_bytes=62914560
    ),
    "26B9": Reading(
        sm_count=142,
        dram_mib_count=46068,
        bus_bits=384,
        memory_clock_hz=9001e6,
        max_clock_hz=2520e6,
        l2_bytes=100663296,
    ),
    "27B8": Reading(sm_count=58),
    "2901": Reading(
        sm_count=148,
        dram_mib_count=183359,
        bus_bits=7680,
        memory_clock_hz=3996e6,
        max_clock_hz=1965e6,
        l2_bytes=132644864,
    ),
    "2941": Reading(
        sm_count=152, dram_mib_count=189471, memory_clock_hz=3996e6, max_clock_hz=2062e6
    ),
    "2B85": Reading(sm_count=170, bus_bits=512, memory_clock_hz=14001e6, l2_bytes=100663296),
}

# A vGPU's name ends in its slice: GRID A100D-7-80C, NVIDIA A10G-4, NVIDIA H200X-2-35C, L40S-48Q.
_VGPU = re.compile(r"^(GRID\b.*|.*(?<!PG\d\d\d)-(\d-)?\d{1,3}[ABCQ]?(ME|me)?)$")


def is_vgpu(name: str) -> bool:
    """Return whether a name is that of a virtual slice of a card, never the whole card."""
    return name not in DRIVER_NAMES.values() and bool(_VGPU.match(name.strip()))


def pci_id(device: str, subsystem: str = "") -> tuple[str, str]:
    """Return a card's PCI id in the spec files' form: (`2335`, `2335:18BE`).

    Takes what drivers print: `2335`, `0x233510DE` (device, then vendor) or `10DE:2335`.
    """
    chip, board = _half(device), _half(subsystem)
    return chip, f"{chip}:{board}" if chip and board else ""


def _half(text: str) -> str:
    """Return the device half of what a driver prints: `233510DE` holds the vendor last."""
    plain = text.strip().upper().removeprefix("0X").replace("10DE:", "")
    return plain[:4] if re.fullmatch(r"[0-9A-F]{4}([0-9A-F]{4})?", plain) else ""
