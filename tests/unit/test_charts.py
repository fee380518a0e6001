"""The report's figures: complete, named, linked, the same every time, safe with any name."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from pathlib import Path

import charted_runs as runs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from solkit.bound import spec_roof
from solkit.judge.score import Scored, score
from solkit.model import Case, Failed, Measured, Run, Work
from solkit.report import bands, charts, marks
from solkit.report.charts import OperatorCharts
from solkit.report.plotting import COMPUTE_FACE, brief, clean, log_ticks

HOSTILE = '<script>alert(1)</script>\x1b[31m\x00 "&$\\frac{$' + "x" * 10_000


@cache
def big() -> tuple[dict[str, OperatorCharts], str, str]:
    """Draw the big run once for all tests."""
    run = runs.big_run()
    judged = score(run)
    return charts.operator_charts(judged, run), *charts.overview(judged, run)


def drawn(run: Run) -> tuple[dict[str, OperatorCharts], str]:
    judged = score(run)
    return charts.operator_charts(judged, run), charts.overview(judged, run)[0]


def svgs(found: dict[str, OperatorCharts], strip: str) -> list[str]:
    every = [text for chart in found.values() for text in (chart.sol_svg, chart.roofline_svg)]
    return [text for text in [strip, *every] if text]


def texts(svg: str) -> list[str]:
    root = ET.fromstring(svg)  # noqa: S314  # our own text
    return [element.text or "" for element in root.iter() if element.tag.endswith("text")]


def test_each_operator_has_its_charts_in_the_order_of_the_run() -> None:
    """What was measured first comes first."""
    found, _, _ = big()
    assert ["copy", "add_rmsnorm", "softmax", "swiglu", "matmul_add"] == list(found)


def test_no_chart_needs_a_style_a_script_or_the_network() -> None:
    """A strict content policy and a machine without network show the same picture."""
    found, strip, _ = big()
    for text in svgs(found, strip):
        assert "style=" not in text
        assert "<style" not in text
        assert "<script" not in text
        assert "target=" not in text
        assert set(re.findall(r'https?://[^"\s<]*', text)) <= {"http://www.w3.org/2000/svg"}


def test_ids_are_unique_over_all_charts_of_a_page() -> None:
    """Charts share a page: no shape of one may be found under the id of another."""
    found, strip, _ = big()
    ids = re.findall(r'\bid="([^"]+)"', "".join(svgs(found, strip)))
    assert len(set(ids)) == len(ids)


def test_marks_link_to_rows_that_exist() -> None:
    """Every link of a mark leads to a case of the run."""
    found, strip, _ = big()
    rows = len(runs.big_run().outcomes)
    links = re.findall(r'href="#r(\d+)"', "".join(svgs(found, strip)))
    assert links
    assert max(int(link) for link in links) < rows


def test_an_invalid_case_stands_above_100_and_is_named() -> None:
    """A number faster than light is neither clipped nor hidden: it has its mark and the word."""
    run = runs.big_run()
    judged = score(run)
    (invalid,) = [item for item in judged if isinstance(item, Scored) and item.status == "invalid"]
    text = big()[0]["softmax"].sol_svg
    assert invalid.raw_fraction > 1.3
    assert "INVALID rows=65536" in texts(text)
    heights = {word: float(y) for y, word in _tick_heights(text)}
    mark = _mark_height(text, judged.index(invalid))
    assert mark < heights["100"]  # y grows downwards


def _tick_heights(svg: str) -> list[tuple[str, str]]:
    return [
        (match[1], match[2])
        for match in re.finditer(r'<text[^>]*\by="([\d.]+)"[^>]*>(\d+)</text>', svg)
    ]


def _mark_height(svg: str, row: int) -> float:
    match = re.search(rf'href="#r{row}">(?:<title>[^<]*</title>)?<use[^>]*\by="([\d.]+)"', svg)
    assert match is not None
    return float(match[1])


def test_few_marks_carry_their_shapes_and_more_their_rows() -> None:
    """Each point has a name: beside it, or in the row whose number it carries."""
    found, _, _ = big()
    assert "rows=256" in texts(found["swiglu"].sol_svg)
    assert {str(row) for row in range(14)} <= set(texts(found["copy"].sol_svg))


def test_an_operator_without_flop_has_no_roofline_and_says_so() -> None:
    """A copy has no place on a map of intensity."""
    copy = big()[0]["copy"]
    assert copy.roofline_svg == ""
    assert "Roofline: none, as copy counts no FLOP." in copy.rule
    assert () == copy.not_placed


def test_a_measured_case_without_a_place_on_the_roofline_is_named() -> None:
    """Nothing is dropped silently; what was not measured has sections of its own."""
    case = Case("softmax", "solkit", {"rows": 64, "cols": 512}, "bf16")
    one = runs.measured(case, 0.5)
    bare = replace(one, case=replace(case, kernel="bare"), work=Work(*_traffic(one)))
    failed = Failed(replace(case, kernel="broken"), "check", "wrong")
    found, _ = drawn(runs.a_run((one, bare, failed), gpu=runs.card()))
    (said,) = found["softmax"].not_placed
    assert "1 case not on the roofline, no FLOP is counted: softmax/bare rows=64 cols=512" in said


def _traffic(item: Measured) -> tuple[int, int]:
    return item.work.read_bytes, item.work.write_bytes


def test_a_chart_says_how_it_is_drawn_only_where_a_reader_must_know() -> None:
    """Marks in their place with their names beside them explain themselves."""
    case = Case("softmax", "solkit", {"rows": 64, "cols": 512}, "bf16")
    alone = runs.measured(case, 0.5)
    shown, _ = drawn(runs.a_run((alone,), gpu=runs.card()))
    assert "" == shown["softmax"].rule
    twin = replace(alone, case=replace(case, kernel="twin"))
    shown, _ = drawn(runs.a_run((alone, twin), gpu=runs.card()))
    assert "marks stand up to 5 px aside so that none hides another" in shown["softmax"].rule
    assert "each mark has the number of its row (#)" in big()[0]["copy"].rule


def test_the_table_is_mentioned_to_who_cannot_see_the_chart() -> None:
    """The description read out ends with where the data is; the caption on the page doesn't."""
    found, _, alt = big()
    assert "The table of cases holds the data.</desc>" in found["copy"].sol_svg
    assert "The table of cases" not in found["copy"].sol_alt + found["softmax"].roofline_alt + alt


def test_roofs_are_labelled_with_number_and_unit() -> None:
    """A line without a number is decoration."""
    labels = texts(big()[0]["matmul_add"].roofline_svg)
    assert "spec 989 TFLOP/s" in labels
    assert "at 1755 MHz 949 TFLOP/s" in labels
    assert "measured 802 TFLOP/s" in labels
    assert "DRAM 4.8 TB/s (spec, clock)" in labels
    assert "ridge 206 FLOP/B" in labels


def test_estimated_work_says_so_on_the_axis() -> None:
    """An operator without exact FLOP stands on the map by an estimate, never silently."""
    labels = texts(big()[0]["swiglu"].roofline_svg)
    assert "arithmetic intensity, estimated fp32 FLOP per byte" in labels


def test_bf16_points_never_stand_under_an_fp32_roof() -> None:
    """Each kind of pipe has its own panel."""
    labels = texts(big()[0]["matmul_add"].roofline_svg)
    assert "bf16 tensor pipe, dense" in labels
    assert "fp32 pipe, dense" in labels


def test_the_alt_text_carries_the_result() -> None:
    """Who can't see the chart reads the median and both ends."""
    alt = big()[0]["swiglu"].sol_alt
    assert alt.startswith("swiglu, 8 cases: median 22.4 % of SOL, from 0.2 % (swiglu/solkit rows=1")
    assert "1 case is INVALID" in big()[0]["softmax"].sol_alt


def test_the_overview_has_a_line_for_each_operator_and_dtype() -> None:
    """One look tells where time is lost, and what went wrong."""
    _, strip, alt = big()
    labels = texts(strip)
    assert {"copy fp32", "copy bf16", "matmul_add bf16", "softmax bf16"} <= set(labels)
    assert "median 17.0 % of 8, 1 INVALID, 1 failed" in labels
    assert alt.startswith("Median SOL by operator and dtype, lowest first: softmax bf16 17.0 %")


def test_a_run_on_a_processor_is_drawn_under_its_measured_roof() -> None:
    """Without a spec file the ceilings of the device itself are the only roof."""
    found, _ = drawn(runs.cpu_run())
    labels = texts(found["matmul_add"].roofline_svg)
    assert "measured 51.2 TFLOP/s" in labels
    assert not any("spec" in label for label in labels)
    assert "SOL, % of the measured roof" in texts(found["copy"].sol_svg)


def test_an_empty_run_has_no_charts() -> None:
    """Nothing to draw is no error."""
    assert ({}, "") == drawn(runs.a_run((), gpu=runs.card()))


def test_a_run_in_which_all_failed_says_so_in_its_overview() -> None:
    """The strip plot shows the lines without a score."""
    cases = [Case("softmax", "solkit", {"rows": rows, "cols": 8}, "bf16") for rows in (1, 2)]
    run = runs.a_run(tuple(Failed(case, "compile", "no") for case in cases), gpu=runs.card())
    found, strip = drawn(run)
    assert found["softmax"].sol_svg == ""
    assert found["softmax"].rule == ""
    assert "no score, 2 failed" in texts(strip)


def test_one_case_is_enough() -> None:
    """A single point gets axes of a decade and its full shape."""
    case = Case("matmul_add", "solkit", {"M": 8192, "N": 2560, "K": 2560}, "bf16")
    found, _ = drawn(runs.a_run((runs.measured(case, 0.7, gpu=runs.card()),), gpu=runs.card()))
    assert "M=8192 N=2560 K=2560" in texts(found["matmul_add"].sol_svg)


def test_hostile_names_are_text_and_short() -> None:
    """HTML, control characters, TeX and ten thousand letters are names like any other."""
    one = runs.measured(Case("softmax", "solkit", {"rows": 64, "cols": 512}, "bf16"), 0.5)
    case = Case(HOSTILE, "_attn$" + HOSTILE, {"ro<b>ws": 64}, "bf16", {"漢字": "<i>" + "y" * 300})
    found, strip = drawn(runs.a_run((replace(one, case=case),)))
    page = "".join(svgs(found, strip))
    assert "<script>" not in page
    assert "\x1b" not in page
    assert len(page) < 60_000
    assert any("_attn$<script>" in label for label in texts(strip))


@settings(max_examples=15, deadline=None)
@given(name=st.text(min_size=1, max_size=40), value=st.text(max_size=40))
def test_any_name_is_drawn_as_wellformed_svg(name: str, value: str) -> None:
    """No text that a declaration can hold breaks a chart."""
    one = runs.measured(Case("softmax", "solkit", {"rows": 64, "cols": 512}, "bf16"), 0.5)
    case = Case(name, name, {name: 64}, "bf16", {"way": value})
    for text in svgs(*drawn(runs.a_run((replace(one, case=case),)))):
        ET.fromstring(text)  # noqa: S314  # our own text


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    """Hash seeds, time zones and locales leave no trace."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_charts as t; "
        "found, strip, alt = t.big(); print(''.join(t.svgs(found, strip)), alt)"
    )
    outputs = []
    for seed, zone, locale in (("0", "UTC", "C.UTF-8"), ("4711", "Asia/Tokyo", "C")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "TZ": zone,
            "LC_ALL": locale,
            "PYTHONUTF8": "1",
            "MPLCONFIGDIR": str(tmp_path),
        }
        command = [sys.executable, "-c", program, str(Path(__file__).parent)]
        outputs.append(subprocess.check_output(command, env=environment))
    assert len(outputs[0]) > 50_000
    assert outputs[0] == outputs[1]


def test_a_users_matplotlibrc_changes_nothing() -> None:
    """A picture looks like ours everywhere."""
    import matplotlib as mpl  # noqa: PLC0415  # only this test changes its settings

    run = runs.cpu_run()
    before = svgs(*drawn(run))
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.fonttype": "path"}):
        assert before == svgs(*drawn(run))


@pytest.mark.slow
def test_ten_thousand_cases_stay_small() -> None:
    """Cases that share a place share a mark: a report of any run can be opened."""
    gpu = runs.card()
    outcomes: list[Measured] = []
    for index in range(10_000):
        kernel, dtype = ("solkit", "torch", "triton")[index % 3], ("bf16", "fp32")[index % 2]
        if index % 5:
            shape = {"rows": 1 + (index * 7919) % 100_000, "cols": 8 * (1 + index % 900)}
            case = Case(("softmax", "swiglu")[index % 2], kernel, shape, dtype)
        else:
            shape = {"M": 1 + (index * 31) % 9000, "N": 64 * (1 + index % 90), "K": 2048}
            case = Case("matmul_add", kernel, shape, dtype)
        outcomes.append(runs.measured(case, 0.3 + index % 60 / 100, gpu=gpu))
    run = runs.a_run(tuple(outcomes), gpu=gpu)
    judged = score(run)
    found = charts.operator_charts(judged, run)
    strip, _ = charts.overview(judged, run)
    assert sum(len(text) for text in svgs(found, strip)) < 1_500_000
    assert "cases that share a place share one" in found["softmax"].rule


def test_short_names_hold_what_differs() -> None:
    """Within a chart, the axes that never change need no ink."""
    cases = [Case("a", "k", {"rows": rows, "cols": 8}, "bf16", {"way": "x"}) for rows in (1, 2)]
    assert ["rows=1", "rows=2"] == marks.short_names(cases)
    assert ["rows=1 cols=8 way=x"] == marks.short_names(cases[:1])


def test_clusters_never_mix_series_and_leave_nobody_out() -> None:
    """A mark of several cases is of one kernel, one dtype and one verdict."""
    judged = score(runs.big_run())
    points = [
        marks.Point(
            row=row,
            series=marks.Series(item.outcome.case.kernel, item.outcome.case.dtype),
            kind=marks.kind_of(item),
            name=str(row),
            scored=item,
            at=(1.0, 1.0),
            span=(1.0, 1.0),
        )
        for row, item in enumerate(judged)
        if isinstance(item, Scored)
    ]
    clusters = marks.cluster(points, [(5.0, 5.0)] * len(points), most=10)
    assert sorted(point.row for point in points) == sorted(
        point.row for cluster in clusters for point in cluster.points
    )
    for cluster in clusters:
        assert 1 == len({(point.series, point.kind) for point in cluster.points})


@given(
    low=st.floats(1e-6, 1e12),
    decades=st.floats(0.5, 20),
    most=st.integers(3, 9),
)
def test_log_ticks_lie_inside_and_are_few(low: float, decades: float, most: int) -> None:
    """Ticks never crowd an axis."""
    high = low * 10**decades
    ticks = log_ticks(low, high, most=most)
    assert all(low <= tick <= high for tick in ticks)
    assert len(ticks) <= most + 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.00 MB", "1 MB"), ("4.80 TB/s", "4.8 TB/s"), ("60.0 MiB", "60 MiB"), ("100 kB", "100 kB")],
)
def test_idle_zeros_are_dropped(text: str, expected: str) -> None:
    """A tick is read at a glance."""
    assert expected == brief(text)


def test_a_name_is_cut_to_its_room() -> None:
    """A label has the place of a label."""
    assert "a" * 39 + "…" == clean("a" * 100)


def test_labels_keep_off_the_words_at_the_roof() -> None:
    """What is kept free covers "speed of light" as it is drawn, at whatever resolution."""
    run = runs.big_run()
    for dpi in (72, 100, 144):
        figure = Figure(figsize=(6, 4), dpi=dpi)
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set(xscale="log", xlim=(1e6, 1e9), ylim=(0, 112))
        bands.draw_context(axes, run, None, 112.0)
        left, low, right, high = bands.lines_taken(axes, None)[-1]
        words = axes.texts[0].get_window_extent()
        assert left <= words.x0 + 1
        assert low <= words.y0
        assert words.x1 <= right
        assert words.y1 <= high


def test_hot_cases_are_in_no_chart_and_the_page_says_so() -> None:
    """DRAM is no bound for data in the L2: a mark would stand above a roof it never met."""
    cold = runs.measured(Case("copy", "x", {"elements": 2**24}, "bf16"), 0.8, gpu=runs.card())
    hot = replace(cold, case=replace(cold.case, cache_mode="hot"), cache="hot")
    run = runs.a_run((cold, hot), gpu=runs.card())
    found, strip = drawn(run)
    assert 1 == strip.count("#r0")
    assert not any("#r1" in text for text in svgs(found, strip))
    assert "1 hot case in no chart: DRAM is no bound for hot data" in found["copy"].not_placed
    alone = drawn(runs.a_run((hot,), gpu=runs.card()))
    assert ([], 1) == (svgs(*alone), len(alone[0]["copy"].not_placed))


def test_cases_that_differ_in_their_cache_mode_are_named_by_it() -> None:
    """And by nothing else; a run in one mode never mentions it."""
    case = Case("copy", "x", {"n": 8}, "bf16")
    assert ["cache=cold", "cache=zeroed"] == marks.short_names(
        [case, replace(case, cache_mode="zeroed")]
    )
    assert ["n=8"] == marks.short_names([case])


def test_what_streams_reach_here_is_drawn_beside_the_sheet() -> None:
    """Of memory-bound work the measured roof is a curve over bytes: the ramp, then 91 %."""
    gpu = runs.card()
    copy = runs.measured(Case("copy", "x", {"elements": 2**26}, "bf16"), 0.8, gpu=gpu)
    run = runs.a_run((copy,), gpu=gpu)
    scored = [item for item in score(run) if isinstance(item, Scored)]
    curve = bands.stream_curve(scored, spec_roof(gpu), run, (1e6, 1e10))
    assert curve is not None
    small, large = curve.places[0][1], curve.places[-1][1]
    assert 100 * (1e6 / 4.8e12) / (runs.FLOOR_S + 1e6 / 4.37e12) == pytest.approx(small, rel=0.02)
    assert 100 * 4.37 / 4.8 == pytest.approx(large, rel=0.02)
    assert "measured roof: best stream" in texts(drawn(run)[0]["copy"].sol_svg)


def test_what_bounds_a_case_shows_by_fill_and_by_colour() -> None:
    """Memory-bound marks are filled with their series' colour, others are open and yellow."""
    gpu = runs.card()
    copy = runs.measured(Case("copy", "x", {"elements": 2**26}, "bf16"), 0.8, gpu=gpu)
    big_product = Case("matmul_add", "x", {"M": 8192, "N": 8192, "K": 8192}, "bf16")
    product = runs.measured(big_product, 0.8, gpu=gpu)
    small = Case("matmul_add", "x", {"M": 1, "N": 8192, "K": 8192}, "bf16")
    found, _ = drawn(runs.a_run((copy, product, runs.measured(small, 0.8, gpu=gpu)), gpu=gpu))
    inside = {
        name: {face for face in ("#0072b2", COMPUTE_FACE) if f'fill="{face}"' in chart.sol_svg}
        for name, chart in found.items()
    }
    assert {"copy": {"#0072b2"}, "matmul_add": {"#0072b2", COMPUTE_FACE}} == inside
    assert "open, yellow: compute-bound" in texts(found["matmul_add"].sol_svg)


def test_no_stream_is_drawn_where_it_is_no_roof() -> None:
    """Not without ceilings, not for compute-bound work, and not twice on a processor."""
    gpu = runs.card()
    copy = runs.measured(Case("copy", "x", {"elements": 2**26}, "bf16"), 0.8, gpu=gpu)
    big_product = Case("matmul_add", "x", {"M": 8192, "N": 8192, "K": 8192}, "bf16")
    product = runs.measured(big_product, 0.8, gpu=gpu)
    for run in (
        runs.a_run((copy,), gpu=gpu, with_ceilings=False),
        runs.a_run((product,), gpu=gpu),
        runs.cpu_run(),
    ):
        found, _ = drawn(run)
        assert not any("measured roof: best stream" in texts(text) for text in svgs(found, ""))


def test_of_very_many_operators_those_that_lose_most_are_drawn() -> None:
    """A page stays small, and says which operators have no chart."""
    gpu = runs.card()
    sample = runs.measured(Case("copy", "x", {"elements": 2**20}, "bf16"), 0.8, gpu=gpu)
    longer = runs.measured(Case("copy", "x", {"elements": 2**22}, "bf16"), 0.2, gpu=gpu)
    outcomes = tuple(
        replace(each, case=replace(each.case, operator=f"op{number}"))
        for number, each in enumerate([sample] * 10 + [longer] * 18)
    )
    found, _ = drawn(runs.a_run(outcomes, gpu=gpu))
    assert [f"op{number}" for number in range(10, 28)] == [
        operator for operator, each in found.items() if each.sol_svg
    ]
    assert "No chart: there are charts of the 18 operators that lose the most time." == (
        found["op0"].rule
    )


def test_a_column_of_points_is_one_mark_a_series() -> None:
    """Intensity that hardly changes leaves no room for a dozen names above each other."""
    gpu = runs.card()
    outcomes = tuple(
        runs.measured(Case("softmax", "x", {"rows": 4**power, "cols": 512}, "bf16"), 0.8, gpu=gpu)
        for power in range(1, 11)
    )
    found, _ = drawn(runs.a_run(outcomes, gpu=gpu))
    assert "one mark a series" in found["softmax"].rule
    assert 1 == found["softmax"].roofline_svg.count('<a href="#r')


@pytest.mark.parametrize(
    ("operators", "kernels", "cases"), [(300, 1, 20), (60, 8, 20), (2, 300, 1)]
)
def test_the_overview_of_very_many_lanes_stays_small(
    operators: int, kernels: int, cases: int
) -> None:
    """Each case alone would be thousands of marks, and each link among them a Tab stop."""
    gpu = runs.card()
    outcomes = tuple(
        runs.measured(
            Case(f"op{operator}", f"kernel {kernel}", {"rows": 2**12 + size, "cols": 4096}, "bf16"),
            0.3 + 0.002 * (kernel + operator),
            gpu=gpu,
        )
        for operator in range(operators)
        for kernel in range(kernels)
        for size in range(cases)
    )
    run = runs.a_run(outcomes, gpu=gpu)
    strip, _ = charts.overview(score(run), run)
    assert len(strip) < 250_000
    assert strip.count("<a ") <= 400


def test_the_rule_of_a_chart_of_invalid_cases_tells_their_own_spread() -> None:
    """Without a valid case the spread isn't nought: the marks that are there have one."""
    gpu = runs.card()
    made = [
        runs.measured(Case("matmul_add", "x", {"M": 2**m, "N": n, "K": 512}, "bf16"), 1.0, gpu=gpu)
        for m in range(4, 14)
        for n in (512, 4096)
    ]
    fast = tuple(
        replace(each, times_s=(each.bound.sol_s / 9,) * 3, median_s=each.bound.sol_s / 9)
        for each in made
    )
    found, _ = drawn(runs.a_run(fast, gpu=gpu))
    assert "INVALID" in found["matmul_add"].roofline_alt
    assert "decades only" not in found["matmul_add"].rule
