"""The README's table of a real run, made from the recorded one.

    python benchmarks/readme.py           rewrite the table in README.md
    python benchmarks/readme.py --check   exit 1 where README.md holds another one

It stands between two marks, <!-- table:main --> and <!-- table:end -->.
"""

import sys
from pathlib import Path

from solkit import units
from solkit.judge.score import Scored, score, valid
from solkit.record import read

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "benchmarks" / "h200" / "main.jsonl"
README = ROOT / "README.md"
BEGIN, END = "<!-- table:main -->\n", "<!-- table:end -->"
# One line an operator and regime: what a reader asks first.
SHOWN = (
    ("matmul_add", "M=8192;N=2560;K=2560;weight=nk", "bf16"),
    ("matmul_add", "M=16;N=2560;K=2560;weight=nk", "bf16"),
    ("add_rmsnorm", "rows=32768;cols=8192", "bf16"),
    ("add_rmsnorm", "rows=1;cols=2560", "bf16"),
    ("swiglu", "rows=8192;cols=11008", "bf16"),
    ("bias_gelu", "rows=8192;cols=10240;form=tanh", "bf16"),
    ("softmax", "rows=8192;cols=32768;masking=none;scale=1.0", "bf16"),
    ("copy", "elements=268435456", "bf16"),
)


def main() -> int:
    """Rewrite or check the table."""
    text = README.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    _, tail = rest.split(END)
    wanted = f"{head}{BEGIN}{table()}{END}{tail}"
    if "--check" in sys.argv:
        return int(wanted != text)
    README.write_text(wanted, encoding="utf-8")
    return 0


def table() -> str:
    """Return the Markdown table of the chosen cases, and the line that says what it is."""
    run = read(RECORDED)
    cases = {
        (item.outcome.case.operator, item.outcome.case.shape_text, item.outcome.case.dtype): item
        for item in valid(score(run))
    }
    rows = [_row(cases[key]) for key in SHOWN]
    head = (
        "operator",
        "shape",
        "time",
        "achieved",
        "SOL",
        "SOL@clock",
        "SOL@measured",
        "limited by",
    )
    lines = [head, ("---", "---", *["---:"] * 5, "---"), *rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    floor = min(item.outcome.floor_s for item in cases.values())
    return (
        f"{body}\n\nbf16, {run.facts.name}, driver {run.facts.driver}, cold L2, seed {run.seed}; "
        f"an empty kernel reads {units.seconds(floor)} by the same method "
        f"({len(cases)} cases: [benchmarks/h200/main.jsonl](benchmarks/h200/main.jsonl)).\n"
    )


def _row(item: Scored) -> tuple[str, ...]:
    outcome = item.outcome
    flop = sum(outcome.work.flop.values())
    rate = (
        units.flop_rate(flop / item.median_s)
        if item.bound.limiter.startswith("compute")
        else units.bandwidth(outcome.work.traffic_bytes / item.median_s)
    )
    extents = "x".join(str(extent) for extent in outcome.case.shape.values())
    limiter = item.bound.limiter.removeprefix("compute:")
    return (
        outcome.case.operator,
        " ".join([extents, *map(str, outcome.case.params.values())]),
        units.seconds(item.median_s),
        rate,
        *(_percent(value) for value in (item.sol_score, item.sol_clock, item.sol_measured)),
        "launch latency" if item.regime.word == "latency" else limiter,
    )


def _percent(value: float | None) -> str:
    return "" if value is None else units.percent(value)


if __name__ == "__main__":
    sys.exit(main())
