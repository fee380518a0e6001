"""The HTML page: one file, nothing fetched, nothing injected, the same bytes every time."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import outcomes as all_outcomes
from synthetic import synthetic_run

from solkit.judge.score import score
from solkit.model import Case, Failed, Outcome, Run, Skipped
from solkit.report import html
from solkit.report.page import environment

HOSTILE = (
    "<script>alert(1)</script>",
    "\"' onload=alert(1) x='",
    "\x1b[31mred\x1b[0m",
    "\u202egnp.exe\u2066",
    "{{ 7 * 7 }}{% raw %}",
    "שלום",
    "half \ud800",
    "</table></style>",
    "x" * 10_000,
)


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag and its attributes."""
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.text += data

    def values(self, name: str) -> list[str]:
        """Return every value of an attribute."""
        return [value for _, found, value in self.attributes if found == name]


@dataclass(frozen=True)
class Drawn:
    """Charts as the page takes them."""

    sol_svg: str = '<svg role="group"><a href="#r0"><circle r="3"/></a></svg>'
    roofline_svg: str = ""
    sol_alt: str = "copy, 6 cases: median 77 % of SOL."
    roofline_alt: str = ""
    rivals_svg: str = ""
    rivals_alt: str = ""
    rule: str = "every case has a mark"
    not_placed: tuple[str, ...] = ("1 case not on the roofline (cols < 8)",)


def page_of(run: Run) -> str:
    return html.render(run, score(run))


def named(text: str) -> list[Outcome]:
    """Return one outcome of each kind whose every text is the one given."""
    sample = all_outcomes()[0]
    case = Case(text, text, {"rows": 8}, "bf16", {"weight": text})
    return [
        replace(sample, case=case, notes=(text,)),  # type: ignore[arg-type]  # the first is measured
        Failed(case, "compile", text, text),
        Skipped(case, text),
    ]


def test_the_page_is_as_recorded(golden: Callable[[str, str], None]) -> None:
    """What people see changes only on purpose; style and script have their own files."""
    run = synthetic_run(all_outcomes()[::6] + all_outcomes()[-8:])
    text = re.sub(r"(?s)<(style|script)>.*?</\1>", r"<\1></\1>", page_of(run))
    golden("report.html", re.sub(r"sha256-[^&]+", "sha256", text))


def test_ids_are_unique_and_every_link_on_the_page_resolves() -> None:
    """A chart's mark, a ranking and a failure all lead to a row that exists."""
    page = Page(page_of(synthetic_run()))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    links = {link[1:] for link in page.values("href") if link.startswith("#")}
    assert set() == links - set(ids)
    assert "r7" in ids


@pytest.mark.parametrize("gpu", [True, False])
def test_the_page_fetches_nothing(gpu: bool) -> None:  # noqa: FBT001  # a parameter of the test
    """No source, style sheet, font or frame from elsewhere, and a policy that forbids them."""
    text = page_of(synthetic_run() if gpu else synthetic_run(gpu=None))
    page = Page(text)
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    assert [] == [name for _, name, _ in page.attributes if name in {"src", "style", "target"}]
    assert not re.search(r"@import|url\(", text)
    assert "default-src 'none'" in page.values("content")[0]
    assert {"a"} == {tag for tag, name, _ in page.attributes if name == "href"}


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_is_never_markup(text: str) -> None:
    """Whatever a name holds, the page has the tags it would have with a plain name."""
    plain, hostile = (Page(page_of(synthetic_run(named(name)))) for name in ("plain", text))
    # a message of several lines stands in a <pre>, and a very long one has a line that says so
    found = ["p" if tag == "pre" else tag for tag in hostile.tags if tag != "bdi"]
    assert plain.tags == found


@pytest.mark.parametrize("text", HOSTILE)
def test_a_name_brings_no_control_character(text: str) -> None:
    """No escape code, direction mark or half character reaches the file; long names are cut."""
    made = page_of(synthetic_run(named(text)))
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", made
    )
    assert "x" * 5_000 not in made


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1))
def test_no_text_at_all_changes_the_tags(text: str) -> None:
    """The same for any text that hypothesis can think of."""
    tags = Page(page_of(synthetic_run(named(text)))).tags
    # a message of several lines is shown as a log
    wanted = Page(page_of(synthetic_run(named("plain")))).tags
    assert sorted(set(wanted)) == sorted(set(tags) - {"bdi", "pre"})


def test_a_name_from_another_script_is_isolated() -> None:
    """A name that runs from right to left can't turn the sentence it stands in."""
    assert "<bdi>שלום</bdi>/<bdi>שלום</bdi>" in page_of(synthetic_run(named("שלום")))


def test_charts_stand_in_their_operators_section() -> None:
    """The SVG is taken as it is, with its text, its rule and what it leaves out."""
    run = synthetic_run()
    text = html.render(run, score(run), charts={"copy": Drawn()})
    page = Page(text)
    own = text.count("<svg class=k") + text.count('<svg class="hist"')
    assert 1 == page.tags.count("svg") - own
    assert "copy, 6 cases: median 77 % of SOL." in page.text
    assert "1 case not on the roofline (cols < 8)." in page.text


def test_a_section_without_a_result_has_no_table() -> None:
    """An operator of which everything was skipped has a sentence, not an empty table."""
    text = page_of(synthetic_run([Skipped(Case("copy", "solkit", {"elements": 8}, "bf16"), "no")]))
    assert "1 case, none measured: 1 skipped." in text
    assert 'class="kernels"' not in text


def test_a_row_shows_the_number_that_charts_call_it_by() -> None:
    """Rows are ordered by what became of them, so the place in the run must be printed."""
    assert re.search(r"<tr id=r7[^>]*><td>7<td>", page_of(synthetic_run()))


def test_tables_can_be_read_aloud_and_reached_by_keyboard() -> None:
    """Captions, scopes, one h1, a language, and scroll boxes that take the focus."""
    page = Page(page_of(synthetic_run()))
    assert page.tags.count("table") == page.tags.count("caption")
    assert 1 == page.tags.count("h1")
    assert "en" in page.values("lang")
    heads = page.tags.count("th")
    assert heads == len([1 for tag, name, _ in page.attributes if (tag, name) == ("th", "scope")])
    boxes = [value for tag, name, value in page.attributes if (tag, name) == ("div", "tabindex")]
    assert page.tags.count("table") == len(boxes)


def test_the_template_takes_nothing_but_text() -> None:
    """A number in the template is a bug, and so is a name it doesn't know."""
    from jinja2 import UndefinedError  # noqa: PLC0415  # this test alone

    with pytest.raises(TypeError, match="given int, not text"):
        environment().from_string("{{ value }}").render(value=1)
    with pytest.raises(UndefinedError):
        environment().from_string("{{ missing }}").render()


def test_the_same_run_gives_the_same_bytes_anywhere() -> None:
    """Hash seed, time zone and locale leave no trace."""
    program = (
        "import hashlib, synthetic; from solkit.judge.score import score\n"
        "from solkit.report.html import render\n"
        "run = synthetic.synthetic_run()\n"
        "print(hashlib.sha256(render(run, score(run)).encode()).hexdigest())"
    )
    tests = Path(__file__).parents[1]
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **changed, "PYTHONPATH": str(tests)},
            check=True,
            capture_output=True,
        ).stdout
        for changed in (
            {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C"},
            {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"},
        )
    }
    assert 1 == len(digests)


def test_a_page_of_ten_thousand_cases_stays_below_four_megabytes() -> None:
    """Charts take the rest of the five that a page may weigh."""
    sample = [item for item in all_outcomes() if not isinstance(item, Failed)]
    many = []
    for number in range(10_000):
        outcome = sample[number % len(sample)]
        axis = next(iter(outcome.case.shape))
        shape = {**outcome.case.shape, axis: outcome.case.shape[axis] + number}
        many.append(replace(outcome, case=replace(outcome.case, shape=shape)))
    assert len(page_of(synthetic_run(many)).encode()) < 4_000_000


def test_a_clock_that_moved_is_a_line_in_its_cell() -> None:
    """Hidden from readers of text, which has the range; pages of 10,000 cases have no room."""
    falling = tuple(1.8e9 - 1e8 * place for place in range(8))
    sample = replace(all_outcomes()[0], sample_hz=falling)  # type: ignore[type-var]
    text = page_of(synthetic_run([sample]))
    drawn = '<svg class=k viewBox="0 0 46 10" width=46 height=10 fill=none stroke=currentColor'
    assert 1 == text.count(f'{drawn} aria-hidden=true><path d="M0 0 7 1')
    many = [replace(sample, case=replace(sample.case, kernel=str(n))) for n in range(1001)]  # type: ignore[type-var]
    run = synthetic_run(many)  # type: ignore[arg-type]
    assert "<svg class=k" not in page_of(run)


def test_a_notice_of_the_run_stands_above_the_numbers() -> None:
    """A timer that fell back is read before any time."""
    text = page_of(replace(synthetic_run(), notes=("CUPTI is not here",)))
    assert text.index("CUPTI is not here") < text.index("Median SOL")
