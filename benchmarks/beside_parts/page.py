"""Parts of a page that recorded runs of several segments make: what every benchmark shows. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence

from accuracy_parts.page import table
from beside_parts.bars import Bar, Held, told
from beside_parts.standing import Standing

from solkit import units
from solkit.model import Case, Run
from solkit.report.markdown import safe
from solkit.report.plain import counted
from solkit.stats import median, quantile

NONE = ""
QUARTERS = (0.25, 0.5, 0.75)


def environment(runs: Sequence[Run], versions: Mapping[str, str], folder: str) -> str:
    """Say on what, when and by what the runs were measured, and how much of them there is.

    folder: of the recorded runs, beside the page.
    """
    base = runs[0]
    cards = {run.facts.uuid for run in runs}
    days = " and ".join(sorted({run.created[:10] for run in runs}))
    power_w = base.facts.power_limit_w
    power = f", power limit {units.power(power_w)}" if power_w else ""
    held = {name: base.versions[name] for name in ("solkit", "cupti") if name in base.versions}
    packages = ", ".join(f"{name} {text}" for name, text in {**held, **versions}.items())
    ends = sum(run.ended == "complete" for run in runs)
    planned = sum(run.planned_count or len(run.outcomes) for run in runs)
    text = (
        f"Measured on {days}: {base.facts.name}, driver {base.facts.driver}{power}, "
        f"timed by {base.method}, cold L2, seed {base.seed}; {packages}. "
        f"{sum(len(run.outcomes) for run in runs):,} of {planned:,} cases, in "
        f"{counted(len(runs), 'segment')} ([{folder}]({folder})), {ends} of them whole.\n"
    )
    if len(cards) > 1:
        text += f"\n**The segments are from {len(cards)} cards of this model.**\n"
    return text


def launches(shapes: Sequence[Standing]) -> str:
    """Return the host's time to enqueue a call, kernel by kernel: what a small shape may cost."""
    found: dict[str, list[float]] = {}
    for shape in shapes:
        for item in (shape.ours, *shape.peers):
            if item is not None and item.outcome.launch_s is not None:
                found.setdefault(item.outcome.case.kernel, []).append(item.outcome.launch_s)
    if not found:
        return "It was not measured.\n"
    rows = [
        (name, str(len(times)), *(units.seconds(quantile(sorted(times), at)) for at in QUARTERS))
        for name, times in sorted(found.items(), key=lambda each: median(each[1]))
    ]
    return table(("kernel", "cases", "lower quarter", "median", "upper quarter"), rows)


def missed(found: Sequence[Held]) -> str:
    """Return a folded list for each bar that is missed: its shapes, the worst first."""
    parts = []
    for each in found:
        if each.missed:
            lines = [f"- {shape.where}: {said_of(each.bar, shape)}" for shape in each.missed]
            title = f"{each.bar.title}: {len(lines)} of {len(each.shapes)} ({each.bar.limit})"
            parts.append(folded(title, "\n".join(lines) + "\n"))
    return "\n".join(parts) or "Nothing that was measured did.\n"


def said_of(bar: Bar, shape: Standing) -> str:
    """Return a figure, or a kernel's or compiler's words, which may hold any sign."""
    said = told(bar, shape)
    return said if shape.ours is not None else safe(said)


def absent(shapes: Sequence[Standing]) -> str:
    """Return a folded table of the kernels without a time, each reason once."""
    counts = Counter(
        (shape.case.operator, each.kernel, "failed" if each.failed else "left out", each.reason)
        for shape in shapes
        for each in shape.absent
    )
    if not counts:
        return "All had one.\n"
    rows = [
        (operator, kernel, str(count), safe(f"{how}: {reason}"))
        for (operator, kernel, how, reason), count in counts.items()
    ]
    return folded(
        f"{sum(counts.values())} cases",
        table(("operator", "kernel", "cases", "why"), rows, words=2).replace("---: |\n", "--- |\n"),
    )


def folded(title: str, text: str) -> str:
    """Return Markdown that a reader opens: lists of many lines would bury what follows."""
    return f"<details><summary>{title}</summary>\n\n{text}\n</details>\n"


def by_operator(shapes: Sequence[Standing]) -> dict[str, list[Standing]]:
    """Return the shapes of each operator, in the order in which they were measured."""
    found: dict[str, list[Standing]] = {}
    for shape in shapes:
        found.setdefault(shape.case.operator, []).append(shape)
    return found


def shape_text(case: Case) -> str:
    """Return extents, then the values of params in the order of their names."""
    extents = " x ".join(map(str, case.shape.values()))
    return ", ".join((extents, *(str(case.params[name]) for name in sorted(case.params))))


def percent(fraction: float | None) -> str:
    """Return a percentage, nothing for None."""
    return NONE if fraction is None else units.percent(fraction)


def seconds(time_s: float | None) -> str:
    """Return a time, nothing for None."""
    return NONE if time_s is None else units.seconds(time_s)
