"""How solkit's kernel stands in each shape, beside the measured roof and its peers. Pure.

Every time and score is `solkit.judge`'s; here they are only put side by side.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from solkit.bound import Roof, bound, measured_roof
from solkit.judge.compare import MIN_EFFECT_FRACTION, Change, weigh
from solkit.judge.score import Judged, Scored, score
from solkit.model import Case, Failed, Run, Skipped
from solkit.report.plain import line

OURS = "solkit"  # or solkit_<technique>, where an operator has several
COMPILED = "torch_compile"  # the peer that is measured in a part of the shapes
REASON_LENGTH = 160


@dataclass(frozen=True, slots=True)
class Absent:
    """A kernel without a time that counts in a shape, and why."""

    kernel: str
    reason: str
    failed: bool  # else the kernel, or the machine, does not take the case


@dataclass(frozen=True, slots=True)
class Standing:
    """One shape, dtype and params of an operator, as one run measured it.

    ours: solkit's kernel, the fastest where there are several; None where it has no time that
    counts, and `absent` then says why. peers: all with a time, the fastest first. traffic_bytes:
    None where no kernel has a time. roof_s: the least time under the measured roof, at this
    traffic; None where the run has no ceilings.
    """

    case: Case
    ours: Scored | None
    peers: tuple[Scored, ...]
    absent: tuple[Absent, ...]
    traffic_bytes: int | None
    roof_s: float | None

    @property
    def fastest(self) -> Scored | None:
        """The fastest peer."""
        return self.peers[0] if self.peers else None

    @property
    def against(self) -> Change | None:
        """The step from the fastest peer to solkit; None where one of them has no time."""
        if self.ours is None or not self.peers:
            return None
        peer, ours = self.peers[0].outcome, self.ours.outcome
        return weigh(peer, ours, effect_fraction=MIN_EFFECT_FRACTION, noise_fraction=0.0)

    @property
    def gain(self) -> float | None:
        """The fastest peer's time over solkit's: above 1 where solkit is the faster one."""
        change = self.against
        return None if change is None else 1 / change.ratio_fraction

    @property
    def compiled(self) -> bool:
        """Whether torch.compile is among the peers."""
        return any(peer.outcome.case.kernel == COMPILED for peer in self.peers)

    @property
    def where(self) -> str:
        """Operator, shape, params and dtype in one line."""
        shape = self.case.shape_text.replace(";", " ")
        return line(f"{self.case.operator} {shape} {self.case.dtype}")


def standings(runs: Iterable[Run]) -> list[Standing]:
    """Return a standing for each shape that a kernel of solkit was to be measured in.

    Each run is judged by its own spec and ceilings. Of a shape that is in two runs the later
    counts: kernels and peers of different runs are never mixed.
    """
    found: dict[object, Standing] = {}
    for run in runs:
        roof = measured_roof(run.ceilings, settle=run.settle) if run.ceilings else None
        groups: dict[object, list[Judged]] = {}
        for item in score(run):
            groups.setdefault(case_of(item).group_key, []).append(item)
        for key, items in groups.items():
            if any(is_ours(case_of(item)) for item in items):
                found[key] = _standing(items, roof)
    return list(found.values())


def case_of(item: Judged) -> Case:
    """Return the case of an outcome, judged or not."""
    return item.outcome.case if isinstance(item, Scored) else item.case


def is_ours(case: Case) -> bool:
    """Say whether a case's kernel is one of solkit's."""
    return case.kernel == OURS or case.kernel.startswith(f"{OURS}_")


def _standing(items: Sequence[Judged], roof: Roof | None) -> Standing:
    timed = sorted(
        (item for item in items if isinstance(item, Scored) and item.status == "measured"),
        key=lambda item: item.median_s,
    )
    ours = next((item for item in timed if is_ours(item.outcome.case)), None)
    peers = tuple(item for item in timed if not is_ours(item.outcome.case))
    known = ours or (peers[0] if peers else None)
    work = known.outcome.work if known else None
    case = next(case_of(item) for item in items if is_ours(case_of(item)))
    return Standing(
        case=ours.outcome.case if ours else case,
        ours=ours,
        peers=peers,
        absent=tuple(_absent(item) for item in items if item not in timed),
        traffic_bytes=work.traffic_bytes if work else None,
        roof_s=bound(work, roof).sol_s if work and roof else None,
    )


def _absent(item: Judged) -> Absent:
    kernel = case_of(item).kernel
    if isinstance(item, Skipped):
        return Absent(kernel, line(item.reason, REASON_LENGTH), failed=False)
    if isinstance(item, Failed):
        return Absent(kernel, line(f"{item.stage}: {item.message}", REASON_LENGTH), failed=True)
    return Absent(kernel, line(item.invalid_reason, REASON_LENGTH), failed=True)


def mean_gain(shapes: Iterable[Standing]) -> tuple[float | None, int]:
    """Return the geometric mean of the gains, in which twice and half cancel, and their number.

    Shapes without a gain don't count; None where none has one.
    """
    gains = [gain for shape in shapes if (gain := shape.gain) is not None]
    mean = math.exp(math.fsum(map(math.log, gains)) / len(gains)) if gains else None
    return mean, len(gains)
