"""What the lint of spec files finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake in one card: which rule, where in the file, what, and the remedy."""

    gpu: str
    rule: str
    where: str
    message: str
    remedy: str
