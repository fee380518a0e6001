"""solkit: how near a GPU kernel is to the speed of light of its card, shape by shape."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solkit.declare.arg import Arg, Array, Bits, Indices, Layout, Normal, Uniform
    from solkit.declare.card import Card
    from solkit.declare.kernel import Kernel, Launch
    from solkit.declare.operator import Operator, Tolerance
    from solkit.declare.tensor_map import TensorMap
    from solkit.errors import SolkitError
    from solkit.model import Case, Run, Step, Work
    from solkit.report.notebook import Report

__version__ = "0.1.0"

# Names load on first use, so that `import solkit` costs nothing (the CLI starts with it).
_HOMES = {
    "Arg": "solkit.declare.arg",
    "Array": "solkit.declare.arg",
    "Bits": "solkit.declare.arg",
    "Card": "solkit.declare.card",
    "Case": "solkit.model",
    "Indices": "solkit.declare.arg",
    "Kernel": "solkit.declare.kernel",
    "Launch": "solkit.declare.kernel",
    "Layout": "solkit.declare.arg",
    "Normal": "solkit.declare.arg",
    "Operator": "solkit.declare.operator",
    "Report": "solkit.report.notebook",
    "Run": "solkit.model",
    "SolkitError": "solkit.errors",
    "Step": "solkit.model",
    "TensorMap": "solkit.declare.tensor_map",
    "Tolerance": "solkit.declare.operator",
    "Uniform": "solkit.declare.arg",
    "Work": "solkit.model",
}

__all__ = [
    "Arg",
    "Array",
    "Bits",
    "Card",
    "Case",
    "Indices",
    "Kernel",
    "Launch",
    "Layout",
    "Normal",
    "Operator",
    "Report",
    "Run",
    "SolkitError",
    "Step",
    "TensorMap",
    "Tolerance",
    "Uniform",
    "Work",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever the public name is
    """Import a public name from its home module the first time it is asked for."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    message = f"module 'solkit' has no attribute {name!r}"
    raise AttributeError(message)
