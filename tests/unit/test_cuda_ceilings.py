"""What a CUDA device's ceilings leave out, and why: no card is needed, but CuPy is."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from solkit.errors import BadInput, NoDevice, SolkitError
from solkit.measure.device.base import TIMERS, Call, Sample, Unblockable
from solkit.measure.device.records import RecordsLost

pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'solkit[cuda13]'")

from cupy_backends.cuda import libs

from solkit.measure.device.cuda import gemm, timing

FLOP = {extent: 2 * extent**3 for extent in (4096, 8192, 16384)}
GIB = 2**30


class CublasError(Exception):
    """What cuBLAS answers with where it can't."""


class FakeCard:
    """A card with so much memory free."""

    def __init__(self, free_bytes: int) -> None:
        self._free_bytes = free_bytes

    def free_bytes(self) -> int:
        """Return what the test gave it."""
        return self._free_bytes

    def release(self) -> None:
        """Hold nothing."""


class Cublas:
    """bf16 products alone, of a known rate; `fails` holds what cuBLAS refuses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rate_flop_per_s = 700e12
        self.fails: tuple[tuple[int, str], ...] = ()
        card = SimpleNamespace(compute_capability="80")
        monkeypatch.setattr(gemm, "cp", SimpleNamespace(cuda=SimpleNamespace(Device=lambda: card)))
        cublas = SimpleNamespace(CUBLASError=CublasError)
        monkeypatch.setitem(vars(libs), "cublas", cublas)  # as an attribute it would load
        monkeypatch.setattr(gemm, "PRODUCTS", (gemm.BF16,))
        monkeypatch.setattr(gemm, "_bound", lambda *arguments: arguments[3])
        monkeypatch.setattr(gemm, "burst", lambda _card, extent, rest: self._taken(extent, rest))
        monkeypatch.setattr(gemm, "sustained", lambda _card, extent: self._taken(extent, "kept"))

    def _taken(self, extent: int, settle: str) -> list[Sample]:
        if (extent, settle) in self.fails:
            raise CublasError("CUBLAS_STATUS_INTERNAL_ERROR")
        return [Sample(FLOP[extent] / self.rate_flop_per_s, None)]

    def measured(self, free_bytes: int = 64 * GIB) -> tuple[dict[str, list[int]], list[str]]:
        """Return the flop measured in each way, and what was noted."""
        noted: list[str] = []
        card: Any = FakeCard(free_bytes)
        rates: Any = None
        rest: Any = "rest"
        found = gemm.product_ceilings(card, rates, rest, lambda _step: None, noted.append)
        ways = ("burst", "sustained")
        return {
            way: [ceiling.flop for ceiling in found if ceiling.settle == way] for way in ways
        }, noted


@pytest.fixture
def cublas(monkeypatch: pytest.MonkeyPatch) -> Cublas:
    """Return a cuBLAS that needs no card."""
    return Cublas(monkeypatch)


@pytest.mark.parametrize(
    ("free_bytes", "rate_flop_per_s", "burst", "sustained"),
    [
        (64 * GIB, 700e12, [4096, 8192, 16384], [4096, 8192]),
        (64 * GIB, 100e12, [4096, 8192], [4096, 8192]),
        (64 * GIB, 10e12, [4096], [4096]),
        (2 * GIB, 700e12, [4096], [4096]),
        (GIB // 2, 700e12, [], []),
    ],
    ids=["all", "16384 too slow", "8192 too slow", "no room for 8192", "no room"],
)
def test_sustained_is_measured_where_burst_was(
    cublas: Cublas,
    free_bytes: int,
    rate_flop_per_s: float,
    burst: list[int],
    sustained: list[int],
) -> None:
    """What had no room or no time from rest has none at all."""
    cublas.rate_flop_per_s = rate_flop_per_s
    found, noted = cublas.measured(free_bytes)
    assert {
        "burst": [FLOP[extent] for extent in burst],
        "sustained": [FLOP[extent] for extent in sustained],
    } == found
    assert [] == noted


@pytest.mark.parametrize(
    ("fails", "burst", "sustained", "said"),
    [
        ((4096, "kept"), [4096, 8192, 16384], [], "no further sustained ceiling"),
        ((8192, "kept"), [4096, 8192, 16384], [4096], "no further sustained ceiling"),
        ((8192, "rest"), [4096], [4096], "no further ceiling"),
        ((4096, "rest"), [], [], "no further ceiling"),
    ],
)
def test_a_product_that_cublas_refuses_is_noted(
    cublas: Cublas, fails: tuple[int, str], burst: list[int], sustained: list[int], said: str
) -> None:
    """What was measured before it stays; the note says which pipe, and cuBLAS's own word."""
    cublas.fails = (fails,)
    found, (noted,) = cublas.measured()
    assert {
        "burst": [FLOP[extent] for extent in burst],
        "sustained": [FLOP[extent] for extent in sustained],
    } == found
    assert said in noted
    assert noted.startswith("bf16_tensor has ")
    assert noted.endswith("CUBLAS_STATUS_INTERNAL_ERROR")


class FakeTimer:
    """A way of taking times that may fail; it knows whether it records."""

    lead_count = 1

    def __init__(self, method: str, error: Exception | None = None) -> None:
        self.method = method
        self.error = error
        self.recording = True

    def time(self, calls: Sequence[Call], **_how: object) -> list[Sample]:
        """Return 1 us a call, or fail."""
        if self.error is not None:
            raise self.error
        return [Sample(1e-6, None)] * len(calls)

    def start(self) -> None:
        """Record."""
        self.recording = True

    def stop(self) -> None:
        """Record no more."""
        self.recording = False


def floors(
    monkeypatch: pytest.MonkeyPatch, chosen: FakeTimer, others: dict[str, FakeTimer | SolkitError]
) -> dict[str, float]:
    """Return the floors of a machine whose other ways are these."""

    def choose(name: str, _tools: object) -> SimpleNamespace:
        other = others[name]
        if isinstance(other, SolkitError):
            raise other
        return SimpleNamespace(timer=other)

    monkeypatch.setattr(timing, "choose", choose)
    measured: Any = timing.Timing.__new__(timing.Timing)
    measured.timer = chosen
    measured._tools = None
    measured._instruments = {"empty": lambda *_launch: None}
    measured.l2 = SimpleNamespace(unpin=lambda: None, flush=lambda _mode: None)
    found: dict[str, float] = measured.floors_s()
    return found


METHODS = tuple(name for name in TIMERS if name != "auto")
PROBLEMS = (
    NoDevice("lacks it"),
    RecordsLost("dropped 3 records"),
    Unblockable("waits"),
    BadInput("no"),
)


def other_ways(
    chosen: str, failing: str, problem: SolkitError | FakeTimer
) -> Iterator[tuple[str, Any]]:
    for name in METHODS:
        if name != chosen:
            yield name, problem if name == failing else FakeTimer(name)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
@pytest.mark.parametrize("when", ["chosen", "timing"])
@pytest.mark.parametrize(("chosen", "failing"), [("event_blocked", "cupti"), ("cupti", "graph")])
def test_a_way_that_fails_has_no_floor_and_spoils_no_other(
    monkeypatch: pytest.MonkeyPatch, chosen: str, failing: str, when: str, problem: SolkitError
) -> None:
    """Whether it can't be had or fails while it times: it stops, and the chosen one records on."""
    timer = FakeTimer(chosen)
    broken = problem if when == "chosen" else FakeTimer(failing, problem)
    others = dict(other_ways(chosen, failing, broken))
    found = floors(monkeypatch, timer, others)
    assert set(METHODS) - {failing} == set(found)
    assert all(floor_s == pytest.approx(1e-6) for floor_s in found.values())
    assert chosen == next(iter(found))
    assert timer.recording
    assert not any(other.recording for other in others.values() if isinstance(other, FakeTimer))


def test_the_chosen_way_records_on_whatever_ends_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error that is nobody's to catch here leaves no timer in another state."""
    timer, broken = FakeTimer("event_blocked"), FakeTimer("cupti", RuntimeError("lost"))
    others = dict(other_ways("event_blocked", "cupti", broken))
    with pytest.raises(RuntimeError, match="lost"):
        floors(monkeypatch, timer, others)
    assert timer.recording
    assert not broken.recording
