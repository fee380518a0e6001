"""Ceilings of a card: the best kernel at each size counts, with its samples and its name."""

import sys
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cards import H200

from solkit.cli.listing import describe
from solkit.declare.catalog import LocalCatalog
from solkit.declare.kernel import Kernel, Launch
from solkit.declare.operator import Operator
from solkit.declare.registry import Registry, bundled
from solkit.errors import BadInput
from solkit.measure import ceilings
from solkit.measure.ceilings import Workshop, best_stream, dram_ceilings, without_samples
from solkit.measure.device.base import Buffers, Call, Program, Sample
from solkit.measure.device.cpu import CpuDevice
from solkit.model import CacheMode, Case, Ceilings, DramCeiling, PipeCeiling
from solkit.plan.sweep import parse_sweep

KIB = 2**10
REGISTRY = bundled()
WORKSHOP = Workshop(REGISTRY, Path("include"))
TimeOf = Callable[[str, int], float]


class StreamDevice(CpuDevice):
    """Times streams by a formula of the kernel's name and its elements; the rest is the host's."""

    kind = "cuda"
    method = "formula"
    most_calls = 16
    lead_count = 1

    def __init__(self, time_of: TimeOf, *, free_bytes: int = 2**26, broken: str = "") -> None:
        super().__init__()
        self._cache_bytes = 64 * KIB
        self._free_bytes, self._broken, self._time_of = free_bytes, broken, time_of
        self.batches: list[list[str]] = []
        self.arrays: set[int] = set()

    def free_bytes(self) -> int:
        """Return what the test gave it."""
        return self._free_bytes

    def compile_ahead(self, *_ignored: object) -> None:
        """Nothing to compile."""

    def prepare(self, kernel: Kernel, operator: Operator, case: Case, include: Path) -> Program:  # noqa: ARG002  # the protocol's
        """Mark each call with its kernel and size."""
        if self._broken in {kernel.name, "all"}:
            raise BadInput(f"{kernel.name} does not compile", remedy="mend it")

        def bind(buffers: Buffers) -> Call:
            return _Named(kernel.name, prod(case.shape.values()), next(iter(buffers.values())))

        return Program(bind)

    def time(
        self,
        calls: Sequence[Call],
        *,
        mode: CacheMode = "cold",
        blocked: bool = True,  # noqa: ARG002  # the protocol's
        ahead: Sequence[Call] = (),
    ) -> list[Sample]:
        """Take times from the formula; the first of a batch finds another's cache."""
        assert ("cold", ()) == (mode, ahead)
        assert len(calls) <= self.most_calls
        named = [call for call in calls if isinstance(call, _Named)]
        self.batches.append([call.name for call in named])
        self.arrays |= {call.array.ctypes.data for call in named}
        times_s = [self._time_of(call.name, call.elements) for call in named]
        return [Sample(9.0 if place < self.lead_count else t) for place, t in enumerate(times_s)]


class _Named:
    def __init__(self, name: str, elements: int, array: object) -> None:
        self.name, self.elements, self.array = name, elements, array

    def __call__(self) -> None:
        raise AssertionError("only timed")


def by_size(name: str, elements: int) -> float:
    """Take a start of its own and a rate of its own for each of the copy's kernels."""
    start_s, rate = {"solkit": (1e-6, 1.0), "in_flight": (2e-6, 2.0), "strided": (9e-6, 3.0)}[name]
    return start_s + elements / rate * 1e-9


@pytest.mark.parametrize(
    ("traffic_bytes", "variant", "median_s"),
    [
        (8 * KIB, "solkit", 1e-6 + 1024e-9),
        (64 * KIB, "in_flight", 2e-6 + 4096e-9),
        (1024 * KIB, "strided", 9e-6 + 131072e-9 / 3),
    ],
)
def test_the_best_kernel_at_each_size_is_the_ceiling(
    traffic_bytes: int, variant: str, median_s: float
) -> None:
    """One starts soonest, one streams fastest: at each traffic the lowest median counts."""
    point = best_stream(StreamDevice(by_size), WORKSHOP, "copy", traffic_bytes)
    assert point is not None
    assert ("copy", variant) == (point.kernel, point.variant)
    assert (traffic_bytes // 2, traffic_bytes // 2) == (point.read_bytes, point.write_bytes)
    assert median_s == pytest.approx(point.median_s)
    assert (point.median_s,) * 41 == point.times_s


def test_calls_whose_cache_is_someone_elses_are_no_samples() -> None:
    """The first of every batch reads 9 s here: none of the samples does."""
    device = StreamDevice(by_size)
    point = best_stream(device, WORKSHOP, "copy", 64 * KIB)
    assert point is not None
    assert max(point.times_s) < 1
    assert all(1 == len(set(batch)) for batch in device.batches)


def test_streams_rotate_over_more_than_the_cache() -> None:
    """8 KiB arrays against a cache of 64 KiB, 16 KiB a set: twelve sets, three times the cache."""
    device = StreamDevice(by_size)
    best_stream(device, WORKSHOP, "copy", 16 * KIB)
    assert 12 == len(device.arrays)


class Cleaned(StreamDevice):
    """A card: it cleans its cache, and notes which arrays were read between two cleanings."""

    cleans = True

    def __init__(self) -> None:
        super().__init__(by_size)
        self.settled: list[int] = []
        self.turns: list[list[int]] = []

    def settle_cache(self, calls: Sequence[Call]) -> None:
        """Note the cleaning and the arrays that fill the cache behind it."""
        self.settled.append(len(calls))
        self.turns.append([])
        self._read(calls)

    def time(self, calls: Sequence[Call], **how: Any) -> list[Sample]:
        """Note the arrays."""
        self._read(calls)
        return super().time(calls, **how)

    def _read(self, calls: Sequence[Call]) -> None:
        self.turns[-1] += [call.array.ctypes.data for call in calls if isinstance(call, _Named)]


def test_the_cache_settles_before_each_kernel_of_a_stream_is_timed() -> None:
    """By a whole rotation: 33 sets of 16 KiB, for each of three kernels."""
    device = Cleaned()
    best_stream(device, WORKSHOP, "copy", 16 * KIB)
    assert [33, 33, 33] == device.settled
    assert {33 + 6 + 16 + 16 + 12} == {
        len(turn) for turn in device.turns
    }  # warm, 41 samples, leads


def test_a_stream_as_large_as_the_cache_reads_no_array_twice_between_two_cleanings() -> None:
    """33 sets of 64 KiB against a cache of 64 KiB; two passes over all settle each kernel."""
    device = Cleaned()
    point = best_stream(device, WORKSHOP, "copy", 64 * KIB)
    assert point is not None
    assert (41, 33) == (len(point.times_s), len(device.arrays))
    assert ({0, 33}, 6) == (set(device.settled), device.settled.count(33))
    assert all(len(set(turn)) == len(turn) for turn in _between_cleanings(device))


def _between_cleanings(device: Cleaned) -> list[list[int]]:
    """Return the arrays read between two cleanings; what settles is cleaned up after."""
    turns: list[list[int]] = []
    for count, turn in zip(device.settled, device.turns, strict=True):
        turns.append(turn[count:])
    return turns


def test_a_graph_holds_the_whole_rotation() -> None:
    """A graph repeats its calls: fewer than the sets would leave the cache hot."""
    device = StreamDevice(by_size)
    device.method, device.most_calls, device.lead_count = "graph", 4096, 0
    device.whole_rotation = True
    device._cache_bytes = 1024 * KIB
    best_stream(device, WORKSHOP, "copy", 32 * KIB)
    assert {96} == {len(batch) for batch in device.batches}


@pytest.mark.parametrize(("short_bytes", "kinds"), [(0, {"triad", "copy"}), (1, {"triad"})])
def test_a_size_that_does_not_fit_is_left_out(short_bytes: int, kinds: set[str]) -> None:
    """A copy of 512 KiB twice over needs half of 4 MiB, a read its result, too, a triad less."""
    sizes = (64 * KIB, 1024 * KIB)
    device = StreamDevice(_second, free_bytes=4096 * KIB - short_bytes)
    found = dram_ceilings(device, WORKSHOP, say=_hush, traffic_bytes=sizes)
    assert 4 + len(kinds) == len(found)
    assert kinds == {point.kernel for point in found if point.traffic_bytes > 512 * KIB}


def test_a_kernel_that_this_card_can_not_have_is_left_out() -> None:
    """The others still give a ceiling; where none is left, the reason is told."""
    point = best_stream(StreamDevice(by_size, broken="solkit"), WORKSHOP, "copy", 8 * KIB)
    assert point is not None
    assert "in_flight" == point.variant
    with pytest.raises(BadInput, match="strided does not compile"):
        best_stream(StreamDevice(by_size, broken="all"), WORKSHOP, "copy", 8 * KIB)


@pytest.mark.parametrize("stream", ceilings.STREAMS)
@pytest.mark.parametrize("traffic_bytes", [2**16, 2**24, 2**30])
def test_a_stream_moves_about_the_traffic_asked_for(stream: str, traffic_bytes: int) -> None:
    """Whole vectors and whole patterns cost at most an eighth; the curve holds what was moved."""
    case = ceilings._case(REGISTRY.operators[stream], "solkit", traffic_bytes)
    moved = REGISTRY.operators[stream].work(case).traffic_bytes
    assert traffic_bytes == pytest.approx(moved, rel=0.13)


def test_each_stream_has_kernels_that_only_ceilings_take() -> None:
    """Several forms a stream; a sweep that names none measures the first alone."""
    for stream in ceilings.STREAMS:
        names = REGISTRY.kernel_names(stream, "cuda")
        assert (4 if stream == "read" else 3) == len(names)
        assert ["solkit"] == [
            name for name in names if not REGISTRY.kernels[stream, name].by_name_only
        ]


@pytest.mark.parametrize("elements", [1, 3, 1000, 16_384, 1_000_001, 2**28])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_every_form_covers_every_element(elements: int, dtype: str) -> None:
    """A grid is at least one block, and one that does not walk spans the whole array."""
    for stream in set(ceilings.STREAMS) - {"read"}:
        for name in REGISTRY.kernel_names(stream, "cuda"):
            launch = only_launch(Case(stream, name, {"elements": elements}, dtype))
            assert launch.grid[0] >= 1
            if name != "strided":
                assert launch.grid[0] * _elements_a_block(launch) >= elements


@pytest.mark.parametrize("rows", [1, 3, 64, 1000, 2**20])
def test_every_form_of_read_covers_every_row(rows: int) -> None:
    """One has a warp for each row, one for each two, one a block; the last walks, four a warp."""
    shape = {"rows": rows, "cols": ceilings.READ_COLS}
    found = {
        name: only_launch(Case("read", name, shape, "fp32"))
        for name in REGISTRY.kernel_names("read", "cuda")
    }
    assert {"solkit", "in_flight", "block", "deep"} == set(found)
    rows_a_block = 1 if rows <= 264 else found["solkit"].block[0] // 32
    assert found["solkit"].grid[0] * rows_a_block >= rows
    assert found["in_flight"].grid[0] * found["in_flight"].block[0] // 32 * 2 >= rows
    assert "read<float, 256, 4, 2, 2>" == found["in_flight"].entry
    assert (rows, 64) == (found["block"].grid[0], found["block"].block[0])
    assert 1 <= found["deep"].grid[0] <= 528
    assert "read<float, 256, 4, 2, 4>" == found["deep"].entry


def test_64_kib_are_read_from_64_multiprocessors() -> None:
    """64 rows: a block each, a thread for each 16 bytes; a thousand times as many: a warp each."""
    few, many = (
        only_launch(ceilings.read_case("solkit", nbytes)) for nbytes in (64 * KIB, 64 * KIB * KIB)
    )
    assert ((64, 1, 1), (64, 1, 1)) == (few.grid, few.block)
    assert ((8192, 1, 1), (256, 1, 1)) == (many.grid, many.block)
    assert "read_per_block<float, 64, 4, 1>" == few.entry
    assert "read<float, 256, 4, 2, 1>" == many.entry


@pytest.mark.parametrize(
    ("dtype", "cols", "entries"),
    [
        ("fp32", 1, {"read<float, 256, 1, 1, 1>", "read<float, 256, 1, 1, 8>", "32, 1, 1>"}),
        ("bf16", 300, {"4, 3, 1>", "4, 3, 2>", "block<__nv_bfloat16, 96, 4, 1>"}),
        ("fp16", 8 * 600, {"8, 4, 1>", "8, 8, 1>", "block<__half, 512, 8, 2>"}),
        ("fp32", 128_257, {"1, 4, 1>", "1, 8, 1>", "block<float, 512, 1, 4>"}),
    ],
)
def test_a_form_of_read_is_cut_to_its_rows(dtype: str, cols: int, entries: set[str]) -> None:
    """The widest load that divides a row, and no more of them in flight than the row has."""
    seen = [
        only_launch(Case("read", name, {"rows": 1000, "cols": cols}, dtype)).entry
        for name in REGISTRY.kernel_names("read", "cuda")
    ]
    assert entries == {end for end in entries if any(entry.endswith(end) for entry in seen)}


def only_launch(case: Case) -> Launch:
    """Return the one launch of a bundled kernel."""
    (launch,) = REGISTRY.kernels[case.operator, case.kernel].launches_on(case, H200)
    return launch


def _elements_a_block(launch: Launch) -> int:
    words = launch.entry.rstrip(">").split(", ")[1:]
    block, vec, *items = map(int, words)
    return block * vec * (items[0] if items else 1)


def test_all_of_a_cards_ceilings_are_one_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Floors, streams, L2, FMA, products, in this order; what a library lacks is noted."""
    point = DramCeiling("read", 8, 0, 1e-6, "hot")
    fp32, bf16 = PipeCeiling("fp32", 9, 1e-6, "x"), PipeCeiling("bf16_tensor", 9, 1e-6, "x")

    def products(*arguments: Any) -> list[PipeCeiling]:
        *_, say, note = arguments
        say("bf16 4096^3")
        note("fp8_tensor has no further ceiling: no such library")
        return [bf16]

    folder = "solkit.measure.device.cuda"
    rates = SimpleNamespace(
        load_rates=lambda: None, l2_ceiling=lambda *_: point, fp32_ceiling=lambda *_: fp32
    )
    monkeypatch.setitem(sys.modules, f"{folder}.rates", rates)  # type: ignore[arg-type]
    gemm = SimpleNamespace(product_ceilings=products)
    monkeypatch.setitem(sys.modules, f"{folder}.gemm", gemm)  # type: ignore[arg-type]
    steps: list[str] = []
    found = ceilings.cuda_ceilings(StreamDevice(_second), Path(), seed=0, say=steps.append)
    assert "formula, cold" == found.method
    assert ((fp32, bf16), (point,)) == (found.pipes, found.l2)
    assert {"read", "triad", "copy", "write"} == {point.kernel for point in found.dram}
    assert ("fp8_tensor has no further ceiling: no such library",) == found.notes
    assert {"formula"} <= set(found.floors_s)
    assert [
        "empty kernels",
        "compiling the streams",
        "DRAM read",
        "DRAM triad",
        "DRAM copy",
        "DRAM write",
        "L2 reads",
        "fp32 FMA",
        "bf16 4096^3",
    ] == list(dict.fromkeys(steps))


def test_a_header_holds_no_samples() -> None:
    """Everything else of the ceilings stays: the samples are in their own file."""
    found = Ceilings(
        "cupti, cold",
        (DramCeiling("copy", 8, 8, 1e-6, "solkit", (1e-6, 2e-6)),),
        (PipeCeiling("fp32", 9, 1e-6, "x", "sustained", 1.4e9, (1e-6,)),),
        l2=(DramCeiling("read", 8, 0, 1e-6, "hot", (1e-6,)),),
        floors_s={"cupti": 6e-7},
        created="2026-11-30T14:02:00Z",
    )
    assert Ceilings(
        "cupti, cold",
        (DramCeiling("copy", 8, 8, 1e-6, "solkit"),),
        (PipeCeiling("fp32", 9, 1e-6, "x", "sustained", 1.4e9),),
        l2=(DramCeiling("read", 8, 0, 1e-6, "hot"),),
        floors_s={"cupti": 6e-7},
        created="2026-11-30T14:02:00Z",
    ) == without_samples(found)


def test_a_sweep_takes_a_form_that_it_names() -> None:
    """`kernels: [strided]` is measured as any other kernel is."""
    catalog = LocalCatalog(REGISTRY)
    text = "version: 1\nsweeps:\n- operator: copy\n  shapes: [{elements: 8}]\n"
    plain = parse_sweep(text, catalog, file="a.yaml")
    named = parse_sweep(f"{text}  kernels: [strided, solkit]\n", catalog, file="a.yaml")
    assert ["solkit"] == [case.kernel for case in plain.cases]
    assert ["strided", "solkit"] == [case.kernel for case in named.cases]


def test_the_list_shows_every_form_and_who_takes_it() -> None:
    """A person finds the names to write into a sweep, and sees why a plain one leaves them out."""
    (copy,) = [
        operator
        for operator in describe(LocalCatalog(REGISTRY))["operators"]
        if operator["name"] == "copy"
    ]
    assert {"numpy": False, "solkit": False, "in_flight": True, "strided": True} == {
        kernel["name"]: kernel["by_name_only"] for kernel in copy["kernels"]
    }


def test_a_registry_may_lack_a_stream_kernel() -> None:
    """The declarations are the only list there is: what is declared is what is measured."""
    one = Registry(
        dict(REGISTRY.operators), {("copy", "solkit"): REGISTRY.kernels["copy", "solkit"]}
    )
    point = best_stream(StreamDevice(by_size), Workshop(one, Path()), "copy", 1024 * KIB)
    assert point is not None
    assert "solkit" == point.variant


def _second(_name: str, _elements: int) -> float:
    return 1.0


def _hush(_text: str) -> None:
    pass
