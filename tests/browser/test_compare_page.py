"""The page of a comparison in a real browser: no request, no script, read by everybody."""

from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from compared import SLOWER, pair, place

from solkit.judge.changes import compare_runs
from solkit.report.changes_renderers import RENDERERS

BASE, HEAD = pair()
MIXED = compare_runs([BASE], [HEAD])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of the page with a case of every word."""
    path: Path = tmp_path_factory.mktemp("compare") / "compare.html"
    path.write_text(RENDERERS["html"](MIXED, 1), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_and_asks_for_nothing(browser: Any, address: str, width: int) -> None:
    """No line of the console, no request but its own, and no scrolling sideways."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    assert width == page.evaluate("document.documentElement.scrollWidth")
    assert "SLOWER: 2 of 66 cases are slower" in page.locator("h1").inner_text()
    assert ([], [address]) == (said, asked)
    context.close()


def test_a_mark_of_the_chart_leads_to_its_case(browser: Any, address: str) -> None:
    """By keyboard too: the link is a Tab stop, and its row is marked."""
    row = next(row for row, item in enumerate(MIXED.changes) if place(item.case) == SLOWER)
    page = browser.new_page()
    page.goto(address)
    page.locator(f"svg a[href='#c{row}']").focus()
    page.keyboard.press("Enter")
    assert "add_rmsnorm/solkit" in page.locator("tr:target").inner_text()
    assert page.locator("tr:target").is_visible()
    page.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_axe_finds_nothing(browser: Any, address: str, scheme: str, width: int) -> None:
    """Names, roles, contrast, landmarks, order: nothing of any impact."""
    pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    axe = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    page = context.new_page()
    page.goto(address)
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [] == [(each["id"], each["impact"], each["nodes"][0]["html"][:200]) for each in found]
    context.close()
