"""Matplotlib's SVG made fit for a strict content policy, and for people who can't see it.

Under `style-src 'self'` every `style=` is ignored and a raw matplotlib SVG is a black rectangle, so
each declaration becomes a presentation attribute. Links lose their `target`, ids get a prefix so
that two charts can share a page, and a title and description go in front.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping

from solkit.errors import SolkitError

# Every property seen in matplotlib's output has an attribute form; anything else must be looked at.
_ATTRIBUTES = frozenset(
    [
        "clip-path",
        "clip-rule",
        "color",
        "display",
        "dominant-baseline",
        "fill",
        "fill-opacity",
        "fill-rule",
        "font-family",
        "font-size",
        "font-stretch",
        "font-style",
        "font-variant",
        "font-weight",
        "image-rendering",
        "opacity",
        "shape-rendering",
        "stop-color",
        "stop-opacity",
        "stroke",
        "stroke-dasharray",
        "stroke-dashoffset",
        "stroke-linecap",
        "stroke-linejoin",
        "stroke-miterlimit",
        "stroke-opacity",
        "stroke-width",
        "text-anchor",
        "text-decoration",
        "text-rendering",
        "vector-effect",
        "visibility",
    ]
)
_FONT = re.compile(
    r"^(?:(?P<words>.*?)\s+)?(?P<size>[\d.]+(?:px|pt|em))(?:/\S+)?\s+(?P<family>.+)$"
)
_AUTOMATIC_ID = re.compile(
    r"^[A-Za-z0-9]+_\d+$"
)  # figure_1, axes_1, line2d_12: nobody links to these
_LONG_DECIMAL = re.compile(r"-?\d+\.\d{3,}")
_UNTURNED = re.compile(r"^rotate\(-?0[ )]")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_ROUNDED = ("d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "points")
# Verdana has DejaVu's widths, so texts fit their places on machines without DejaVu.
FONT_FAMILY = "DejaVu Sans, Verdana, sans-serif"
# Ends the description of each chart on a page: read aloud, a chart is not where it ends.
SEE_TABLE = "The table of cases holds the data."
_DROPPED = ("metadata", "style", "title", "desc", "script", "foreignObject")


def sanitise(
    text: str, *, prefix: str, title: str, description: str, tips: Mapping[str, str] | None = None
) -> str:
    """Return one matplotlib SVG as an `<svg>` element with attributes only.

    prefix: put before every id, so unique per page. title, description: read out by assistive
    tools. tips: for each link target (`#r5`) the words that name the mark, shown on hovering.
    Raises SolkitError on a CSS property without an attribute form, and on a link off the page.
    """
    root = ET.fromstring(text)  # noqa: S314  # matplotlib's own output, made a moment ago
    _strip_namespaces(root)
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in _DROPPED]:
            parent.remove(child)
    for element in root.iter():
        _rewrite_style(element)
        _rewrite_link(element)
    _rename_ids(root, prefix)
    _drop_empty(root)
    for element in root.iter():
        _shorten(element)
    linked = list(root.iter("a"))
    for element in linked:
        tip = (tips or {}).get(element.get("href", ""))
        if tip:
            _first(element, "title", tip)
    _dress(root, prefix, title, description, linked=bool(linked))
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def standalone(svg: str) -> str:
    """Return a sanitised element as the text of a file of its own."""
    return f'<?xml version="1.0" encoding="utf-8"?>\n{svg}\n'


def _strip_namespaces(root: ET.Element) -> None:
    """Use plain names: inside HTML the parser knows SVG's, and `href` has replaced `xlink:href`."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name in [name for name in element.attrib if "}" in name]:
            element.set(name.rpartition("}")[2], element.attrib.pop(name))


def _rewrite_style(element: ET.Element) -> None:
    for name, value in _declarations(element.attrib.pop("style", "")):
        if name == "font":
            for part, part_value in _font(value):
                element.set(part, part_value)
        elif name in _ATTRIBUTES:
            element.set(name, value)
        else:
            raise SolkitError(
                f"a chart's <{element.tag}> has {name!r}, which has no attribute form",
                remedy="a strict content policy would drop it; draw the chart without it",
            )


def _declarations(style: str) -> Iterator[tuple[str, str]]:
    for declaration in style.split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _font(value: str) -> Iterator[tuple[str, str]]:
    """Split the `font` shorthand, which has no attribute form, into its parts."""
    match = _FONT.match(value)
    if match is None:
        raise SolkitError(
            f"the chart's font {value!r} can't be read", remedy="set size and family apart"
        )
    for word in (match["words"] or "").split():
        yield ("font-style" if word in {"italic", "oblique"} else "font-weight"), word
    yield "font-size", match["size"]
    yield "font-family", match["family"]


def _rewrite_link(element: ET.Element) -> None:
    element.attrib.pop("target", None)
    element.attrib.pop("type", None)
    href = element.get("href")
    if href is not None and not href.startswith("#"):
        raise SolkitError(
            f"a chart links to {href[:80]!r}, outside its page",
            remedy="link to a row of the same page",
        )


def _rename_ids(root: ET.Element, prefix: str) -> None:
    """Prefix the ids that matter and drop those that nothing refers to."""
    used = {element.get("href", "")[1:] for element in root.iter() if element.tag != "a"}
    for element in root.iter():
        for value in element.attrib.values():
            used.update(_REFERENCE.findall(value))
    for element in root.iter():
        name = element.get("id")
        if name is not None:
            if name in used or not _AUTOMATIC_ID.match(name):
                element.set("id", prefix + name)
            else:
                del element.attrib["id"]
        href = element.get("href")
        if (
            href is not None and element.tag != "a"
        ):  # a mark's shape; the links lead to rows of the page
            element.set("href", f"#{prefix}{href[1:]}")
        for key, value in element.attrib.items():
            if "url(#" in value:
                element.set(key, _REFERENCE.sub(rf"url(#{prefix}\1)", value))


def _drop_empty(root: ET.Element) -> None:
    """Remove containers that hold nothing and groups that say nothing."""
    for parent in list(root.iter())[::-1]:
        for index, child in reversed(list(enumerate(parent))):
            if child.tag in {"g", "defs"} and not len(child):
                parent.remove(child)
            elif child.tag == "g" and not child.attrib:
                parent[index : index + 1] = list(child)


def _shorten(element: ET.Element) -> None:
    """Round coordinates to a hundredth of a pixel, and leave out what the root says already."""
    for name in _ROUNDED:
        value = element.get(name)
        if value is not None:
            element.set(name, " ".join(_LONG_DECIMAL.sub(_rounded, value).split()))
    transform = element.get("transform", "")
    if _UNTURNED.match(transform):
        del element.attrib["transform"]  # every text has one: a tenth of a small chart
    if (
        transform.startswith(("translate", "rotate"))
        and "scale" not in transform
        and "matrix" not in transform
    ):
        element.set("transform", _LONG_DECIMAL.sub(_rounded, transform))
    element.attrib.pop("font-family", None)
    if element.text is not None and not element.text.strip():
        element.text = None
    if element.tail is not None and not element.tail.strip():
        element.tail = None


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _first(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    child = ET.Element(tag, attributes)
    child.text = text
    parent.insert(0, child)


def _dress(root: ET.Element, prefix: str, title: str, description: str, *, linked: bool) -> None:
    """Give the root its words; `img` would hide links from assistive tools, a group doesn't."""
    box = root.get("viewBox", "").split()
    root.attrib.clear()
    root.set("xmlns", "http://www.w3.org/2000/svg")
    root.set("viewBox", " ".join(box))
    root.set("width", box[2])
    root.set("height", box[3])
    root.set("role", "group" if linked else "img")
    root.set("aria-labelledby", f"{prefix}title {prefix}desc")
    root.set("font-family", FONT_FAMILY)
    root.set("stroke-linejoin", "round")
    root.set("stroke-linecap", "butt")
    _first(root, "desc", description, id=f"{prefix}desc")
    _first(root, "title", title, id=f"{prefix}title")
