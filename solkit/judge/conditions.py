"""Whether two runs may be compared at all: card, driver, method and the like, closed by default."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, fields

from solkit.errors import BadInput, unknown
from solkit.gpu import Gpu, Pipe
from solkit.model import Run

ALLOWED = ("card", "driver", "method", "power", "seed", "settle", "spec", "all")
# What a spec file says besides numbers: another source for the same peak is the same spec.
_WORDS = frozenset(
    ("aliases", "family", "family_default", "notes", "pci_ids", "reasons", "sources")
)
_MOST_SHOWN = 200  # characters of a value


def differences(runs: Sequence[Run], allow: Collection[str] = ()) -> tuple[str, ...]:
    """Return, in words, in what the runs differ from the first and may by `allow`.

    Raises BadInput where they differ in anything else, with both values and the option that allows
    it, and where `allow` holds a name that is none of ALLOWED.
    """
    for name in allow:
        if name not in ALLOWED:
            raise unknown("condition", name, ALLOWED, where="--allow")
    said: dict[str, str] = {}
    for run in runs[1:]:
        for name, text in _between(runs[0], run):
            said.setdefault(name, text)
    refused = {} if "all" in allow else {name: said[name] for name in said if name not in allow}
    if refused:
        raise BadInput(
            f"the runs can't be compared: {'; '.join(refused.values())}",
            remedy="measure both under the same conditions, or take the difference with --allow "
            + ",".join(sorted({*refused, *allow})),
        )
    return tuple(said.values())


def _between(base: Run, run: Run) -> Iterator[tuple[str, str]]:
    """Yield each condition in which two runs differ: the name that allows it, and both values."""
    cards = _card(base), _card(run)
    for name, what, one, other in (
        ("card", "card", *cards),
        ("driver", "driver", base.facts.driver, run.facts.driver),
        ("method", "timing method", base.method, run.method),
        ("settle", "way to settle", base.settle, run.settle),
        ("seed", "seed of the inputs", str(base.seed), str(run.seed)),
        ("power", "power limit", _watts(base), _watts(run)),
    ):
        if one != other:
            yield name, f"the {what} was {_shown(one)} and is {_shown(other)}"
    spec = _spec(base.gpu, run.gpu) if cards[0] == cards[1] else ""
    if spec:  # another card has another spec: saying so once is enough
        yield "spec", spec


def _card(run: Run) -> str:
    spec = f" ({run.gpu.id})" if run.gpu else ""
    return " ".join(filter(None, (run.facts.name, run.facts.mig_profile))) + spec


def _watts(run: Run) -> str:
    watts = run.facts.power_limit_w
    return "unknown" if watts is None else f"{watts:g} W"


def _spec(base: Gpu | None, head: Gpu | None) -> str:
    """Return which number of the recorded spec differs, or nothing."""
    if base is None or head is None:
        return "" if base is head else "one run has a spec of its card and the other has none"
    for field in fields(Gpu):
        found = _first(field.name, getattr(base, field.name), getattr(head, field.name))
        if found and field.name not in _WORDS:
            name, one, other = found
            return f"{name} of the card's spec was {_shown(one)} and is {_shown(other)}"
    return ""


def _first(name: str, one: object, other: object) -> tuple[str, str, str] | None:
    """Return the place of the first difference and both values; a pipe differs in one number."""
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        key = next(key for key in {**one, **other} if one.get(key) != other.get(key))
        return _first(f"{name}.{key}", one.get(key), other.get(key))
    if isinstance(one, Pipe) and isinstance(other, Pipe):
        return _first(name, asdict(one), asdict(other))
    return name, _text(one), _text(other)


def _text(value: object) -> str:
    return "absent" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _shown(value: str) -> str:
    line = " ".join(value.split()) or "unknown"
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}..."
