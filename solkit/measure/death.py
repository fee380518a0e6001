"""A case whose code ended the worker: what is recorded of it, and what its author can do."""

from typing import Literal

from solkit.measure.process import WorkerDied
from solkit.measure.protocol import CASE_STAGES
from solkit.measure.remedies import remedy_for
from solkit.model import Case, Failed, Stage

_STAGES: dict[str, Stage] = {
    name: name for name in ("describe", "compile", "allocate", "launch", "check", "time")
}
# What the parent's words of an end tell by themselves, on any device.
_TOLD = {
    "SIGKILL": "somebody killed it: the kernel log (dmesg) names an out-of-memory killer",
    "ended with exit code": "a kernel must not end its process: let it return, or raise an error",
    "where the worker answers": "a kernel must not write to descriptors that it did not open",
}
_UNTOLD = {
    "cuda": "run the case alone under compute-sanitizer",
    "cpu": "run the case alone with PYTHONFAULTHANDLER=1 in the environment: it shows the line",
}


def failed(case: Case, died: WorkerDied, device: Literal["cuda", "cpu"]) -> Failed:
    """Return the failure of the case at which a worker died on a device."""
    stage = _STAGES.get(died.stage, "worker")
    return Failed(case, stage, died.message, _remedy(died, device), verdict=died.verdict)


def _remedy(died: WorkerDied, device: str) -> str:
    if died.verdict == "timeout":
        longer = "; for a case that needs longer: --timeout SECONDS"
        return "look for a loop without end" + (longer if died.stage in CASE_STAGES else "")
    if "SIGKILL" in died.message:
        return _TOLD["SIGKILL"]
    told = next((remedy for words, remedy in _TOLD.items() if words in died.message), None)
    return remedy_for(died.message, told or _UNTOLD[device])
