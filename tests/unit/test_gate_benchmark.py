"""The gate's benchmark without a GPU: its cases, delays, recorded runs, figures and page."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from cards import H200
from synthetic import measured, synthetic_run

from solkit import record as records
from solkit.declare.catalog import LocalCatalog
from solkit.declare.registry import bundled, load
from solkit.measure.device import nvrtc
from solkit.model import Case, Failed, Measured, Outcome, Run, Work
from solkit.plan.sweep import read_sweep
from solkit.resources import folder

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import gate  # noqa: E402  # a script, found by the path above
from gate_parts import delayed, judging, limits, page, runs, sweep  # noqa: E402

RECORDED = ROOT / "benchmarks" / "h200" / "gate"
FEW = 24
KNOWN = bundled().operators


class Card:
    """A card that takes what a formula says, in place of `solkit run` in a process of its own.

    noise_fraction: how far the medians of two runs of one case lie apart. broken: runs that leave
    no file; cut: runs that stop after so many cases.
    """

    def __init__(self, *, broken: Sequence[str] = (), cut: dict[str, int] | None = None) -> None:
        self.broken, self.cut, self.commands = broken, cut or {}, list[Sequence[str]]()

    def __call__(self, command: Sequence[str], at: Path) -> str:
        """Write the run that the command would have left in the folder."""
        self.commands.append(command)
        asked = dict(pairwise(command))
        name = asked["--out"]
        if name in self.broken:
            return "status 4: no device"
        delays = json.loads((at / delayed.DELAYS).read_text())
        cases = cases_of(at / asked["--shapes"])[: self.cut.get(name)]
        outcomes = [timed(case, delays, name) for case in cases]
        (at / name).mkdir()
        number = len(self.commands)
        header = replace(synthetic_run([]), id=f"run-{name}-{number}", planned_count=FEW)
        with records.Writer(at / name / "run.jsonl", header) as writer:
            writer.add(outcomes)
        path = at / name / "run.jsonl"  # a run takes as long as it takes, but not on a page
        path.write_text(re.sub(r'"duration_s":[\d.]+', '"duration_s":14.2', path.read_text()))
        return "cut after 120 s" if name in self.cut else ""


def cases_of(shapes: Path) -> list[Case]:
    """Return the cases of a shapes.yaml of the benchmark."""
    swept = yaml.safe_load(shapes.read_text())["sweeps"]
    usual = {
        name: {param: values[0] for param, values in operator.params.items()}
        for name, operator in KNOWN.items()
    }
    return [
        Case(
            each["operator"],
            kernel,
            shape,
            each["dtype"],
            usual[each["operator"]] | each.get("params", {}),
        )
        for each in swept
        for kernel in each["kernels"]
        for shape in each["shapes"]
    ]


def timed(case: Case, delays: dict[str, Any], name: str) -> Measured:
    """Return a case that takes its bytes at 1.8 TB/s, a launch, and the delays; a little jitter."""
    traffic = KNOWN[case.operator].work(case).traffic_bytes
    wait_s = (delays["base_ns"] + delays["planted_ns"][sweep.name_of(case)]) * 1e-9
    time_s = traffic / 1.8e12 + 2e-6 + wait_s
    jitter = 1 + 0.001 * (len(name) % 2)
    return measured(case, Work(traffic, 8), time_s=time_s * jitter)


def made(at: Path, card: Card, *more: str) -> int:
    """Measure with an invented card into a folder; return the exit code."""
    where = ["--runs", str(at / "gate"), "--record", str(at / "gate.json")]
    where += ["--page", str(at / "gate.md"), "--cases", str(FEW)]
    return gate.main([*where, *more], card)


def test_the_sweep_is_over_200_different_memory_bound_cases() -> None:
    """Every operator is met below 5 us and above 100 us; the sweep's own order is by length."""
    cases = [point.case(sweep.KERNEL) for point in sweep.points()]
    assert 224 == len({case.key for case in cases})
    assert set(sweep.OPERATORS) == {case.operator for case in cases}
    traffic = {
        operator: [
            KNOWN[operator].work(case).traffic_bytes for case in cases if case.operator == operator
        ]
        for operator in sweep.OPERATORS
    }
    assert all(min(each) < 12e6 and max(each) > 300e6 for each in traffic.values())


def test_a_planted_share_is_a_whole_number_of_timer_steps() -> None:
    """5 % of 10 us are 500 ns: 512 is the nearest of 480 and 512. 1 % of 1 us is less than half."""
    assert {"x": 512, "y": 0} == sweep.planted({"x": 10e-6, "y": 1e-6}, 0.05) | sweep.planted(
        {"y": 1e-6}, 0.01
    )
    assert 0 == sweep.BASE_NS % sweep.STEP_NS


def test_the_declaration_adds_one_launch_and_nothing_else(tmp_path: Path) -> None:
    """The sweep reader takes the sweep; a call is the bundled launches, then the delay."""
    path, shapes = delayed.write(tmp_path), tmp_path / "shapes.yaml"
    points = sweep.points()
    names = [sweep.name_of(point.case(sweep.KERNEL)) for point in points]
    delayed.write_delays(tmp_path, {name: 32 * place for place, name in enumerate(names)})
    registry = bundled()
    registry.add(load(path), where=str(path))
    shapes.write_text(runs.sweeps.text(points, (sweep.KERNEL,)))
    cases = read_sweep(shapes, LocalCatalog(registry), device="cuda").cases
    assert names == [sweep.name_of(case) for case in cases]
    for place, case in enumerate(cases):
        own, base = (registry.kernels[case.operator, name] for name in (sweep.KERNEL, "solkit"))
        *before, last = own.launches_on(case, H200)
        assert base.launches_on(case, H200) == tuple(before)
        assert (delayed.ENTRY, (1024 + 32 * place,)) == (last.entry, last.args)
        assert ((1, 1, 1), (1, 1, 1)) == (last.grid, last.block)


def test_a_case_without_a_delay_is_no_case_with_none(tmp_path: Path) -> None:
    """A delay that was forgotten must not pass for a run in which nothing was planted."""
    path = delayed.write(tmp_path)
    delayed.write_delays(tmp_path, {})
    (kernel,) = [each for each in load(path) if getattr(each, "operator", "") == "copy"]
    with pytest.raises(KeyError):
        kernel.launches_on(sweep.points(2)[0].case(sweep.KERNEL), H200)  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.skipif(
    os.name == "nt" or os.uname().sysname != "Linux", reason="NVRTC's wheels are for Linux"
)
@pytest.mark.parametrize("operator", sweep.OPERATORS)
def test_delayed_sources_compile_without_a_complaint(tmp_path: Path, operator: str) -> None:
    """The bundled kernel and the spinning thread, in one compilation, for the H200's generation."""
    path = delayed.write(tmp_path)
    delayed.write_delays(
        tmp_path, sweep.without_delay(sweep.name_of(each.case("")) for each in sweep.points())
    )
    (kernel,) = [each for each in load(path) if getattr(each, "operator", "") == operator]
    point = next(each for each in sweep.points() if each.operator == operator)
    entries = tuple(
        launch.entry
        for launch in kernel.launches_on(point.case(sweep.KERNEL), H200)  # type: ignore[union-attr]
    )
    source = tmp_path / f"{operator}.cu"
    result = nvrtc.compile_source(
        source.read_text(encoding="utf-8"),
        name=source.name,
        entries=entries,
        arch="sm_90a",
        include_dirs=(folder("kernels") / "include", tmp_path),
        cache=tmp_path / "cache",
    )
    assert list(entries) == list(result.functions)
    assert [] == [text for info in result.functions.values() for text in info.warnings]
    assert 0 == result.functions[delayed.ENTRY].spill_bytes


def test_all_runs_are_measured_judged_and_shown(tmp_path: Path) -> None:
    """The whole chain on an invented card: no alarm, all of 5 and 10 % found, nothing of 1 %."""
    card = Card()
    assert 0 == made(tmp_path, card)
    assert list(sweep.FRACTIONS) == [dict(pairwise(each))["--out"] for each in card.commands]
    found = json.loads((tmp_path / "gate.json").read_text())["comparisons"]
    assert {"count": 0, "of": FEW, "low": 0.0, "high": 0.14247} == found["a2"]["alarms"]
    assert [0, FEW, FEW] == [found[name]["found"]["count"] for name in ("p1", "p5", "p10")]
    assert all(abs(found["p10"]["off_ns"][place]) <= 64 for place in ("p05", "p50", "p95"))
    assert 0 == made(tmp_path, card, "--check")
    assert 6 == len(card.commands)  # --check measures nothing


def test_what_is_planted_is_a_share_of_the_recorded_base_run(tmp_path: Path) -> None:
    """The delays of a run are written down beside it, with the base they were taken from."""
    made(tmp_path, Card(), "--only", "a,p10")
    noted = json.loads((tmp_path / "gate" / "planted.json").read_text())
    base = records.read(tmp_path / "gate" / "a.jsonl")
    assert {0} == set(noted["a"]["planted_ns"].values())
    assert base.id == noted["p10"]["base"]
    for name, median_s in sweep.measured(base).items():
        assert abs(noted["p10"]["planted_ns"][name] - 1e8 * median_s) <= 16.001


def test_a_run_that_fails_costs_its_own_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are measured and judged; the exit code and the last line say what is missing."""
    assert 1 == made(tmp_path, Card(broken=["p2", "p5"]))
    assert "problem: p2: it left no run: status 4: no device" in capsys.readouterr().err
    text = (tmp_path / "gate.md").read_text()
    assert "| `p5` | 5 % planted |  |  | not measured |" in text
    assert "| 5 % planted, cases over 10 µs: called SLOWER | 95 % of cases | not measured |" in text
    found = json.loads((tmp_path / "gate.json").read_text())["comparisons"]
    assert {"a2", "p1", "p10"} == set(found)


def test_a_run_that_was_cut_keeps_what_it_has(tmp_path: Path) -> None:
    """Cases it did not reach count as not found, and no other run is touched."""
    assert 1 == made(tmp_path, Card(cut={"p5": 20}))
    found = json.loads((tmp_path / "gate.json").read_text())["comparisons"]
    assert (20, FEW) == (found["p5"]["found"]["count"], found["p5"]["found"]["of"])
    assert 4 == found["p5"]["words"]["MISSING"]
    assert FEW == found["p10"]["found"]["count"]


def test_without_a_base_nothing_is_planted(tmp_path: Path) -> None:
    """Five runs say why they were not measured; the page claims nothing."""
    card = Card(broken=["a"])
    assert 1 == made(tmp_path, card)
    assert 1 == len(card.commands)
    assert "PASS" not in (tmp_path / "gate.md").read_text()
    assert "Nothing was measured yet." in (tmp_path / "gate.md").read_text()


def test_cases_that_the_base_did_not_measure_are_left_out_of_the_others(tmp_path: Path) -> None:
    """There is no time to take a share of."""
    made(tmp_path, Card(cut={"a": 19}), "--only", "a,p5")
    assert 19 == len(records.read(tmp_path / "gate" / "p5.jsonl").outcomes)


def test_runs_planted_by_an_older_base_are_no_part_of_the_figures(tmp_path: Path) -> None:
    """After a new base, the shares of the old one are shares of other times."""
    card = Card()
    made(tmp_path, card, "--only", "a,p5,p10")
    made(tmp_path, card, "--only", "a,p5")
    found = json.loads((tmp_path / "gate.json").read_text())["comparisons"]
    assert ["p5"] == list(found)


def test_nothing_of_the_machine_is_kept(tmp_path: Path) -> None:
    """The command names files from inside its folder; the folder's name is cut from messages."""
    seen = []

    def talk(command: Sequence[str], at: Path) -> str:
        said = Card()(command, at)
        path = at / "a" / "run.jsonl"
        path.write_text(path.read_text().replace("sampled rows", f"{at}/copy.cu(3)"))
        seen.append(str(at))
        return said

    where = [
        "--runs",
        str(tmp_path),
        "--record",
        str(tmp_path / "r"),
        "--page",
        str(tmp_path / "p"),
    ]
    assert 0 == gate.main(["--only", "a", "--cases", "6", *where], talk)
    text = (tmp_path / "a.jsonl").read_text()
    assert "copy.cu(3)" in text
    assert seen[0] not in text


def test_an_unknown_run_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the stranger and every run there is."""
    with pytest.raises(SystemExit) as ended:
        gate.options(["--only", "p5,p50"])
    assert 2 == ended.value.code
    assert "p50; known: a, a2, p1, p2, p5, p10" in capsys.readouterr().err


def test_a_whole_measurement_needs_the_card_for_less_than_150_s() -> None:
    """Six runs of all cases, start-up, compiler and ceilings."""
    assert 128 == round(runs.estimate_s(runs.Plan(tuple(sweep.FRACTIONS), RECORDED)))


def share(count: int, of: int) -> dict[str, Any]:
    """Return a rate as the record has it; the interval plays no part in a verdict."""
    return {"count": count, "of": of, "low": 0.0, "high": 1.0}


@pytest.mark.parametrize(
    ("name", "found", "passed"),
    [
        ("a2", {"alarms": share(2, 200)}, True),
        ("a2", {"alarms": share(3, 200)}, False),
        ("a2", {"alarms": share(0, 199)}, False),  # too few to prove it
        ("p5", {"found_over_10_us": share(95, 100)}, True),
        ("p5", {"found_over_10_us": share(94, 100)}, False),
        ("p10", {"found_over_10_us": share(0, 0)}, None),
    ],
)
def test_limits_are_one_in_a_hundred_and_95_in_a_hundred(
    name: str,
    found: dict[str, Any],
    passed: bool | None,  # noqa: FBT001  # the expectation
) -> None:
    """Each figure is kept at its limit and missed beyond it."""
    whole = {"faster": 0, "cases": 100} | found
    verdicts = limits.verdicts({"comparisons": {name: whole}})
    place = {"a2": 0, "p5": 1, "p10": 2}[name]
    assert passed is verdicts[place].passed


def test_a_slower_case_called_faster_is_a_false_alarm() -> None:
    """It counts against the same limit, over all planted runs together."""
    planted = {"p1": {"faster": 1, "cases": 100}, "p2": {"faster": 1, "cases": 100}}
    whole = {name: each | {"found_over_10_us": share(0, 0)} for name, each in planted.items()}
    assert limits.verdicts({"comparisons": whole})[-1].passed is True
    whole["p1"]["faster"] = 2
    assert limits.verdicts({"comparisons": whole})[-1].passed is False


def test_the_page_is_made_from_the_runs(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """What a reader sees of invented runs, one of which misses a limit and one of which was cut."""
    made(tmp_path, Card(cut={"p5": 21}))
    golden("gate_benchmark.md", (tmp_path / "gate.md").read_text())


def test_a_failed_case_is_named_with_its_word(tmp_path: Path) -> None:
    """A case that head could not measure is neither found nor an alarm; it is `other`."""
    made(tmp_path, Card(), "--only", "a,a2")
    both = runs.load(tmp_path / "gate")
    failed: tuple[Outcome, ...] = tuple(
        Failed(each.case, "check", "wrong values") if place == 3 else each
        for place, each in enumerate(both["a2"].outcomes)
    )
    changed: dict[str, Run] = both | {"a2": replace(both["a2"], outcomes=failed)}
    found = judging.judged(changed, runs.noted_in(tmp_path / "gate"))["comparisons"]["a2"]
    assert (0, FEW, 1) == (found["alarms"]["count"], found["cases"], found["words"]["INVALID"])
    assert f"| all | {FEW} |" in page.render(json.loads((tmp_path / "gate.json").read_text()))


@pytest.mark.skipif(not (RECORDED / "a.jsonl").exists(), reason="no run was recorded yet")
def test_the_committed_page_is_the_committed_runs() -> None:
    """After a new recording: python benchmarks/gate.py --docs."""
    assert 0 == gate.main(["--check"])
    assert sum(path.stat().st_size for path in RECORDED.glob("*")) < 6_000_000
    text = "".join(path.read_text(encoding="utf-8") for path in RECORDED.glob("*"))
    assert tempfile.gettempdir() not in text
