"""The worker: the process that owns the device, and the only one that runs authors' code.

It reads commands from what was its standard input and answers on what was its standard output;
whatever authors' code prints goes to standard error, and its standard input is empty. The worker
ends when the commands do.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from solkit.declare.card import Card
from solkit.declare.catalog import KernelInfo, LocalCatalog, OperatorInfo
from solkit.declare.registry import Registry, bundled, load
from solkit.errors import BadInput, NoDevice, SolkitError
from solkit.measure import ceilings, group, host_ceilings
from solkit.measure.device.base import Device, DeviceLost, Timer
from solkit.measure.entry import explained
from solkit.measure.manner import Manner
from solkit.measure.proof import modes_proved
from solkit.measure.protocol import line, plain, typed
from solkit.model import Case, Ceilings, Outcome
from solkit.plan.jobs import Job
from solkit.resources import folder

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Worker:
    """Answers commands; holds the declarations and, once asked, the device."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._process_id = os.getpid()
        self._registry = Registry()
        self._bundled: set[tuple[str, str]] = set()
        self._device: Device | None = None
        self._settings: group.Settings | None = None

    def say(self, message: dict[str, Any]) -> None:
        """Send one line to the parent; a copy that authors' code forked off ends here instead."""
        if os.getpid() != self._process_id:
            os._exit(1)
        self._out.write(line(message))
        self._out.flush()

    def at(self, index: int, stage: str) -> None:
        """Tell the parent what is being worked on, so that a crash can be laid at its door."""
        self.say({"at": index, "stage": stage})

    def load(self, paths: list[str]) -> Any:  # noqa: ANN401  # JSON
        """Load the bundled declarations and then the user's."""
        self._registry = bundled()
        self._bundled = set(self._registry.kernels)
        for index, path in enumerate(paths):
            self.at(index, "describe")
            declared = load(Path(path))
            if not declared:
                raise BadInput(
                    f"{path}: declares no Operator and no Kernel",
                    remedy="hold one in a name at the top of the file: docs/write-a-kernel.md",
                )
            self._registry.add(declared, where=path)
        catalog = LocalCatalog(self._registry)
        kernels = [
            KernelInfo(**{**_fields(info), "bundled": (info.operator, info.name) in self._bundled})
            for info in catalog.kernels
        ]
        return {
            "operators": plain(list(catalog.operators.values()), list[OperatorInfo]),
            "kernels": plain(kernels, list[KernelInfo]),
        }

    def describe(self, cases: Any, card: Any) -> Any:  # noqa: ANN401  # JSON
        """Return the facts of each case, on a card where one is known."""
        from solkit.declare.catalog import CaseFacts  # noqa: PLC0415  # with the pydantic adapter

        catalog = LocalCatalog(self._registry)
        facts, known = [], typed(Card | None, card)
        for index, case in enumerate(typed(list[Case], cases)):
            self.at(index, "describe")
            facts += catalog.describe([case], known)
        return plain(facts, list[CaseFacts])

    def open(self, device: str, index: int, manner: Any) -> Any:  # noqa: ANN401  # JSON
        """Take hold of the device, measure the method's floor, prove the cache modes."""
        chosen: Manner = typed(Manner, manner)
        self._device = _device(device, index, chosen.timer)
        include, floor_s = folder("kernels") / "include", self._device.floor_s()
        times_s, proved = modes_proved(self._device, chosen.modes, floor_s=floor_s)
        self._settings = group.Settings(chosen, floor_s, include, proved)
        return {
            "versions": self._device.versions(),
            "method": self._device.method,
            "floor_s": floor_s,
            "cache_proof_s": times_s,
            "notes": [*self._device.notes, *_unproved(chosen, proved)],
        }

    def compile(self, jobs: Any) -> Any:  # noqa: ANN401  # JSON
        """Fill the cache of compiled code for all jobs, several at a time; failures show later."""
        device, settings = self._ready()
        cases = [job.case for job in typed(list[Job], jobs)]
        pairs = [(self._registry.kernels[case.operator, case.kernel], case) for case in cases]
        device.compile_ahead(pairs, settings.include, lambda index: self.at(index, "compile"))
        return None

    def ceilings(self) -> Any:  # noqa: ANN401  # JSON
        """Measure the roof of this device; each step is told as a stage, for people to read."""
        device, settings = self._ready()
        if device.kind == "cpu":
            found = replace(host_ceilings.cpu_ceilings(), floors_s=device.floors_s())
            return plain(found, Ceilings)
        try:
            found = ceilings.cuda_ceilings(
                device,
                settings.include,
                seed=settings.manner.seed,
                say=lambda step: self.at(-1, step),
            )
        except DeviceLost as error:
            raise group.Lost(-1, "worker", str(error)) from error
        return plain(found, Ceilings)

    def measure(self, jobs: Any) -> Any:  # noqa: ANN401  # JSON
        """Measure one group."""
        device, settings = self._ready()
        outcomes = group.measure(device, self._registry, typed(list[Job], jobs), settings, self.at)
        device.release()
        return plain(outcomes, list[Outcome])

    def _ready(self) -> tuple[Device, group.Settings]:
        if self._device is None or self._settings is None:
            raise NoDevice("no device is open yet", remedy="open one first")
        return self._device, self._settings


def _fields(info: KernelInfo) -> dict[str, Any]:
    return {name: getattr(info, name) for name in info.__slots__}


def _unproved(manner: Manner, proved: Collection[str]) -> list[str]:
    missing = [mode for mode in manner.modes if mode not in proved]
    if not missing:
        return []
    said = (
        f"the cache states {', '.join(missing)} could not be proved on this card (a read of half "
        "the L2 shows no difference): they are marked unknown"
    )
    return [said]


def _device(kind: str, index: int, timer: Timer) -> Device:
    if kind == "cpu":
        from solkit.measure.device.cpu import CpuDevice  # noqa: PLC0415  # one device a worker

        return CpuDevice(timer)
    try:
        from solkit.measure.device.cuda.device import CudaDevice  # noqa: PLC0415  # CuPy may be missing
    except ImportError as error:
        raise NoDevice(
            f"CuPy can't be imported: {error}",
            remedy="pip install 'solkit[cuda13]', or solkit[cuda12]",
        ) from error
    return CudaDevice(index, timer)


def serve(source: BinaryIO, out: BinaryIO) -> None:
    """Answer commands until the input ends."""
    worker = Worker(out)
    commands: dict[str, Callable[..., Any]] = {
        "load": worker.load,
        "describe": worker.describe,
        "open": worker.open,
        "compile": worker.compile,
        "ceilings": worker.ceilings,
        "measure": worker.measure,
    }
    for raw in source:
        message = json.loads(raw)
        try:
            command = commands[message.pop("do")]
            worker.say({"done": command(**message)})
        except group.Lost as lost:
            worker.say({"lost": {"at": lost.index, "stage": lost.stage, "message": lost.message}})
            return
        except Exception as error:  # noqa: BLE001  # the border to authors' code: said to the parent, never swallowed
            said, remedy = explained(error)
            code = error.exit_code if isinstance(error, SolkitError) else BadInput.exit_code
            worker.say({"error": {"message": said, "remedy": remedy, "exit": code}})


def main() -> None:
    """Run as `python -m solkit.measure.worker`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    # Authors' code gets neither pipe: what it prints is talk, and what it would read is at its end.
    source, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    serve(source, out)


if __name__ == "__main__":
    main()
