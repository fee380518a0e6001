"""The report in a real browser: it reads without script, sorts, filters, and never overflows."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic import synthetic_run

from solkit.judge.score import score
from solkit.report.renderers import RENDERERS

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
QUIET = (
    "--no-sandbox",  # containers have no user namespaces
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield started
        started.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the whole report, charts and all, and return its address."""
    run = synthetic_run()
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(RENDERERS["html"](run, score(run)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser: Any, report: str) -> Iterator[Any]:
    """Open the report; after the test the console must be empty and no request have gone out."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(report)
    yield opened
    context.close()
    assert [] == said
    assert {report} == {address.partition("#")[0] for address in asked}


def column(page: Any, name: str) -> list[str]:
    """Return the texts of a column, top to bottom, of the rows that are shown."""
    texts: list[str] = page.evaluate(
        """name => {
          const heads = [...document.querySelectorAll('#all thead th')].map(th => th.textContent);
          return [...document.querySelectorAll('#all tbody tr')].filter(row => !row.hidden)
            .map(row => row.cells[heads.indexOf(name)].textContent);
        }""",
        name,
    )
    return texts


def sorting(page: Any, name: str) -> str:
    head = page.locator("#all thead th", has=page.get_by_role("button", name=name, exact=True))
    order: str = head.get_attribute("aria-sort")
    return order


def test_a_click_sorts_by_the_number_and_its_unit(page: Any) -> None:
    """331 microseconds are more than 1.81: a time sorts by its value, what has none comes last."""
    page.get_by_role("button", name="Time", exact=True).click()
    times = column(page, "Time")
    assert times[0].startswith("1.81 µs")
    assert "" == times[-1]
    assert "ascending" == sorting(page, "Time")
    page.get_by_role("button", name="Time", exact=True).click()
    assert column(page, "Time")[0].startswith("622 µs")
    assert "descending" == sorting(page, "Time")


def test_an_invalid_ratio_never_sorts_as_a_score(page: Any) -> None:
    """Best first puts the case above the sheet on top, not the impossible one."""
    page.get_by_role("button", name="SOL", exact=True).click()
    page.get_by_role("button", name="SOL", exact=True).click()
    assert column(page, "SOL")[0].startswith("▲ 106.0 %")


def test_the_keyboard_sorts_and_a_third_press_restores_the_order(page: Any) -> None:
    """Enter on a heading does what a click does."""
    before = column(page, "Operator")
    page.get_by_role("button", name="Operator", exact=True).focus()
    page.keyboard.press("Enter")
    assert "add_rmsnorm" == column(page, "Operator")[0]
    page.keyboard.press("Enter")
    assert "swiglu" == column(page, "Operator")[0]
    page.keyboard.press("Enter")
    assert before == column(page, "Operator")
    assert "none" == sorting(page, "Operator")


def test_the_filter_wants_every_word(page: Any) -> None:
    """Words in any order and case narrow the table, and the count says how far."""
    page.get_by_label("Filter").fill("TORCH softmax")
    page.locator("#shown", has_text="6 of 69 cases").wait_for()
    assert {"softmax"} == set(column(page, "Operator"))
    page.get_by_label("Filter").fill("")
    page.locator("#shown", has_text="69 cases").wait_for()


def test_a_link_to_a_filtered_row_shows_it(page: Any) -> None:
    """A mark of a chart leads to its row even while the filter hides it."""
    page.get_by_label("Filter").fill("nothing like this")
    page.locator("#shown", has_text="0 of 69 cases").wait_for()
    page.evaluate("location.hash = 'r5'")
    page.locator("#r5").wait_for(state="visible")


def test_ids_are_unique_and_every_link_resolves(page: Any) -> None:
    """With the charts in place too."""
    assert [] == page.evaluate(
        """() => {
          const ids = [...document.querySelectorAll('[id]')].map(each => each.id);
          const twice = ids.filter((id, place) => ids.indexOf(id) !== place);
          const links = [...document.querySelectorAll('a')].map(
            a => a.getAttribute('href') || a.getAttribute('xlink:href') || '');
          return [...twice, ...links.filter(
            link => link.startsWith('#') && !document.getElementById(link.slice(1)))];
        }"""
    )
    assert 0 == page.locator("[target], [style], [src]").count()


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_the_page_never_scrolls_sideways(page: Any, width: int) -> None:
    """Wide tables scroll in their own boxes."""
    page.set_viewport_size({"width": width, "height": 900})
    assert width >= page.evaluate("document.documentElement.scrollWidth")


def test_the_scores_are_seen_without_scrolling(page: Any) -> None:
    """At 1280 px the table shows a case, its time, every score and what limits it."""
    hidden = page.evaluate(
        """() => {
          const box = document.querySelector('.tall');
          const edge = box.getBoundingClientRect().left + box.clientWidth;
          return [...document.querySelectorAll('#all thead th')]
            .filter(head => head.getBoundingClientRect().right > edge + 1)
            .map(head => head.textContent);
        }"""
    )
    assert set() == {"Time", "SOL", "SOL@measured", "SOL@clock", "Limiter"} & set(hidden)


def test_on_a_phone_what_would_help_stands_under_its_case(page: Any) -> None:
    """At 400 px the costliest cases and their advice fit the width."""
    page.set_viewport_size({"width": 400, "height": 900})
    box = page.locator("[aria-label='The costliest cases']")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    case, words = (
        box.locator(name).first.bounding_box() for name in ("tbody th", "tbody td.words")
    )
    assert words["y"] > case["y"] + case["height"]


@pytest.mark.parametrize("width", [1100, 1280, 1499, 1500, 1920])
def test_the_type_of_charts_is_never_shrunk(page: Any, width: int) -> None:
    """A chart is drawn for 640 px; any narrower, its 9 px labels can't be read."""
    page.set_viewport_size({"width": width, "height": 900})
    widths = page.evaluate(
        "[...document.querySelectorAll('.paper svg')].map(e => e.getBoundingClientRect().width)"
    )
    assert min(widths) >= 640


def test_charts_are_drawn_in_colour(page: Any) -> None:
    """A chart whose styling was lost is a black rectangle: its ground would be black."""
    fill = page.evaluate("getComputedStyle(document.querySelector('.paper svg path')).fill")
    assert "rgb(0, 0, 0)" != fill


def test_a_strict_host_shows_the_page_too(browser: Any, report: str) -> None:
    """Under the policy of Jenkins no style and no script is left; rows, links and charts are."""
    text = Path(report.removeprefix("file://")).read_bytes()
    strict = "sandbox allow-same-origin; default-src 'none'; img-src 'self'; style-src 'self';"
    headers = {"Content-Security-Policy": strict, "Content-Type": "text/html"}
    context = browser.new_context()
    context.route("**/*", lambda route: route.fulfill(body=text, headers=headers))
    opened = context.new_page()
    opened.goto("http://jenkins.invalid/report.html")
    assert opened.locator("#r0").is_visible()
    assert "69" in opened.locator("#all caption").inner_text()
    fill = opened.evaluate("getComputedStyle(document.querySelector('.paper svg path')).fill")
    assert "rgb(0, 0, 0)" != fill
    context.close()


def test_everything_is_there_without_script(browser: Any, report: str) -> None:
    """Every row and chart is readable, and nothing is shown that would not work."""
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(report)
    assert 69 == plain.locator("#all tbody tr").count()
    assert plain.locator("#r0").is_visible()
    assert plain.locator(".paper svg").first.is_visible()
    assert not plain.get_by_label("Filter").is_visible()
    assert 0 == plain.get_by_role("button").count()
    context.close()
