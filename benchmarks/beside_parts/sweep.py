"""A sweep in segments: each is one `solkit run` of some of its cases, with a file of its own. Pure.

A kernel and its peers are always of one segment, so they are measured together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PEERS = Path("benchmarks/peers")
# Of silence before a case's worker is stopped: a peer's compiler may think for so long.
TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is measured, and how.

    segments: by name, the condition of `solkit run --only` on its cases. shapes: the sweep's file,
    from the root's view. budget_s: of sampling a case. packages: whose versions are kept.
    """

    segments: Mapping[str, str]
    shapes: Path
    budget_s: float
    packages: tuple[str, ...]

    def command(self, segment: str, out: Path, *, device: str) -> list[str]:
        """Return what measures a segment, as arguments of `solkit`; it runs in the root."""
        return [
            "run",
            *("--shapes", str(self.shapes), "--only", self.segments[segment]),
            *("--load", str(PEERS), "--out", str(out), "--device", device),
            *("--budget", f"{self.budget_s:g}", "--timeout", f"{TIMEOUT_S:g}"),
        ]

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the segments named, in their order; raise ValueError naming a stranger."""
        strangers = [name for name in names if name not in self.segments]
        if strangers or not names:
            message = (
                f"no segment is called {', '.join(strangers) or 'nothing'}; "
                f"known: {', '.join(self.segments)}"
            )
            raise ValueError(message)
        return tuple(name for name in self.segments if name in names)


def finish(out: Path) -> list[str]:
    """Return what measures the rest of a segment that was cut, as arguments of `solkit`."""
    return ["run", "--resume", str(out), "--timeout", f"{TIMEOUT_S:g}"]
