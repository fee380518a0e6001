"""How a product's kernel is told what follows the sum: its epilogue and its arguments."""

from dataclasses import dataclass

from solkit.model import Case

ACTIVATIONS = {"erf": "GeluErf", "tanh": "GeluTanh"}  # values of the param `form`, types of the .cu


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What an operator does to alpha x @ w: whether it adds a bias or a residual, takes its GELU.

    One with a residual has the param `beta`, one with GELU the param `form`.
    """

    bias: bool = False
    residual: bool = False
    gelu: bool = False

    def epilogue(self, case: Case) -> str:
        """Return the template argument that every kernel of the family takes last."""
        activation = ACTIVATIONS[str(case.params["form"])] if self.gelu else "Identity"
        return f"Epilogue<{spelled(self.bias)}, {spelled(self.residual)}, {activation}>"

    def launch_args(self, case: Case) -> tuple[str | int | float, ...]:
        """Return what every kernel of the family takes; what there is none of is a null pointer."""
        return (
            "x",
            "w",
            "bias" if self.bias else 0,
            "residual" if self.residual else 0,
            "out",
            "M",
            "K",
            "N",
            float(case.params["alpha"]),
            float(case.params["beta"]) if self.residual else 0.0,
        )


def spelled(constant: int) -> str:
    """Return a template's constant as C++ writes it, a bool among them."""
    return str(constant).lower()
