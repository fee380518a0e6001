"""Clock, power and temperature over a run: where they were lowest and highest, and why."""

import re
from dataclasses import replace

import charted_runs as runs
import pytest

from solkit.judge.score import Judged, score
from solkit.model import Case, Clocks, Measured, Run
from solkit.report.course import course, course_alt, stations
from solkit.report.course_chart import SINGLE_MOST, course_chart
from solkit.report.plain import DASH

GPU = runs.card()


def at(rows: int, clocks: Clocks, throttled_count: int = 0) -> Measured:
    case = Case("softmax", "solkit", {"rows": rows, "cols": 4096}, "bf16")
    made = runs.measured(case, 0.5, gpu=GPU)
    return replace(made, clocks=clocks, throttled_count=throttled_count)


def a_run(*outcomes: Measured, limit_w: float | None = 700.0) -> tuple[Run, tuple[Judged, ...]]:
    made = runs.a_run(outcomes, gpu=GPU)
    run = replace(made, facts=replace(made.facts, power_limit_w=limit_w))
    return run, score(run)


def calm(hz: float, power_w: float, temperature_c: float) -> Clocks:
    return Clocks(hz, hz - 2e7, hz + 1e7, 3.2e9, temperature_c, power_w)


CAPPED = replace(calm(1.7e9, 690, 61), event_reasons=("software power cap",))
THREE = (at(1, calm(1.98e9, 300, 45)), at(2, CAPPED, 7), at(3, calm(1.9e9, 400, 50)))


def test_each_quantity_has_its_ends_and_where_they_were_read() -> None:
    """Lowest, median, highest, each end with its case."""
    _, judged = a_run(*THREE)
    seen = course(judged)
    assert seen is not None
    clock, power, temperature = seen.lines
    assert ("SM clock", "1700 MHz", "1900 MHz", "1980 MHz") == (
        clock.name,
        clock.lowest,
        clock.middle,
        clock.highest,
    )
    assert ("r1", "r0") == (clock.lowest_case.anchor, clock.highest_case.anchor)
    assert ("300 W", "690 W") == (power.lowest, power.highest)
    assert ("45 °C", "61 °C") == (temperature.lowest, temperature.highest)
    assert ["r1"] == [case.anchor for case in seen.throttled]
    assert "software power cap in 1 case" == seen.reasons


def test_a_run_without_readings_has_no_course() -> None:
    """A processor tells no clock: nothing is drawn, and nothing invented."""
    run, judged = a_run(at(1, Clocks()))
    assert course(judged) is None
    assert ("", "No clock, power or temperature was read.") == course_chart(judged, run)


def test_what_was_not_read_has_no_panel() -> None:
    """A clock alone is one panel, in the table as in the picture."""
    run, judged = a_run(at(1, Clocks(sm_hz=1.9e9)), at(2, Clocks(sm_hz=1.8e9)))
    seen = course(judged)
    assert seen is not None
    assert ["SM clock"] == [line.name for line in seen.lines]
    text, _ = course_chart(judged, run)
    assert "MHz" in text
    assert "°C" not in text


def test_the_drivers_clock_stands_in_where_samples_have_none() -> None:
    """What the driver told is better than a gap."""
    _, judged = a_run(at(1, Clocks(driver_sm_hz=1.5e9)))
    assert 1.5e9 == stations(judged)[0].sm_hz


def test_a_throttled_case_is_marked_by_shape_and_leads_to_its_row() -> None:
    """A mark of its own shape in each panel, and its reason is named at the axis."""
    run, judged = a_run(*THREE)
    text, _ = course_chart(judged, run)
    assert ["#r1"] * 3 == re.findall(r'<a href="(#r\d+)"', text)
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", text)
    assert {"throttled samples", "software power cap", "power limit 700 W"} <= set(labels)


def test_the_alt_text_carries_the_numbers() -> None:
    """Ranges, medians, the limit, and what happened."""
    run, judged = a_run(*THREE)
    assert course_alt(run, stations(judged)) == (
        f"3 cases in the order of the run. SM clock 1700{DASH}1980 MHz, 1900 MHz at the median; "
        f"Power 300{DASH}690 W, 400 W at the median; Temperature 45{DASH}61 °C, 50 °C at the "
        "median; power limit 700 W; samples of 1 case throttled; clock events: software power cap "
        "in 1 case."
    )


def test_a_steady_clock_is_not_blown_up_to_a_mountain() -> None:
    """A megahertz of noise stays flat: the axis spans a tenth of the clock at least."""
    run, judged = a_run(*(at(1 + row, Clocks(sm_hz=1.9e9 + 1e6 * (row % 2))) for row in range(9)))
    text, _ = course_chart(judged, run)
    heights = [float(y) for y in re.findall(r'<use[^>]*\by="([\d.]+)"[^>]*fill="#0072b2"', text)]
    heights.remove(min(heights))  # the legend's
    assert 9 == len(heights)
    assert max(heights) - min(heights) < 2


@pytest.mark.parametrize("every", [1, 50])
def test_thousands_of_cases_are_a_band_and_the_throttled_stay_few(every: int) -> None:
    """No mark for each case, no link for each throttled one, and a bounded size."""
    outcomes = [
        at(1 + row, CAPPED if row % every == 0 else calm(1.9e9, 300, 45), int(row % every == 0))
        for row in range(3 * SINGLE_MOST)
    ]
    run, judged = a_run(*outcomes)
    text, _ = course_chart(judged, run)
    assert "median of neighbours" in text
    assert len(text) < 90_000
    assert len(re.findall(r"<a href", text)) <= 120


def test_the_same_run_gives_the_same_picture() -> None:
    """Twice drawn, the same bytes."""
    run, judged = a_run(*THREE)
    assert course_chart(judged, run) == course_chart(judged, run)


def test_a_reason_is_text_whatever_it_holds() -> None:
    """A driver's word is drawn as words."""
    hostile = replace(calm(1.9e9, 300, 45), event_reasons=("<script>alert(1)</script>\x1b[31m",))
    run, judged = a_run(at(1, hostile))
    text, alt = course_chart(judged, run)
    assert "<script>" not in text
    assert "\x1b" not in text + alt
