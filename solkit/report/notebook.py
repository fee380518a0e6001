"""A run at hand in Python: read, judged, shown by the last line of a notebook's cell."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from solkit.errors import unknown
from solkit.judge.score import Judged, Scored, score, valid
from solkit.model import Run
from solkit.report.plain import counted, line


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A run and what it is judged to be.

    `judged` holds every outcome's judgement, in the order of `run.outcomes`.
    """

    run: Run
    judged: tuple[Judged, ...]

    @classmethod
    def of(cls, run: Run, *, baseline: str | None = None) -> Self:
        """Judge a run. baseline: the kernel that gap scores are taken against.

        Raises BadInput where the run has no such kernel.
        """
        kernels = {outcome.case.kernel for outcome in run.outcomes}
        if baseline is not None and baseline not in kernels:
            raise unknown("baseline kernel", baseline, kernels)
        return cls(run, score(run, baseline=baseline))

    @classmethod
    def read(cls, *paths: str | os.PathLike[str], baseline: str | None = None) -> Self:
        """Read and judge a run: its run.jsonl or its folder; several are segments of one run.

        Raises BadInput naming file and line.
        """
        from solkit import record  # noqa: PLC0415  # pydantic loads when a run is read

        return cls.of(record.read([Path(path) for path in paths]), baseline=baseline)

    def rows(self) -> list[dict[str, Any]]:
        """Return every case by the columns of the CSV, typed, and its samples as `times_s`.

        What `pandas.DataFrame(report.rows())` takes; unknown is None.
        """
        from solkit.report.columns import values  # noqa: PLC0415

        return [
            {
                **values(item),
                "times_s": list(item.outcome.times_s) if isinstance(item, Scored) else None,
            }
            for item in self.judged
        ]

    def render(self, to: str) -> str:
        """Write the report as text: html, markdown, csv, json or junit."""
        from solkit.report.renderers import RENDERERS  # noqa: PLC0415

        if to not in RENDERERS:
            raise unknown("format", to, RENDERERS)
        return RENDERERS[to](self.run, self.judged)

    def __repr__(self) -> str:
        good, card = len(valid(self.judged)), line(self.run.facts.name)
        every = counted(len(self.judged), "case")
        return f"<Report of {line(self.run.id)} on {card}: {good:,} of {every} measured>"

    def _repr_markdown_(self) -> str:
        return self.render("markdown")

    def _repr_html_(self) -> str:
        from solkit.report import fragment  # noqa: PLC0415  # loads when shown

        return fragment.render(self.run, self.judged)
