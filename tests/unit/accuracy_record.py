"""An invented record of the accuracy benchmark: every figure follows from a formula."""

from typing import Any

KIB, MIB = 2**10, 2**20
SIZES = (4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB)
FLOORS_US = {"cupti": 0.6, "event_blocked": 2.7, "event_unblocked": 2.7, "graph": 1.0}
ERRORS_US = {"cupti": 0.02, "event_blocked": 0.1, "event_unblocked": -0.05, "graph": 0.2}
# What each tool reads above the kernel itself, in us, and its share of it where it reads hot.
EXTRA_US = {
    "run": 0.02,
    "ncu": 1.0,
    "do_bench": 3.3,
    "do_bench_cudagraph": 0.1,
    "cupyx": 20.0,
    "nvbench": 2.4,
}
BYTES_PER_US = 4.0e6


def kernel_us(buffer_bytes: int, arrays: int) -> float:
    """Return the time of a streaming kernel on the invented card."""
    return 1.0 + arrays * buffer_bytes / BYTES_PER_US


def quantiles_us(median_us: float) -> list[float]:
    return [round(median_us * factor, 3) for factor in (0.99, 0.995, 1.0, 1.01, 1.03)]


def spin() -> list[dict[str, Any]]:
    return [
        {
            "us": us,
            "method": method,
            "floor_us": floor_us,
            "median_us": round(us + floor_us + ERRORS_US[method], 3),
            "error_us": ERRORS_US[method],
            "count": 320,
            "quantiles_us": quantiles_us(us + floor_us),
        }
        for method, floor_us in FLOORS_US.items()
        for us in (2, 5, 10, 100)
    ]


def tools(kernel: str) -> list[dict[str, Any]]:
    rows = []
    for buffer_bytes in SIZES:
        own_us = kernel_us(buffer_bytes, 2 if kernel == "copy" else 1)
        times = {"solkit": own_us, **{tool: own_us + more for tool, more in EXTRA_US.items()}}
        rows.append(
            {
                "kernel": kernel,
                "buffer_bytes": buffer_bytes,
                **{f"{tool}_us": round(time_us, 3) for tool, time_us in times.items()},
                "quantiles_us": {
                    tool: quantiles_us(us) for tool, us in times.items() if tool != "run"
                },
            }
        )
    return rows


def cache() -> list[dict[str, Any]]:
    factors = {"cold": 1.0, "clean": 0.9, "zeroed": 1.2, "hot": 0.6}
    shares = {"cold": (1.0, 0.98), "clean": (1.0, 0.3), "zeroed": (1.0, 1.1), "hot": (0.01, 0.0)}
    rows = []
    for kernel in ("copy", "read"):
        for buffer_bytes in SIZES[1:]:
            for mode, factor in factors.items():
                read, write = shares[mode]
                row = {
                    "kernel": kernel,
                    "buffer_bytes": buffer_bytes,
                    "mode": mode,
                    "time_us": round(factor * kernel_us(buffer_bytes, 2), 3),
                    "read_fraction": read,
                    "dram_read_bytes": round(read * buffer_bytes),
                    "dram_write_bytes": round(write * buffer_bytes),
                }
                rows.append(row | ({"write_fraction": write} if kernel == "copy" else {}))
    return rows


def record() -> dict[str, Any]:
    """Return a whole record in which every limit is kept."""
    return {
        "environment": {
            "card": "Example GPU 100",
            "uuid": "GPU-00000000-0000-0000-0000-000000000000",
            "driver": "580.1",
            "cuda": "13.0",
            "clocks": {"max_sm_hz": 1.8e9, "memory_hz": 3.2e9},
            "power_limit_w": 500.0,
            "solkit": "0.1.0",
            "cupy": "14.2.0",
            "cupti": "13.0.1",
            "torch": "2.11.0",
            "triton": "3.6.0",
            "nvbench": "0.3.0",
            "ncu": "2025.3",
            "date": "2026-01-31",
        },
        "spin": spin(),
        "copy": tools("copy"),
        "read": tools("read"),
        "cache": cache(),
        "throughput": {
            "cases": 500,
            "seconds": 40.0,
            "run_seconds": 37.5,
            "within_half_percent_fraction": 0.984,
            "longest_us": 27.4,
            "over_50_us": 0,
            "left_out": [],
            "left_out_count": 0,
        },
        "order": {
            "cases": 100,
            "agree_fraction": 0.99,
            "orders": ["forwards", "backwards", "shuffled"],
            "furthest_fraction": 0.013,
            "apart": [
                {
                    "case": "copy/solkit elements=2048 bf16",
                    "forwards_us": 1.1,
                    "backwards_us": 1.1,
                    "shuffled_us": 1.3,
                }
            ],
            "left_out": [],
            "left_out_count": 0,
        },
        "aa": {
            "pairs": 420,
            "changed": 1,
            "interval": [0.00006, 0.0132],
            "words": {"SAME": 400, "SLOWER": 1, "UNSURE": 19},
            "by_length": {"under 5 us": {"SAME": 200}, "over 100 us": {"SAME": 200, "UNSURE": 19}},
            "changed_cases": [
                {
                    "case": "softmax/a rows=1 cols=1024 bf16",
                    "word": "SLOWER",
                    "base_us": 2.0,
                    "head_us": 2.2,
                }
            ],
            "left_out": ["copy/a elements=8 bf16: out of memory"],
            "left_out_count": 1,
            "budget_s": 0.05,
        },
    }
