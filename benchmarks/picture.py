"""The pictures in docs/ of what recorded H200 runs become, taken by a headless Chromium.

python benchmarks/picture.py
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from solkit.judge.changes import compare_runs
from solkit.judge.score import score
from solkit.record import read
from solkit.report.changes_renderers import RENDERERS as COMPARED
from solkit.report.renderers import RENDERERS

ROOT = Path(__file__).parents[1]
RUNS, DOCS = ROOT / "benchmarks" / "h200", ROOT / "docs"
WIDTH = 1280
# Nothing but the page: no first-run pages, no background requests.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)


def main() -> None:
    """Render the pages and photograph them."""
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if browser is None:
        sys.exit("no Chromium found: install Debian's package chromium")
    run = read(RUNS / "main.jsonl")
    base, head = read(RUNS / "gate" / "a.jsonl"), read(RUNS / "gate" / "p5.jsonl")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as play:
        report, compared = Path(name) / "report.html", Path(name) / "compare.html"
        report.write_text(RENDERERS["html"](run, score(run)), encoding="utf-8")
        compared.write_text(COMPARED["html"](compare_runs([base], [head]), 1), encoding="utf-8")
        page = play.chromium.launch(executable_path=browser, args=list(FLAGS)).new_page()
        _head(page, report, "h200-report.png", height=1640)
        _section(page, report, "add_rmsnorm", "h200-operator.png")
        _head(page, compared, "h200-compare.png", height=1240)


def _head(page: Page, file: Path, picture: str, *, height: int) -> None:
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.goto(file.as_uri())
    page.screenshot(path=DOCS / picture)


def _section(page: Page, file: Path, operator: str, picture: str) -> None:
    page.goto(file.as_uri())
    heading = page.get_by_role("heading", name=operator, exact=True)
    page.locator("section.operator").filter(has=heading).screenshot(path=DOCS / picture)


if __name__ == "__main__":
    main()
