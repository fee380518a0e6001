"""Runs that can't be compared, and those that may be because somebody said so."""

from dataclasses import replace
from typing import Any

import pytest
from synthetic import GPU, SHEET
from timed_cases import run_of

from solkit.errors import BadInput
from solkit.judge.conditions import ALLOWED, differences
from solkit.model import Run

RUN = run_of()


def other(name: str) -> Run:
    """Return the run with one condition changed."""
    facts: dict[str, dict[str, Any]] = {
        "card": {"name": "Example GPU 200"},
        "driver": {"driver": "700.01"},
        "power": {"power_limit_w": 300.0},
    }
    rest: dict[str, dict[str, Any]] = {
        "method": {"method": "event_blocked"},
        "settle": {"settle": "sustained"},
        "seed": {"seed": 3},
        "spec": {"gpu": replace(GPU, dram_published_bytes_per_s=1.9e12)},
    }
    if name in facts:
        return replace(RUN, facts=replace(RUN.facts, **facts[name]))
    return replace(RUN, **rest[name])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("card", "the card was Example GPU 100 (example_100) and is Example GPU 200 (example_100)"),
        ("driver", "the driver was 600.12 and is 700.01"),
        ("method", "the timing method was cupti and is event_blocked"),
        ("settle", "the way to settle was burst and is sustained"),
        ("seed", "the seed of the inputs was 0 and is 3"),
        (
            "spec",
            "dram_published_bytes_per_s of the card's spec was 2e+12 and is 1.9e+12",
        ),
        ("power", "the power limit was 450 W and is 300 W"),
    ],
)
def test_a_condition_that_differs_is_refused_unless_allowed(name: str, said: str) -> None:
    """With both values and the option that takes it; once allowed it is said."""
    with pytest.raises(BadInput) as caught:
        differences([RUN, other(name)])
    assert f"the runs can't be compared: {said}" == caught.value.message
    assert caught.value.remedy.endswith(f"--allow {name}")
    assert (said,) == differences([RUN, other(name)], [name])
    assert (said,) == differences([RUN, other(name)], ["all"])
    assert name in ALLOWED


def test_all_that_differs_is_named_at_once() -> None:
    """Two differences, one allowed: the other is refused and the remedy allows both."""
    head = replace(other("driver"), seed=3)
    with pytest.raises(BadInput, match=r"seed of the inputs was 0 and is 3$") as caught:
        differences([RUN, head], ["driver"])
    assert caught.value.remedy.endswith("--allow driver,seed")


def test_runs_of_one_side_must_agree_as_well() -> None:
    """The third run has another driver, whichever side it is on."""
    with pytest.raises(BadInput, match="driver"):
        differences([RUN, RUN, other("driver")])
    assert () == differences([RUN, RUN, RUN])


def test_another_source_for_the_same_numbers_is_the_same_spec() -> None:
    """A note in a spec file moves no time."""
    noted = replace(GPU, sources={"l2_bytes": SHEET}, notes=("read again",), aliases=("GPU",))
    assert () == differences([RUN, replace(RUN, gpu=noted)])


def test_a_pipe_that_changed_is_named() -> None:
    """Not the whole table of them."""
    pipes = GPU.pipes | {"fp32": replace(GPU.pipes["fp32"], clock_hz=1.7e9)}
    said = "pipes.fp32.clock_hz of the card's spec was 1.8e+09 and is 1.7e+09"
    assert (said,) == differences([RUN, replace(RUN, gpu=replace(GPU, pipes=pipes))], ["spec"])
    del pipes["fp32"]
    (said,) = differences([RUN, replace(RUN, gpu=replace(GPU, pipes=pipes))], ["spec"])
    assert said.startswith("pipes.fp32 of the card's spec was Pipe(")
    assert said.endswith(" and is absent")


def test_another_card_needs_one_word_alone() -> None:
    """Its spec is another one, too: that goes without saying."""
    head = replace(
        other("card"), gpu=replace(GPU, id="example_200", name="Example GPU 200", sm_count=120)
    )
    assert 1 == len(differences([RUN, head], ["card"]))


def test_a_run_without_a_spec_is_another_spec() -> None:
    """And where neither has one there is nothing to differ."""
    bare = replace(RUN, gpu=None)
    with pytest.raises(BadInput, match=r"the card was Example GPU 100 \(example_100\) and is"):
        differences([RUN, bare])
    assert () == differences([bare, bare])


def test_a_slice_of_a_card_is_another_card() -> None:
    """A MIG profile has its own SMs and memory."""
    head = replace(RUN, facts=replace(RUN.facts, mig_profile="1g.10gb"))
    with pytest.raises(BadInput, match=r"is Example GPU 100 1g\.10gb"):
        differences([RUN, head])


def test_an_unknown_limit_is_no_equal_one() -> None:
    """A driver that did not tell proves nothing."""
    head = replace(RUN, facts=replace(RUN.facts, power_limit_w=None))
    with pytest.raises(BadInput, match="the power limit was 450 W and is unknown"):
        differences([RUN, head])


def test_a_name_nobody_knows_is_refused() -> None:
    """With the nearest one."""
    with pytest.raises(BadInput, match="unknown condition 'drivers'") as caught:
        differences([RUN, RUN], ["drivers"])
    assert "did you mean 'driver'" in caught.value.remedy


def test_a_name_of_many_lines_stays_one_short_line() -> None:
    """Drivers and hypervisors report what they like."""
    head = replace(RUN, facts=replace(RUN.facts, driver="x\n" * 5000))
    with pytest.raises(BadInput) as caught:
        differences([RUN, head])
    assert len(caught.value.message) < 400
    assert "\n" not in caught.value.message
