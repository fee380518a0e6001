"""JUnit XML: what CI systems read of a run, valid whatever its names hold."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml
from synthetic import measured, synthetic_run

from solkit.judge.score import score
from solkit.model import Case, Failed, Outcome, Run, Skipped, Work
from solkit.report.junit import render
from solkit.report.junit_xml import BODY_MOST, MESSAGE_MOST, Entry, Problem, Suite, document
from solkit.report.plain import NAME_MOST

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "junit.xsd")
CASE = Case("copy", "solkit", {"elements": 8}, "bf16", {"layout": "nk"})
GOOD = measured(CASE, Work(10**9, 10**9), time_s=2e-3)
WRONG = Failed(
    replace(CASE, kernel="fast"),
    "check",
    "3 of 8 differ\nat 0, 1, 2",
    "Fix it.",
    (),
    "wrong_values",
)
HOSTILE = "a\x00\x1b[31m<b>&\"'\ud800\u202e\uffff]]>" + "x" * 10_000


def whole(outcomes: Sequence[Outcome]) -> Run:
    return replace(synthetic_run(outcomes), ended="complete")


def read(text: str) -> ET.Element:
    """Return the parsed document, once it has been found valid."""
    SCHEMA.validate(text)
    return ET.fromstring(text)  # noqa: S314  # our own text


def only_case(outcome: Outcome, **options: object) -> ET.Element:
    other = replace(GOOD, case=Case("other", "solkit", {"n": 1}, "bf16"))
    run = whole([outcome, other])
    suites = read(render(run, score(run), **options)).findall("testsuite")  # type: ignore[arg-type]
    assert 2 == len(suites)
    (found,) = suites[0].findall("testcase")
    return found


def test_the_junit_of_a_run_is_as_recorded(golden: Callable[[str, str], None]) -> None:
    """A suite for each operator with what it ran on; each case with its numbers."""
    run = synthetic_run()
    kept = [each for each in run.outcomes if each.case.operator in ("softmax", "matmul_add")]
    run = replace(run, outcomes=tuple(kept[5:12] + kept[13:20]))
    below = {kept[5].case.key: "SOL 87.6 % is below the floor of 90 %"}
    text = render(run, score(run), below=below)
    read(text)
    golden("report.junit.xml", text)


def test_a_case_is_named_by_its_whole_identity_and_takes_its_median() -> None:
    """Class name operator.kernel.dtype, name the shape with params; time in seconds."""
    found = only_case(GOOD)
    assert {
        "classname": "copy.solkit.bf16",
        "name": "elements=8 layout=nk",
        "time": "0.0020000000",
    } == found.attrib
    assert ["system-out"] == [each.tag for each in found]


def test_another_cache_mode_is_part_of_the_name() -> None:
    """Cold and hot are two cases."""
    hot = replace(GOOD, case=replace(CASE, cache_mode="hot"), cache="hot")
    assert "elements=8 layout=nk cache=hot" == only_case(hot).get("name")


def test_a_case_that_a_gate_fails_is_a_failure() -> None:
    """The sentence of whoever has the floor is its message."""
    (found,) = only_case(GOOD, below={CASE.key: "SOL 50 %, floor 80 %"}).findall("failure")
    assert ("gate", "SOL 50 %, floor 80 %") == (found.get("type"), found.get("message"))


def test_a_failed_case_is_an_error_with_its_remedy() -> None:
    """The message is one line, the body holds all of it."""
    (found,) = only_case(WRONG).findall("error")
    assert ("wrong_values", "failed at check: wrong values: 3 of 8 differ") == (
        found.get("type"),
        found.get("message"),
    )
    assert "3 of 8 differ\nat 0, 1, 2\nRemedy: Fix it." == found.text


def test_an_invalid_case_is_an_error_and_never_passes_its_floor() -> None:
    """Faster than light is no result, whatever a floor says."""
    beyond = measured(CASE, Work(10**9, 0), time_s=1e-4)
    (found,) = only_case(beyond, below={CASE.key: "low"}).findall("error")
    assert "INVALID" == found.get("type")
    assert "INVALID, 500.0 % of the speed of light: moved bytes" in str(found.get("message"))


def test_a_skipped_case_says_why() -> None:
    """The reason is the message."""
    run = whole([GOOD, Skipped(replace(CASE, dtype="fp8_e4m3"), "no such pipe")])
    text = render(run, score(run))
    (found,) = read(text).findall("testsuite/testcase/skipped")
    assert {"message": "no such pipe"} == found.attrib


def test_what_decides_a_comparison_is_among_the_properties() -> None:
    """Card, driver, method, version, seed, roof and the median score."""
    run = whole([GOOD])
    found = read(render(run, score(run))).findall("testsuite/properties/property")
    said = {each.get("name"): each.get("value") for each in found}
    wanted = ("card", "driver", "method", "solkit", "seed", "roof", "median_sol")
    assert ["Example GPU 100", "600.12", "cupti", "0.1.0", "0", "spec", "0.5"] == [
        said[name] for name in wanted
    ]


@pytest.mark.parametrize(
    ("ended", "outcomes", "said"),
    [
        (None, [GOOD], "The run was cut short: 1 case of 1 planned are here."),
        ("interrupted", [GOOD], "The run was cut short: 1 case of 1 planned are here."),
        ("complete", [], "Nothing was measured: 0 cases"),
        ("complete", [Skipped(CASE, "no")], "Nothing was measured: 1 case, none with a time."),
    ],
)
def test_what_is_missing_does_not_pass(
    ended: str | None, outcomes: list[Outcome], said: str
) -> None:
    """A run that was cut or has nothing to show carries an error of its own."""
    run = replace(synthetic_run(outcomes), ended=ended)
    (found,) = read(render(run, score(run))).findall("testsuite[@name='run']/testcase/error")
    assert str(found.get("message")).startswith(said)


def test_another_reader_counts_the_same() -> None:
    """As CI systems do: every case once, failures and errors apart."""
    run = synthetic_run()
    below = {run.outcomes[0].case.key: "low"}
    found = JUnitXml.fromstring(render(run, score(run), below=below).encode())
    results = [each for suite in found for case in suite for each in case.result]
    assert (69, 1, 3) == (found.tests, found.failures, found.errors)
    assert (1, 3) == tuple(
        sum(isinstance(each, kind) for each in results) for kind in (Failure, Error)
    )
    assert 69 == len({(case.classname, case.name) for suite in found for case in suite})
    assert 7.2181524e-3 == pytest.approx(found.time)


def test_a_hostile_name_stays_inside_its_attribute() -> None:
    """Tags, quotes, controls, lone surrogates, the end of a CDATA section, ten thousand letters."""
    case = Case(HOSTILE, HOSTILE, {HOSTILE: 1}, "bf16", {HOSTILE: HOSTILE})
    found = only_case(Failed(case, "check", HOSTILE, HOSTILE), below={case.key: HOSTILE})
    assert str(found.get("classname")).startswith("a<b>&\"'\ufffd]]>xxx")
    assert NAME_MOST == len(str(found.get("classname"))) == len(str(found.get("name")))
    (error,) = found.findall("error")
    assert MESSAGE_MOST >= len(str(error.get("message")))
    assert BODY_MOST + 100 >= len(str(error.text))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), min_size=1, max_size=8))
def test_any_names_are_valid_and_unique(names: list[tuple[str, str]]) -> None:
    """Names that are alike once they are cleaned, or once dots join them, get numbers."""
    entries = tuple(
        Entry(first, second, 0.0, Problem("failure", first, second, first), second)
        for first, second in [*names, *names]
    )
    found = read(document("any", [Suite(names[0][0], entries, dict(names))]))
    cases = found.findall("testsuite/testcase")
    assert 2 * len(names) == len({(each.get("classname"), each.get("name")) for each in cases})


def test_a_number_never_takes_the_name_of_another_case() -> None:
    """A case that is called `x (2)` keeps its name."""
    entries = tuple(Entry("c", name) for name in ("x (2)", "x", "x", "x"))
    found = read(document("any", [Suite("s", entries)])).findall("testsuite/testcase")
    assert ["x (2)", "x", "x (3)", "x (4)"] == [each.get("name") for each in found]


@pytest.mark.parametrize(
    ("created", "stamp"),
    [("2026-01-31T12:00:00Z", "2026-01-31T12:00:00"), ("yesterday", None), ("", None)],
)
def test_a_suite_is_stamped_where_its_time_is_known(created: str, stamp: str | None) -> None:
    """In the form that all readers take."""
    found = read(document("any", [Suite("s", (Entry("c", "n"),), {}, created)]))
    assert [stamp] == [each.get("timestamp") for each in found]
