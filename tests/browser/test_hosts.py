"""Both forms of the report where scripts or styles are forbidden, on paper, and in the dark."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

LINKS = """() => {
  const ids = [...document.querySelectorAll('[id]')].map(each => each.id);
  const twice = ids.filter((id, place) => ids.indexOf(id) !== place);
  const links = [...document.querySelectorAll('a')].map(
    a => a.getAttribute('href') || a.getAttribute('xlink:href') || '');
  return [...twice, ...links.filter(
    link => link.startsWith('#') && !document.getElementById(link.slice(1)))];
}"""
FORMS = pytest.mark.parametrize("form", ["report.html", "index.html"])


def black_fraction(page: Any, place: str) -> float:
    """Return the share of nearly black pixels of an element."""
    shot = Image.open(io.BytesIO(page.locator(place).first.screenshot())).convert("L")
    counts = shot.histogram()
    return sum(counts[:32]) / sum(counts)


@FORMS
def test_a_strict_host_shows_charts_in_colour(
    browser: Any, jenkins: tuple[str, list[str]], form: str
) -> None:
    """A chart that lost its styling is a black rectangle; ours keep their paint as attributes."""
    page = browser.new_page()
    page.goto(f"{jenkins[0]}/{form}")
    fills = page.evaluate(
        "[...document.querySelectorAll('.paper svg')]"
        ".map(svg => getComputedStyle(svg.querySelector('path')).fill)"
    )
    assert len(fills) >= 12
    assert "rgb(0, 0, 0)" not in fills
    assert black_fraction(page, ".overview .paper") < 0.05
    assert black_fraction(page, ".operator .paper") < 0.05
    assert black_fraction(page, ".hist") < 0.1
    page.close()


@FORMS
@pytest.mark.parametrize("how", ["click", "Enter"])
def test_a_strict_host_keeps_the_way_from_mark_to_row(
    browser: Any, jenkins: tuple[str, list[str]], form: str, how: str
) -> None:
    """By mouse and by keyboard, with no script."""
    page = browser.new_page(reduced_motion="reduce")  # links jump and don't glide
    page.goto(f"{jenkins[0]}/{form}")
    mark = page.locator(".overview a[href='#r5']").first
    mark.click() if how == "click" else mark.press("Enter")
    page.wait_for_url("**#r5")
    # It scrolls by whole pixels, and the row may begin between two.
    assert page.locator("#r5").evaluate(
        "row => { const box = row.getBoundingClientRect();"
        " return row.matches(':target') && box.top > -1 && box.bottom < innerHeight + 1; }"
    )
    page.close()


def test_the_folder_form_is_styled_on_a_strict_host(
    browser: Any, jenkins: tuple[str, list[str]]
) -> None:
    """The style sheet is the one file it asks for; the script is not even fetched."""
    page = browser.new_page()
    jenkins[1].clear()
    page.goto(f"{jenkins[0]}/index.html")
    assert ["/index.html", "/report.css"] == [each for each in jenkins[1] if "favicon" not in each]
    assert "grid" == page.locator(".tiles").evaluate("each => getComputedStyle(each).display")
    assert page.locator("#all td.b66, #all td.b73").first.evaluate(
        "cell => getComputedStyle(cell).backgroundImage.includes('gradient')"
    )
    assert page.locator("#r0").is_visible()
    assert not page.get_by_label("Filter").is_visible()
    page.close()


def test_the_data_beside_the_folder_form_opens_on_a_strict_host(
    browser: Any, jenkins: tuple[str, list[str]]
) -> None:
    """A plain link to .json survives where one to .csv would be a download, which is blocked."""
    page = browser.new_page()
    page.goto(f"{jenkins[0]}/index.html")
    page.get_by_role("link", name="run.json").click()
    page.wait_for_url("**/run.json")
    assert "matmul_add" in page.content()
    page.close()


def test_the_one_file_form_reads_without_its_style(
    browser: Any, jenkins: tuple[str, list[str]]
) -> None:
    """What is hidden stays hidden, tables have lines, and small drawings stay small."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{jenkins[0]}/report.html")
    assert "block" == page.locator(".tiles").evaluate("each => getComputedStyle(each).display")
    assert page.locator("h1").is_visible()
    assert not page.get_by_label("Filter").is_visible()
    assert 0 == page.get_by_role("button").filter(visible=True).count()
    bare = "cell => getComputedStyle(cell).borderTopWidth"
    assert {"1px"} == set(
        page.locator("table").evaluate_all(f"each => each.map(t => ({bare})(t.rows[1].cells[0]))")
    )
    sparks = page.locator("svg.k").evaluate_all(
        "each => each.map(s => [s.getBoundingClientRect().height, getComputedStyle(s).fill])"
    )
    assert {(10, "none")} == {tuple(each) for each in sparks}
    charts = page.locator(".paper svg").evaluate_all(
        "each => each.map(s => s.getBoundingClientRect().width)"
    )
    assert {640} == set(charts)
    page.close()


@FORMS
def test_every_row_and_chart_is_there_without_script(browser: Any, site: Path, form: str) -> None:
    """Nothing is shown that would not work."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / form).as_uri())
    assert 69 == page.locator("#all tbody tr").count()
    assert page.locator("#r0").is_visible()
    assert page.locator("#r68").is_visible()
    assert page.locator(".paper svg").first.is_visible()
    assert not page.get_by_label("Filter").is_visible()
    assert 0 == page.get_by_role("button").filter(visible=True).count()
    context.close()


def test_the_folder_form_works_from_a_disk(browser: Any, site: Path) -> None:
    """Its own policy lets its style sheet and script through there, and the console is empty."""
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto((site / "index.html").as_uri())
    page.get_by_label("Filter").fill("torch softmax")
    page.locator("#shown", has_text="6 of 69 cases").wait_for()
    assert [] == said
    page.close()


@FORMS
def test_ids_are_unique_and_every_link_resolves(browser: Any, site: Path, form: str) -> None:
    """With the charts in place, and nothing in the page that a strict host blocks."""
    page = browser.new_page()
    page.goto((site / form).as_uri())
    assert [] == page.evaluate(LINKS)
    assert 0 == page.locator("[target], [style], [download], [src^='data:'], [onclick]").count()
    remote = page.locator("[src], link, a").evaluate_all(
        "each => each.filter(e => e.closest('.peaks') === null)"
        ".map(e => e.getAttribute('src') || e.getAttribute('href')).filter(u => !u.startsWith('#'))"
    )
    linked = {"report.css", "report.js", "run.json"}
    assert (linked if form == "index.html" else set()) == set(remote)
    page.close()


def test_the_folder_form_never_scrolls_sideways(
    browser: Any, jenkins: tuple[str, list[str]]
) -> None:
    """On a strict host it has the widths of the one-file form elsewhere."""
    page = browser.new_page()
    page.goto(f"{jenkins[0]}/index.html")
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert width >= page.evaluate("document.documentElement.scrollWidth")
    page.close()


def test_paper_gets_every_row_and_no_controls(browser: Any, report: str) -> None:
    """Boxes that scroll open up; dark pages print black on white."""
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(report)
    page.emulate_media(media="print")
    assert not page.locator("#tools").is_visible()
    assert not page.locator("nav").is_visible()
    box = page.locator(".tall").evaluate("box => [box.scrollHeight, box.clientHeight]")
    assert box[0] == box[1]
    colours = page.evaluate(
        "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
    )
    assert ["rgb(0, 0, 0)", "rgb(255, 255, 255)"] == colours
    assert len(page.pdf()) > 100_000
    context.close()


def test_the_dark_page_is_dark_and_its_charts_keep_their_paper(browser: Any, report: str) -> None:
    """Chart colours are chosen for white."""
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(report)
    paint = "e => getComputedStyle(e).backgroundColor"
    assert "rgb(20, 22, 26)" == page.locator("body").evaluate(paint)
    assert {"rgb(255, 255, 255)"} == set(
        page.locator(".paper").evaluate_all(f"each => each.map({paint})")
    )
    context.close()
