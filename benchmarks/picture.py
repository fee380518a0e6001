"""The picture of the recorded run's report in docs/, taken by a headless Chromium.

python benchmarks/picture.py
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from solkit.judge.score import score
from solkit.record import read
from solkit.report.renderers import RENDERERS

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "h200-report.png"
WIDTH, HEIGHT = 1280, 1640
# Nothing but the page: no first-run pages, no background requests.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)


def main() -> None:
    """Render the report and photograph its head."""
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if browser is None:
        sys.exit("no Chromium found: install Debian's package chromium")
    run = read(ROOT / "benchmarks" / "h200" / "main.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(RENDERERS["html"](run, score(run)), encoding="utf-8")
        profile, size = f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}"
        shot = f"--screenshot={PICTURE}"
        command = [browser, *FLAGS, profile, size, shot, page.as_uri()]
        # Chromium talks of buses and sensors that a machine for tests does not have.
        subprocess.run(command, check=True, timeout=120, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
