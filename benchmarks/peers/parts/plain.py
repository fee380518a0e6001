"""A formula run as it stands, kernel by kernel."""

from typing import Any

from peers.parts import formulas
from peers.parts.arguments import parted


def run(operator: str, **values: Any) -> Any:  # noqa: ANN401  # tensors and params by name
    """Return what the operator's formula returns."""
    formula = getattr(formulas, operator)
    call = parted(formula, values)
    return formula(**call.inputs, **call.params)
