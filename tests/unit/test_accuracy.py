"""The accuracy benchmark without a GPU: its limits, page, record, sweeps and parsers."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from accuracy_record import record
from cards import H200
from hypothesis import given
from hypothesis import strategies as st
from synthetic import measured

from solkit.declare.catalog import LocalCatalog
from solkit.declare.registry import bundled, load
from solkit.model import Case, Failed, Measured, Work
from solkit.plan.sweep import read_sweep

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import accuracy  # noqa: E402  # a script, found by the path above
from accuracy_parts import limits, ncu, page, parts, pipeline, sweeps  # noqa: E402

RECORDED = ROOT / "benchmarks" / "h200" / "accuracy.json"
COPY = Case("copy", "a", {"elements": 4096}, "bf16")
NCU_TEXT = """\
==PROF== Connected to process 811 (/usr/bin/python3.12)
==PROF== Profiling "copy" - 0: 0%....50%....100% - 1 pass
==PROF== Profiling "copy" - 1: 0%....50%....100% - 1 pass
==PROF== Profiling "read" - 2: 0%....50%....100% - 1 pass
==PROF== Disconnected from process 811
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",\
"Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum"
"","","","","","","","","","","","Mbyte","Kbyte","us"
"0","811","python3.12","127.0.0.1","copy","1","7","(256, 1, 1)","(512, 1, 1)","0","9.0",\
"1.05","1,024.5","2.88"
"1","811","python3.12","127.0.0.1","copy","1","7","(256, 1, 1)","(512, 1, 1)","0","9.0",\
"1.07","1,000.5","2.80"
"2","811","python3.12","127.0.0.1","read","1","7","(512, 1, 1)","(64, 1, 1)","0","9.0",\
"1.04","0.032","3.10"
"""


def verdict(test: str, found: dict[str, Any]) -> limits.Verdict:
    """Return the one verdict whose test contains these words."""
    (one,) = [each for each in limits.verdicts(found) if test in each.test]
    return one


def test_the_page_is_made_from_the_record(golden: Callable[[str, str], None]) -> None:
    """What a reader sees of an invented record."""
    golden("accuracy.md", page.render(record()))


@pytest.mark.skipif(not RECORDED.exists(), reason="no record was made yet")
def test_the_committed_page_is_the_committed_records() -> None:
    """After a new recording: python benchmarks/accuracy.py --docs."""
    assert 0 == accuracy.main(["--check"])
    assert RECORDED.stat().st_size < 300_000


def test_check_fails_on_a_page_that_is_not_the_records(tmp_path: Path) -> None:
    """--docs makes the page, --check accepts it, and a figure changed by hand is found."""
    held, shown = tmp_path / "accuracy.json", tmp_path / "accuracy.md"
    held.write_text(accuracy.text_of(record()))
    where = ["--record", str(held), "--page", str(shown)]
    assert 1 == accuracy.main([*where, "--check"])
    assert 0 == accuracy.main([*where, "--docs"])
    assert 0 == accuracy.main([*where, "--check"])
    shown.write_text(shown.read_text().replace("+0.020", "+0.010"))
    assert 1 == accuracy.main([*where, "--check"])


def test_the_record_is_json_with_a_line_a_row() -> None:
    """What is written reads back as it was."""
    text = accuracy.text_of(record())
    assert record() == json.loads(text)
    assert len(record()["cache"]) <= text.count("\n")


def test_an_unknown_part_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the stranger and every part there is."""
    with pytest.raises(SystemExit) as ended:
        accuracy.options(["--only", "spin,spni"])
    assert 2 == ended.value.code
    assert "spni" not in parts.PARTS
    assert "--only" in capsys.readouterr().err


def test_parts_are_measured_in_their_own_order() -> None:
    """Whoever names them the other way round gets the same run."""
    assert ["spin", "aa"] == parts.chosen("aa, spin")
    with pytest.raises(ValueError, match=r"spni; known: environment, spin"):
        parts.chosen("spni")


def test_every_limit_of_a_good_record_is_kept() -> None:
    """The invented record passes everything."""
    assert [] == [each for each in limits.verdicts(record()) if each.passed is not True]


def test_an_empty_record_claims_nothing() -> None:
    """Without figures nothing passes, nothing fails, and the page says that it was not measured."""
    assert {None} == {each.passed for each in limits.verdicts({})}
    assert "PASS" not in page.render({})
    assert 6 < page.render({}).count("not measured")


@pytest.mark.parametrize(
    ("us", "error_us", "kept"),
    [
        (2, 0.1, True),  # 0.1 us, while 1 % of 2 us is 0.02
        (2, -0.101, False),
        (100, 1.0, True),  # 1 % of 100 us is more than 0.1
        (100, 1.001, False),
    ],
)
def test_a_spin_kernel_may_be_off_by_a_tenth_or_a_hundredth(
    us: int,
    error_us: float,
    kept: bool,  # noqa: FBT001  # the expectation
) -> None:
    """CUPTI's limit is the larger of 0.1 us and 1 %, on both sides."""
    found = {"spin": [{"us": us, "method": "cupti", "floor_us": 0.6, "error_us": error_us}]}
    assert kept is verdict("spin kernels, cupti", found).passed


def test_small_copies_may_differ_from_ncu_and_large_ones_may_not() -> None:
    """The limit of 2 % begins at 256 MiB."""
    rows = [
        {"buffer_bytes": 64 * 2**20, "solkit_us": 30.0, "ncu_us": 33.0},
        {"buffer_bytes": 256 * 2**20, "solkit_us": 98.0, "ncu_us": 100.0},
    ]
    assert verdict("Nsight", {"copy": rows}).passed is True
    rows[1]["solkit_us"] = 97.9
    missed = verdict("Nsight", {"copy": rows})
    assert (False, "-2.10 %") == (missed.passed, missed.figure)


def test_what_solkit_run_prints_is_held_against_the_settled_kernel() -> None:
    """Three ticks on a short kernel, 2 % on a long one; reads count as copies do."""
    found: dict[str, Any] = {
        "copy": [{"kernel": "copy", "buffer_bytes": 4096, "solkit_us": 1.0, "run_us": 1.096}],
        "read": [{"kernel": "read", "buffer_bytes": 2**28, "solkit_us": 100.0, "run_us": 102.0}],
    }
    assert verdict("solkit run", found).passed is True
    found["read"][0]["run_us"] = 102.1
    missed = verdict("solkit run", found)
    assert (False, "+2.100 µs on 100.000 µs (read, 262144 KiB)") == (missed.passed, missed.figure)


def test_bytes_are_judged_in_cold_alone_and_writes_from_16_mib() -> None:
    """A hot kernel reads nothing, a small one's writes leave later: neither is a miss."""
    rows = [
        {"kernel": "copy", "buffer_bytes": 2**20, "mode": "cold", "read_fraction": 1.0}
        | {"write_fraction": 0.2},
        {"kernel": "copy", "buffer_bytes": 2**24, "mode": "cold", "read_fraction": 1.001}
        | {"write_fraction": 0.95},
        {"kernel": "copy", "buffer_bytes": 2**24, "mode": "hot", "read_fraction": 0.0}
        | {"write_fraction": 0.0},
    ]
    found = {"cache": rows}
    assert (True, True) == (verdict("bytes read", found).passed, verdict("written", found).passed)
    rows[1] |= {"read_fraction": 1.02, "write_fraction": 1.03}
    assert (False, False) == (verdict("bytes read", found).passed, verdict("written", found).passed)


def test_too_few_pairs_prove_nothing() -> None:
    """No alarm in 399 pairs is not the 400 that are asked for."""
    found = {"aa": {"pairs": 399, "changed": 0, "interval": [0.0, 0.0092]}}
    assert verdict("as two", found).passed is False
    found["aa"] |= {"pairs": 400, "changed": 4}
    assert verdict("as two", found).passed is True
    found["aa"] |= {"changed": 5}
    assert verdict("as two", found).passed is False


def test_a_missed_limit_is_shown_as_missed() -> None:
    """The word and the figure are both bold on the page."""
    missed = record()
    missed["spin"][0] |= {"error_us": 0.25}
    assert "| spin kernels, cupti | 0.1 µs or 1 % | +0.250 µs at 2 µs | **FAIL** |" in page.render(
        missed
    )
    assert "| **+0.250** |" in page.render(missed)


def test_an_absent_tool_is_named_with_the_reason() -> None:
    """Its column is gone, the others stay."""
    found = record() | {"missing": {"copy/nvbench": "ImportError: no cuda.bench"}}
    for row in (*found["copy"], *found["read"]):
        del row["nvbench_us"]
    text = page.render(found)
    assert "- `nvbench` is absent: ImportError: no cuda.bench" in text
    assert "| buffer | solkit (CUPTI) | solkit run | Nsight Compute | do_bench |" in text


def test_a_part_replaces_its_own_figures_and_reasons_only() -> None:
    """A second run of spin leaves the rest of the record as it was."""
    before = record() | {"missing": {"spin/graph": "old", "copy/nvbench": "absent"}}
    after = parts.merged(before, "spin", {"spin": [{"us": 2}], "missing": {"spin/cupti": "new"}})
    assert [{"us": 2}] == after["spin"]
    assert {"copy/nvbench": "absent", "spin/cupti": "new"} == after["missing"]
    assert before["cache"] == after["cache"]


def test_a_part_that_dies_keeps_what_was_there() -> None:
    """Figures outlive a later try that found nothing; a first try leaves its reason."""
    assert record() == parts.merged(record(), "aa", {"missing": {"aa": "status 1"}})
    assert {"missing": {"aa": "status 1"}} == parts.merged(
        {}, "aa", {"missing": {"aa": "status 1"}}
    )


def test_ncus_table_is_read_in_si_units() -> None:
    """Talk is skipped, the row of units is applied, thousands lose their commas."""
    first, _, last = ncu.parse(NCU_TEXT, ncu.METRICS)
    assert ("copy", "read") == (first.name, last.name)
    assert {ncu.TIME: 2.88e-6, ncu.READ: 1.05e6, ncu.WRITTEN: 1024.5e3} == pytest.approx(
        first.values
    )
    assert 32.0 == last.values[ncu.WRITTEN]


def test_metrics_that_need_two_passes_are_collected_one_by_one() -> None:
    """A replayed kernel would find its input in the cache: its counts are thrown away."""
    asked = []

    def said(metrics: Sequence[str]) -> str:
        asked.append(list(metrics))
        return NCU_TEXT if len(metrics) == 1 else NCU_TEXT.replace("1 pass\n", "2 passes\n")

    assert ncu.parse(NCU_TEXT, ncu.METRICS) == ncu.collected(said)
    assert [list(ncu.METRICS), *([metric] for metric in ncu.METRICS)] == asked


def test_ncus_rows_go_to_the_calls_that_were_made() -> None:
    """Two profiles of copy and one of read, in the order of the calls, as medians."""
    wanted = [ncu.Wanted("copy", 2**20, "cold", 2), ncu.Wanted("read", 2**20, "hot", 1)]
    copies, reads = ncu.shared_out(wanted, ncu.parse(NCU_TEXT, ncu.METRICS))
    assert (2.84e-6, 1.06e6) == (pytest.approx(copies.time_s), pytest.approx(copies.read_bytes))
    assert ("hot", 3.1e-6) == (reads.wanted.mode, pytest.approx(reads.time_s))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no table"),
        (NCU_TEXT.replace("1 pass\n", "3 passes\n"), "replayed"),
        (NCU_TEXT.replace("Mbyte", "furlong"), "in 'furlong'"),
        (NCU_TEXT.replace("dram__bytes_read.sum", "other"), "no column dram__bytes_read.sum"),
        (NCU_TEXT.replace('"2.88"', '"n/a"'), "as 'n/a'"),
    ],
)
def test_what_ncu_did_not_say_is_an_error(text: str, said: str) -> None:
    """No figure is made up from a table that lacks it."""
    with pytest.raises(ncu.NoNcu, match=said):
        ncu.parse(text, ncu.METRICS)


def test_another_number_of_profiles_is_an_error() -> None:
    """Rows that can't be told apart are given to nobody."""
    rows = ncu.parse(NCU_TEXT, ncu.METRICS)
    with pytest.raises(ncu.NoNcu, match="3 kernels, the child launched 2"):
        ncu.shared_out([ncu.Wanted("copy", 2**20, "cold", 2)], rows)
    with pytest.raises(ncu.NoNcu, match="'read' where 'copy'"):
        ncu.shared_out([ncu.Wanted("copy", 2**20, "cold", 3)], rows)


def test_ncu_leaves_clocks_and_caches_alone_and_sees_the_wanted_kernels_only() -> None:
    """The flush between calls and whatever the set-up launches is not profiled."""
    words = ncu.command(
        "ncu",
        [ncu.Wanted("read", 1, "hot", 1), ncu.Wanted("copy", 1, "hot", 1)],
        ncu.METRICS,
        Path("asked"),
        Path("log"),
    )
    pairs = dict(pairwise(words))
    assert ("none", "none", "off", "regex:^(copy|read)") == (
        pairs["--clock-control"],
        pairs["--cache-control"],
        pairs["--profile-from-start"],
        pairs["--kernel-name"],
    )


def test_the_throughput_sweep_is_500_different_short_cases(tmp_path: Path) -> None:
    """The sweep's own reader takes them; none moves more than 96 MB, 25 us on an H200."""
    path = tmp_path / "shapes.yaml"
    path.write_text(sweeps.text(sweeps.short(500)))
    registry = bundled()
    cases = read_sweep(path, LocalCatalog(registry), device="cuda").cases
    assert 500 == len(cases) == len({case.key for case in cases})
    assert 7 == len({case.operator for case in cases})
    traffic = [registry.operators[case.operator].work(case).traffic_bytes for case in cases]
    assert max(traffic) <= 96_000_000


def test_a_first_pass_compiles_every_function_of_the_sweep() -> None:
    """Far fewer cases than the sweep has, and one for each compiled function."""
    points = sweeps.short(500)
    first = pipeline.representatives(points)
    assert len(first) < 100
    assert len(first) == len(pipeline.representatives([*first, *points]))


@pytest.mark.parametrize("kernel", ["copy", "read"])
@pytest.mark.parametrize("buffer_bytes", [4096, 2**16, 2**30])
def test_a_stream_reads_as_many_bytes_as_its_row_of_the_table_says(
    kernel: str, buffer_bytes: int
) -> None:
    """What is written is as much again, or next to nothing."""
    work = bundled().operators[kernel].work(sweeps.stream(kernel, buffer_bytes).case("solkit"))
    assert buffer_bytes == work.read_bytes
    assert work.write_bytes == buffer_bytes or work.write_bytes <= 0.002 * buffer_bytes


@given(count=st.integers(2, 450), shortest_us=st.floats(1.5, 5), longest_us=st.floats(10, 2000))
def test_a_spread_sweep_has_as_many_cases_as_asked_for(
    count: int, shortest_us: float, longest_us: float
) -> None:
    """All different, whatever the lengths."""
    points = sweeps.spread(count, shortest_us * 1e-6, longest_us * 1e-6)
    assert count == len({point.case("any").key for point in points})


def test_twins_are_two_kernels_of_the_same_code(tmp_path: Path) -> None:
    """The declarations that A/A loads: `a` and `b` launch what the bundled kernel launches."""
    path, shapes = tmp_path / "twins.py", tmp_path / "shapes.yaml"
    path.write_text(pipeline.TWINS)
    registry = bundled()
    registry.add(load(path), where=str(path))
    shapes.write_text(sweeps.text(sweeps.spread(420, 2e-6, 1e-3), ("a", "b")))
    cases = read_sweep(shapes, LocalCatalog(registry), device="cuda").cases
    assert (840, 420) == (len(cases), len({case.group_key for case in cases}))
    for case in cases[:20]:
        own, base = (registry.kernels[case.operator, name] for name in (case.kernel, "solkit"))
        assert () != base.launches_on(case, H200)
        assert base.launches_on(case, H200) == own.launches_on(case, H200)
        assert (base.folder / base.source).read_text() == (own.folder / own.source).read_text()


def timed(case: Case, median_us: float, half_us: float) -> Measured:
    """Return an outcome with this median and interval."""
    made = measured(case, Work(8192, 8192), time_s=median_us * 1e-6)
    return replace(
        made,
        median_s=median_us * 1e-6,
        low_s=(median_us - half_us) * 1e-6,
        high_s=(median_us + half_us) * 1e-6,
    )


@pytest.mark.parametrize(
    ("median_us", "half_us", "precise"),
    [(100, 0.5, True), (100, 0.51, False), (1, 0.096, True), (1, 0.1, False)],
)
def test_an_interval_is_narrow_within_half_a_percent_or_three_ticks(
    median_us: float,
    half_us: float,
    precise: bool,  # noqa: FBT001  # the expectation
) -> None:
    """Three ticks of 32 ns are the finest that a short kernel can have."""
    assert precise is pipeline.precise(timed(COPY, median_us, half_us))


def test_orders_agree_where_intervals_meet_or_medians_are_three_ticks_apart() -> None:
    """One case of three has moved: two thirds agree, and it is named with its times."""
    cases = [replace(COPY, shape={"elements": 8 * number}) for number in (1, 2, 3)]
    first = [timed(case, 10, 0.01) for case in cases]
    second = [timed(cases[0], 10.09, 0.01), timed(cases[1], 10.5, 0.6), timed(cases[2], 10.2, 0.01)]
    found = pipeline.order({"forwards": first, "backwards": second})
    assert (3, 0.6667) == (found["cases"], found["agree_fraction"])
    (moved,) = found["apart"]
    assert (str(cases[2]), 10.0, 10.2) == (
        moved["case"],
        moved["forwards_us"],
        moved["backwards_us"],
    )


def test_pairs_are_judged_as_a_change_would_be() -> None:
    """Equal pairs are SAME, a doubled one counts as changed, half a pair as none."""
    cases = [replace(COPY, shape={"elements": 8 * number}) for number in (1, 2, 3)]
    outcomes: list[Any] = []
    for case, time_us in zip(cases, (10, 20, 10), strict=True):
        base = measured(case, Work(8192, 8192), time_s=10e-6)
        head = measured(replace(case, kernel="b"), Work(8192, 8192), time_s=time_us * 1e-6)
        outcomes += [base, head]
    outcomes[-1] = Failed(outcomes[-1].case, "launch", "out of memory")
    found = pipeline.aa(outcomes)
    assert (2, 1, {"SAME": 1, "SLOWER": 1}) == (found["pairs"], found["changed"], found["words"])
    assert (1, 10.0, 20.0) == (
        found["left_out_count"],
        pytest.approx(found["changed_cases"][0]["base_us"], rel=0.02),
        pytest.approx(found["changed_cases"][0]["head_us"], rel=0.02),
    )


def test_without_a_gpu_every_part_says_why_and_nothing_is_lost(tmp_path: Path) -> None:
    """The whole script on a machine without a card: reasons in the record, exit code 1."""
    held, shown = tmp_path / "accuracy.json", tmp_path / "accuracy.md"
    kept = record()
    del kept["spin"]
    held.write_text(accuracy.text_of(kept))
    script = ROOT / "benchmarks" / "accuracy.py"
    done = subprocess.run(
        [sys.executable, script, "--only", "spin", "--record", held, "--page", shown],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": "", "CUDA_VISIBLE_DEVICES": "-1"},
    )
    now = json.loads(held.read_text())
    if "spin" in now:
        pytest.skip("this machine has a GPU")
    assert 1 == done.returncode
    assert kept["aa"] == now["aa"]
    assert any(place.split("/")[0] == "spin" for place in now["missing"])
    assert "not measured" in shown.read_text()


def test_parts_of_several_cards_say_so() -> None:
    """Each part keeps the card it was measured on; the page names them where they differ."""
    first = parts.merged({}, "environment", {"environment": {"uuid": "GPU-a"}})
    first = parts.merged(first, "spin", {"spin": [{"us": 2}]})
    then = parts.merged(first, "environment", {"environment": {"uuid": "GPU-b"}})
    then = parts.merged(then, "aa", {"aa": {"pairs": 1}})
    assert {"spin": "GPU-a", "aa": "GPU-b"} == then["cards"]
    assert "spin on GPU-a; aa on GPU-b" in page._cards(then)
    assert "" == page._cards(first)
