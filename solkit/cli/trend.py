"""`solkit trend`: which cases stepped to another time over the runs of a history, and when."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

from solkit.cli.console import heading, room, say, show, table
from solkit.errors import BadInput, GateSaysNo
from solkit.judge.steps import STEP_FRACTION
from solkit.report.plain import counted, line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from solkit.history import History
    from solkit.judge.trend import Step, Trend
    from solkit.report.trend import TrendView

SHOWN_MOST = 10
NEWEST = 3
WIDTH, NARROWEST = 100, 64
BESIDE_CASE = 49  # columns of a row that are not its case's name


def command(
    folder: Annotated[
        Path, typer.Argument(help="What `solkit run --history DIR` appended to.", metavar="DIR")
    ],
    output: Annotated[
        Optional[Path],  # noqa: UP045  # typer reads annotations at run time
        typer.Option("--output", "-o", help="Write to this file, not to stdout."),
    ] = None,
    to: Annotated[
        Optional[Literal["html", "markdown", "json"]],  # noqa: UP045
        typer.Option("--format", help="The format to write; a summary where none is named."),
    ] = None,
    step: Annotated[
        float, typer.Option("--step", help="The least step that two runs on each side show.")
    ] = STEP_FRACTION,
    fail_on_step: Annotated[
        bool, typer.Option("--fail-on-step", help="Exit 1 on a step up among the newest runs.")
    ] = False,
    newest: Annotated[
        int, typer.Option("--newest", help="How many runs --fail-on-step looks back.", min=1)
    ] = NEWEST,
) -> None:
    """Show which cases stepped to another time over many runs, at which commit, and how all stand.

    Informs, and so ends with 0; with --fail-on-step a step up that began in one of the newest runs
    of its card ends it with 1, and a line of the history that can't be read with 2.
    """
    from solkit.cli.outputs import prove_writable, write
    from solkit.history import load
    from solkit.judge.trend import newest_steps_up, trends
    from solkit.report.trend import view

    if output is not None:
        prove_writable(output)
    history = load(folder)
    for text in (*history.problems, *history.notes):
        say(f"note: {line(text, 400)}")
    found = trends(history.entries, step_fraction=step)
    seen = view(history, found, step_fraction=step)
    if output is not None:
        write(output, _text(to or _format_of(output), history, found, seen))
        say(f"wrote {output}")
    if output is None and to:
        show(_text(to, history, found, seen).rstrip("\n"))
    elif output is None:
        show(summary(seen, room() or WIDTH))
    if fail_on_step:
        refuse(newest_steps_up(found, history.entries, newest), history, newest)


def summary(view: "TrendView", width: int = WIDTH) -> str:
    """Return the text for a terminal: the verdict, the steps worth a look, the counts."""
    from textwrap import fill

    width = max(NARROWEST, width)
    parts = [f"{heading(fill(view.verdict, width))}\n{fill(view.summary, width)}"]
    if view.steps:
        shown = view.steps[:SHOWN_MOST]
        rows = [
            (
                each.size,
                line(each.short, width - BESIDE_CASE),
                line(f"{line(each.at.removeprefix('commit '), 12)} {each.when}"),
                each.state.removesuffix(" since"),
            )
            for each in shown
        ]
        left = len(view.steps) - len(shown)
        more = f"\n... and {counted(left, 'more step')}: -o trend.html" if left else ""
        parts.append(table(("step", "case", "began at", "now"), rows, right=(0,)) + more)
    counts = ", ".join(f"{value} {label[2:].lower()}" for label, value, _ in view.tiles)
    parts.append(fill(f"{counts} on {line(view.conditions, 200)}", width))
    return "\n\n".join(parts)


def refuse(steps: "Sequence[Step]", history: "History", newest: int) -> None:
    """Raise GateSaysNo for steps up; BadInput where the history can't be read, or holds no run."""
    if steps:
        from solkit.report.trend_rows import at, order, when

        worst = max(steps, key=order)
        raise GateSaysNo(
            f"{counted(len(steps), 'case')} stepped up in the newest {counted(newest, 'run')}; "
            f"{line(str(worst.case))} by {worst.size_fraction * 100:.1f} % at {at(worst.entry)} "
            f"on {when(worst.entry)}",
            remedy="look at that commit; the page of `solkit trend DIR -o trend.html` says more",
        )
    if history.problems:
        raise BadInput(
            f"{counted(len(history.problems), 'line')} of the history can't be read: "
            f"{line(history.problems[0], 300)}",
            remedy="delete the line or mend it: --fail-on-step passes on a whole history only",
        )
    if not history.entries:
        raise BadInput(
            "the history holds no run, and --fail-on-step has nothing to look at",
            remedy="add runs to it: solkit run --history DIR",
        )


def _format_of(output: Path) -> str:
    return {".md": "markdown", ".json": "json"}.get(output.suffix.lower(), "html")


def _text(to: str, history: "History", found: "Sequence[Trend]", seen: "TrendView") -> str:
    if to == "html":
        from solkit.report.trend_html import render

        return render(seen)
    from solkit.report.trend_text import as_json, markdown

    return markdown(seen) if to == "markdown" else as_json(history, found, seen.verdict)
