"""The end of a run: judge what is on disk, write the report and what else is wanted, say it."""

from pathlib import Path

from solkit import record
from solkit.cli import gating, outputs
from solkit.cli.console import say, show
from solkit.cli.extras import Extras, Told, write
from solkit.cli.gating import Held
from solkit.cli.summary import summary
from solkit.errors import GateSaysNo, NoDevice
from solkit.judge.score import RoofName, score
from solkit.report.changes import verdict
from solkit.report.renderers import RENDERERS


def tell(
    folder: Path,
    extras: Extras,
    held: Held,
    error: BaseException | None,
    *,
    roof: RoofName | None,
    baseline: str | None,
) -> None:
    """Tell everything a folder's run holds; then raise what there is.

    error: what ended the measuring early. It comes before what a gate says, and that before cases
    that failed.
    """
    path = folder / outputs.RUN_FILE
    if not path.exists() and error is not None:
        raise error
    run = record.read(path)
    again = folder / outputs.AGAIN_FILE
    judged = score(run, baseline=baseline)
    taken: RoofName = roof or held.gate.floors.roof or ("measured" if run.gpu is None else "spec")
    comparison = held.compared([run, record.read(again)] if again.exists() else [run])
    ending = gating.ending(judged, roof=taken, floors=held.gate.floors, comparison=comparison)
    low = gating.below(judged, held.gate.floors, taken)
    told = Told(
        run=run,
        judged=judged,
        comparison=comparison,
        below=low,
        failing=gating.failing(low, comparison, judged),
        gate=str(ending) if ending else "passed" if held.asks else "",
        refusal=ending.message if isinstance(ending, GateSaysNo) else "",
    )
    report = folder / outputs.REPORT_FILE
    unwritten: NoDevice | None = None
    try:
        outputs.write(report, RENDERERS["html"](run, judged))
    except NoDevice as problem:  # a full disk: what was measured is told all the same
        unwritten = problem
    show(summary(run, judged, taken))
    unwritten = write(extras, told, folder) or unwritten
    if comparison is not None:
        show(f"against {comparison.base.id}: {verdict(comparison)}")
    if isinstance(error, KeyboardInterrupt):
        same = ", and what it is held to (--against, --gate, --fail-under)" if held.asks else ""
        say(f"the run was cut short; finish it with: solkit run --resume {folder}{same}")
    for each in (report, folder / outputs.COMPARE_FILE):
        if each.exists():
            show(f"{each}")
    if last := error or unwritten or ending:
        raise last
