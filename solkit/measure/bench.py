"""The bench: the parent's side of measuring. A worker may die; no outcome is lost with it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from solkit.declare.card import Card
from solkit.declare.catalog import CaseFacts, Catalog, KernelInfo, LocalCatalog, OperatorInfo
from solkit.declare.registry import bundled
from solkit.errors import BadInput, NoDevice, SolkitError
from solkit.gpu import DeviceFacts
from solkit.measure.death import failed
from solkit.measure.diagnosis import verdict_of
from solkit.measure.entry import RUN_ALONE
from solkit.measure.lock import held
from solkit.measure.manner import Manner
from solkit.measure.process import Process, WorkerDied
from solkit.measure.protocol import plain, several, typed
from solkit.measure.remedies import remedy_for
from solkit.measure.strangers import Strangers, strangers
from solkit.model import Case, Ceilings, Failed, Measured, Outcome, Work
from solkit.plan.jobs import Job

OnCase = Callable[[Case | None, str], None]
_MOST_DEATHS = 3  # a kernel whose description ends so many workers gets no further one


@dataclass(frozen=True, slots=True)
class Settings:
    """The device to measure on, the files to load, and the manner of measuring.

    facts: of the device; by them a card is held against other solkits, and others on it are seen.
    """

    device: Literal["cuda", "cpu"] = "cpu"
    index: int = 0
    loads: tuple[Path, ...] = ()
    manner: Manner = field(default_factory=Manner)
    facts: DeviceFacts | None = None


class Bench:
    """Measures groups of jobs in a worker process; a context manager.

    Declarations from `settings.loads` are loaded and described by the worker alone.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._process: Process | None = None
        self._opened: dict[str, Any] | None = None
        self._held = ExitStack()
        self._strangers: Strangers | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._held:
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
    def cache_proof_s(self) -> dict[str, float]:
        """What a read of half the last-level cache took in each cache mode."""
        return typed(dict[str, float], self._open()["cache_proof_s"])  # type: ignore[no-any-return]

    @property
    def floor_s(self) -> float:
        """What the method reads on an empty call."""
        return float(self._open()["floor_s"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the run should know of the bench."""
        notes = tuple(self._open()["notes"])
        warning = self._strangers.warning if self._strangers else ""
        return (*notes, warning) if warning else notes

    def describe(self, cases: Sequence[Case], card: Card | None = None) -> list[CaseFacts]:
        """Have the worker describe cases of loaded declarations, for a card where one is known."""
        facts: dict[int, CaseFacts] = {}
        ends: dict[tuple[str, str], int] = {}
        alone = False
        while len(facts) < len(cases):
            waiting = [index for index in range(len(cases)) if index not in facts]
            asked = waiting[:1] if alone else waiting
            chosen = [cases[index] for index in asked]
            message = {
                "do": "describe",
                "cases": plain(chosen, list[Case]),
                "card": plain(card, Card | None),
            }
            process = self._loaded()
            try:
                found = several(CaseFacts, process.ask(message), len(asked))
                facts.update(zip(asked, found, strict=True))
                continue
            except WorkerDied as died:
                guilty = asked[died.index] if 0 <= died.index < len(asked) else asked[0]
                problem = f"describing it ended the worker: {died.message}"
            except SolkitError as error:  # of them all: the guilty one is found as in _group
                guilty = asked[0]
                problem = f"{error.message}; {error.remedy}" if alone or len(asked) == 1 else ""
            self._stop()
            alone = alone or not problem
            if problem:
                kernel = (cases[guilty].operator, cases[guilty].kernel)
                ends[kernel] = ends.get(kernel, 0) + 1
                condemned = [guilty]
                if ends[kernel] == _MOST_DEATHS:
                    condemned = [
                        index
                        for index in waiting
                        if (cases[index].operator, cases[index].kernel) == kernel
                    ]
                facts |= {index: _undescribed(problem) for index in condemned}
        return [facts[index] for index in range(len(cases))]

    def ceilings(self, on_step: Callable[[str], None] | None = None) -> Ceilings:
        """Measure the roof of the device; NoDevice when that ends the worker.

        on_step hears what is being measured, possibly several times over.
        """

        def heard(_index: int, step: str) -> None:
            if on_step is not None:
                on_step(step)

        self._open()
        try:
            found: Ceilings = typed(Ceilings, self._loaded().ask({"do": "ceilings"}, heard))
        except WorkerDied as died:
            self._stop()
            raise NoDevice(
                f"measuring the ceilings ended the worker: {died.message}",
                remedy=remedy_for(died.message, "run: solkit doctor"),
            ) from died
        return found

    def measure(self, groups: Sequence[Sequence[Job]], on_case: OnCase) -> Iterator[list[Outcome]]:
        """Yield the outcomes of each group as it ends; on_case hears what is being worked on.

        NoDevice where no new worker gets hold of the device after one was lost: the group that it
        happened in is yielded as far as it came, and its other cases stay to be measured.
        """
        self._compile([job for jobs in groups for job in jobs], on_case)
        for jobs in groups:
            outcomes: dict[int, Outcome] = {}
            try:
                self._group(jobs, on_case, outcomes)
            except NoDevice:
                yield [outcomes[index] for index in sorted(outcomes)]
                raise
            yield [outcomes[index] for index in range(len(jobs))]

    def _compile(self, jobs: list[Job], on_case: OnCase) -> None:
        """Compile everything ahead; a compiler that takes the worker down says so case by case."""

        def heard(index: int, stage: str) -> None:
            on_case(jobs[index].case if 0 <= index < len(jobs) else None, stage)

        self._open()
        try:
            self._loaded().ask({"do": "compile", "jobs": plain(jobs, list[Job])}, heard)
        except WorkerDied:
            self._stop()

    def _group(self, jobs: Sequence[Job], on_case: OnCase, outcomes: dict[int, Outcome]) -> None:
        """Measure a group; a case that takes the worker down is recorded, the rest starts again.

        Where no case can be blamed, nobody is at first: a worker that died before it came to any
        (by what an earlier group left behind) gets one successor, and after an error of the whole
        group its cases are measured one by one.
        """
        timeout_s = self.settings.manner.timeout_s
        alone, pardoned = False, False
        while len(outcomes) < len(jobs):
            waiting = [index for index in range(len(jobs)) if index not in outcomes]
            asked = waiting[:1] if alone else waiting
            spoke: list[str] = []

            def heard(
                place: int, stage: str, asked: list[int] = asked, spoke: list[str] = spoke
            ) -> None:
                spoke.append(stage)
                if 0 <= place < len(asked):
                    on_case(jobs[asked[place]].case, stage)

            chosen = [jobs[index] for index in asked]
            message = {"do": "measure", "jobs": plain(chosen, list[Job])}
            self._open()
            try:
                answer = self._loaded().ask(message, heard, timeout_s)
                found = several(Outcome, answer, len(asked))
                outcomes.update(zip(asked, map(self._marked, found), strict=True))
            except WorkerDied as died:
                if spoke or pardoned:
                    guilty = asked[died.index] if 0 <= died.index < len(asked) else asked[0]
                    outcomes[guilty] = failed(jobs[guilty].case, died, self.settings.device)
                pardoned = pardoned or not spoke
                self._stop()
            except SolkitError as error:
                if len(asked) == 1:
                    outcomes[asked[0]] = Failed(
                        jobs[asked[0]].case,
                        "worker",
                        error.message or type(error).__name__,
                        error.remedy or RUN_ALONE,
                        verdict=verdict_of(error),
                    )
                alone = True
                self._stop()  # what it still holds, or says next, belongs to nobody

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

    def _take(self) -> None:
        """Take the card once, before the first worker opens it, and look who else is there."""
        facts = self.settings.facts
        if self._strangers is None and facts is not None and facts.kind == "cuda":
            self._held.enter_context(held(facts))
            self._strangers = strangers(facts.uuid)

    def _marked(self, outcome: Outcome) -> Outcome:
        """Mark an outcome where somebody is on the card whom the worker's driver lists nowhere."""
        hidden = self._strangers is not None and self._strangers.hidden
        if hidden and isinstance(outcome, Measured) and not outcome.other_process_count:
            return replace(outcome, other_process_count=1)
        return outcome

    def _open(self) -> dict[str, Any]:
        process = self._loaded()
        if not process.device_open:
            self._take()
            chosen = self.settings
            message = {
                "do": "open",
                "device": chosen.device,
                "index": chosen.index,
                "manner": plain(chosen.manner, Manner),
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

    def describe(self, cases: Sequence[Case], card: Card | None = None) -> list[CaseFacts]:
        """Have the worker describe the cases."""
        return self._bench.describe(cases, card)


def _undescribed(problem: str) -> CaseFacts:
    return CaseFacts(Work(0, 0), (), 0, None, problem)
