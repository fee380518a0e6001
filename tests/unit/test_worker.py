"""The worker as its parent meets it while declarations are loaded."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from solkit.errors import BadInput
from solkit.measure.process import Process

DECLARES = "from solkit import Kernel\nK = Kernel(name='k', operator='copy', function=print)\n"


@pytest.fixture
def worker() -> Iterator[Process]:
    process = Process()
    yield process
    process.stop()


def load(worker: Process, path: Path, text: str) -> list[str]:
    """Load one file and return the names of the kernels that are not bundled."""
    path.write_text(text, encoding="utf-8")
    answer = worker.ask({"do": "load", "paths": [str(path)]})
    return [kernel["name"] for kernel in answer["kernels"] if not kernel["bundled"]]


def test_a_declaration_that_reads_input_finds_none(worker: Process, tmp_path: Path) -> None:
    """It would otherwise wait for, or swallow, what the parent asks the worker."""
    text = f"import sys\nassert not sys.stdin.read()\nsys.stdin.close()\n{DECLARES}"
    assert ["k"] == load(worker, tmp_path / "reads.py", text)
    assert ["k"] == load(worker, tmp_path / "again.py", DECLARES)


def test_a_file_that_declares_nothing_is_refused(worker: Process, tmp_path: Path) -> None:
    """Whoever names a file with --load expects something of it."""
    with pytest.raises(BadInput, match=r"empty\.py: declares no Operator and no Kernel") as caught:
        load(worker, tmp_path / "empty.py", "x = 1\n")
    assert "docs/write-a-kernel.md" in caught.value.remedy
