"""What only the whole of solkit can show: its own command line, measured from outside.

`aa`: one kernel under two names, compared as a change would be. `order`: the same cases forwards,
backwards and shuffled. `throughput`: 500 short cases, by the clock on the wall.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

from accuracy_parts import sweeps
from accuracy_parts.parts import Save

from solkit.declare.card import Card
from solkit.declare.registry import bundled
from solkit.errors import SolkitError
from solkit.judge.compare import compare, false_alarm_interval
from solkit.model import CaseKey, Measured, Outcome, Run
from solkit.plan.specs import load_specs
from solkit.record import read

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 240.0
DEVICE = "cuda"
TICKS_S = 3 * 32e-9  # three steps of the GPU's clock: times closer than that are one time
PRECISION_FRACTION = 0.005
AA_PAIRS, AA_BUDGET_S, AA_FROM_S, AA_TO_S = 420, 0.05, 2e-6, 1e-3
ORDER_CASES, ORDER_FROM_S, ORDER_TO_S = 100, 2e-6, 80e-6
SHORT_CASES, SHORT_S = 500, 50e-6
SHOWN = 20
SEED = 7

# Two kernels of one and the same code for every bundled one.
TWINS = '''"""Every bundled kernel twice, as `a` and as `b`."""

from dataclasses import replace

from solkit.declare.registry import bundled

KERNELS = tuple(
    replace(
        kernel,
        name=name,
        operator=kernel.operator_name,
        source=str(kernel.folder / kernel.source),
    )
    for kernel in bundled().kernels.values()
    if kernel.name == "solkit"
    for name in ("a", "b")
)
'''


class RunFailed(RuntimeError):
    """`solkit run` left no run to look at."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A run as its file tells it, and how long its process took."""

    run: Run
    wall_s: float


def run(points: Sequence[sweeps.Point], *options: str, kernels: Sequence[str] = ()) -> Timed:
    """Measure a sweep with `solkit run` in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shapes, twins, out = folder / "shapes.yaml", folder / "twins.py", folder / "out"
        shapes.write_text(sweeps.text(points, kernels), encoding="utf-8")
        loads = []
        if kernels:
            twins.write_text(TWINS, encoding="utf-8")
            loads = ["--load", str(twins)]
        command = [sys.executable, "-m", "solkit", "run", "--shapes", str(shapes)]
        command += ["--device", DEVICE, "--out", str(out), *loads, *options]
        started = perf_counter()
        said = _talk(command)
        wall_s = perf_counter() - started
        path = out / "run.jsonl"
        if not path.exists():
            raise RunFailed(f"solkit run {said}")
        return Timed(read(path), wall_s)


def _talk(command: Sequence[str]) -> str:
    """Run a command and return how it ended; one that is cut leaves the outcomes it had."""
    places = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        print(f"  cut after {TIMEOUT_S:g} s", flush=True)
        return f"took more than {TIMEOUT_S:g} s"
    if done.returncode:
        print(f"  status {done.returncode}: {done.stderr[-1500:]}", flush=True)
    return f"ended with status {done.returncode}: {done.stderr[-600:]}"


def streamed_us(kernels: Sequence[str], sizes: Sequence[int]) -> dict[tuple[str, int], float]:
    """Return what `solkit run` says of bf16 streams, in us, by kernel and bytes of a buffer."""
    points = {
        sweeps.stream(name, size).case("solkit").key: (name, size)
        for name in kernels
        for size in sizes
    }
    measured = run([sweeps.stream(name, size) for name, size in points.values()]).run.outcomes
    return {
        points[each.case.key]: _us(each.median_s)
        for each in measured
        if isinstance(each, Measured) and each.case.key in points
    }


def measure_aa(save: Save) -> None:
    """Save how often one kernel under two names is called changed."""
    points = sweeps.spread(AA_PAIRS, AA_FROM_S, AA_TO_S)
    timed = run(points, "--budget", str(AA_BUDGET_S), kernels=("a", "b"))
    save({"aa": aa(timed.run.outcomes) | _said(timed) | {"budget_s": AA_BUDGET_S}})


def aa(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Compare the two outcomes of each group by judge/compare.py, as base and head of a change."""
    groups: dict[CaseKey, list[Measured]] = {}
    left_out: list[str] = []
    for outcome in outcomes:
        if isinstance(outcome, Measured):
            groups.setdefault(outcome.case.group_key, []).append(outcome)
        else:
            left_out.append(_why(outcome))
    words: Counter[str] = Counter()
    by_length: dict[str, Counter[str]] = {}
    changed, each_pair = [], []
    for base, head in (pair for pair in groups.values() if len(pair) == 2):  # noqa: PLR2004  # a and b
        try:
            change = compare(base, head)
        except SolkitError as error:  # another method or cache state: no pair
            left_out.append(f"{base.case}: {error.message}")
            continue
        words[change.word] += 1
        by_length.setdefault(length_of(base.median_s), Counter())[change.word] += 1
        medians_us = [_us(base.median_s), _us(head.median_s)]
        each_pair.append([_name(base), *medians_us, change.word])
        if change.word in ("FASTER", "SLOWER"):
            changed.append(
                {
                    "case": str(base.case),
                    "word": change.word,
                    "base_us": medians_us[0],
                    "head_us": medians_us[1],
                }
            )
    pairs = sum(words.values())
    return {
        "pairs": pairs,
        "changed": len(changed),
        "interval": list(false_alarm_interval(len(changed), pairs)) if pairs else [0.0, 1.0],
        "words": dict(sorted(words.items())),
        "by_length": {name: dict(by_length[name]) for name in LENGTHS if name in by_length},
        "changed_cases": changed[:SHOWN],
        "left_out": left_out[:SHOWN],
        "left_out_count": len(left_out),
        "medians_us": each_pair,
    }


LENGTHS = ("under 5 us", "5 to 20 us", "20 to 100 us", "over 100 us")


def length_of(seconds: float) -> str:
    """Return the class of length that a time belongs to."""
    return LENGTHS[sum(seconds >= edge for edge in (5e-6, 20e-6, 100e-6))]


def measure_order(save: Save) -> None:
    """Save whether the same cases read the same forwards, backwards and shuffled."""
    forwards = sweeps.spread(ORDER_CASES, ORDER_FROM_S, ORDER_TO_S)
    shuffled = random.Random(SEED).sample(forwards, len(forwards))  # noqa: S311  # an order, no secret
    orders = {"forwards": forwards, "backwards": forwards[::-1], "shuffled": shuffled}
    timed = {}
    for name, points in orders.items():
        timed[name] = run(points)
        print(f"  {name}: {timed[name].wall_s:.1f} s", flush=True)
    found = order({name: each.run.outcomes for name, each in timed.items()})
    save({"order": found | _said(timed["forwards"])})


def order(runs: dict[str, Iterable[Outcome]]) -> dict[str, Any]:
    """Count the cases of which every two runs agree: intervals that meet, or 3 ticks at most."""
    found: dict[CaseKey, list[Measured]] = {}
    left_out = []
    for outcomes in runs.values():
        for outcome in outcomes:
            if isinstance(outcome, Measured):
                found.setdefault(outcome.case.key, []).append(outcome)
            else:
                left_out.append(_why(outcome))
    whole = [each for each in found.values() if len(each) == len(runs)]
    apart = [each for each in whole if not all(agree(*two) for two in combinations(each, 2))]
    furthest = max((_apart_fraction(each) for each in whole), default=0.0)
    return {
        "cases": len(whole),
        "agree_fraction": round(1 - len(apart) / len(whole), 4) if whole else 0.0,
        "orders": list(runs),
        "furthest_fraction": round(furthest, 4),
        "apart": [
            {
                "case": str(each[0].case),
                **{f"{name}_us": _us(one.median_s) for name, one in zip(runs, each, strict=True)},
            }
            for each in apart[:SHOWN]
        ],
        "left_out": left_out[:SHOWN],
        "left_out_count": len(left_out),
        "medians_us": [[_name(each[0]), *(_us(one.median_s) for one in each)] for each in whole],
    }


def agree(one: Measured, other: Measured) -> bool:
    """Return whether two medians are one time: their intervals meet, or they are 3 ticks apart."""
    meet = one.low_s <= other.high_s and other.low_s <= one.high_s
    return meet or abs(one.median_s - other.median_s) <= TICKS_S * (1 + 1e-9)


def _apart_fraction(outcomes: Sequence[Measured]) -> float:
    medians = [outcome.median_s for outcome in outcomes]
    return max(medians) / min(medians) - 1


def measure_throughput(save: Save) -> None:
    """Save how many short cases a second a sweep measures, and how sure their medians are.

    A first pass over one case of each compiled function fills the cache of compiled code and stores
    the ceilings.
    """
    points = sweeps.short(SHORT_CASES)
    first = representatives(points)
    warmed = run(first, "--budget", "0.01")
    print(f"  first pass: {len(first)} cases, {warmed.wall_s:.1f} s", flush=True)
    timed = run(points)
    save({"throughput": throughput(timed) | _said(timed) | {"first_pass_s": _s(warmed.wall_s)}})


def representatives(points: Sequence[sweeps.Point]) -> list[sweeps.Point]:
    """Return the first point of each function that is compiled on an H200."""
    registry, card = bundled(), Card.of(load_specs()["h200_sxm"])
    found: dict[tuple[str, ...], sweeps.Point] = {}
    for point in points:
        usual = registry.operators[point.operator].params
        params = {name: values[0] for name, values in usual.items()} | point.params
        case = replace(point.case("solkit"), params=params)
        launches = registry.kernels[case.operator, case.kernel].launches_on(case, card)
        found.setdefault(tuple(launch.entry for launch in launches), point)
    return list(found.values())


def throughput(timed: Timed) -> dict[str, Any]:
    """Return cases, seconds and the share of intervals within 0.5 % or 3 ticks."""
    measured = [each for each in timed.run.outcomes if isinstance(each, Measured)]
    others = [_why(each) for each in timed.run.outcomes if not isinstance(each, Measured)]
    within = sum(map(precise, measured))
    count = len(measured)
    return {
        "cases": count,
        "seconds": _s(timed.wall_s),
        "run_seconds": _s(timed.run.duration_s or 0.0),
        "within_half_percent_fraction": round(within / count, 4) if count else 0.0,
        "longest_us": _us(max((each.median_s for each in measured), default=0.0)),
        "over_50_us": sum(each.median_s > SHORT_S for each in measured),
        "ended": dict(Counter(each.ended for each in measured)),
        "left_out": others[:SHOWN],
        "left_out_count": len(others),
        "medians_us": [  # low end, median and high end of each
            [_name(each), *map(_us, (each.low_s, each.median_s, each.high_s))] for each in measured
        ],
    }


def precise(outcome: Measured) -> bool:
    """Return whether half the interval of a median is within 0.5 % of it, or within 3 ticks."""
    half_s = (outcome.high_s - outcome.low_s) / 2
    return half_s <= max(PRECISION_FRACTION * outcome.median_s, TICKS_S) * (1 + 1e-9)


def _said(timed: Timed) -> dict[str, Any]:
    return {"method": timed.run.method, "wall_s": _s(timed.wall_s)}


def _why(outcome: Outcome) -> str:
    return f"{outcome.case}: {getattr(outcome, 'message', '') or getattr(outcome, 'reason', '')}"


def _name(outcome: Measured) -> str:
    case = outcome.case
    return f"{case.operator} {case.shape_text} {case.dtype}"


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _s(seconds: float) -> float:
    return round(seconds, 2)
