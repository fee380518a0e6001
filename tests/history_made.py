"""Histories for tests: courses of cases by a formula and a seed; nothing of this enters a file."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from solkit.entry import CaseEntry, Entry
from solkit.model import Case

BEGAN = datetime(2026, 10, 1, 3, tzinfo=UTC)
Course = Callable[[int], float]  # the factor of a case's time in run i


def case(number: int, *, operator: str = "softmax") -> Case:
    return Case(operator, "solkit", {"rows": 2 ** (number % 16), "cols": 4096 + number}, "bf16")


def flat(_run: int) -> float:
    return 1.0


def stepped(at: int, factor: float, until: int = 10**6) -> Course:
    """Return a course that is slower by a factor from one run to another."""
    return lambda run: factor if at <= run < until else 1.0


def entry(run: int, cases: tuple[CaseEntry, ...], *, gpu_id: str = "example_100") -> Entry:
    return Entry(
        id=f"run-{run:03d}",
        created=f"{BEGAN + timedelta(days=run):%Y-%m-%dT%H:%M:%SZ}",
        gpu_id=gpu_id,
        device_name="Example GPU 100",
        method="cupti",
        seed=0,
        settle="burst",
        commit=f"{run:02d}" + "ab" * 19,
        driver="600.12",
        power_limit_w=700.0,
        cases=cases,
    )


def history(
    *courses: tuple[Case, Course], runs: int = 40, noise: float = 0.007, seed: int = 0
) -> list[Entry]:
    """Return runs a day apart; each time has a normal noise of that deviation."""
    source = random.Random(seed)  # noqa: S311  # noise of a test, no secret
    return [
        entry(
            run,
            tuple(
                timed(each, 1e-5 * course(run) * math.exp(source.gauss(0, noise)))
                for each, course in courses
            ),
        )
        for run in range(runs)
    ]


def timed(each: Case, median_s: float) -> CaseEntry:
    return CaseEntry(
        each, "measured", median_s, median_s * 0.998, median_s * 1.002, 0.8e-5 / median_s
    )


def with_driver(entries: list[Entry], at: int, driver: str) -> list[Entry]:
    """Return the runs with another driver from one of them on."""
    return [replace(each, driver=driver) if run >= at else each for run, each in enumerate(entries)]
