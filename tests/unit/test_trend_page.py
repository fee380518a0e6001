"""The trend as people meet it: page, Markdown, JSON, terminal, and what the command ends with."""

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import history_made as made
import pytest

from solkit.cli.trend import summary
from solkit.entry import Entry, entry_line
from solkit.history import History
from solkit.judge.trend import trends
from solkit.report import trend_html, trend_text
from solkit.report.trend import CASES_MOST, TrendView, view
from solkit.report.trend_chart import CHARTS_MOST

ROOT = Path(__file__).parents[2]
Golden = Callable[[str, str], None]
HOSTILE = '<script>alert("1")</script>\n| \u202eevil `x` @all \x1b[31m' + "y" * 10_000


def a_history(runs: int = 40) -> list[Entry]:
    """Return a history with a step up and one down, a mended one, drift, and steady cases."""
    steady = [(made.case(number, operator="copy"), made.flat) for number in range(4)]
    entries = made.history(
        (made.case(1), made.stepped(37, 1.062)),
        (made.case(2), made.stepped(12, 0.9)),
        (made.case(3, operator="swiglu"), made.stepped(15, 1.09, until=21)),
        (made.case(4, operator="swiglu"), lambda run: 1 + 0.004 * max(0, run - 10)),
        *steady,
        runs=runs,
    )
    return made.with_driver(entries, 12, "601.03")


def seen(entries: list[Entry], *, problems: tuple[str, ...] = ()) -> TrendView:
    return view(History(tuple(entries), problems), trends(entries))


def saved(folder: Path, entries: list[Entry]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "example_100.jsonl").write_bytes(b"".join(map(entry_line, entries)))
    return folder


def solkit(*words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "solkit", "trend", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
        | {"PYTHONIOENCODING": "utf-8"},
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


def test_the_verdict_counts_what_stands_and_names_the_newest_commit() -> None:
    """One sentence: how many, when, how much."""
    found = seen(a_history()).verdict
    assert re.fullmatch(
        r"2 of 8 cases have stepped up; the newest at commit 37abababab on 2026-11-07: \+\d\.\d %",
        found,
    )


def test_the_verdict_of_a_quiet_history_says_so() -> None:
    """No step, a step down alone, and too few runs are three things."""
    quiet = made.history((made.case(1), made.flat), (made.case(2), made.flat))
    assert "No case of 2 has stepped up" == seen(quiet).verdict
    faster = made.history((made.case(1), made.stepped(9, 0.9)))
    assert "No case of 1 has stepped up; 1 case stepped down, to less time" == seen(faster).verdict
    few = made.history((made.case(1), made.flat), runs=3)
    assert "Too few runs for a trend: a case needs 4 with a time, and 3 runs are here" == (
        seen(few).verdict
    )
    assert "No case in this history" == seen([]).verdict


def test_what_stands_comes_before_what_was_taken_back() -> None:
    """Worst and newest first: slower and still so, slower for a while, then faster."""
    found = seen(a_history())
    kinds = [(row.is_up, row.state) for row in found.steps]
    assert sorted(kinds, key=lambda kind: (kind != (True, "stands"), not kind[0])) == kinds
    assert "2026-11-07" == found.steps[0].when
    assert "driver 600.12 \u2192 601.03" == next(
        row.moved for row in found.steps if row.size.endswith(" %") and row.when == "2026-10-13"
    )


def test_steps_of_one_commit_stand_together() -> None:
    """Twenty cases that one commit slowed are one thing to look at."""
    entries = made.history(*((made.case(each), made.stepped(30, 1.1)) for each in range(20)))
    (begin,) = seen(entries).begins
    assert ("commit 30abababab", "\u25b2 20 cases", "") == (begin.at, begin.up, begin.down)


def test_a_case_that_is_gone_or_failed_says_so() -> None:
    """Its last time is an old one: the row must not look like today's."""
    entries = a_history()
    entries[-2:] = [replace(each, cases=each.cases[1:]) for each in entries[-2:]]
    states = {row.case: row.state for row in seen(entries).cases}
    assert "not in the newest 2 runs" == states[str(made.case(1))]


def test_the_page_reads_without_script_and_asks_nobody() -> None:
    """One file under its own policy; every link has its target and no id comes twice."""
    page = trend_html.render(seen(a_history()))
    checked = _Checked()
    checked.feed(page)
    assert len(set(checked.ids)) == len(checked.ids)
    assert set() == set(checked.links) - set(checked.ids)
    assert [] == checked.forbidden
    assert "default-src 'none'; style-src 'sha256-" in html.unescape(page)
    assert page == trend_html.render(seen(a_history()))


def test_the_page_is_as_it_was_reviewed(golden: Golden) -> None:
    """The words and the drawings, without the style sheet that other pages share."""
    page = trend_html.render(seen(a_history()))
    golden("trend.html", "<main>" + page.partition("<main>")[2])


def test_the_summary_and_the_markdown_are_as_they_were_reviewed(golden: Golden) -> None:
    """Each fits its place: 80 columns, a job's page."""
    found = seen(a_history())
    text = summary(found, 80)
    assert 80 >= max(map(len, text.splitlines()))
    golden("trend.txt", text + "\n")
    golden("trend.md", trend_text.markdown(found))


def test_hostile_names_stay_text_everywhere() -> None:
    """Operators, kernels, commits, drivers and cards are others' text: no tag, no new line."""
    evil = replace(made.case(1), operator=HOSTILE, kernel=HOSTILE, params={HOSTILE: HOSTILE})
    entries = [
        replace(each, commit=HOSTILE, branch=HOSTILE, device_name=HOSTILE, id=f"{run}{HOSTILE}")
        for run, each in enumerate(made.history((evil, made.stepped(20, 1.2))))
    ]
    entries = made.with_driver(entries, 20, HOSTILE)
    found = seen(entries, problems=(HOSTILE,) * 100)
    page, text, said = trend_html.render(found), trend_text.markdown(found), summary(found, 80)
    for each in (page, text, said):
        assert "\u202e" not in each
        assert "\x1b" not in each
    assert "<script" not in (page + text).lower()  # a terminal knows no tags
    checked = _Checked()
    checked.feed(page)
    assert [] == checked.forbidden
    assert len(page) < 100_000
    assert len(text.encode()) <= 60_000
    assert 80 >= max(map(len, said.splitlines()))
    rows = [each for each in text.splitlines() if each.startswith("|")]
    assert {6} == {len(re.findall(r"(?<!\\)\|", row)) - 1 for row in rows}


def test_bad_lines_of_a_history_stand_on_the_page() -> None:
    """What could not be read limits every sentence of it."""
    page = trend_html.render(seen(a_history(), problems=("h.jsonl: line 7: not JSON",)))
    assert "not read: h.jsonl: line 7: not JSON" in page


def test_a_page_of_many_runs_and_cases_is_bounded() -> None:
    """200 runs of 1,000 cases stay under 5 MB; of more cases, the page says what it leaves out."""
    entries = made.history((made.case(0), made.flat), runs=4)
    names = [f"op{number}" for number in range(CHARTS_MOST + 5)]
    many = [made.case(number, operator=names[number % len(names)]) for number in range(2_500)]
    wide = [
        replace(each, cases=tuple(replace(each.cases[0], case=one) for one in many))
        for each in entries
    ]
    found = seen(wide)
    page = trend_html.render(found)
    assert len(page.encode()) < 2_000_000
    assert CASES_MOST == page.count("<tr id=c")
    assert "500 more cases left out here; --format json has all." in page
    assert "5 more operators have no chart here." in page
    long = [
        (made.case(number), made.stepped(100 + number % 50, 1.1 if number % 3 == 0 else 1.0))
        for number in range(50)
    ]
    page = trend_html.render(seen(made.history(*long, runs=200)))
    assert len(page.encode()) * 20 < 5_000_000  # a twentieth of the cases, the style and runs whole


def test_json_holds_every_point_and_step() -> None:
    """For scripts: raw numbers in SI units, and names as they are."""
    entries = a_history()
    history = History(tuple(entries), ("a bad line",))
    held = json.loads(trend_text.as_json(history, trends(entries), "verdict"))
    assert ("solkit.trend/1", "verdict", ["a bad line"]) == tuple(
        held[key] for key in ("schema", "verdict", "problems")
    )
    assert 40 == len(held["runs"])
    case = held["cases"][0]
    assert 40 == len(case["median_s"])
    assert entries[0].cases[0].median_s == case["median_s"][0]
    assert ("run-037", True) == (case["steps"][0]["run"], case["steps"][0]["size_fraction"] > 0.05)


def test_a_trend_informs_and_ends_well(tmp_path: Path) -> None:
    """Steps are news, not an error; the summary is on stdout, a file is written where asked."""
    folder = saved(tmp_path / "history", a_history())
    done = solkit(str(folder))
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("2 of 8 cases have stepped up; the newest at commit 37abababab")
    page = tmp_path / "trend.html"
    done = solkit(str(folder), "-o", str(page))
    assert (0, "") == (done.returncode, done.stdout)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    done = solkit(str(folder), "--format", "json")
    assert "solkit.trend/1" == json.loads(done.stdout)["schema"]


@pytest.mark.parametrize(
    ("runs", "newest", "code"),
    [(40, "3", 1), (40, "2", 0), (37, "3", 0), (3, "3", 0)],
)
def test_fail_on_step_looks_at_the_newest_runs(
    tmp_path: Path, runs: int, newest: str, code: int
) -> None:
    """A step up that began among them is exit 1 and names case and commit; an older one is not."""
    folder = saved(tmp_path, [each for each in a_history()[:runs] if runs >= 3])
    done = solkit(str(folder), "--fail-on-step", "--newest", newest)
    assert code == done.returncode
    assert ("1 case stepped up in the newest 3 runs; softmax/solkit" in done.stderr) == bool(code)


def test_fail_on_step_does_not_pass_on_half_a_history(tmp_path: Path) -> None:
    """A line that can't be read might be the one that shows the step: exit 2, without it 0."""
    folder = saved(tmp_path, a_history(runs=20))
    with (folder / "example_100.jsonl").open("ab") as file:
        file.write(b"not a line\n")
    assert 0 == solkit(str(folder)).returncode
    done = solkit(str(folder), "--fail-on-step")
    assert 2 == done.returncode
    assert "1 line of the history can't be read" in done.stderr


def test_fail_on_step_does_not_pass_on_a_history_without_a_run(tmp_path: Path) -> None:
    """A file that nothing was appended to yet informs of nothing: exit 0, and as a gate 2."""
    (tmp_path / "example_100.jsonl").write_bytes(b"")
    assert 0 == solkit(str(tmp_path)).returncode
    done = solkit(str(tmp_path), "--fail-on-step")
    assert (2, True) == (done.returncode, "the history holds no run" in done.stderr)


def test_a_folder_without_a_history_is_exit_2(tmp_path: Path) -> None:
    """And so is a least step that is none."""
    done = solkit(str(tmp_path))
    assert 2 == done.returncode
    assert "holds no history" in done.stderr
    folder = saved(tmp_path / "history", a_history(runs=5))
    assert 2 == solkit(str(folder), "--step", "5").returncode


class _Checked(HTMLParser):
    """What a page names, links to, and must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.forbidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.ids += [held["id"] or ""] if "id" in held else []
        href = held.get("href") or ""
        self.links += [href[1:]] if href.startswith("#") else []
        if tag in {"script", "img", "link", "iframe"} or {"style", "onload", "onerror"} & {*held}:
            self.forbidden.append(self.get_starttag_text() or tag)
        if href and not href.startswith("#"):
            self.forbidden.append(href)
