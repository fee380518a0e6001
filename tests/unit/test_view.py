"""A judged run in words: the sentences, counts, rankings and cells that people read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import CEILINGS, GPU, hot_outcomes, measured, synthetic_run

from solkit.judge.score import score
from solkit.model import (
    Case,
    Clocks,
    DramCeiling,
    Failed,
    Measured,
    PipeCeiling,
    Run,
    Skipped,
    Work,
)
from solkit.report.fact import Fact
from solkit.report.plain import DASH
from solkit.report.view import View, view

SMALL = Case("copy", "solkit", {"elements": 1 << 20}, "bf16")
LARGE = Case("copy", "solkit", {"elements": 1 << 28}, "bf16")


def streamed(case: Case, *, fraction: float, **changes: object) -> Measured:
    """Return a copy at such a share of the card's bandwidth."""
    size = case.shape["elements"] * 2
    work = Work(size, size)
    return measured(case, work, time_s=2 * size / GPU.dram_bytes_per_s / fraction, **changes)  # type: ignore[arg-type]


def seen(run: Run) -> View:
    return view(run, score(run))


def condition(shown: View, label: str) -> Fact:
    """Return the condition of that name."""
    group = next(group for group in shown.facts if group.title == "Conditions")
    return next(fact for fact in group.facts if fact.label == label)


def cell(shown: View, name: str, row: int = 0) -> tuple[str, str]:
    """Return text and aside of the cell under a heading."""
    place = next(i for i, column in enumerate(shown.columns) if column.name == name)
    return shown.rows[row].cells[place][:2]


def test_the_verdict_gives_the_median_score_of_the_valid_cases() -> None:
    """An invalid case counts in no median, however fast it claims to be."""
    cases = [replace(LARGE, kernel=str(n)) for n in range(3)]
    outcomes = [streamed(c, fraction=f) for c, f in zip(cases, (0.5, 0.7, 5.0), strict=True)]
    shown = seen(synthetic_run(outcomes))
    assert (
        "The median case runs at 60.0 % of the speed of light of the Example GPU 100."
        == shown.verdict
    )
    assert "2 of 3 cases measured, 1 invalid." == shown.summary


def test_a_run_without_a_measurement_says_so() -> None:
    """No score is made up where there is none."""
    shown = seen(synthetic_run([Skipped(SMALL, "no card")]))
    assert "No case was measured, so there is no score." == shown.verdict
    assert ("—", "no case has a score") == (shown.tiles[0].value, shown.tiles[0].aside)
    assert () == shown.costly


def test_an_empty_run_has_a_view() -> None:
    """Nothing planned, nothing shown, nothing raised."""
    assert "0 of 0 cases measured." == seen(synthetic_run([])).summary


def test_a_run_whose_times_are_all_too_short_has_no_score_and_says_why() -> None:
    """Something was measured, and it is not a result."""
    shown = seen(synthetic_run([streamed(LARGE, fraction=5.0), Skipped(SMALL, "no")]))
    assert "Every time is faster than light, so there is no score." == shown.verdict
    assert "0 of 2 cases measured, 1 invalid, 1 skipped." == shown.summary


def test_a_cut_run_counts_the_cases_it_never_reached() -> None:
    """Ten of ten would read as a whole run."""
    cut = replace(synthetic_run([streamed(LARGE, fraction=0.5)]), ended=None, planned_count=10)
    assert "1 of 10 cases measured, 9 never reached." == seen(cut).summary


def test_a_headline_stays_one_whatever_the_card_is_called() -> None:
    """Sixty letters of a name say which card it is."""
    run = synthetic_run([streamed(LARGE, fraction=0.5)])
    run = replace(run, facts=replace(run.facts, name="y" * 10_000))
    assert len(seen(run).verdict) < 130


def test_a_note_of_nothing_visible_is_no_caveat() -> None:
    """A control character leaves no empty line in the list."""
    noted = replace(streamed(LARGE, fraction=0.5), notes=("\x1b\x07", "rotated"))
    assert [each for each in seen(synthetic_run([noted])).caveats if "(1 case)" in each] == [
        "rotated (1 case)"
    ]


def test_an_operator_without_a_name_can_be_reached_and_read() -> None:
    """Its heading and the link to it are never empty."""
    nameless = streamed(replace(LARGE, operator="\x07"), fraction=0.5)
    shown = seen(synthetic_run([nameless]))
    assert "(no name)" == shown.operators[0].title
    assert shown.budget is not None
    assert "(no name)" == shown.budget.operators[0].name


def test_every_outcome_has_a_row_with_its_index() -> None:
    """Charts link to r<index>, so no outcome may be dropped or renamed."""
    run = synthetic_run()
    assert {f"r{n}" for n in range(len(run.outcomes))} == {row.anchor for row in seen(run).rows}
    assert len(run.outcomes) == len(seen(run).rows)


def test_results_come_first_and_what_was_skipped_comes_last() -> None:
    """Within results, failures and skips the order is the run's."""
    made = [
        Skipped(SMALL, "no"),
        Failed(SMALL, "check", "wrong"),
        streamed(LARGE, fraction=0.5),
        streamed(LARGE, fraction=3.0),
        streamed(SMALL, fraction=0.4),
        Skipped(LARGE, "no"),
    ]
    rows = [row.anchor for row in seen(synthetic_run(made)).rows]
    assert ["r2", "r4", "r1", "r3", "r0", "r5"] == rows


def test_what_is_read_most_stands_first() -> None:
    """The scores under every roof stand behind the time, before what explains them."""
    names = [column.name for column in seen(synthetic_run()).columns]
    assert ["Operator", "Kernel", "Dtype", "Shape"] == names[:4]
    assert ["Time", "SOL", "SOL@measured", "SOL@clock", "Limiter", "Regime"] == names[4:10]


def test_advice_is_said_in_full_once() -> None:
    """A later case that needs the same is given the diagnosis alone."""
    made = [streamed(replace(LARGE, kernel=str(n)), fraction=0.3 + n / 100) for n in range(3)]
    first, *others = [item.advice for item in seen(synthetic_run(made)).costly]
    assert first.endswith("wider loads, more of them, more blocks.")
    assert ["As above: probably too few bytes in flight."] * 2 == others


def test_an_operator_lists_only_kernels_with_a_result() -> None:
    """A kernel that was skipped throughout is counted in the sentence, not given an empty line."""
    made = [streamed(LARGE, fraction=0.5), Skipped(replace(SMALL, dtype="fp16"), "no")]
    (shown,) = seen(synthetic_run(made)).operators
    assert ["bf16"] == [kernel.dtype for kernel in shown.kernels]
    assert shown.sentence.startswith("1 of 2 cases measured, 1 skipped; ")


def test_an_operator_without_a_result_says_what_became_of_its_cases() -> None:
    """It has a sentence and no table."""
    made = [Failed(SMALL, "compile", "no WIDTH"), Skipped(LARGE, "no")]
    (shown,) = seen(synthetic_run(made)).operators
    assert ("2 cases, none measured: 1 failed, 1 skipped.", ()) == (shown.sentence, shown.kernels)


def test_the_costliest_case_is_the_one_with_most_time_above_its_bound() -> None:
    """A long case at 80 % costs more than a short one at 30 %."""
    shown = seen(synthetic_run([streamed(SMALL, fraction=0.3), streamed(LARGE, fraction=0.8)]))
    assert ["r1", "r0"] == [item.case.anchor for item in shown.costly]
    assert ["r0", "r1"] == [item.case.anchor for item in shown.lowest]
    assert "134 µs (96.5 %)" == shown.costly[0].cost


def test_a_score_above_the_sheet_is_marked_and_never_clamped() -> None:
    """Between the sheet and the pins a score stays what it is, with a word and a sign."""
    shown = seen(synthetic_run([streamed(LARGE, fraction=1.01)]))
    assert ("▲ 101.0 %", "above published") == cell(shown, "SOL")
    assert ["▲ 1 above published"] == [alert.text for alert in shown.alerts]


def test_an_invalid_case_shows_its_raw_ratio_and_its_reason() -> None:
    """Beyond the pins there is no score, but what was seen is printed with the likely causes."""
    shown = seen(synthetic_run([streamed(LARGE, fraction=3.0)]))
    assert ("✕ INVALID", "300.0 %") == cell(shown, "SOL")
    assert "SOL@clock" not in {column.name for column in shown.columns}
    assert "data still in L2" in shown.invalid[0].message


def test_failures_with_one_cause_are_listed_once_with_all_their_cases() -> None:
    """A hundred cases that failed alike are one entry that names eight and counts the rest."""
    failed = [
        Failed(replace(SMALL, shape={"elements": n + 1}), "compile", "no WIDTH", "define WIDTH")
        for n in range(100)
    ]
    (trouble,) = seen(synthetic_run(failed)).failures
    assert ("✕ Failed at compile", "no WIDTH", "define WIDTH", "100 cases") == (
        trouble.title,
        trouble.message,
        trouble.remedy,
        trouble.count,
    )
    assert (8, "and 92 more, all in the table") == (len(trouble.cases), trouble.more)


def test_skips_are_grouped_by_reason_the_commonest_first() -> None:
    """A reader sees each reason once."""
    skipped = [Skipped(SMALL, reason) for reason in ("rare", "common", "common")]
    assert [("common", "2 cases"), ("rare", "1 case")] == [
        (item.message, item.count) for item in seen(synthetic_run(skipped)).skips
    ]


def test_a_cpu_run_cannot_be_mistaken_for_a_gpu_run() -> None:
    """The banner, the verdict and the label of the score all say whose ceilings they are."""
    shown = seen(synthetic_run(gpu=None))
    assert "Nothing here says anything about a GPU." in shown.banner
    assert shown.verdict.endswith("of what this CPU was measured to reach.")
    assert "Median SOL@measured" == shown.tiles[0].label
    assert "measured" == shown.roof


def test_a_gpu_run_has_no_banner() -> None:
    """The mark of a CPU run means something only if others lack it."""
    assert "" == seen(synthetic_run()).banner


def test_a_run_that_was_cut_says_how_much_is_missing() -> None:
    """Part of a plan is never shown as the whole."""
    run = replace(synthetic_run([streamed(LARGE, fraction=0.5)]), ended=None, planned_count=70)
    assert (
        "The run was cut short: 1 case of 70 planned are here. Finish it with --resume."
        in seen(run).caveats
    )


def test_a_lowered_power_limit_is_a_caveat() -> None:
    """A capped card explains low compute scores."""
    assert (
        "The power limit is 450 W, below the card's default of 500 W."
        in seen(synthetic_run()).caveats
    )


def test_a_time_is_shown_with_half_its_interval() -> None:
    """The spread of the samples stands beside the median."""
    outcome = replace(
        streamed(LARGE, fraction=0.5), times_s=(1.0e-3,) * 6, sample_count=6, median_s=1.0e-3
    )
    assert ("1.00 ms", "±0.0 %") == cell(seen(synthetic_run([outcome])), "Time")


def test_a_wide_interval_is_printed_beside_the_score() -> None:
    """Where the samples scatter, the score is a range."""
    outcome = streamed(LARGE, fraction=0.5)
    times = tuple(outcome.median_s * (0.8 + 0.04 * n) for n in range(11))
    shown = seen(synthetic_run([replace(outcome, times_s=times)]))
    assert ("50.0 %", "43\u201360") == cell(shown, "SOL")


def test_every_peak_has_its_source_or_says_it_has_none() -> None:
    """A number without a source is visible as such."""
    shown = {peak.name: peak for peak in seen(synthetic_run()).peaks}
    assert "Example GPU 100 data sheet, p. 2" == shown["bf16_tensor"].origin.title
    assert "100 SMs \u00d7 4096 a clock \u00d7 1500 MHz (published), fp32 accumulation" == (
        shown["bf16_tensor"].detail
    )
    assert "no source recorded" == shown["sfu"].origin.mark
    assert ("2.00 TB/s", "2.04 TB/s") == (
        shown["DRAM, data sheet"].value,
        shown["DRAM, pins"].value,
    )


def test_the_lesser_of_sheet_and_pins_scores() -> None:
    """Where the pins carry less than the sheet claims, the table says which one is used."""
    gpu = replace(GPU, dram_pin_bytes_per_s=1.9e12)
    shown = {peak.name: peak for peak in seen(replace(synthetic_run([]), gpu=gpu)).peaks}
    assert "not used: the pins carry less" == shown["DRAM, data sheet"].detail


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://a b", ""])
def test_a_source_that_is_no_web_address_is_not_linked(url: str) -> None:
    """A spec file can't put a script behind a link."""
    sources = {"l2_bytes": replace(GPU.sources["l2_bytes"], url=url)}
    run = replace(synthetic_run([]), gpu=replace(GPU, sources=sources))
    assert {""} == {peak.origin.url for peak in seen(run).peaks}


def test_clocks_are_shown_as_held_against_the_highest() -> None:
    """A reader sees at once whether the card was throttled: the cases' medians, not one sample."""
    outcomes = [
        replace(streamed(LARGE, fraction=0.5), clocks=Clocks(median, 0.9 * median, 1.1 * median))
        for median in (1.45e9, 1.5e9)
    ]
    shown = seen(synthetic_run(outcomes))
    fact = condition(shown, "SM clock held")
    assert ("1450\u20131500 MHz", "medians of the cases; the card's highest is 1800 MHz") == (
        fact.value,
        fact.aside,
    )
    assert " · SM clock 1450\u20131500 MHz · " in shown.conditions


def test_the_power_that_was_read_is_no_part_of_the_limit() -> None:
    """The driver averages over pauses too, so its reading is given as what it is."""
    shown = seen(synthetic_run())
    assert ("450 W", "default 500 W") == condition(shown, "Power limit")[1:]
    read = condition(shown, "Power read")
    assert "340 W" == read.value
    assert read.aside.startswith("the highest of the driver's readings between batches")


def test_a_column_that_is_empty_everywhere_is_left_out() -> None:
    """Without a baseline there is no gap score to show."""
    run = synthetic_run()
    assert "Gap score" not in {column.name for column in seen(run).columns}
    against = view(run, score(run, baseline="torch"))
    assert "Gap score" in {column.name for column in against.columns}


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=40))
def test_the_bars_of_the_distribution_hold_every_case(fractions: list[float]) -> None:
    """No score falls between two bars."""
    outcomes = [
        streamed(replace(LARGE, kernel=str(n)), fraction=fraction)
        for n, fraction in enumerate(fractions)
    ]
    counts = [int(bin_.count or 0) for bin_ in seen(synthetic_run(outcomes)).bins]
    assert len(fractions) == sum(counts)


def fact(shown: View, label: str) -> Fact:
    """Return the condition or method of that name."""
    return next(fact for group in shown.facts for fact in group.facts if fact.label == label)


def test_a_timer_that_fell_back_is_said_before_any_number() -> None:
    """What the run itself notes is a notice of its own, above tiles and caveats."""
    run = replace(synthetic_run(), notes=("CUPTI is not here: event pairs",))
    assert ("CUPTI is not here: event pairs",) == seen(run).notices
    assert "CUPTI is not here: event pairs" not in seen(run).caveats


def test_what_decides_a_comparison_stands_on_the_first_line() -> None:
    """Method, cache state and way to settle beside card, clock and driver."""
    run = replace(synthetic_run(), settle="sustained")
    assert " · driver 600.12 · cupti · cold cache · sustained · 2026-" in seen(run).conditions


def test_a_run_without_clocks_of_samples_names_no_way_to_settle() -> None:
    """Older files and a CPU settled in no named way, and throttled samples were not counted."""
    outcome = replace(streamed(LARGE, fraction=0.5), sample_hz=(), method="event_delayed")
    run = synthetic_run([outcome])
    shown = seen(replace(run, method="event_delayed"))
    assert "burst" not in shown.conditions
    labels = {fact.label for group in shown.facts for fact in group.facts}
    assert set() == {"Settle", "Throttled samples"} & labels
    assert "event pairs behind a delay kernel" in fact(shown, "Timing").aside


def test_the_method_says_what_it_is_and_what_its_floor_is() -> None:
    """And names the cases whose call had to be timed otherwise."""
    shown = seen(synthetic_run())
    assert (
        "cupti",
        "the GPU's own start and end of each kernel; the floor is what any kernel costs",
    ) == (
        fact(shown, "Timing").value,
        fact(shown, "Timing").aside,
    )
    assert "event_unblocked" == fact(shown, "In 1 case").value
    assert "host time may be in it" in fact(shown, "In 1 case").aside
    assert "2.10 µs" == fact(shown, "Empty-kernel floor").value
    assert f"4.20{DASH}11.3 µs" == fact(shown, "Launch cost, host").value
    assert "no part of any time" in fact(shown, "Launch cost, host").aside
    assert "cold 17.1 µs, hot 9.80 µs" == fact(shown, "Cache proof").value
    assert "normal (0, 1)" == fact(shown, "Inputs").value


def test_precision_is_shown_as_asked_for_and_as_reached() -> None:
    """The noise that remains is in the report, and what ended the sampling."""
    outcome = streamed(LARGE, fraction=0.5)
    times = tuple(1e-3 * (1 + 0.001 * (place - 5)) for place in range(11))
    run = synthetic_run([replace(outcome, times_s=times)])
    shown = seen(replace(run, precision_fraction=0.01))
    assert (
        "asked ±1 %, reached ±0.40 % at the median, ±0.40 % at worst"
        == fact(shown, "Precision").value
    )
    assert outcome.ended == fact(shown, "Sampling ended by").value


def test_clocks_of_samples_and_throttled_ones_are_conditions() -> None:
    """Extremes of single samples, and how many the driver held down, over how many cases."""
    outcomes = [
        replace(
            streamed(case, fraction=0.5),
            clocks=Clocks(
                1.5e9, 1.3e9, 1.6e9, event_reasons=("software power cap",), driver_sm_hz=1.2e9
            ),
            throttled_count=4,
        )
        for case in (SMALL, LARGE)
    ]
    shown = seen(synthetic_run(outcomes))
    assert "1300\u20131600 MHz" == fact(shown, "Clock of samples").value
    assert "1200 MHz" == fact(shown, "Clock told").value
    assert ("8", "in 2 cases, kept and marked") == fact(shown, "Throttled samples")[1:]
    assert "! 2 throttled" in [alert.text for alert in shown.alerts]


def test_other_processes_on_the_device_are_on_the_first_screen_and_on_the_row() -> None:
    """A caveat with the count of cases, a chip, a mark on the time, and the number of strangers."""
    outcome = replace(streamed(LARGE, fraction=0.5), other_process_count=2)
    shown = seen(synthetic_run([outcome]))
    assert "! 1 not alone on the device" in [alert.text for alert in shown.alerts]
    assert (
        "1 case shared the device with other processes: their times may be too long."
        in shown.caveats
    )
    assert cell(shown, "Time")[1].endswith(" !")
    assert "2 other processes on the device" == cell(shown, "Remarks")[0]


def test_an_unproved_cache_state_is_marked_with_its_reason() -> None:
    """The score counts, and the reader knows what it may hold."""
    outcome = replace(streamed(LARGE, fraction=0.5), cache="unknown", notes=("1 set fits",))
    shown = seen(synthetic_run([outcome]))
    assert "50.0 %" == cell(shown, "SOL")[0]
    assert "cache not proved cold: 1 set fits" == cell(shown, "Remarks")[0]
    assert "1 case: the cache state isn't proved: data may come from the L2." in shown.caveats


def test_a_hot_case_is_shown_without_a_score_and_counts_in_no_median() -> None:
    """Its ratio to DRAM stands beside the dash; tiles, bars and rankings are of the cold ones."""
    shown = seen(synthetic_run(hot_outcomes()))
    assert "2 of 4 cases measured, 2 more hot (in no median), none invalid, failed or skipped." == (
        shown.summary
    )
    assert ("—", "hot: 153.0 % of DRAM") == cell(shown, "SOL", 1)
    assert "elements=4194304 cache=hot" == cell(shown, "Shape", 1)[0]
    assert "90.0 %" == shown.tiles[0].value
    assert ["r2", "r0"] == [item.case.anchor for item in shown.costly]
    assert shown.operators[0].sentence.startswith("2 of 4 cases measured, 2 hot; median SOL 90.0 %")
    assert any(caveat.startswith("2 cases without a score. Hot:") for caveat in shown.caveats)


def test_a_run_of_hot_cases_alone_has_no_score() -> None:
    """It was measured, and DRAM is no bound for any of it."""
    hot = [item for item in hot_outcomes() if item.case.cache_mode == "hot"]
    assert "Every case that was measured is hot, so there is no score." == (
        seen(synthetic_run(hot)).verdict
    )


def test_a_failure_says_in_words_how_it_failed() -> None:
    """In its title and on its row, instead of the stage alone."""
    shown = seen(synthetic_run([Failed(SMALL, "check", "3 differ", verdict="wrong_values")]))
    assert "✕ Failed at check: wrong values" == shown.failures[0].title
    assert ("✕ failed", "wrong values") == cell(shown, "SOL")


def test_the_energy_of_a_call_stands_with_what_a_joule_does() -> None:
    """Bytes where memory is the limit, exact operations where a pipe is; a column only if asked."""
    product = Work(10**6, 10**6, {"bf16_tensor": 614_400_000_000})
    outcomes = [
        replace(streamed(LARGE, fraction=0.5), energy_j=0.1),
        replace(measured(SMALL, product, time_s=2e-3), energy_j=0.5),
    ]
    shown = seen(synthetic_run(outcomes))
    assert ("100 mJ", "10.7 GB/J") == cell(shown, "Energy", 0)
    assert ("500 mJ", "1.23 TFLOP/J") == cell(shown, "Energy", 1)
    without = seen(synthetic_run([streamed(LARGE, fraction=0.5)]))
    assert "Energy" not in {column.name for column in without.columns}


def test_ceilings_name_the_chips_state_the_l2_and_the_floors() -> None:
    """Burst and sustained are two numbers; when and how they were measured is said."""
    ceilings = replace(
        CEILINGS,
        method="cupti, cold",
        l2=(DramCeiling("read", 2**24, 0, 2e-6),),
        pipes=(
            PipeCeiling("bf16_tensor", 10**12, 1.25e-3, "8192^3", "burst", 1.9e9),
            PipeCeiling("bf16_tensor", 10**12, 2e-3, "8192^3", "sustained", 1.5e9),
        ),
        floors_s={"cupti": 6.4e-7},
        created="2026-01-31T11:00:00Z",
        driver="600.12",
    )
    shown = seen(replace(synthetic_run([]), ceilings=ceilings))
    best = {each.name: (each.best, each.detail) for each in shown.ceilings}
    assert ("800 TFLOP/s", "8192^3, at 1900 MHz") == best["bf16_tensor, burst"]
    assert ("500 TFLOP/s", "8192^3, at 1500 MHz") == best["bf16_tensor, sustained"]
    assert "8.39 TB/s" == best["L2, read"][0]
    assert "640 ns" == best["Empty kernel, cupti"][0]
    assert "cupti, cold · 2026-01-31T11:00:00Z · driver 600.12" == shown.ceilings_when
