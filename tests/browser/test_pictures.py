"""What the page looks like: pictures at three widths, compared with a little tolerance."""

import base64
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from likeness import difference_fraction, shrunk

GOLDEN = Path(__file__).parent / "golden"
MOST = 0.045  # of full brightness, over the worst tenth of a page; see the tests of the measure
VIEWS = {390: 2400, 768: 2000, 1280: 2000}


@functools.cache
def one_font() -> str:
    """Return a style under which the page has the same letters on every machine: matplotlib's."""
    faces = ""
    for weight, name in ((400, "DejaVuSans.ttf"), (700, "DejaVuSans-Bold.ttf")):
        font = Path(mpl.get_data_path(), "fonts", "ttf", name).read_bytes()
        source = f"url(data:font/ttf;base64,{base64.b64encode(font).decode()})"
        faces += f"@font-face {{ font-family: Golden; font-weight: {weight}; src: {source}; }}"
    return f"{faces} * {{ font-family: Golden !important; }}"


class Camera:
    """A page that is opened once and photographed under styles of the test's own."""

    def __init__(self, browser: Any, address: str, width: int) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": VIEWS[width]},
            bypass_csp=True,
            reduced_motion="reduce",
        )
        self.page = self.context.new_page()
        self.page.goto(address)
        self.page.add_style_tag(content=one_font())
        self.usual = self.picture()

    def picture(self, style: str = "* {}") -> bytes:
        """Return the head of the page as a small PNG."""
        tag = self.page.add_style_tag(content=style)
        self.page.evaluate("document.fonts.ready.then(() => true)")
        made = shrunk(self.page.screenshot())
        tag.evaluate("tag => tag.remove()")
        return made


@pytest.fixture(scope="module")
def desk(browser: Any, report: str) -> Iterator[Camera]:
    camera = Camera(browser, report, 1280)
    yield camera
    camera.context.close()


@pytest.mark.parametrize("width", VIEWS)
def test_the_page_looks_as_recorded(
    browser: Any, report: str, width: int, request: pytest.FixtureRequest
) -> None:
    """On a phone, a tablet and a desk; `--update-golden` takes new pictures."""
    path = GOLDEN / f"report-{width}.png"
    camera = Camera(browser, report, width)
    made = camera.usual
    camera.context.close()
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(made)
    assert difference_fraction(path.read_bytes(), made) < MOST


def test_the_pictures_are_small() -> None:
    """All of them together weigh less than 150 kB."""
    sizes = [path.stat().st_size for path in GOLDEN.glob("*.png")]
    assert len(VIEWS) == len(sizes)
    assert sum(sizes) < 150_000


@pytest.mark.parametrize(
    "style",
    [
        "body { padding-top: 3px; }",
        "body { line-height: 1.505; }",
        "body { letter-spacing: 0.1px; }",
        ".paper { filter: blur(1px); }",
    ],
)
def test_what_another_browser_may_do_is_no_difference(desk: Camera, style: str) -> None:
    """A few pixels down, lines a hair taller, letters a hair wider, edges smoother."""
    changed = desk.picture(style)
    assert desk.usual != changed
    assert difference_fraction(desk.usual, changed) < MOST


@pytest.mark.parametrize(
    "style",
    [
        ".spread { display: none; }",
        ".story { display: none; }",
        ".caveats { display: none; }",
        ".tiles { display: block; }",
        ".paper path { fill: black; }",
        ".paper svg { visibility: hidden; }",
        "nav ul { display: block; }",
        "main { max-width: 60%; }",
        "h1 { font-size: 70px; }",
        "body { background: #14161a; }",
    ],
)
def test_a_broken_page_is_a_difference(desk: Camera, style: str) -> None:
    """A section gone, a grid fallen apart, charts black or empty, a page gone narrow or dark."""
    assert difference_fraction(desk.usual, desk.picture(style)) > MOST
