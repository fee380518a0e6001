"""The report for everybody: what axe-core finds, in both colour schemes and on a phone."""

import itertools
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from synthetic import outcomes, synthetic_run

from solkit.judge.score import score
from solkit.report.renderers import RENDERERS


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the script of axe-core, which the test injects past the page's own policy."""
    pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a page with a bit of everything; axe takes time for each element."""
    run = synthetic_run(outcomes()[::9] + outcomes()[-8:])
    path: Path = tmp_path_factory.mktemp("short") / "report.html"
    path.write_text(RENDERERS["html"](run, score(run)), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_axe_finds_nothing(browser: Any, short: str, axe: str, scheme: str, width: int) -> None:
    """Of no impact, so neither serious nor critical: names, roles, contrast, landmarks, order."""
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    page = context.new_page()
    page.goto(short)
    page.locator("#columns summary").click()  # the menu is part of it
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert [] == [(each["id"], each["impact"], each["nodes"][0]["html"][:200]) for each in found]
    context.close()


@pytest.mark.parametrize("made", [outcomes()[:1], outcomes()[-5:], outcomes()[:20]])
def test_a_chart_that_scrolls_can_be_reached_by_keyboard(
    browser: Any, tmp_path: Path, made: list[Any]
) -> None:
    """On a phone a chart is wider than its box: a mark with a link takes the focus, or the box."""
    run = synthetic_run(made)
    path = tmp_path / "report.html"
    path.write_text(RENDERERS["html"](run, score(run)), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(path.as_uri())
    assert [] == page.locator(".paper").evaluate_all(
        """each => each.filter(box => box.scrollWidth > box.clientWidth
          && box.tabIndex < 0 && !box.querySelector('a')).map(box => box.textContent.trim())"""
    )
    page.close()


def test_axe_would_find_a_faint_text(browser: Any, short: str, axe: str) -> None:
    """The test above can fail: grey on white is serious."""
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(short)
    page.add_style_tag(content=".lede { color: #bbbbbb !important; }")
    page.evaluate(axe)
    found = page.evaluate("axe.run('header', {runOnly: ['color-contrast']})")["violations"]
    assert ["color-contrast"] == [each["id"] for each in found]
    context.close()


def test_headings_go_down_one_level_at_a_time(page: Any) -> None:
    """One h1, and no h3 without its h2."""
    levels = page.locator("h1, h2, h3, h4").evaluate_all("each => each.map(h => +h.tagName[1])")
    assert [1] == [level for level in levels if level == 1]
    assert 1 == levels[0]
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_chart_is_told_in_words_with_its_numbers(page: Any) -> None:
    """Each has a title and a description that names at least one number."""
    told = page.locator(".paper svg, svg.hist").evaluate_all(
        "each => each.map(svg => [svg.getAttribute('role'), svg.getAttribute('aria-labelledby')"
        ".split(' ').map(id => document.getElementById(id).textContent)])"
    )
    assert len(told) >= 13
    assert {"group", "img"} == {role for role, _ in told}
    assert all(title for _, (title, _) in told)
    assert [] == [text for _, (_, text) in told if not any(each.isdigit() for each in text)]


def test_focus_is_always_seen(page: Any) -> None:
    """Whatever Tab reaches in the head of the page has an outline or leaves its hiding place."""
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "(e => [e.tagName, getComputedStyle(e).outlineStyle !== 'none'"
                " && e.getBoundingClientRect().right > 0])(document.activeElement)"
            )
        )
    assert "BODY" not in {tag for tag, _ in seen}
    assert [] == [tag for tag, visible in seen if not visible]
