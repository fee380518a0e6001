"""The memory-bound kernels beside their peers, without a GPU: sweep, judgement, driver, page."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from time import monotonic

import pytest
from synthetic import CEILINGS, measured, synthetic_run

from solkit import record as records
from solkit.bound import bound, measured_roof
from solkit.declare.catalog import LocalCatalog
from solkit.declare.registry import bundled, load
from solkit.model import Case, Failed, Outcome, Skipped, Work
from solkit.plan.jobs import plan
from solkit.plan.specs import find, load_specs
from solkit.plan.sweep import read_sweep

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import memory  # noqa: E402  # a script, found by the path above
from beside_parts import bars as beside  # noqa: E402
from beside_parts import page as shared_page  # noqa: E402
from beside_parts import runs, standing  # noqa: E402
from beside_parts.sweep import PEERS  # noqa: E402
from memory_parts import bars, page, segments  # noqa: E402

OPERATORS = (
    *("rmsnorm", "add_rmsnorm", "add_layernorm", "quant_fp8", "softmax", "cross_entropy"),
    *("swiglu", "geglu", "bias_gelu", "rope", "embedding", "moe_topk", "attention_decode"),
    *("adamw", "dequant_gemv", "copy", "read", "write", "triad"),
)
TITLES = [bar.title for bar in bars.BARS]
NOTHING = "<!-- memory:begin -->\n<!-- memory:end -->\n"


def case(operator: str = "swiglu", kernel: str = "solkit", rows: int = 4096) -> Case:
    return Case(operator, kernel, {"rows": rows, "cols": 4096}, "bf16")


def copied(traffic_bytes: int) -> Work:
    """Return work that reads half of its bytes and writes the other half."""
    return Work(traffic_bytes // 2, traffic_bytes - traffic_bytes // 2)


def roof_s(work: Work) -> float:
    return bound(work, measured_roof(CEILINGS)).sol_s


def stood(*outcomes: Outcome) -> standing.Standing:
    """Return the one standing of a run with these outcomes."""
    (found,) = standing.standings([synthetic_run(outcomes)])
    return found


def verdict(title: str, *shapes: standing.Standing) -> tuple[str, bool | None]:
    """Return what a bar says of shapes: the counts, and whether all keep it."""
    found = beside.held(bars.BARS[TITLES.index(title)], shapes).verdict
    return found.figure.split(";")[0], found.passed


# The judgement.


def test_solkit_stands_against_the_fastest_peer_with_the_interval_of_the_ratio() -> None:
    """20 us beside 25 and 23: 1.15 x, and the slower peer is beside it."""
    work = copied(2**25)
    found = stood(
        measured(case(), work, time_s=20e-6),
        measured(case(kernel="torch"), work, time_s=25e-6),
        measured(case(kernel="liger"), work, time_s=23e-6),
    )
    assert ["liger", "torch"] == [peer.outcome.case.kernel for peer in found.peers]
    assert pytest.approx(23 / 20) == found.gain
    assert found.against is not None
    assert found.against.ratio_low_fraction < 20 / 23 < found.against.ratio_high_fraction
    assert roof_s(work) == found.roof_s


def test_of_several_kernels_of_solkit_the_fastest_stands() -> None:
    """solkit_cluster is solkit's, solkitty is somebody else's."""
    times = {"solkit": 22e-6, "solkit_cluster": 20e-6, "solkitty": 30e-6}
    work = copied(2**25)
    found = stood(*(measured(case(kernel=each), work, time_s=s) for each, s in times.items()))
    assert found.ours is not None
    assert "solkit_cluster" == found.ours.outcome.case.kernel == found.case.kernel
    assert 1.5 == pytest.approx(found.gain)


def test_kernels_of_two_runs_are_never_set_against_each_other() -> None:
    """A shape in two runs is the later one's, with the peers of that run alone."""
    work = copied(2**25)
    first = synthetic_run(
        [measured(case(), work, time_s=9e-5), measured(case(kernel="torch"), work, time_s=1e-5)]
    )
    second = synthetic_run([measured(case(), work, time_s=2e-5)])
    (found,) = standing.standings([first, second])
    assert (2e-5, None) == (found.ours and found.ours.median_s, found.gain)


def test_a_peer_that_fails_costs_its_own_case_alone() -> None:
    """The others are compared; the page says what failed and what was left out."""
    work = copied(2**25)
    found = stood(
        measured(case(), work, time_s=20e-6),
        Failed(case(kernel="liger"), "launch", "no such\nkernel"),
        Skipped(case(kernel="quack"), "needs quack"),
        measured(case(kernel="torch"), work, time_s=30e-6),
    )
    assert 1.5 == pytest.approx(found.gain)
    assert [("liger", "launch: no such kernel", True), ("quack", "needs quack", False)] == [
        (each.kernel, each.reason, each.failed) for each in found.absent
    ]


def test_a_kernel_of_solkit_without_a_time_misses_every_bar_of_its_shape() -> None:
    """The traffic is known from the peer, so the class is; nothing is left out silently."""
    work = copied(2**30)
    found = stood(
        Failed(case(), "check", "wrong values"),
        measured(case(kernel="torch"), work, time_s=30e-6 + roof_s(work)),
    )
    for title in ("every shape that was reached", TITLES[1], TITLES[-1]):
        assert ("0 of 1", False) == verdict(title, found)
    assert "no time: check: wrong values" == beside.told(bars.BARS[1], found)


@pytest.mark.parametrize(
    ("operator", "title", "least"),
    [
        ("swiglu", "elementwise and norms, 200 MB and more", 0.96),
        ("rmsnorm", "elementwise and norms, 200 MB and more", 0.96),
        ("rope", "adamw, bias_gelu, quant_fp8, rope, 200 MB and more", 0.93),
        ("softmax", "softmax, cross_entropy, 200 MB and more", 0.94),
        ("attention_decode", "attention_decode, 500 MB and more", 0.90),
        ("dequant_gemv", "dequant_gemv, 120 MB and more", 0.80),
    ],
)
def test_large_shapes_are_held_to_a_share_of_the_measured_roof(
    operator: str, title: str, least: float
) -> None:
    """Kept a little above the share, missed a little below it."""
    work = copied(2**30)
    for share, counts, passed in ((1.001, "1 of 1", True), (0.999, "0 of 1", False)):
        time_s = roof_s(work) / (least * share)
        found = stood(measured(case(operator), work, time_s=time_s))
        assert (counts, passed) == verdict(title, found)


@pytest.mark.parametrize(
    ("traffic_bytes", "title", "allowed_s"),
    [
        (199_999_999, "elementwise and norms, 8 to 200 MB", lambda roof: roof / 0.92),
        (8_000_000, "elementwise and norms, 8 to 200 MB", lambda roof: roof + 0.6e-6),
        (7_999_999, "elementwise and norms, under 8 MB", lambda roof: roof + 1e-6),
        (65_536, "elementwise and norms, under 8 MB", lambda roof: roof + 1e-6),
    ],
)
def test_smaller_shapes_are_held_to_a_time(
    traffic_bytes: int, title: str, allowed_s: Callable[[float], float]
) -> None:
    """The larger allowance counts: a share where the roof is long, microseconds where it isn't."""
    work = copied(traffic_bytes)
    limit_s = allowed_s(roof_s(work))
    for time_s, counts in ((limit_s - 2e-9, "1 of 1"), (limit_s + 2e-9, "0 of 1")):
        found = stood(measured(case(), work, time_s=time_s))
        assert (counts, counts == "1 of 1") == verdict(title, found)
        classes = [title for title in TITLES[1:] if verdict(title, found)[1] is not None]
        assert [title] == classes


@pytest.mark.parametrize(
    ("peer_s", "limit_s"),
    [
        (100e-6, 103e-6),  # 3 %
        (2e-6, 2e-6 + 3 * 32e-9),  # three ticks of the GPU's timer
    ],
)
def test_no_shape_may_be_slower_than_its_fastest_peer(peer_s: float, limit_s: float) -> None:
    """3 % or three ticks, whichever is more."""
    work = copied(2**20)
    peer = measured(case("moe_topk", "torch"), work, time_s=peer_s)
    for time_s, passed in ((limit_s - 1e-9, True), (limit_s + 1e-9, False)):
        found = stood(measured(case("moe_topk"), work, time_s=time_s), peer)
        assert passed is verdict(TITLES[-1], found)[1]
    assert (("not measured"), None) == verdict(
        TITLES[-1], stood(measured(case(), work, time_s=1e-5))
    )


def test_the_mean_of_the_gains_is_geometric_and_is_held_to_1_15() -> None:
    """Twice as fast in one shape and half as fast in another is no gain at all."""
    work = copied(2**25)

    def pair(rows: int, gain: float) -> standing.Standing:
        peer = measured(case(kernel="torch", rows=rows), work, time_s=40e-6 * gain)
        return stood(measured(case(rows=rows), work, time_s=40e-6), peer)

    alone = stood(measured(case(), work, time_s=1e-3))  # without a peer it says nothing
    tuned = stood(
        *(measured(case(kernel=each), work, time_s=1e-5) for each in ("solkit", standing.COMPILED))
    )
    assert "1.000 x, over 2 shapes" == bars.mean_verdict([pair(1, 2), pair(2, 0.5), alone]).figure
    assert (
        "1.414 x, over 2 shapes (1.000 x over the 1 with torch_compile among the peers)"
        == bars.mean_verdict([pair(1, 2), tuned]).figure
    )
    assert bars.mean_verdict([pair(1, 1.15), pair(2, 1.15)]).passed is True
    assert bars.mean_verdict([pair(1, 1.15), pair(2, 1.149)]).passed is False
    assert bars.mean_verdict([alone]).passed is None


def test_without_ceilings_a_roof_proves_nothing() -> None:
    """The shape is in its class and counts for neither side."""
    run = replace(synthetic_run([measured(case(), copied(2**30), time_s=1.0)]), ceilings=None)
    (found,) = standing.standings([run])
    assert ("not measured", None) == verdict(TITLES[1], found)
    assert (found,) == beside.held(bars.BARS[1], [found]).unknown


def test_the_worst_shape_is_named_with_its_figure_and_all_that_miss_are_listed() -> None:
    """The worst first, whatever the order of the run."""
    work = copied(2**30)
    shapes = [
        stood(measured(case(rows=rows), work, time_s=roof_s(work) / share))
        for rows, share in ((1, 0.97), (2, 0.5), (3, 0.7))
    ]
    found = beside.held(bars.BARS[1], shapes)
    assert (
        "1 of 3; worst: swiglu rows=2 cols=4096 bf16, SOL@measured 50.0 %" == found.verdict.figure
    )
    assert [2, 3] == [shape.case.shape["rows"] for shape in found.missed]


# The sweep.


def test_every_operator_is_of_one_segment_and_of_the_sweep() -> None:
    """Nineteen operators; the segments are the sweep, and nothing is in two of them."""
    held = [name for names in segments.SEGMENTS.values() for name in names]
    assert sorted(OPERATORS) == sorted(held)
    swept = re.findall(
        r"- operator: (\w+)", (ROOT / segments.SWEEP.shapes).read_text(encoding="utf-8")
    )
    assert set(OPERATORS) == set(swept)
    command = segments.SWEEP.command("rows", Path("out"), device="cuda")
    assert "operator=" + "|".join(segments.SEGMENTS["rows"]) in command


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


def test_the_sweep_plans_for_an_h200(catalog: LocalCatalog, cases: tuple[Case, ...]) -> None:
    """No case fails to be described, and no kernel of solkit leaves one out."""
    planned = plan(cases, catalog, device="cuda", gpu=find("h200", load_specs())[0])
    assert () == planned.failed
    assert [] == [str(each.case) for each in planned.skipped if each.case.kernel == "solkit"]
    held = {job.case.group_key: job for job in planned.jobs if job.case.kernel == "solkit"}
    assert {case.group_key for case in cases} == set(held)
    assert max(job.work.traffic_bytes for job in held.values()) < 36e9


def test_torch_compile_is_measured_in_at_most_150_shapes_beside_solkit(
    cases: tuple[Case, ...],
) -> None:
    """It takes seconds to compile each; none of its shapes is without solkit's kernel."""
    ours = {each.group_key for each in cases if each.kernel == "solkit"}
    compiled = [each for each in cases if each.kernel == standing.COMPILED]
    assert 60 <= len(compiled) <= 150
    assert [] == [str(each) for each in compiled if each.group_key not in ours]


@pytest.mark.parametrize(
    ("operator", "wanted"),
    [
        (
            "add_rmsnorm",
            {
                "rows": {1, 16, 64, 512, 2048, 8192, 32768},
                "cols": {2560, 4096, 5120, 8192, 16384},
            },
        ),
        ("cross_entropy", {"vocab": {32000, 128256, 151936, 262144}}),
        ("softmax", {"cols": {4096, 16384, 32768, 128256, 151936, 262144}}),
        ("attention_decode", {"batch": {1, 16, 64, 256}, "kv_len": {1024, 131072}}),
        ("moe_topk", {"experts": {8, 64, 128, 256, 512}, "top_k": {2, 4, 6, 8}}),
        ("dequant_gemv", {"tokens": {1, 2, 4, 8}, "rows": {4096, 8192, 28672, 57344}}),
        ("adamw", {"elements": {2**20, 2**28}}),
    ],
)
def test_the_shapes_that_matter_are_in_the_sweep(
    cases: tuple[Case, ...], operator: str, wanted: dict[str, set[int]]
) -> None:
    """Tokens by hidden sizes, vocabularies, lengths of a cache, experts."""
    own = [each for each in cases if each.operator == operator]
    for axis, extents in wanted.items():
        assert extents <= {each.shape[axis] for each in own}


# The driver.


class Card:
    """A card that takes what a formula says, in place of `solkit run` in a process of its own.

    broken: segments that leave no run. cut: segments that are stopped after so many cases.
    """

    def __init__(self, *, broken: Sequence[str] = (), cut: dict[str, int] | None = None) -> None:
        self.broken, self.cut, self.commands = broken, cut or {}, list[Sequence[str]]()

    def __call__(self, arguments: Sequence[str], log: Path, seconds: float) -> str:
        """Write what the command would have left in its folder."""
        self.commands.append(arguments)
        log.touch()
        assert seconds > runs.LEAST_S
        asked = dict(pairwise(arguments))
        resumed = "--resume" in asked
        out = Path(asked["--resume" if resumed else "--out"])
        name = out.name
        if name in self.broken:
            return "status 4: no device"
        made = outcomes_of(name)
        taken = made[self.cut[name] :] if resumed else made[: self.cut.get(name)]
        out.mkdir(parents=True, exist_ok=True)
        header = replace(synthetic_run([]), id=f"run-{name}", planned_count=len(made))
        path = out / "run.jsonl"
        cut = name in self.cut and not resumed
        with records.Writer(path, header, append=resumed) as writer:
            writer.add(taken)
        text = re.sub(r'"duration_s":[\d.]+', '"duration_s":14.2', path.read_text())
        path.write_text(text[: text.rindex('{"record":"end"')] if cut else text)
        return "cut after 100 s: go on with --resume" if cut else ""


def outcomes_of(segment: str) -> list[Outcome]:
    """Return two shapes of each operator of a segment, with a peer whose call costs 9 us."""
    made: list[Outcome] = []
    for place, operator in enumerate(segments.SEGMENTS[segment]):
        for rows, traffic_bytes in ((16, 2**20), (32768, 2**30)):
            work = copied(traffic_bytes)
            for kernel, times, launch_s in (("solkit", 1.02, 4e-6), ("torch", 1.3, 9e-6)):
                time_s = roof_s(work) * (times + 0.02 * place)
                outcome = measured(case(operator, kernel, rows), work, time_s=time_s)
                made.append(replace(outcome, launch_s=launch_s))
    made.append(Failed(case(segments.SEGMENTS[segment][0], "quack", 16), "launch", "a<b> | c"))
    return made


def made(at: Path, card: Card, *more: str) -> int:
    """Measure with an invented card into a folder; return the exit code."""
    (at / "page.md").write_text(f"# Benchmarks\n\n{NOTHING}\nThe end.\n")
    where = ["--runs", str(at / "memory"), "--work", str(at / "work")]
    return memory.SCRIPT.main([*where, "--page", str(at / "page.md"), *more], card)


def counts(at: Path) -> dict[str, int]:
    return {path.stem: len(records.read(path).outcomes) for path in (at / "memory").glob("*.jsonl")}


def test_all_segments_are_measured_kept_judged_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole chain; what stands around the section stays, and --check sees an old one."""
    card = Card()
    assert 0 == made(tmp_path, card)
    assert list(segments.SEGMENTS) == [
        Path(dict(pairwise(each))["--out"]).name for each in card.commands
    ]
    assert "norms: 16 of 17 cases measured, 1 failed" in capsys.readouterr().out
    made(tmp_path, card, "--docs")
    told = capsys.readouterr().out
    worst = "missed: elementwise and norms, 200 MB and more: triad rows=32768 cols=4096 bf16: "
    assert f"{worst}SOL@measured 83.3 %" in told
    text = (tmp_path / "page.md").read_text()
    assert text.startswith("# Benchmarks\n\n<!-- memory:begin -->\nMeasured on 2026-01-31: ")
    assert text.endswith("<!-- memory:end -->\n\nThe end.\n")
    where = ["--runs", str(tmp_path / "memory"), "--page", str(tmp_path / "page.md")]
    assert 0 == memory.SCRIPT.main(["--check", *where])
    (tmp_path / "page.md").write_text(text.replace("SOL", "sol", 1))
    assert 1 == memory.SCRIPT.main(["--check", *where])
    assert 3 == len(card.commands)  # --check measures nothing


def test_the_page_is_made_from_the_runs(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """What a reader sees of invented runs, one of which was cut."""
    made(tmp_path, Card(cut={"rows": 7}))
    found = page.render(runs.load(tmp_path / "memory", segments.SWEEP), {"torch": "2.99"})
    golden("memory_benchmark.md", found)


def test_segments_of_two_days_and_cards_say_so() -> None:
    """A segment that was measured anew is of another day, and maybe of another card."""
    first = synthetic_run([])
    later = replace(first, created="2026-02-01T00:10:00Z", facts=replace(first.facts, uuid="GPU-2"))
    text = shared_page.environment([later, first], {}, "h200/memory")
    assert text.startswith("Measured on 2026-01-31 and 2026-02-01: Example GPU 100, ")
    assert text.endswith("\n**The segments are from 2 cards of this model.**\n")


def test_a_segment_that_fails_costs_its_own_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are measured and judged; the exit code and the last line say what is missing."""
    assert 1 == made(tmp_path, Card(broken=["norms"]))
    assert "problem: norms: it left no run: status 4: no device" in capsys.readouterr().err
    assert {"elementwise", "rows"} == set(counts(tmp_path))


def test_a_segment_that_was_cut_keeps_what_it_has_and_is_finished_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--resume goes on with the cut one alone: what is complete isn't measured again."""
    card = Card(cut={"elementwise": 10})
    assert 1 == made(tmp_path, card)
    assert "elementwise: 31 of 41 cases were not reached; cut after" in capsys.readouterr().err
    assert {"norms": 17, "elementwise": 10, "rows": 21} == counts(tmp_path)
    assert 0 == made(tmp_path, card, "--resume")
    assert {"norms": 17, "elementwise": 41, "rows": 21} == counts(tmp_path)
    assert ["run", "--resume", str(tmp_path / "work" / "elementwise")] == list(
        card.commands[-1][:3]
    )
    assert 4 == len(card.commands)


def test_without_resume_a_segment_is_measured_anew(tmp_path: Path) -> None:
    """What the folder held is gone; nothing old is mixed into the new run."""
    card = Card()
    made(tmp_path, card)
    (tmp_path / "work" / "norms" / "old").write_text("")
    assert 0 == made(tmp_path, card, "--only", "norms")
    assert not (tmp_path / "work" / "norms" / "old").exists()
    assert {"norms", "elementwise", "rows"} == set(counts(tmp_path))


def test_when_the_time_is_over_no_segment_is_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A segment needs half a minute to begin at all."""
    card = Card()
    assert 1 == made(tmp_path, card, "--seconds", "20")
    assert [] == card.commands
    assert "problem: rows: not begun: 20 s are left" in capsys.readouterr().err


def test_a_run_that_does_not_stop_when_told_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its grace; then it and its workers are gone. One that stops says how."""
    monkeypatch.setattr(runs, "GRACE_S", 0.3)
    deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    good = "import signal, time; signal.signal(signal.SIGINT, lambda *_: exit(130)); time.sleep(60)"
    for code, status in ((deaf, None), (good, 130), ("raise SystemExit(3)", 3)):
        began_s = monotonic()
        process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        assert status == runs._ending(process, 1.4)
        assert process.poll() is not None
        assert monotonic() - began_s < 10


def test_nothing_of_the_machine_is_kept(tmp_path: Path) -> None:
    """The folders of work and of the repository are cut from messages and commands."""
    work = tmp_path / "work"

    def card(arguments: Sequence[str], log: Path, seconds: float) -> str:
        said = Card()(arguments, log, seconds)
        path = work / "rows" / "run.jsonl"
        place = f"{work}/rows {ROOT}/benchmarks/peers/a.py {tempfile.gettempdir()}/b"
        path.write_text(path.read_text().replace("sampled rows", place))
        return said

    (tmp_path / "page.md").write_text(NOTHING)
    where = ["--runs", str(tmp_path / "kept"), "--work", str(work), "--only", "rows"]
    assert 0 == memory.SCRIPT.main([*where, "--page", str(tmp_path / "page.md")], card)
    text = (tmp_path / "kept" / "rows.jsonl").read_text()
    assert '"way":"rows benchmarks/peers/a.py b"' in text


def test_an_unknown_segment_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the stranger and every segment there is."""
    with pytest.raises(SystemExit) as ended:
        memory.SCRIPT.options(["--only", "norms,sums"])
    assert 2 == ended.value.code
    assert "sums; known: norms, elementwise, rows" in capsys.readouterr().err
