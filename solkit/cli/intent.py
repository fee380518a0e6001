"""What a run's folder keeps of what was asked for, so that a cut run can be finished."""

from dataclasses import dataclass
from pathlib import Path

from solkit import record
from solkit.errors import BadInput
from solkit.measure.manner import Manner
from solkit.model import Case


@dataclass(frozen=True, slots=True)
class Intent:
    """What was asked for, beside the run's file.

    is_part: not a whole sweep, but a case by hand, or what --only left of one.
    """

    cases: tuple[Case, ...]
    loads: tuple[str, ...]
    baseline: str | None
    manner: Manner
    is_part: bool = False


def read_intent(path: Path) -> Intent:
    """Read what a run left in its folder; BadInput where it is not that."""
    try:
        return record.from_json(Intent, path.read_bytes())
    except OSError as error:
        raise BadInput(
            f"{path}: can't be read: {error.strerror or error}",
            remedy="--resume takes the folder of a run: solkit-out/<run id>",
        ) from error
    except BadInput as error:
        raise BadInput(
            f"{path}: is not what a run left there: {error.message}",
            remedy="measure the missing cases in a new run; `solkit report` reads both together",
        ) from error
