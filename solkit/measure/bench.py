"""The bench: the parent's side of measuring. A worker may die; no outcome is lost with it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from solkit.declare.catalog import CaseFacts, Catalog, KernelInfo, LocalCatalog, OperatorInfo
from solkit.declare.registry import bundled
from solkit.errors import BadInput, NoDevice, SolkitError
from solkit.measure.process import Process, WorkerDied
from solkit.measure.protocol import plain, typed
from solkit.measure.remedies import remedy_for
from solkit.model import Case, Ceilings, Failed, Outcome, Stage, Work
from solkit.plan.jobs import Job

OnCase = Callable[[Case | None, str], None]
_MOST_DEATHS = 3  # a kernel whose description ends so many workers gets no further one


@dataclass(frozen=True, slots=True)
class Settings:
    """The device to measure on, the inputs' seed, a case's time budget, the files to load."""

    device: Literal["cuda", "cpu"] = "cpu"
    index: int = 0
    seed: int = 0
    loads: tuple[Path, ...] = ()
    budget_s: float = 0.5


class Bench:
    """Measures groups of jobs in a worker process; a context manager.

    Declarations from `settings.loads` are loaded and described by the worker alone.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._process: Process | None = None
        self._opened: dict[str, Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    @cached_property
    def catalog(self) -> Catalog:
        """The bundled declarations and the loaded ones."""
        if not self.settings.loads:
            return LocalCatalog(bundled())
        answer = self._loaded().answer
        return _WorkerCatalog(
            self,
            {info.name: info for info in typed(list[OperatorInfo], answer["operators"])},
            tuple(typed(list[KernelInfo], answer["kernels"])),
        )

    @property
    def versions(self) -> dict[str, str]:
        """The versions of what measures and compiles."""
        return dict(self._open()["versions"])

    @property
    def method(self) -> str:
        """How times are taken."""
        return str(self._open()["method"])

    @property
    def cache(self) -> str:
        """The cache state that calls are timed in."""
        return str(self._open()["cache"])

    @property
    def floor_s(self) -> float:
        """What the method reads on an empty call."""
        return float(self._open()["floor_s"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the run should know of the bench."""
        return tuple(self._open()["notes"])

    def describe(self, cases: Sequence[Case]) -> list[CaseFacts]:
        """Have the worker describe cases of loaded declarations."""
        facts: dict[int, CaseFacts] = {}
        deaths: dict[tuple[str, str], int] = {}
        while len(facts) < len(cases):
            waiting = [index for index in range(len(cases)) if index not in facts]
            asked = [cases[index] for index in waiting]
            message = {"do": "describe", "cases": plain(asked, list[Case])}
            try:
                found = typed(list[CaseFacts], self._loaded().ask(message))
                facts.update(zip(waiting, found, strict=True))
            except WorkerDied as died:
                self._stop()
                guilty = waiting[died.index]
                kernel = (cases[guilty].operator, cases[guilty].kernel)
                deaths[kernel] = deaths.get(kernel, 0) + 1
                condemned = [guilty]
                if deaths[kernel] == _MOST_DEATHS:
                    condemned = [
                        index
                        for index in waiting
                        if (cases[index].operator, cases[index].kernel) == kernel
                    ]
                problem = f"describing it ended the worker: {died.message}"
                facts |= {index: CaseFacts(Work(0, 0), (), 0, None, problem) for index in condemned}
        return [facts[index] for index in range(len(cases))]

    def ceilings(self) -> Ceilings:
        """Measure the roof of the device; NoDevice when that ends the worker."""
        self._open()
        try:
            found: Ceilings = typed(Ceilings, self._loaded().ask({"do": "ceilings"}))
        except WorkerDied as died:
            self._stop()
            raise NoDevice(
                f"measuring the ceilings ended the worker: {died.message}",
                remedy=remedy_for(died.message, "run: solkit doctor"),
            ) from died
        return found

    def measure(self, groups: Sequence[Sequence[Job]], on_case: OnCase) -> Iterator[list[Outcome]]:
        """Yield the outcomes of each group as it ends; on_case hears what is being worked on."""
        self._compile([job for jobs in groups for job in jobs], on_case)
        for jobs in groups:
            yield self._group(list(jobs), on_case)

    def _compile(self, jobs: list[Job], on_case: OnCase) -> None:
        """Compile everything ahead; a compiler that takes the worker down says so case by case."""

        def heard(index: int, stage: str) -> None:
            on_case(jobs[index].case if 0 <= index < len(jobs) else None, stage)

        self._open()
        try:
            self._loaded().ask({"do": "compile", "jobs": plain(jobs, list[Job])}, heard)
        except WorkerDied:
            self._stop()

    def _group(self, jobs: list[Job], on_case: OnCase) -> list[Outcome]:
        """Measure a group; a case that takes the worker down is recorded, the rest starts again."""
        outcomes: dict[int, Outcome] = {}
        while len(outcomes) < len(jobs):
            waiting = [index for index in range(len(jobs)) if index not in outcomes]

            def heard(place: int, stage: str, waiting: list[int] = waiting) -> None:
                on_case(jobs[waiting[place]].case, stage)

            message = {
                "do": "measure",
                "jobs": plain([jobs[index] for index in waiting], list[Job]),
            }
            try:
                self._open()
                found = typed(list[Outcome], self._loaded().ask(message, heard))
                outcomes.update(zip(waiting, found, strict=True))
            except WorkerDied as died:
                self._stop()
                guilty = waiting[died.index] if 0 <= died.index < len(waiting) else waiting[0]
                outcomes[guilty] = _failed(jobs[guilty].case, died.stage, died.message)
            except SolkitError as error:
                for index in waiting:
                    outcomes[index] = Failed(
                        jobs[index].case, "worker", error.message, error.remedy
                    )
        return [outcomes[index] for index in range(len(jobs))]

    def _loaded(self) -> Process:
        if self._process is None:
            self._process = Process()
            paths = [str(path) for path in self.settings.loads]
            try:
                self._process.answer = self._process.ask({"do": "load", "paths": paths})
            except WorkerDied as died:
                self._stop()
                path = paths[died.index] if 0 <= died.index < len(paths) else "--load"
                raise BadInput(
                    f"{path}: loading the declarations ended the worker: {died.message}",
                    remedy=f"run it by itself to see why: python {path}",
                ) from died
            except SolkitError:
                self._stop()
                raise
        return self._process

    def _open(self) -> dict[str, Any]:
        process = self._loaded()
        if not process.device_open:
            chosen = self.settings
            message = {
                "do": "open",
                "device": chosen.device,
                "index": chosen.index,
                "seed": chosen.seed,
                "budget_s": chosen.budget_s,
            }
            try:
                self._opened = process.ask(message)
            except WorkerDied as died:
                self._stop()
                raise NoDevice(
                    f"opening the device ended the worker: {died.message}",
                    remedy=remedy_for(died.message, "run: solkit doctor"),
                ) from died
            process.device_open = True
        if self._opened is None:
            raise NoDevice("the device did not open", remedy="run: solkit doctor")
        return self._opened

    def _stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None


class _WorkerCatalog:
    """A catalog whose declarations live in the worker."""

    def __init__(
        self, bench: Bench, operators: dict[str, OperatorInfo], kernels: tuple[KernelInfo, ...]
    ) -> None:
        self._bench = bench
        self.operators = operators
        self.kernels = kernels

    def describe(self, cases: Sequence[Case]) -> list[CaseFacts]:
        """Have the worker describe the cases."""
        return self._bench.describe(cases)


def _failed(case: Case, stage: str, message: str) -> Failed:
    known: dict[str, Stage] = {
        name: name for name in ("describe", "compile", "allocate", "launch", "check", "time")
    }
    return Failed(
        case,
        known.get(stage, "worker"),
        message,
        remedy_for(message, "run the case alone under compute-sanitizer"),
    )
