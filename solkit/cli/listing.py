"""`solkit list`: the operators and kernels there are."""

import textwrap
from typing import TYPE_CHECKING, Any

from solkit.cli.catalogs import opened
from solkit.cli.console import heading, room, show, show_json, table
from solkit.cli.options import AsJson, Load
from solkit.report.plain import line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from solkit.declare.catalog import Catalog, OperatorInfo


def command(
    load: Load = [],  # noqa: B006  # typer copies it
    as_json: AsJson = False,
) -> None:
    """List operators and kernels: axes, params, dtypes."""
    with opened(load) as catalog:
        document = describe(catalog)
    if as_json:
        show_json(document)
    else:
        show("\n\n".join(_section(operator) for operator in document["operators"]))


def describe(catalog: "Catalog") -> dict[str, Any]:
    """Return every operator with its kernels as plain data."""
    return {"operators": [_document(operator, catalog) for operator in catalog.operators.values()]}


def _document(operator: "OperatorInfo", catalog: "Catalog") -> dict[str, Any]:
    return {
        "name": operator.name,
        "summary": operator.summary,
        "axes": list(operator.axes),
        "params": {name: list(values) for name, values in operator.params.items()},
        "dtypes": list(operator.dtypes),
        "kernels": [
            {
                "name": kernel.name,
                "device": kernel.device,
                "dtypes": list(kernel.dtypes),
                "min_compute_capability": kernel.min_compute_capability
                if kernel.device == "cuda"
                else None,
                "bundled": kernel.bundled,
                "by_name_only": kernel.by_name_only,
                "summary": kernel.summary,
            }
            for kernel in catalog.kernels
            if kernel.operator == operator.name
        ],
    }


def _section(operator: dict[str, Any]) -> str:
    axes = " ".join(f"{axis}=" for axis in operator["axes"])
    params = " ".join(
        f"{name}={'|'.join(map(str, values))}" for name, values in operator["params"].items()
    )
    name, words = line(operator["name"]), line(f"{axes} {params}")
    title = heading(name) + "  " + _wrapped(words, indent=2 + len(name))
    rows = [
        (
            f"  {line(kernel['name'])}",
            kernel["device"],
            line(" ".join(kernel["dtypes"])),
            f"CC {kernel['min_compute_capability']}+" if kernel["min_compute_capability"] else "",
            "named" if kernel["by_name_only"] else "any",
        )
        for kernel in operator["kernels"]
    ]
    told = line(operator["summary"])
    summary = ["  " + _wrapped(told, indent=2)] if told else []
    headers = ("  kernel", "device", "dtypes", "needs", "sweeps")
    text = table((*headers, "how"), _explained(headers, rows, operator))
    return "\n".join([title, *summary, text])


def _wrapped(words: str, indent: int) -> str:
    """Break words at the terminal's edge; what goes on is indented."""
    columns = room()
    if not columns:
        return words
    text = textwrap.fill(
        words,
        columns,
        initial_indent=" " * indent,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return text[indent:]


def _explained(
    headers: "Sequence[str]", rows: "Sequence[Sequence[str]]", operator: dict[str, Any]
) -> list[tuple[str, ...]]:
    """Add what each kernel says of itself, cut to what the terminal has room for."""
    columns = room()
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    most = max(12, columns - sum(widths) - 2 * len(widths)) if columns else 160
    told = [line(kernel["summary"], most) for kernel in operator["kernels"]]
    return [(*row, summary) for row, summary in zip(rows, told, strict=True)]
