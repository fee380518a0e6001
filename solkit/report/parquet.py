"""Every case as a row of a Parquet file: the columns of the CSV, typed, and the samples."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from solkit.errors import NoDevice
from solkit.judge.score import Judged, Scored
from solkit.model import Run
from solkit.report.columns import COLUMNS, values
from solkit.report.plain import line

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLES = "times_s"


def render(run: Run, judged: Sequence[Judged]) -> bytes:
    """Return the bytes of the file; the same for the same run and version of pyarrow.

    Raises NoDevice where pyarrow is not installed.
    """
    arrow = table(run, judged)
    import pyarrow as pa  # noqa: PLC0415  # `table` has said what is to be done where it is missing
    import pyarrow.parquet as pq  # noqa: PLC0415

    out = pa.BufferOutputStream()
    pq.write_table(arrow, out, compression="zstd")
    found: bytes = out.getvalue().to_pybytes()
    return found


def table(run: Run, judged: Sequence[Judged]) -> "pa.Table":
    """Return the judged outcomes as an Arrow table, in the run's order.

    Text is utf8, whole numbers int64, but for `flop` (float64, since the sum over pipes may be
    larger), all others float64, unknown is null. `times_s` is a list of float64: the samples, in
    seconds. The schema's metadata names the run, its card and how it was measured.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  # 55 MB, an extra
    except ImportError as error:
        raise NoDevice(
            "Parquet needs pyarrow, which is not installed",
            remedy="pip install 'solkit[parquet]'",
        ) from error
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    rows = [values(item) for item in judged]
    for row in rows:
        row["flop"] = float(row["flop"]) if row["flop"] is not None else None
    fields = [
        pa.field(column.name, pa.float64() if column.name == "flop" else kinds[column.kind])
        for column in COLUMNS
    ]
    arrays = [pa.array([row[each.name] for row in rows], each.type) for each in fields]
    samples = pa.field(SAMPLES, pa.list_(pa.float64()))
    times = [list(item.outcome.times_s) if isinstance(item, Scored) else None for item in judged]
    known = {
        "solkit.run": run.id,
        "solkit.created": run.created,
        "solkit.card": run.facts.name,
        "solkit.driver": run.facts.driver,
        "solkit.method": run.method,
        "solkit.settle": run.settle,
        "solkit.seed": str(run.seed),
        "solkit.version": run.versions.get("solkit", ""),
    }
    metadata = {name: line(text, 400) for name, text in known.items()}
    return pa.table(
        [*arrays, pa.array(times, samples.type)],
        schema=pa.schema([*fields, samples], metadata=metadata),
    )
