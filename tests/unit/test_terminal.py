"""The roofline in a terminal: as wide as it may be, with every roof and a mark for each point."""

import re
from dataclasses import replace

import charted_runs as runs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solkit.errors import BadInput
from solkit.judge.score import score
from solkit.model import Case
from solkit.report import terminal

ANSI = re.compile(r"\x1b\[[\d;]*m")
BIG = runs.big_run()
JUDGED = score(BIG)


def plot(text: str) -> list[str]:
    """Return the plot's part of the lines that have one, without the axis."""
    return [
        re.split("[│┤|+]", line, maxsplit=1)[1]
        for line in text.splitlines()
        if re.search("[│┤]", line)
    ]


def test_a_card_has_its_roof_and_its_numbers() -> None:
    """The slope in dots, each ceiling with number and unit, the bandwidth below."""
    text = terminal.draw(gpus=(runs.card(),), color=False)
    assert "bf16 989 TFLOP/s" in text
    assert "fp32 66.9 TFLOP/s" in text
    assert "DRAM H200 4.8 TB/s" in text
    assert 60 < sum("\u2800" < char <= "\u28ff" for char in text)


@pytest.mark.parametrize("judged", [(), JUDGED])
@settings(max_examples=20, deadline=None)
@given(width=st.integers(40, 200), height=st.integers(8, 60))
def test_no_line_is_wider_than_asked(judged: tuple[object, ...], width: int, height: int) -> None:
    """A terminal that wraps destroys the picture."""
    text = terminal.draw(run=BIG, judged=judged, width=width, height=height, color=False)  # type: ignore[arg-type]
    assert width >= max(len(line) for line in text.splitlines())


def test_eighty_columns_and_twenty_four_lines_by_default() -> None:
    """It fits the smallest window people still use, points and legend included."""
    lines = terminal.draw(run=BIG, judged=JUDGED, color=False).splitlines()
    assert max(len(line) for line in lines) <= 80
    assert len(lines) <= 24


def test_each_point_has_a_mark() -> None:
    """Points apart have a letter each; sharing a cell, a star; faster than light, a sign."""
    cpu = runs.cpu_run()
    chosen = [item for item in score(cpu) if item.outcome.case.operator == "matmul_add"]  # type: ignore[union-attr]
    text = terminal.draw(run=cpu, judged=chosen, width=200, height=40, color=False)
    assert 8 == "".join(plot(text)).count("A")
    assert "A matmul_add/numpy fp32 (8)" in text
    crowded = terminal.draw(run=BIG, judged=JUDGED, color=False)
    assert "!" in "".join(plot(crowded))
    assert "! INVALID" in crowded
    assert "*" in "".join(plot(crowded))


def test_colour_only_where_asked() -> None:
    """A file or a plain terminal gets no escape codes, and colour changes no character."""
    plain = terminal.draw(run=BIG, judged=JUDGED, color=False)
    colored = terminal.draw(run=BIG, judged=JUDGED, color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;" in colored
    assert plain == ANSI.sub("", colored)


def test_a_terminal_without_unicode_gets_ascii() -> None:
    """Dots and bars stand in for braille."""
    text = terminal.draw(gpus=(runs.card(),), color=False, unicode=False)
    assert text.isascii()
    assert 30 < text.count(".")


def test_names_bring_no_escape_codes() -> None:
    """A kernel's name can't move the cursor."""
    card = runs.card(name="NVIDIA \x1b[2J<b>")
    assert "\x1b" not in terminal.draw(gpus=(card, runs.card()), color=False)


def test_a_processor_is_drawn_by_its_measured_roof() -> None:
    """Without a card the ceilings of the device itself are the roof."""
    cpu = runs.cpu_run()
    assert "fp32 measured 51.2 TFLOP/s" in terminal.draw(run=cpu, judged=score(cpu), color=False)


def test_more_cards_than_a_terminal_can_tell_apart_are_refused() -> None:
    """A heap of dots is no answer; a picture is, and the message says how to get it."""
    with pytest.raises(BadInput, match="9 cards don't fit a terminal") as caught:
        terminal.draw(gpus=[runs.card(f"c{index}") for index in range(9)], color=False)
    assert "-o roofline.svg" in caught.value.remedy


def test_nothing_to_draw_is_said() -> None:
    """An empty picture helps nobody."""
    with pytest.raises(BadInput, match="no card, no run"):
        terminal.draw(color=False)


def test_a_hot_case_has_no_mark() -> None:
    """Its data need not come from DRAM, so the slope is no roof of it."""
    found = runs.measured(
        Case("softmax", "x", {"rows": 4096, "cols": 4096}, "bf16"), 0.8, gpu=runs.card()
    )
    hot = replace(found, case=replace(found.case, cache_mode="hot"), cache="hot")
    for outcome, marked in ((found, True), (hot, False)):
        run = runs.a_run((outcome,), gpu=runs.card())
        text = terminal.draw(run=run, judged=score(run), color=False)
        assert marked == any("A" in line for line in plot(text))
