"""The trend page in a real browser: it fits, is silent, and reads without script, for everybody."""

from importlib import resources
from pathlib import Path
from typing import Any

import history_made as made
import pytest

from solkit.history import History
from solkit.judge.trend import trends
from solkit.report.trend import view
from solkit.report.trend_html import render


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a page with steps of every kind, a long name and a line that could not be read."""
    long = made.case(9, operator="operator_" * 14)
    entries = made.history(
        (made.case(1), made.stepped(37, 1.07)),
        (made.case(2), made.stepped(12, 0.9)),
        (made.case(3, operator="swiglu"), made.stepped(15, 1.09, until=21)),
        (long, made.stepped(20, 2.5)),
        *((made.case(number, operator="copy"), made.flat) for number in range(6)),
    )
    history = History(tuple(made.with_driver(entries, 12, "601.03")), ("h.jsonl: line 7: bad",))
    path: Path = tmp_path_factory.mktemp("trend") / "trend.html"
    path.write_text(render(view(history, trends(history.entries))), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("script", ["on", "off"])
def test_the_page_fits_and_is_silent(browser: Any, address: str, width: int, script: str) -> None:
    """No sideways scrolling of the page, no word on the console, no request, script or none."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=script == "on"
    )
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    if script == "on":
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h1").inner_text().startswith("2 of 10 cases have stepped up")
    assert ([], [address]) == (said, asked)
    context.close()


def test_a_number_at_a_line_leads_to_its_row(browser: Any, address: str) -> None:
    """By keyboard as by mouse: the row of the case is marked."""
    page = browser.new_page()
    page.goto(address)
    link = page.locator(".multiples svg a").first
    wanted = link.get_attribute("href")
    link.focus()
    page.keyboard.press("Enter")
    assert wanted == page.evaluate("location.hash")
    assert 1 == page.locator("tr:target").count()
    page.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(browser: Any, address: str, scheme: str, width: int) -> None:
    """Names, roles, contrast, landmarks, order."""
    pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    axe = resources.files("axe_playwright_python") / "axe.min.js"
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    page = context.new_page()
    page.goto(address)
    page.evaluate(axe.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [] == [(each["id"], each["nodes"][0]["html"][:200]) for each in found]
    context.close()
