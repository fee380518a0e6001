"""Every method that a number can be taken by has words in the report and a row in the documents."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import synthetic_run

from solkit.judge.score import Scored, score
from solkit.model import Case, Measured
from solkit.report.manner import UNBLOCKED, method_means
from solkit.report.samples import doubted, remarks
from solkit.report.timing import timing_doubts

ROOT = Path(__file__).parents[2]
NUMBERS, TIMING = (
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("numbers.md", "timing.md")
)
# What the devices name their numbers by, where they say so: `method = "..."`, and the like.
NAMES = re.compile(r"^\s+(?:self\.)?(?:method|unblocked_method)\b[^\n]*?= (.+)$", re.MULTILINE)
METHODS = sorted(
    {
        name
        for path in (ROOT / "solkit" / "measure" / "device").rglob("*.py")
        for written in NAMES.findall(path.read_text(encoding="utf-8"))
        for name in re.findall(r'"([a-z_]+)"', written)
    }
)


def row(document: str, method: str) -> str:
    """Return a method's line of a document's table."""
    (line,) = re.findall(rf"^\| `{method}` \|.*$", document, re.MULTILINE)
    return str(line)


def test_the_methods_are_these() -> None:
    """Read off the devices' own sources."""
    known = ["cupti", "cupti_unblocked", "event_blocked", "event_unblocked"]
    assert [*known, "graph", "perf_counter"] == METHODS
    assert {name for name in METHODS if name.endswith("_unblocked")} == set(UNBLOCKED)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_has_words_and_a_row_in_both_documents(method: str) -> None:
    """A reader looks its name up."""
    assert len(method_means(method)) > 20
    assert row(NUMBERS, method)
    assert row(TIMING, method)


@pytest.mark.parametrize("method", ["cupti", "event_blocked", "event_unblocked", "graph"])
def test_both_documents_tell_one_floor(method: str) -> None:
    """A range or a number in µs."""
    floor = re.compile(r"\d\.\d+(?: to \d\.\d+)? µs")
    assert floor.findall(row(NUMBERS, method)) == floor.findall(row(TIMING, method))
    assert 1 == len(floor.findall(row(TIMING, method)))


def scored(method: str) -> Scored:
    case = Case("copy", "solkit", {"elements": 2**24}, "bf16")
    found = next(each for each in synthetic_run().outcomes if each.case.key == case.key)
    assert isinstance(found, Measured)
    (item,) = score(synthetic_run([replace(found, method=method)]))
    assert isinstance(item, Scored)
    return item


@pytest.mark.parametrize("method", METHODS)
def test_host_time_is_told_of_the_methods_that_may_hold_it(method: str) -> None:
    """In the remarks of the case, as a doubt, and above the numbers; of no other method."""
    item, may = scored(method), method in UNBLOCKED
    assert may == ("host time may be in it" in remarks(item))
    assert may == doubted(item)
    assert may == any(f"timed as {method}: " in words for words in timing_doubts([item]))
