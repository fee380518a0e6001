"""The distribution of scores, drawn with attributes alone."""

import re
import xml.etree.ElementTree as ET

from solkit.report.plain import DASH
from solkit.report.spread import spread_svg
from solkit.report.view import Bin

BINS = (
    Bin(label=f"0{DASH}5 %", count="6", cases="6 cases", height="60", tick="0 %"),
    Bin(label=f"5{DASH}10 %", count="", cases="0 cases", height="0", tick=""),
    Bin(label=f"10{DASH}15 %", count="10", cases="10 cases", height="100", tick=""),
    Bin(label="above 100 %", count="1", cases="1 case", height="1", tick=">100 %"),
)


def parts(tag: str) -> list[ET.Element]:
    return list(ET.fromstring(spread_svg(BINS, prefix="p-")).iter(tag))  # noqa: S314  # our own


def test_bars_are_as_tall_as_their_share_and_stand_on_the_axis() -> None:
    """A hundredth of the tallest is still a pixel; nothing is drawn for nothing."""
    bars = [(float(bar.attrib["y"]), float(bar.attrib["height"])) for bar in parts("rect")]
    assert [55, 92, 1] == [height for _, height in bars]
    assert {110} == {top + height for top, height in bars}


def test_bars_stand_side_by_side_in_percent_of_the_width() -> None:
    """So the chart is as wide as its place and its type keeps its size."""
    assert ["0.00%", "50.00%", "75.00%"] == [bar.attrib["x"] for bar in parts("rect")]
    assert {"24.65%"} == {bar.attrib["width"] for bar in parts("rect")}


def test_counts_and_ticks_are_written() -> None:
    """The last tick ends at the edge, so that it isn't cut."""
    assert ["6", "0 %", "10", "1", ">100 %"] == [text.text for text in parts("text")]
    assert "end" == parts("text")[-1].attrib["text-anchor"]


def test_the_chart_is_told_in_words() -> None:
    """Readers of text hear every bar that has a case."""
    assert [f"0{DASH}5 %: 6 cases; 10{DASH}15 %: 10 cases; above 100 %: 1 case."] == [
        each.text for each in parts("desc")
    ]
    assert "p-title p-desc" == parts("svg")[0].attrib["aria-labelledby"]


def test_nothing_is_styled_by_a_style() -> None:
    """Hosts that forbid styles show it in colour."""
    assert not re.search(r"\sstyle=|<style", spread_svg(BINS, prefix="p-"))
