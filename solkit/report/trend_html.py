"""The trend page: one self-contained HTML file, no network, no script, same bytes always."""

from collections.abc import Sequence

from solkit.report.page import asset, environment, escaped, sha256
from solkit.report.trend import TrendView
from solkit.report.trend_chart import SPARK_HEIGHT, SPARK_WIDTH, panels, spark
from solkit.report.trend_rows import CaseRow, StepRow


def render(view: TrendView) -> str:
    """Write the page. Row i of its table of cases has the id `c<i>`."""
    from markupsafe import Markup  # noqa: PLC0415  # jinja2's, and as late as jinja2

    style = asset("report.css") + asset("trend.css")
    charts, left = panels(view.ordered, len(view.cases))
    return (
        environment()
        .get_template("trend.html.jinja")
        .render(
            view=view,
            # the page's own policy: no request to anywhere, no script, no style but this one
            policy=(
                f"default-src 'none'; style-src '{sha256(style)}'; "
                "base-uri 'none'; form-action 'none'"
            ),
            style=Markup(style),  # noqa: S704  # our own files
            panels=[
                {"anchor": each.anchor, "title": each.title, "caption": each.caption}
                | {"svg": Markup(each.svg)}  # noqa: S704  # escaped where it is written
                for each in charts
            ],
            panels_more=f"{left:,} more operators have no chart here." if left else "",
            steps=Markup(_steps(view.steps)),  # noqa: S704  # escaped in _steps
            cases=Markup("".join(map(_case, view.cases))),  # noqa: S704  # escaped in _case
            cases_count=f"{len(view.cases):,}",
        )
    )


def _steps(rows: Sequence[StepRow]) -> str:
    """Write the rows; end tags are optional in HTML."""
    return "".join(map(_step, rows))


def _step(row: StepRow) -> str:
    name = escaped(row.case)
    case = f'<a href="#{row.anchor}">{name}</a>' if row.anchor else name
    kind = "is-up" if row.is_up and row.state == "stands" else "is-down"
    return (
        f'<tr class={kind}><td class="number move">{escaped(row.size)}'
        f" <small>{escaped(row.state)}</small>"
        f"<th scope=row>{case}"
        f"<td>{escaped(row.at)} <small>{escaped(row.when)}</small>"
        f"<td class=number>{escaped(row.before)} \u2192 {escaped(row.after)}"
        f"<td class=number>{escaped(row.runs)}"
        f"<td class=words>{escaped(row.moved)}\n"
    )


def _case(row: CaseRow) -> str:
    number = row.anchor[1:]
    state = f" <small>{escaped(row.state)}</small>" if row.state else ""
    return (
        f"<tr id={row.anchor}><td>{number}<th scope=row>{escaped(row.case)}{state}"
        f"<td class=number>{escaped(row.last)}<td class=number>{escaped(row.score)}"
        f"<td class=number>{escaped(row.change)}<td>{_spark(row)}<td>{escaped(row.step)}"
        f"<td class=number>{escaped(row.noise)}<td class=number>{escaped(row.runs)}\n"
    )


def _spark(row: CaseRow) -> str:
    """Draw a small line that only repeats what the row says: readers skip it."""
    path = spark(row.trend)
    if not path:
        return ""
    box = f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}"
    return f'<svg class=course viewBox="{box}" aria-hidden=true><path d="{path}"/></svg>'
