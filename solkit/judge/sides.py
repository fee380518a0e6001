"""Several runs become one side of a comparison: the samples of a case are pooled over its runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from solkit.errors import BadInput
from solkit.judge.compare import other_conditions
from solkit.judge.noise import Repeats
from solkit.judge.score import Judged, score
from solkit.model import CaseKey, Clocks, Failed, Measured, Outcome, Run
from solkit.stats import median, quantile, spread, widened

_SHARES = (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)  # the quantiles that a run file keeps


@dataclass(frozen=True, slots=True)
class Side:
    """One side: its first run with the outcomes of all, and what each case showed between runs.

    remarks: of a case whose runs don't agree on what became of it. cut: a run has no proper end.
    """

    name: str
    run: Run
    runs: tuple[Run, ...]
    judged: dict[CaseKey, Judged]
    repeats: dict[CaseKey, Repeats]
    remarks: dict[CaseKey, str]
    notes: tuple[str, ...]

    @property
    def cut(self) -> bool:
        """Whether a run of this side was cut or interrupted, so that cases may be absent."""
        return any(run.ended in (None, "interrupted") for run in self.runs)

    @property
    def cards(self) -> frozenset[str]:
        """The cards its runs were measured on, by UUID."""
        return frozenset(run.facts.uuid for run in self.runs)


def side(name: str, runs: Sequence[Run]) -> Side:
    """Merge the runs of one side, and judge the merged outcomes.

    name: BASE or HEAD, for notes. A run that is given twice counts once. Raises BadInput where
    there is no run.
    """
    kept: list[Run] = []
    for run in runs:
        if run not in kept:
            kept.append(run)
    if not kept:
        raise BadInput(f"{name} has no run", remedy="give a run.jsonl, or the folder of one")
    notes = [note for place, run in enumerate(kept, 1) for note in _ends(name, place, kept, run)]
    if len(kept) < len(runs):
        notes.append(f"{name} names a run twice: it counts once")
    found: dict[CaseKey, list[Outcome]] = {}
    for run in kept:
        for outcome in run.outcomes:
            found.setdefault(outcome.case.key, []).append(outcome)
    repeats: dict[CaseKey, Repeats] = {}
    remarks: dict[CaseKey, str] = {}
    outcomes = []
    for key, each in found.items():
        alike, remark = _alike(each)
        outcomes.append(_pooled(alike) if len(alike) > 1 else alike[0] if alike else _worst(each))
        if alike:
            repeats[key] = Repeats.of(alike)
        if remark:
            remarks[key] = remark
    merged = replace(kept[0], outcomes=tuple(outcomes))
    judged = dict(zip(found, score(merged), strict=True))
    return Side(name, merged, tuple(kept), judged, repeats, remarks, tuple(notes))


def _ends(name: str, place: int, runs: Sequence[Run], run: Run) -> Iterable[str]:
    which = name if len(runs) == 1 else f"run {place} of {name}"
    if run.ended is None:
        yield f"{which} has no end record: it was cut, and is judged as far as it goes"
    elif run.ended == "interrupted":
        yield f"{which} was interrupted, and is judged as far as it goes"


def _alike(outcomes: Sequence[Outcome]) -> tuple[list[Measured], str]:
    """Return what can be pooled of a case's outcomes, and a remark on what can't.

    None where a check failed: one wrong result in several runs is a wrong kernel.
    """
    measured = [outcome for outcome in outcomes if isinstance(outcome, Measured)]
    wrong = _wrong(outcomes)
    total = len(outcomes)
    if not measured or wrong:
        return [], f"failed in {len(wrong)} of {total} runs" if wrong and total > 1 else ""
    alike = [outcome for outcome in measured if not other_conditions(measured[0], outcome)]
    others = [outcome for outcome in measured if other_conditions(measured[0], outcome)]
    parts = []
    if len(measured) < total:
        parts.append(f"measured in {len(measured)} of {total} runs")
    if others:
        what, one, other = other_conditions(measured[0], others[0])[0]
        parts.append(f"{len(others)} of {total} runs left out: the {what} was {other}, not {one}")
    return alike, "; ".join(parts)


def _wrong(outcomes: Sequence[Outcome]) -> list[Failed]:
    return [each for each in outcomes if isinstance(each, Failed) and each.stage == "check"]


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Return what stands for a case without a time: a failed check, a failure, else the skip."""
    failed = [each for each in outcomes if isinstance(each, Failed)]
    return next(iter([*_wrong(outcomes), *failed, *outcomes]))


def _pooled(outcomes: Sequence[Measured]) -> Measured:
    """Return one case measured in several runs as if it were one measurement."""
    first = outcomes[0]
    times = tuple(time_s for each in outcomes for time_s in each.times_s)
    place_fraction = max(each.place_fraction for each in outcomes)
    seen = widened(spread(times), place_fraction)
    ordered = sorted(times)
    return replace(
        first,
        times_s=times,
        # of all samples that were taken a file keeps a hundred: those are what is pooled
        sample_count=len(times),
        quantiles_s={f"{share:g}": quantile(ordered, share) for share in _SHARES},
        median_s=seen.median_s,
        low_s=seen.low_s,
        high_s=seen.high_s,
        floor_s=median([each.floor_s for each in outcomes]),
        place_fraction=place_fraction,
        clocks=_clocks([each.clocks for each in outcomes]),
        check=max((each.check for each in outcomes), key=lambda check: check.error_fraction),
        sample_hz=_sample_hz(outcomes),
        throttled_count=sum(each.throttled_count for each in outcomes),
        notes=tuple(dict.fromkeys(note for each in outcomes for note in each.notes)),
        other_process_count=max(each.other_process_count for each in outcomes),
    )


def _sample_hz(outcomes: Sequence[Measured]) -> tuple[float | None, ...]:
    """Return the clock of each pooled sample; a run without clocks leaves its places unknown."""
    if not any(each.sample_hz for each in outcomes):
        return ()
    hz: list[float | None] = []
    for each in outcomes:
        known = each.sample_hz[: len(each.times_s)]
        hz += [*known, *[None] * (len(each.times_s) - len(known))]
    return tuple(hz)


def _clocks(clocks: Sequence[Clocks]) -> Clocks:
    def known(name: str) -> list[float]:
        return [value for each in clocks if (value := getattr(each, name)) is not None]

    held = known("sm_hz")
    return Clocks(
        sm_hz=median(held) if held else None,
        sm_low_hz=min(known("sm_low_hz"), default=None),
        sm_high_hz=max(known("sm_high_hz"), default=None),
        memory_hz=min(known("memory_hz"), default=None),
        temperature_c=max(known("temperature_c"), default=None),
        power_w=max(known("power_w"), default=None),
        event_reasons=tuple(dict.fromkeys(name for each in clocks for name in each.event_reasons)),
        driver_sm_hz=min(known("driver_sm_hz"), default=None),
    )
