"""What can't be is refused by the reader and never written: no run is lost to one case."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_record import CASE, FAILED, MEASURED, OUTCOMES, RUN, SKIPPED

from solkit import record, wire
from solkit.errors import BadInput
from solkit.model import Case, Clocks, Compiled, Failed, Measured, Outcome, SlowMode
from solkit.soundness import CACHE_LABELS, header_problem, outcome_problem

LONG = 10**400  # an integer that no float holds
floats = st.floats() | st.sampled_from([0.0, 1e-300, 1e-12, 1e-6, 1e9, 1e24, 1e308, -1.0])
times = st.floats(1e-9, 1e-3) | floats
counts = st.integers(0, 30) | st.integers(-(2**70), 2**70) | st.just(LONG)
maybe = st.none() | floats
clocks = st.builds(Clocks, *[maybe] * 6, driver_sm_hz=maybe)
wild = st.builds(
    replace,
    st.just(MEASURED),
    times_s=st.lists(times, max_size=4).map(tuple),
    sample_count=counts,
    median_s=times,
    low_s=times,
    high_s=times,
    floor_s=times,
    quantiles_s=st.dictionaries(st.text(max_size=3), times, max_size=2),
    cache=st.sampled_from(CACHE_LABELS) | st.text(max_size=5),
    clocks=clocks,
    launch_count=counts,
    set_count=counts,
    sample_hz=st.lists(maybe, max_size=4).map(tuple),
    throttled_count=counts,
    slow_mode=st.none() | st.builds(SlowMode, times, floats),
    busy_s=maybe,
    energy_j=maybe,
    launch_s=maybe,
    other_process_count=counts,
    place_fraction=st.floats(0, 0.5) | floats,
)
fields = st.sampled_from(
    [
        *("sample_hz", "throttled_count", "slow_mode", "busy_s", "energy_j", "cache", "clocks"),
        *(
            "launch_s",
            "other_process_count",
            "place_fraction",
            "set_count",
            "launch_count",
            "quantiles_s",
        ),
        *("median_s", "low_s", "high_s", "floor_s", "times_s", "sample_count"),
    ]
)


@settings(max_examples=500)
@given(found=wild, one=fields, all_at_once=st.booleans())
def test_whatever_outcome_is_written_can_be_read(
    found: Measured,
    one: str,
    all_at_once: bool,  # noqa: FBT001  # hypothesis passes by name
) -> None:
    """As it was, or as the failure of its case at the stage that made its numbers."""
    outcome = found if all_at_once else replace(MEASURED, **{one: getattr(found, one)})
    back = record.outcome_from_json(record.outcome_json(outcome))
    assert CASE == back.case
    if isinstance(back, Failed):
        assert ("time", "measure the case again") == (back.stage, back.remedy)
        assert back.message.startswith(("its numbers can't be: ", "its numbers are not finite"))
    else:
        assert "" == outcome_problem(outcome)
        assert record.outcome_json(back) == record.outcome_json(outcome)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"times_s": ()}, "its times are not all above zero"),
        ({"times_s": (1e-6, 0.0)}, "its times are not all above zero"),
        ({"times_s": (1e-300,)}, "its times are not all above zero"),
        ({"high_s": 1e10}, "its times are not all above zero"),
        ({"quantiles_s": {"0.5": 0.0}}, "its times are not all above zero"),
        ({"low_s": 1.6e-6}, "its median is outside its interval"),
        ({"high_s": 1.4e-6}, "its median is outside its interval"),
        ({"place_fraction": -0.1}, "its place fraction"),
        ({"place_fraction": 0.51}, "its place fraction"),
        ({"busy_s": 0.0}, "its busy time"),
        ({"launch_s": 0.0}, "the host's time to launch it is not above zero"),
        ({"slow_mode": SlowMode(0.0, 0.5)}, "its slow mode"),
        ({"slow_mode": SlowMode(1e-6, 0.0)}, "its slow mode"),
        ({"slow_mode": SlowMode(1e-6, 1.0)}, "its slow mode"),
        ({"sample_count": 2}, "its sample count or floor"),
        ({"floor_s": -1e-9}, "its sample count or floor"),
        ({"sample_hz": (1e9,)}, "another number of clocks than of times"),
        ({"throttled_count": -1}, "its throttled samples"),
        ({"throttled_count": 4}, "its throttled samples"),
        ({"other_process_count": -1}, "are no count"),
        ({"launch_count": -1}, "are no count"),
        ({"set_count": 0}, "are no count"),
        ({"compiled": (Compiled("f", -1),)}, "its compiler counted"),
        ({"cache": "warm"}, "its cache state 'warm' is unknown (known: cold, clean, zeroed, hot,"),
        ({"sample_hz": (1e9, 1e308, 1e9)}, "a clock is not above zero"),
        ({"sample_hz": (1e9, None, 1e-300)}, "a clock is not above zero"),
        ({"clocks": Clocks(1e-300)}, "a clock is not above zero"),
        ({"clocks": Clocks(driver_sm_hz=-1.0)}, "the driver's clock can't be -1"),
        ({"clocks": Clocks(memory_hz=1e300)}, "the driver's memory clock can't be"),
        ({"clocks": Clocks(power_w=-5.0)}, "the driver's power can't be -5"),
        ({"clocks": Clocks(temperature_c=1e4)}, "the driver's temperature can't be 10000"),
        ({"energy_j": 0.0}, "its energy is not above zero"),
        ({"energy_j": 1e300}, "its energy is not above zero"),
        ({"check": replace(MEASURED.check, error_fraction=-1.0)}, "the error of its check"),
        ({"bound": replace(MEASURED.bound, sol_s=-1.0)}, "its bound is no time"),
    ],
)
def test_each_number_that_can_not_be_is_named(changes: dict[str, Any], why: str) -> None:
    """By the reader, in a line that somebody else wrote, and in the failure that is written."""
    outcome = replace(MEASURED, **changes)
    problem = outcome_problem(outcome)
    assert why in problem
    said = record.outcome_from_json(record.outcome_json(outcome))
    assert (
        Failed(CASE, "time", f"its numbers can't be: {problem}", "measure the case again") == said
    )
    with pytest.raises(BadInput, match="an outcome that can't be"):
        record.outcome_from_json(wire._outcome_line(outcome))


@pytest.mark.parametrize(
    "changes",
    [
        {"sample_hz": (1.5e9, None, 1.98e9), "throttled_count": 3},
        {"slow_mode": SlowMode(2e-6, 0.25), "busy_s": 9e-7, "energy_j": 4.2e-5},
        {"launch_s": 1e-9},
        {"launch_s": 0.3},
        {"low_s": 1.5e-6, "high_s": 1.5e-6, "median_s": 1.500001e-6},  # rounded on its way
        {"place_fraction": 0.5, "launch_count": 0, "other_process_count": 9, "floor_s": 0.0},
        {"clocks": Clocks(1.5e9, 1.4e9, 1.6e9, 0.0, 20.0, 0.0, driver_sm_hz=0.0)},
        *({"cache": label} for label in ("cold", "clean", "zeroed", "hot", "unknown")),
    ],
)
def test_what_devices_do_tell_is_sound(changes: dict[str, Any]) -> None:
    """A card asleep tells 0 MHz and 0 W; a call may launch nothing that is counted."""
    assert "" == outcome_problem(replace(MEASURED, **changes))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"precision_fraction": 0.0}, "its precision"),
        ({"precision_fraction": 0.51}, "its precision"),
        ({"cache_proof_s": {"hot": 0.0}}, "a time of its cache proof"),
        ({"cache_proof_s": {"hot": -1e-6}}, "a time of its cache proof"),
        ({"facts": replace(RUN.facts, l2_bytes=LONG)}, "a number of its device or spec"),
        ({"facts": replace(RUN.facts, power_limit_w=-1.0)}, "a number of its device or spec"),
    ],
)
def test_a_header_with_numbers_that_can_not_be_is_refused(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    """A report would divide by them, or could not write them."""
    run = replace(RUN, **changes)
    assert why in header_problem(run)
    path = tmp_path / "run.jsonl"
    path.write_bytes(wire.header_json(run) + b"\n")
    with pytest.raises(BadInput, match="the run header can't be"):
        record.read(path)


def test_a_header_of_another_way_to_settle_is_refused() -> None:
    """Burst and sustained are all there are."""
    line = wire.loads(wire.header_json(RUN))
    with pytest.raises(BadInput, match="settle"):
        wire.header_from({**line, "settle": "warm"})


def test_one_impossible_outcome_costs_its_own_case(tmp_path: Path) -> None:
    """The others stay readable, and the end counts what the lines say."""
    path = tmp_path / "run.jsonl"
    with record.Writer(path, RUN) as writer:
        writer.add([replace(MEASURED, median_s=0.0), FAILED, SKIPPED])
    failed, *others = record.read(path).outcomes
    assert isinstance(failed, Failed)
    assert [FAILED, SKIPPED] == others
    end = wire.loads(path.read_bytes().splitlines()[-1])
    assert {"measured": 0, "failed": 2, "skipped": 1} == end["counts"]


@pytest.mark.parametrize(
    "case",
    [
        replace(CASE, dtype="fp5"),
        replace(CASE, shape={"M": -1}),
        replace(CASE, params={"scale": float("nan")}),
    ],
)
@pytest.mark.parametrize("kind", OUTCOMES)
def test_a_case_that_can_not_be_is_not_written(case: Case, kind: Outcome) -> None:
    """No failure of it could be read either."""
    with pytest.raises(BadInput, match="can't be recorded") as caught:
        record.outcome_json(replace(kind, case=case))
    assert "extents, a dtype and params" in caught.value.remedy
