"""matmul_add beside its peers, without a GPU: sweep, judgement, page."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from synthetic import CEILINGS, measured, synthetic_run

from solkit import record as records
from solkit.bound import bound, measured_roof
from solkit.declare.catalog import LocalCatalog
from solkit.declare.registry import bundled, load
from solkit.model import Case, Failed, Outcome, Work
from solkit.plan.jobs import plan
from solkit.plan.only import parse_only
from solkit.plan.specs import find, load_specs
from solkit.plan.sweep import read_sweep

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import matmul  # noqa: E402  # a script, found by the path above
from beside_parts import standing  # noqa: E402
from beside_parts.sweep import PEERS  # noqa: E402
from matmul_parts import bars, segments  # noqa: E402

TUNED = {"torch_compile", "triton", "quack_tuned"}
LARGE, MEDIUM, SMALL = (each.title for each in bars.CLASSES)
WORST = "time over the fastest peer's, the worst"
MEAN = "geometric mean of the time over the fastest peer's"
PLAIN = "time over the plain product's (torch.matmul), the worst"


def case(
    rows: int,
    kernel: str = "solkit",
    *,
    cols: int = 2560,
    depth: int = 2560,
    weight: str = "kn",
    dtype: str = "bf16",
    operator: str = "matmul_add",
) -> Case:
    return Case(operator, kernel, {"M": rows, "N": cols, "K": depth}, dtype, {"weight": weight})


def worked(of: Case) -> Work:
    """Return the work of a product with a residual."""
    m, n, k = (of.shape[axis] for axis in ("M", "N", "K"))
    flop = {f"{of.dtype}_tensor": 2 * m * n * k}
    return Work(2 * (m * k + k * n + m * n), 2 * m * n, flop=flop)


def timed(of: Case, time_us: float) -> Outcome:
    return measured(of, worked(of), time_s=time_us * 1e-6)


def stood(*outcomes: Outcome) -> list[standing.Standing]:
    return standing.standings([synthetic_run(outcomes)])


def line(found: Sequence[bars.Line], shapes: str, figure: str) -> bars.Line:
    """Return the one line of a summary on these shapes with this figure."""
    (only,) = (each for each in found if (each.shapes, each.figure) == (shapes, figure))
    return only


# The judgement.


@pytest.mark.parametrize(
    ("rows", "title", "most"),
    [(2048, LARGE, 1.06), (586, MEDIUM, 1.10), (64, SMALL, 1.03)],
    ids=["large", "medium", "small"],
)
def test_no_shape_may_take_longer_than_its_class_allows_beside_the_fastest_peer(
    rows: int, title: str, most: float
) -> None:
    """Slower peers don't count, and no other class has the shape."""
    for factor, kept in ((most - 0.001, True), (most + 0.001, False)):
        found = bars.lines(
            stood(
                timed(case(rows), 100 * factor),
                timed(case(rows, "cublaslt_best"), 100),
                timed(case(rows, "torch"), 120),
            )
        )
        assert kept is line(found, title, WORST).kept
        others = {LARGE, MEDIUM, SMALL} - {title}
        assert [None, None] == [line(found, other, WORST).kept for other in others]


@pytest.mark.parametrize(
    ("rows", "title", "most", "stretch"),
    [(8192, LARGE, 1.00, 0.95), (128, MEDIUM, 1.00, 0.85), (1, SMALL, 0.80, 0.65)],
    ids=["large", "medium", "small"],
)
def test_a_class_keeps_its_bar_and_reaches_its_stretch_by_the_geometric_mean(
    rows: int, title: str, most: float, stretch: float
) -> None:
    """Of shapes at twice and half of a ratio the mean is the ratio."""
    for ratio, kept, reached in (
        (stretch - 0.001, True, True),
        (most - 0.001, True, False),
        (most + 0.001, False, False),
    ):
        shapes = [
            outcome
            for cols, factor in ((2560, 2), (4096, 0.5))
            for outcome in (
                timed(case(rows, cols=cols), 9000 * ratio * factor),
                timed(case(rows, "cublaslt", cols=cols), 9000),
            )
        ]
        found = line(bars.lines(stood(*shapes)), title, MEAN)
        assert (f"{ratio:.3f} x over 2 shapes", kept, reached) == (
            found.measured,
            found.kept,
            found.reached,
        )


def test_the_flagship_is_held_to_the_fastest_peer_to_addmm_and_to_the_plain_product() -> None:
    """In both layouts, the worse of which counts; the plain product is a stretch alone."""
    found = bars.lines(
        stood(
            timed(case(8192), 1500),
            timed(case(8192, "cublaslt_best"), 1520),
            timed(case(8192, "torch"), 1710),
            timed(case(8192, weight="nk"), 1560),
            timed(case(8192, "cublaslt_best", weight="nk"), 1550),
            timed(case(8192, "torch", weight="nk"), 1720),
            timed(case(8192, operator="matmul"), 1450),
            timed(case(8192, "torch", operator="matmul"), 1440),
        )
    )
    title = bars.FLAGSHIP_TITLE
    assert line(found, title, WORST).kept is False
    assert "1 of 2; worst: " in line(found, title, WORST).measured
    assert "1.56 ms beside 1.55 ms of cublaslt_best, 1.006 x" in line(found, title, WORST).measured
    addmm = line(found, title, "time over torch.addmm's, the worst")
    assert ("0.90 x", False) == (addmm.bar, addmm.kept)
    assert addmm.measured.startswith("0.907 x; matmul_add M=8192 N=2560 K=2560 weight=nk bf16")
    plain = line(found, title, PLAIN)
    assert ("", None, "1.00 x", False) == (plain.bar, plain.kept, plain.stretch, plain.reached)
    assert plain.measured.startswith("1.042 x; ")  # the one layout that it was measured in


def test_few_rows_and_a_wide_weight_are_held_to_the_measured_roof() -> None:
    """4096 x 4096 and more, 64 rows at most: three quarters of SOL@measured."""
    for cols, rows, share, kept in (
        (4096, 64, 0.76, True),
        (4096, 64, 0.74, False),
        (2560, 64, 0.5, None),
        (4096, 128, 0.5, None),
    ):
        ours = case(rows, cols=cols, depth=cols)
        roof_s = bound(worked(ours), measured_roof(CEILINGS)).sol_s
        found = bars.lines(stood(timed(ours, roof_s * 1e6 / share)))
        assert kept is line(found, bars.WIDE_BAR.title, "the least SOL@measured").kept


def test_a_shape_without_a_time_of_solkit_misses_the_bars_of_its_class() -> None:
    """The mean over the other shapes is told, and keeps nothing."""
    found = bars.lines(
        stood(
            timed(case(2048), 90),
            timed(case(2048, "cublaslt"), 100),
            Failed(case(4096), "check", "wrong values"),
            timed(case(4096, "cublaslt"), 200),
        )
    )
    mean = line(found, LARGE, MEAN)
    assert ("0.900 x over 1 shape, 1 without a time", False, False) == (
        mean.measured,
        mean.kept,
        mean.reached,
    )
    assert line(found, LARGE, WORST).measured.endswith("no time: check: wrong values")
    assert line(found, "every shape that was reached", "each").kept is False


# The sweep.


@pytest.fixture(scope="module")
def catalog() -> LocalCatalog:
    """Return the bundled declarations and the peers', none of which needs its package to load."""
    registry = bundled()
    registry.add(load(ROOT / PEERS), where="peers")
    return LocalCatalog(registry)


@pytest.fixture(scope="module")
def cases(catalog: LocalCatalog) -> tuple[Case, ...]:
    """Return the sweep's cases."""
    return read_sweep(ROOT / segments.SWEEP.shapes, catalog, device="cuda").cases


def test_the_sweep_has_240_shapes_each_with_every_peer_that_needs_no_tuning(
    cases: tuple[Case, ...],
) -> None:
    """Twelve counts of tokens, five weights, two layouts, two dtypes."""
    peers = {"torch", "torch_eager", "cupy", "cublaslt", "cublaslt_best", "quack"}
    found: dict[object, set[str]] = {}
    for each in cases:
        if each.operator == bars.OPERATOR:
            found.setdefault(each.group_key, set()).add(each.kernel)
    assert 240 == len(found)
    assert all(kernels >= {"solkit", *peers} for kernels in found.values())
    own = [each for each in cases if each.operator == bars.OPERATOR]
    assert {1, 16, 64, 128, 256, 512, 586, 1024, 2048, 4096, 8192, 16384} == {
        each.shape["M"] for each in own
    }
    assert {(2560, 2560), (4096, 4096), (5120, 5120), (8192, 8192), (14336, 4096)} == {
        (each.shape["K"], each.shape["N"]) for each in own
    }
    assert {(weight, dtype) for weight in ("kn", "nk") for dtype in ("bf16", "fp16")} == {
        (each.params["weight"], each.dtype) for each in own
    }


def test_peers_that_tune_are_measured_in_twelve_shapes_and_the_flagship_is_one(
    cases: tuple[Case, ...],
) -> None:
    """Each compiles and times its configurations for every shape."""
    counts = Counter(each.kernel for each in cases if each.kernel in TUNED)
    assert dict.fromkeys(TUNED, 12) == counts
    for weight in ("kn", "nk"):
        for kernel in TUNED:
            assert case(8192, kernel, weight=weight) in cases


def test_each_case_of_the_sweep_is_of_one_segment(cases: tuple[Case, ...]) -> None:
    """The segments' conditions part the sweep; a group is never parted."""
    parts = {
        name: parse_only(condition).select(cases)
        for name, condition in segments.SWEEP.segments.items()
    }
    assert sorted(map(str, cases)) == sorted(str(each) for part in parts.values() for each in part)
    assert {"large": 80, "medium": 100, "small": 60} == {
        name: len({each.group_key for each in part if each.operator == bars.OPERATOR})
        for name, part in parts.items()
    }


def test_the_sweep_plans_for_an_h200(catalog: LocalCatalog, cases: tuple[Case, ...]) -> None:
    """No case fails to be described, and solkit's kernel leaves none out."""
    planned = plan(cases, catalog, device="cuda", gpu=find("h200", load_specs())[0])
    assert () == planned.failed
    assert [] == [str(each.case) for each in planned.skipped if each.case.kernel == "solkit"]


# The script.


def card(arguments: Sequence[str], log: Path, _seconds: float) -> str:
    """Write what `solkit run` would have left of a segment: two shapes with four peers."""
    asked = dict(pairwise(arguments))
    out = Path(asked["--out"])
    rows = {"large": 8192, "medium": 586, "small": 16}[out.name]
    made: list[Outcome] = []
    for cols, weight in ((2560, "kn"), (4096, "nk")):
        kernels = {"solkit": 0.9, "torch": 1.2, "cublaslt": 1.04, "cublaslt_best": 1.0}
        if cols == 2560:
            kernels |= {"triton": 1.1}
        for kernel, factor in kernels.items():
            of = case(rows, kernel, cols=cols, depth=cols, weight=weight)
            time_us = bound(worked(of), measured_roof(CEILINGS)).sol_s * 1.3e6 * factor
            made.append(timed(of, time_us))
    made.append(Failed(case(rows, "quack"), "launch", "a<b> | c"))
    out.mkdir(parents=True)
    log.touch()
    with records.Writer(out / "run.jsonl", synthetic_run([])) as writer:
        writer.add(made)
    return ""


def test_the_page_is_made_from_the_runs(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """All segments are measured, kept, judged and shown; what stands around the section stays."""
    page = tmp_path / "page.md"
    page.write_text("# Top\n<!-- matmul_add:begin -->\n<!-- matmul_add:end -->\nThe end.\n")
    where = ["--runs", str(tmp_path / "kept"), "--page", str(page)]
    assert 0 == matmul.SCRIPT.main([*where, "--work", str(tmp_path / "work")], card)
    assert {"large.jsonl", "medium.jsonl", "small.jsonl", "versions.json"} == {
        path.name for path in (tmp_path / "kept").iterdir()
    }
    (tmp_path / "kept" / "versions.json").write_text('{"torch": "2.99"}')
    assert 0 == matmul.SCRIPT.main(["--docs", *where])
    text = page.read_text()
    assert text.startswith("# Top\n<!-- matmul_add:begin -->\nMeasured on 2026-01-31: ")
    golden("matmul_benchmark.md", text)


def test_what_misses_its_bar_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every bar with its figure, then each shape that misses one."""
    page = tmp_path / "page.md"
    page.write_text("<!-- matmul_add:begin -->\n<!-- matmul_add:end -->\n")
    where = ["--runs", str(tmp_path / "kept"), "--page", str(page)]
    matmul.SCRIPT.main([*where, "--work", str(tmp_path / "work")], card)
    matmul.SCRIPT.main(["--docs", *where])
    told = capsys.readouterr().out
    assert f"PASS         {LARGE}: {MEAN}: 0.900 x over 2 shapes (1.00 x)" in told
    assert f"**FAIL**     {SMALL}: {MEAN}: 0.900 x over 2 shapes (0.80 x)" in told
    assert "not measured M = 8192, K = N = 2560, bf16: time over the plain product's" in told
