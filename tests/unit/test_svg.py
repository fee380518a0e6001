"""The sanitiser: attributes for styles, ids of one's own, links that stay on the page."""

import re
import xml.etree.ElementTree as ET

import pytest

from solkit.errors import SolkitError
from solkit.report import plotting, svg

RAW = """<?xml version="1.0" encoding="utf-8" standalone="no"?>
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="72pt" height="36pt" viewBox="0 0 72 36"
     xmlns="http://www.w3.org/2000/svg" version="1.1">
 <metadata><rdf>who made it</rdf></metadata>
 <defs><style type="text/css">*{stroke-linejoin: round}</style></defs>
 <g id="figure_1"><defs><path id="m1" d="M 0 3.123456 C -1 2 z" style="stroke: #111"/></defs>
  <g id="map-0" clip-path="url(#p1)">
   <a xlink:href="#r5" target="_blank"><use xlink:href="#m1" x="1.00049" y="2" style="fill: #0072b2; stroke: none"/></a>
   <text style="font: italic 700 10px 'DejaVu Sans'; text-anchor: middle">a &lt; b</text>
  </g></g>
 <defs><clipPath id="p1"><rect x="0" y="0" width="7" height="7"/></clipPath></defs>
</svg>"""  # noqa: E501  # as matplotlib writes it


def cleaned(prefix: str = "a-") -> str:
    return svg.sanitise(
        RAW, prefix=prefix, title="A title", description="What it says.", tips={"#r5": "case <5>"}
    )


def test_every_style_becomes_attributes() -> None:
    """A policy that forbids `style=` leaves a picture, not a black rectangle."""
    text = cleaned()
    assert " style=" not in text
    assert "<style" not in text
    assert 'fill="#0072b2" stroke="none"' in text
    assert 'text-anchor="middle"' in text


def test_the_font_shorthand_is_taken_apart() -> None:
    """`font` has no attribute form, its parts have."""
    text = ET.fromstring(cleaned()).find(".//{*}text")  # noqa: S314  # our own text
    assert text is not None
    assert ("10px", "700", "italic") == (
        text.get("font-size"),
        text.get("font-weight"),
        text.get("font-style"),
    )


def test_ids_get_the_prefix_wherever_they_are_referred_to() -> None:
    """Two charts share a page: `url(#...)` and `href` follow their ids; row links don't."""
    text = cleaned("b-")
    assert 'id="b-m1"' in text
    assert 'href="#b-m1"' in text
    assert "url(#b-p1)" in text
    assert 'id="b-map-0"' in text
    assert 'href="#r5"' in text
    assert "figure_1" not in text


def test_links_stay_on_the_page_and_name_their_row() -> None:
    """`target` is dead under a sandbox, and a link needs a name of its own."""
    text = cleaned()
    assert "target" not in text
    assert '<a href="#r5"><title>case &lt;5&gt;</title>' in text
    assert "metadata" not in text


def test_the_root_carries_title_and_description() -> None:
    """Assistive tools read both; a chart with links is a group, so that the links stay in reach."""
    root = ET.fromstring(cleaned())  # noqa: S314  # our own text
    assert root.get("role") == "group"
    assert root.get("aria-labelledby") == "a-title a-desc"
    assert ["A title", "What it says."] == [child.text for child in list(root)[:2]]
    assert ("0 0 72 36", "72", "36") == (
        root.get("viewBox"),
        root.get("width"),
        root.get("height"),
    )


def test_a_picture_without_links_is_an_image() -> None:
    """Nothing inside needs to be reached."""
    text = svg.sanitise(RAW.replace('xlink:href="#r5"', ""), prefix="", title="t", description="d")
    assert 'role="group"' in text
    plain = re.sub(r"</?a[^>]*>", "", RAW)
    assert 'role="img"' in svg.sanitise(plain, prefix="", title="t", description="d")


def test_a_property_without_an_attribute_form_is_an_error() -> None:
    """Better no chart than one that looks different under a strict policy."""
    with pytest.raises(SolkitError, match="mix-blend-mode"):
        svg.sanitise(
            RAW.replace("fill: #0072b2", "mix-blend-mode: multiply"),
            prefix="",
            title="t",
            description="d",
        )


def test_a_link_that_leaves_the_page_is_an_error() -> None:
    """A report makes no request."""
    with pytest.raises(SolkitError, match="outside its page"):
        svg.sanitise(
            RAW.replace("#r5", "https://example.com"), prefix="", title="t", description="d"
        )


def test_coordinates_keep_two_decimals() -> None:
    """A hundredth of a pixel is enough, and a page of charts stays small."""
    text = cleaned()
    assert 'd="M 0 3.12 C -1 2 z"' in text
    assert 'x="1"' in text


def test_matplotlib_itself_is_understood() -> None:
    """Whatever this release of matplotlib writes comes through, hatches and texts included."""
    with plotting.look():
        figure = plotting.canvas(300, 200)
        axes = plotting.axes_at(figure, left=40, top=10, right=10, bottom=30)
        axes.fill_between([1, 2], [1, 2], [2, 3], hatch="//")
        axes.scatter([1, 2], [1, 3]).set_urls(["#r1", "#r2"])
        axes.annotate("a_$b$", (1, 1), xytext=(5, 5), textcoords="offset points", rotation=20)
        text = svg.sanitise(plotting.svg_text(figure), prefix="x-", title="t", description="d")
    assert "style" not in text
    assert "a_$b$" in text
    assert 2 == text.count("<a ")
