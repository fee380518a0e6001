"""The CSV: columns that scripts rely on, full precision, and nothing a spreadsheet would run."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import measured, synthetic_run

from solkit.judge.score import score
from solkit.model import Case, Clocks, Failed, Run, SlowMode, Work
from solkit.report.columns import TEXT_MOST
from solkit.report.csv import render

HEADER = (
    "operator,kernel,dtype,shape,status,read_bytes,write_bytes,flop,median_s,low_s,high_s,sol_s,"
    "sol_score,sol_clock,sol_measured,limiter,regime,gap_score,"
    "cache,method,sm_hz,throttled_count,slow_share,busy_s,energy_j,verdict,launch_s"
)
CASE = Case("copy", "solkit", {"elements": 8}, "bf16", {"layout": "nk"})


def rows(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render(run, score(run)))))


def test_the_columns_are_those_that_others_rely_on() -> None:
    """Names and order are a contract."""
    assert HEADER == render(synthetic_run([]), ()).splitlines()[0]


def test_a_measured_case_has_its_numbers_in_si_units() -> None:
    """1 GB read and written in 2 ms at 2 TB/s is a score of one half."""
    outcome = measured(CASE, Work(10**9, 10**9, {"bf16_tensor": 7}), time_s=2e-3)
    (row,) = rows(synthetic_run([outcome]))
    assert ("elements=8;layout=nk", "measured", "1000000000", "7", "0.002", "0.001", "0.5") == (
        row["shape"],
        row["status"],
        row["read_bytes"],
        row["flop"],
        row["median_s"],
        row["sol_s"],
        row["sol_score"],
    )


def test_an_invalid_case_has_a_time_but_no_score() -> None:
    """The status says why the cell is empty."""
    (row,) = rows(synthetic_run([measured(CASE, Work(10**9, 0), time_s=1e-4)]))
    assert ("invalid", "0.0001", "") == (row["status"], row["median_s"], row["sol_score"])


def test_a_failed_case_keeps_its_row_with_empty_numbers() -> None:
    """Nothing is dropped."""
    (row,) = rows(synthetic_run([Failed(CASE, "check", "wrong")]))
    assert ("failed", "", "") == (row["status"], row["median_s"], row["limiter"])


@pytest.mark.parametrize(
    "sign", ["=", "+", "-", "@", " =", "\t=", "\r=", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_a_name_that_a_spreadsheet_would_run_is_quoted(sign: str) -> None:
    """A leading sign of a formula gets a quote before it."""
    case = replace(CASE, operator=f"{sign}HYPERLINK(1)")
    (row,) = rows(synthetic_run([Failed(case, "check", "")]))
    assert f"'{sign.strip()}HYPERLINK(1)" == row["operator"]


def test_a_formula_in_any_cell_of_names_is_quoted() -> None:
    """Kernel, shape and what a run file says of method and limiter, too."""
    case = Case("copy", "@SUM(1)", {"=cmd|' /C calc'!A0": 8}, "bf16")
    outcome = replace(measured(case, Work(10**9, 10**9), time_s=2e-3), method="-1+1")
    (row,) = rows(synthetic_run([outcome]))
    assert ["'@SUM(1)", "'=cmd|' /C calc'!A0=8", "'-1+1"] == [
        row[name] for name in ("kernel", "shape", "method")
    ]


def test_ten_thousand_letters_fit_a_cell() -> None:
    """And forty thousand are cut to what a spreadsheet's cell holds."""
    names = ("x" * 10_000, "y" * 40_000)
    case = replace(CASE, operator=names[0], kernel=names[1])
    (row,) = rows(synthetic_run([Failed(case, "check", "")]))
    assert names[0] == row["operator"]
    assert (TEXT_MOST, "…") == (len(row["kernel"]), row["kernel"][-1])


@given(st.text(), st.text())
def test_any_name_is_one_cell_of_one_line(operator: str, kernel: str) -> None:
    """Commas, quotes and line breaks in a name never move another column."""
    run = synthetic_run([Failed(replace(CASE, operator=operator, kernel=kernel), "check", "")])
    text = render(run, run.outcomes)  # type: ignore[arg-type]  # failures need no judging
    assert 2 == text.count("\n")
    (row,) = csv.DictReader(io.StringIO(text))
    assert ("bf16", "failed") == (row["dtype"], row["status"])


def test_the_csv_of_a_run_is_as_recorded(golden: Callable[[str, str], None]) -> None:
    """What scripts read changes only on purpose."""
    run = synthetic_run()
    golden("report.csv", render(run, score(run)))


def test_how_a_case_was_timed_is_in_its_row() -> None:
    """Cache, method, clock, throttled samples, slow share, busy time and energy, in SI units."""
    outcome = replace(
        measured(CASE, Work(10**9, 10**9), time_s=2e-3),
        clocks=Clocks(sm_hz=1.5e9),
        throttled_count=3,
        slow_mode=SlowMode(3e-3, 0.2),
        busy_s=1.5e-3,
        energy_j=0.25,
    )
    (row,) = rows(synthetic_run([outcome]))
    names = ("cache", "method", "sm_hz", "throttled_count", "slow_share", "busy_s", "energy_j")
    assert ["cold", "cupti", "1500000000", "3", "0.2", "0.0015", "0.25"] == [
        row[name] for name in names
    ]


def test_a_failure_has_its_verdict_in_one_word() -> None:
    """The word that programs can rely on, in the last column."""
    failed = Failed(CASE, "check", "3 of 8 differ", verdict="wrong_values")
    (row,) = rows(synthetic_run([failed]))
    assert ("failed", "wrong_values", "") == (row["status"], row["verdict"], row["cache"])


def test_a_hot_case_has_a_time_and_no_score() -> None:
    """Its row says that it is hot; DRAM is no bound for it."""
    case = replace(CASE, cache_mode="hot")
    (row,) = rows(synthetic_run([measured(case, Work(10**9, 10**9), time_s=1e-3)]))
    assert ("elements=8;layout=nk;cache=hot", "measured", "0.001", "", "hot") == tuple(
        row[name] for name in ("shape", "status", "median_s", "sol_score", "cache")
    )
