"""A real browser, and the report as people meet it: one file, or a folder on a strict host."""

import functools
import http.server
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic import synthetic_run

from solkit.judge.score import score
from solkit.report.assets import render_folder
from solkit.report.renderers import RENDERERS

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
QUIET = (
    "--no-sandbox",  # containers have no user namespaces
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)
# what Jenkins sends with archived files (Configuring Content Security Policy, Jenkins handbook)
JENKINS = "sandbox allow-same-origin; default-src 'none'; img-src 'self'; style-src 'self';"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield started
        started.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write both forms of the whole report, charts and all, into one folder and return it."""
    run = synthetic_run()
    judged = score(run)
    folder = tmp_path_factory.mktemp("site")
    (folder / "report.html").write_text(RENDERERS["html"](run, judged), encoding="utf-8")
    for name, text in render_folder(run, judged).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def report(site: Path) -> str:
    """Return the address of the one-file form."""
    return (site / "report.html").as_uri()


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


class StrictHost(http.server.SimpleHTTPRequestHandler):
    """Serves files as Jenkins does, and notes what was asked for."""

    def __init__(self, *args: Any, asked: list[str], **named: Any) -> None:
        self.asked = asked
        super().__init__(*args, **named)

    def end_headers(self) -> None:
        """Add the policy."""
        self.send_header("Content-Security-Policy", JENKINS)
        super().end_headers()

    def log_message(self, _format: str, *_args: Any) -> None:
        """Note the path, and print nothing."""
        self.asked.append(self.path)


@pytest.fixture(scope="module")
def jenkins(site: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve the folder from this machine under Jenkins' header: its address, and what is asked."""
    asked: list[str] = []
    handler: Callable[..., StrictHost] = functools.partial(
        StrictHost, asked=asked, directory=str(site)
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    serving.join()
