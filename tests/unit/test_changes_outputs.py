"""What people and CI systems read of a comparison: whole, bounded, and safe whatever names hold."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema
from compared import SLOWER, pair, place, renamed, scaled
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import outcomes, synthetic_run

from solkit.judge.changes import Comparison, compare_runs
from solkit.model import Measured
from solkit.report import changes_annotations, changes_markdown, changes_terminal
from solkit.report.changes import view
from solkit.report.changes_renderers import RENDERERS
from solkit.report.markdown import BYTES_MOST

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "junit.xsd")
BASE, HEAD = pair()
MIXED = compare_runs([BASE], [HEAD])
SEEN = view(MIXED)
ANSI = re.compile(r"\x1b\[[\d;]*m")
# Escape codes, direction marks and halves of characters; tab and newline are text.
ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"' onload=alert(1) x='",
    "a|b\n\n## not a heading [x](javascript:1) @team `c`",
    "::error::x%0A\r\n::stop-commands::y",
    "]]></failure><testcase>&\x00\uffff",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\u202egnp.exe\u2066 \u05e9\u05dc\u05d5\u05dd",
    "{{ 7 * 7 }}{% raw %}",
    "half \ud800",
    "x" * 10_000,
)


def hostile(text: str) -> Comparison:
    base, head = renamed(text)
    return compare_runs([base], [head])


def many(count: int, factor: float = 1.2) -> Comparison:
    """Compare runs of so many cases, every one of which takes `factor` times as long."""
    sample = next(item for item in outcomes() if isinstance(item, Measured))
    made = [
        replace(sample, case=replace(sample.case, shape={"elements": number + 1}))
        for number in range(count)
    ]
    after = [scaled(item, factor) for item in made]
    runs = [replace(synthetic_run(each), ended="complete") for each in (made, after)]
    return compare_runs(runs[:1], runs[1:])


class Page(HTMLParser):
    """The tags, attributes and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag and what matters of its attributes."""
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href"]


# The terminal


def test_the_terminal_form_is_as_recorded(golden: Callable[[str, str], None]) -> None:
    """Both sides, the worst first with times and cause, the counts, the verdict last."""
    golden("compare.txt", changes_terminal.render(SEEN) + "\n")


def test_the_verdict_is_the_last_thing_on_the_terminal() -> None:
    """Whoever looks at the end of a log sees it."""
    assert SEEN.verdict == changes_terminal.render(SEEN).splitlines()[-1]


@settings(max_examples=20, deadline=None)
@given(st.integers(40, 200))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Long names are folded."""
    for seen in (SEEN, view(hostile("x" * 10_000))):
        text = changes_terminal.render(seen, width=width, everything=True)
        assert width >= max(map(len, text.splitlines()))


def test_the_terminal_lists_twenty_cases_and_says_how_many_more() -> None:
    """The worst ones; with `everything` all of them."""
    seen = view(many(30))
    text = changes_terminal.render(seen)
    assert 20 == sum(line.startswith("SLOWER  ") for line in text.splitlines())
    assert "and 10 cases more that changed: --all lists every one" in text
    whole = changes_terminal.render(seen, everything=True)
    assert 30 == sum(line.startswith("SLOWER  ") for line in whole.splitlines())
    assert "--all" not in whole


def test_cases_that_are_the_same_are_listed_only_when_asked() -> None:
    """A list of what did not happen hides what did."""
    assert "SAME     " not in changes_terminal.render(SEEN)
    assert 56 == changes_terminal.render(SEEN, everything=True).count("SAME     ")


def test_colour_changes_no_character() -> None:
    """And a file gets none."""
    plain, colored = (changes_terminal.render(SEEN, color=color) for color in (False, True))
    assert "\x1b[1;31mSLOWER" in colored
    assert plain == ANSI.sub("", colored)


def test_no_trailing_blanks_and_nothing_but_text() -> None:
    """What is copied from a terminal is clean."""
    text = changes_terminal.render(SEEN, everything=True)
    assert text == "\n".join(line.rstrip() for line in text.splitlines())
    assert "None" not in text


# Markdown


def test_the_markdown_is_as_recorded(golden: Callable[[str, str], None]) -> None:
    """The verdict as the heading, the counts, the rows worst first, the conditions."""
    golden("compare.md", changes_markdown.render(SEEN))


def test_the_markdown_is_cut_at_whole_rows_and_says_so() -> None:
    """60 kB fit a comment; what is left out is counted, and the conditions stay."""
    text = changes_markdown.render(view(many(2_000)))
    assert BYTES_MOST - 2_000 < len(text.encode()) <= BYTES_MOST
    shown = text.count("| \u25b2 SLOWER |")
    assert f"{2_000 - shown:,} more cases that changed left out" in text
    assert "| Driver |" in text
    assert {0, 8} == {line.count("|") for line in text.splitlines() if "SLOWER |" in line} | {0}


def test_a_pipe_in_a_name_makes_no_column() -> None:
    """Nor does a newline make a row, or brackets a link."""
    text = changes_markdown.render(view(hostile("a|b\n[x](javascript:1)@team")))
    rows = [line for line in text.splitlines() if line.startswith("| \u25b2")]
    assert [8] * len(rows) == [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert "](" not in re.sub(r"\\.", "", text)
    assert "@team" not in text


# HTML


def test_the_page_is_as_recorded(golden: Callable[[str, str], None]) -> None:
    """What people see changes only on purpose; style and chart have tests of their own."""
    text = re.sub(r"(?s)<style>.*?</style>", "<style></style>", RENDERERS["html"](MIXED, 1))
    text = re.sub(r"(?s)<svg .*?</svg>", "<svg></svg>", text)
    golden("compare.html", re.sub(r"sha256-[^&]+", "sha256", text))


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    """One file under a policy that allows its own style and no more."""
    text = RENDERERS["html"](MIXED, 1)
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    assert not {"src", "style", "target", "onclick"} & page.names
    assert not re.search(r"@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src &#x27;none&#x27;; style-src &#x27;sha256-" in text


def test_every_link_of_the_page_leads_to_a_case() -> None:
    """The chart's marks to the rows, each id once."""
    page = Page(RENDERERS["html"](MIXED, 1))
    assert len(page.ids) == len(set(page.ids))
    assert set() == {link.removeprefix("#") for link in page.links} - set(page.ids)
    index = next(index for index, item in enumerate(MIXED.changes) if place(item.case) == SLOWER)
    assert f"#c{index}" in page.links


def test_the_chart_says_in_words_what_it_shows() -> None:
    """For those who can't see it, and under it for all."""
    text = RENDERERS["html"](MIXED, 1)
    said = "2 cases slower (most of all bias_gelu/torch rows=32768 cols=4096 bf16, 2.50\u00d7)"
    assert 2 == text.count(said)
    assert "not drawn" in text


def test_a_page_without_two_times_has_no_chart() -> None:
    """Nothing to draw is no error."""
    failed = [item for item in outcomes() if getattr(item, "stage", "")]
    run = replace(synthetic_run(failed), ended="complete")
    text = RENDERERS["html"](compare_runs([run], [run]), 1)
    assert "<svg" not in text
    assert "NOTHING: no case was measured on both sides" in text


def test_a_page_of_many_cases_stays_small() -> None:
    """3,000 cases that changed take less than 1.5 MB; marks on each other are drawn once."""
    text = RENDERERS["html"](many(3_000), 1)
    assert len(text.encode()) < 1_500_000
    assert 3_000 == text.count("<tr id=c")


# JUnit


def test_the_junit_is_valid_and_has_every_case() -> None:
    """SLOWER and MISSING fail, INVALID is an error, UNSURE is skipped."""
    text = RENDERERS["junit"](MIXED, 1)
    SCHEMA.validate(text)
    root = ET.fromstring(text)  # noqa: S314  # our own text
    cases = list(root.iter("testcase"))
    assert len(MIXED.changes) == len(cases) == int(root.attrib["tests"])
    kinds = {
        kind: [case for case in cases if case.find(kind) is not None]
        for kind in ("failure", "error", "skipped")
    }
    assert {"failure": 3, "error": 3, "skipped": 2} == {k: len(v) for k, v in kinds.items()}
    types = [each.attrib["type"] for each in root.iter("failure")]
    assert ["MISSING", "SLOWER", "SLOWER"] == sorted(types)
    slower = next(case for case in kinds["failure"] if "rmsnorm" in case.attrib["classname"])
    assert ("add_rmsnorm.solkit.bf16", "rows=16384 cols=4096") == (
        slower.attrib["classname"],
        slower.attrib["name"],
    )
    said = slower.find("failure").attrib["message"]  # type: ignore[union-attr]
    assert "SLOWER: 12.1 % slower at the same clock and bytes: the code" == said


def test_names_in_junit_are_unique() -> None:
    """Cases whose names only differ in what can't be printed are told apart."""
    root = ET.fromstring(RENDERERS["junit"](hostile("x" * 10_000), 1))  # noqa: S314  # our own text
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.iter("testcase")]
    assert len(names) == len(set(names))


def test_junit_of_nothing_fails() -> None:
    """An empty list would pass, so there is one case that fails."""
    one, other = (
        replace(synthetic_run(each), ended="complete") for each in (outcomes()[:0], outcomes()[:0])
    )
    text = RENDERERS["junit"](compare_runs([one], [other]), 1)
    SCHEMA.validate(text)
    found = ET.fromstring(text).findall("testsuite/testcase/failure")  # noqa: S314  # our own text
    assert ["NOTHING"] == [each.attrib["type"] for each in found]


# JSON


def test_the_json_holds_every_number_of_both_sides() -> None:
    """Counts, exit code, medians, intervals and the samples as recorded."""
    made = json.loads(RENDERERS["json"](MIXED, 1))
    assert ("solkit.compare/1", "SLOWER", 1) == (
        made["schema"],
        made["overall"],
        made["exit_code"],
    )
    assert {"SLOWER": 2, "MISSING": 1, "INVALID": 3, "UNSURE": 2} == {
        word: made["counts"][word] for word in ("SLOWER", "MISSING", "INVALID", "UNSURE")
    }
    case = next(each for each in made["cases"] if each["operator"] == SLOWER[0] and each["cause"])
    assert ("SLOWER", "code") == (case["word"], case["cause"])
    assert pytest.approx(1.121, abs=1e-4) == case["change"]["ratio_fraction"]
    found = next(item for item in BASE.outcomes if place(item.case) == SLOWER)
    assert isinstance(found, Measured)
    assert list(found.times_s) == case["base"]["times_s"]
    assert list(found.sample_hz) == case["base"]["sample_hz"]
    assert (found.median_s, found.sample_count) == (
        case["base"]["median_s"],
        case["base"]["sample_count"],
    )
    gone = next(each for each in made["cases"] if each["word"] == "MISSING")
    assert (None, None) == (gone["change"], gone["head"])


def test_names_in_json_are_as_recorded_and_ascii() -> None:
    """A script can match them; a terminal that shows the file does nothing."""
    text = RENDERERS["json"](hostile("\x1b[31m\u202ex"), 1)
    assert text.isascii()
    assert "\x1b" not in text
    assert "\x1b[31m\u202ex" == json.loads(text)["cases"][0]["operator"]


# Annotations


def test_annotations_are_ten_at_most_the_worst_first() -> None:
    """The tenth says how many more there are."""
    lines = changes_annotations.render(view(many(30))).splitlines()
    assert 10 == len(lines)
    assert all(line.startswith("::error title=solkit%3A ") for line in lines)
    assert "21 more errors" in lines[-1]


def test_unsure_is_a_warning_and_what_is_fine_is_not_said() -> None:
    """Errors end the job, a warning does not."""
    lines = changes_annotations.render(SEEN).splitlines()
    assert ["error"] * 6 + ["warning"] * 2 == [
        re.match("::([a-z]+) ", line)[1]
        for line in lines  # type: ignore[index]
    ]
    assert "FASTER" not in "".join(lines)
    assert "+12.1 %25" in lines[1]


def test_an_empty_comparison_is_an_error_beside_the_job() -> None:
    """Nothing passes by accident."""
    run = replace(synthetic_run([]), ended="complete")
    assert changes_annotations.render(view(compare_runs([run], [run]))).startswith(
        "::error title=solkit%3A NOTHING::NOTHING: "
    )


# Every format


@pytest.mark.parametrize("form", [*RENDERERS, "terminal"])
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_a_name_is_text_in_every_format(form: str, text: str) -> None:
    """No markup, no command, no control character, no endless line, whatever a name holds."""
    plain, bad = (_rendered(form, hostile(each)) for each in ("plain", text))
    if form != "json":  # which writes them as escapes
        assert not ACTIVE.search(bad)
        assert "x" * 500 not in bad
    assert bad.encode()  # no half of a character is left
    if form == "html":
        assert [tag for tag in Page(bad).tags if tag != "bdi"] == Page(plain).tags
    elif form == "junit":
        SCHEMA.validate(bad)
        assert _shape(plain) == _shape(bad)
    elif form == "json":
        assert json.loads(plain)["counts"] == json.loads(bad)["counts"]
    elif form == "annotations":
        assert len(plain.splitlines()) == len(bad.splitlines())
        assert all(line.startswith(("::error ", "::warning ")) for line in bad.splitlines())
    elif form == "markdown":
        marks = [len(re.findall(r"(?<!\\)\|", line)) for line in plain.splitlines()]
        assert marks == [len(re.findall(r"(?<!\\)\|", line)) for line in bad.splitlines()]
        assert not re.search(r"<(?!br)", bad)


@settings(max_examples=15, deadline=None)
@given(st.text(min_size=1, max_size=60))
def test_no_text_at_all_breaks_a_format(text: str) -> None:
    """The same for any text that hypothesis can think of."""
    comparison = hostile(text)
    SCHEMA.validate(RENDERERS["junit"](comparison, 1))
    json.loads(RENDERERS["json"](comparison, 1))
    for form in ("terminal", "markdown", "annotations"):
        assert not ACTIVE.search(_rendered(form, comparison))


@pytest.mark.parametrize("form", RENDERERS)
def test_the_same_comparison_gives_the_same_bytes(form: str) -> None:
    """Two runs of the renderer, one text."""
    assert RENDERERS[form](MIXED, 1) == RENDERERS[form](compare_runs([BASE], [HEAD]), 1)


def _rendered(form: str, comparison: Comparison) -> str:
    if form == "terminal":
        return changes_terminal.render(view(comparison), everything=True)
    return RENDERERS[form](comparison, 1)


def _shape(text: str) -> list[str]:
    """Return the elements of a document, in their order."""
    return [element.tag for element in ET.fromstring(text).iter()]  # noqa: S314  # our own text


def test_a_missed_floor_is_in_every_format() -> None:
    """A file that passes while the command fails would mislead whoever reads only the file."""
    same = compare_runs([BASE], [replace(BASE, id="again")])
    said = "HEAD misses a floor: 3 of 63 cases are below 90.0 %"
    for render in RENDERERS.values():
        assert "3 of 63 cases are below 90" in render(same, 1, missed=said)
    assert said in changes_terminal.render(view(same, missed=said))
    junit = ET.fromstring(RENDERERS["junit"](same, 1, missed=said))  # noqa: S314  # our own text
    assert "1" == junit.attrib["failures"]
    assert "::error" in changes_annotations.render(view(same, missed=said))
