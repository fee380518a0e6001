"""What a run writes besides its report: for CI systems, for a gate, for a history."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from solkit import history
from solkit.cli import outputs
from solkit.cli.console import say, show
from solkit.errors import NoDevice
from solkit.judge.changes import Comparison
from solkit.judge.score import Judged
from solkit.model import CaseKey, Run

# Where CI systems put the commit and the branch of what they run.
COMMITS = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT")
BRANCHES = ("GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BRANCH_NAME")
TREND_FILE = "trend.html"


@dataclass(frozen=True, slots=True)
class Extras:
    """What else a person wants written.

    junit: a file. summary: a file that Markdown is appended to. annotations: workflow commands on
    stdout. assets: a folder for the report in its folder form. history: the folder of a history,
    which the run is added to; commit: the code that was measured (empty: of CI, or of git here).
    """

    junit: Path | None = None
    summary: Path | None = None
    annotations: bool = False
    assets: Path | None = None
    history: Path | None = None
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """A finished run with all that was found of it.

    below: the cases that miss a floor, failing: those that fail the run, by a floor or against the
    run before, each with a sentence. gate: what the gate says of the whole. refusal: the same where
    it says no, else empty.
    """

    run: Run
    judged: Sequence[Judged]
    comparison: Comparison | None
    below: Mapping[CaseKey, str]
    failing: Mapping[CaseKey, str]
    gate: str
    refusal: str = ""


def prove_writable(extras: Extras) -> None:
    """Prove that everything can be written, before hours are measured for it; NoDevice if not."""
    for path in (extras.junit, extras.summary):
        if path is not None:
            outputs.prove_writable(path)
    if extras.assets is not None:
        outputs.prove_writable(extras.assets / "index.html")
    if extras.history is not None:
        history.prove_writable(extras.history)


def write(extras: Extras, told: Told, folder: Path) -> NoDevice | None:
    """Write what is wanted; what can't be written is no reason to lose the others.

    Returns the first problem.
    """
    problem: NoDevice | None = None
    for step in (_comparison, _junit, _summary, _assets, _history, _annotations):
        try:
            step(extras, told, folder)
        except NoDevice as error:
            problem = problem or error
    return problem


def _comparison(_extras: Extras, told: Told, folder: Path) -> None:
    from solkit.report.changes_renderers import RENDERERS  # matplotlib: late

    if told.comparison is not None:
        outputs.write(folder / outputs.COMPARE_FILE, RENDERERS["html"](told.comparison, 0))


def _junit(extras: Extras, told: Told, _folder: Path) -> None:
    from solkit.report import changes_junit, junit  # when asked for
    from solkit.report.junit_xml import Entry, Problem, Suite, document

    if extras.junit is None:
        return
    found = list(junit.suites(told.run, told.judged, below=told.failing))
    if told.comparison is not None:
        found += changes_junit.absent(told.comparison)
    if told.refusal:  # a floor that nothing was held against is no case's failure
        problem = Problem("failure", told.refusal, "gate", told.refusal)
        whole = Entry("solkit.run", "the gate", 0.0, problem)
        found.insert(0, Suite("gate", (whole,), {}, told.run.created))
    outputs.write(extras.junit, document("solkit", found))


def _summary(extras: Extras, told: Told, _folder: Path) -> None:
    from solkit.report import changes_markdown, markdown  # when asked for
    from solkit.report.changes import view

    if extras.summary is None:
        return
    gate = "" if told.refusal else told.gate
    parts = [markdown.render(told.run, told.judged, gate=gate, below=told.failing)]
    if told.comparison is not None:
        parts.insert(0, changes_markdown.render(view(told.comparison)))
    if told.refusal:
        parts.insert(0, f"# The gate says no\n\n{markdown.safe(told.refusal)}\n")
    outputs.add(extras.summary, "\n".join(parts))


def _assets(extras: Extras, told: Told, _folder: Path) -> None:
    from solkit.report.assets import render_folder  # matplotlib and jinja2: late

    if extras.assets is not None:
        for name, text in render_folder(told.run, told.judged).items():
            outputs.write(extras.assets / name, text)


def _history(extras: Extras, told: Told, _folder: Path) -> None:
    from solkit.judge.trend import trends  # when asked for
    from solkit.report.trend import view
    from solkit.report.trend_html import render

    if extras.history is None:
        return
    if told.run.ended != "complete":  # an entry is never changed: the finished run is the one
        say("note: the run was cut short, and is no entry of the history until it is finished")
        return
    commit = extras.commit or _first(COMMITS) or _head()
    for note in history.append(
        extras.history, told.run, told.judged, commit, branch=_first(BRANCHES)
    ):
        say(f"note: {note}")
    held = history.load(extras.history)
    outputs.write(extras.history / TREND_FILE, render(view(held, trends(held.entries))))


def _annotations(extras: Extras, told: Told, _folder: Path) -> None:
    from solkit.report import annotations, changes_annotations  # when asked for
    from solkit.report.changes import view

    if not extras.annotations:
        return
    found = list(annotations.annotations(told.run, told.judged, below=told.below))
    if told.comparison is not None:
        found = [*changes_annotations.annotations(view(told.comparison)), *found]
    if told.refusal and all(each.level != "error" for each in found):
        found.insert(0, annotations.Annotation("error", "fails the gate", told.refusal))
    text = annotations.commands(sorted(found, key=lambda each: each.level != "error"))
    if text:
        show(text.rstrip("\n"))


def _first(names: Sequence[str]) -> str:
    return next(filter(None, map(os.environ.get, names)), "") or ""


def _head() -> str:
    """Return the commit that is checked out here; nothing where git doesn't know."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607  # the git that the person uses
            check=False,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
