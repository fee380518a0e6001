"""Golden files: what people see, kept beside the tests and reviewed like code."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"

# Tables are as wide as their test says, whatever the terminal that runs it; pytest-xdist tells its
# processes a width, too.
os.environ.pop("COLUMNS", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of that name, or write it under `--update-golden`."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8", newline="")
        assert path.read_bytes().decode() == text, f"{name} differs; see --update-golden"

    return compare
