"""What follows a product: the operators of the family, as tests of one form call them."""

from collections.abc import Callable
from dataclasses import dataclass

from solkit import Card, Case, Kernel, Launch, Operator
from solkit.declare.product import Product
from solkit.declare.registry import bundled
from solkit.model import Param
from solkit.resources import folder

ALPHA, BETA = 0.5, 0.5
NAME = "form"  # of the kernel: one form of it
OPERATORS = bundled().operators


@dataclass(frozen=True)
class Ending:
    """An operator of the family, and its GELU's form, if any."""

    name: str
    form: str = ""

    def __str__(self) -> str:
        """Return what tells it from the others."""
        return f"{self.name} {self.form}".rstrip()

    @property
    def product(self) -> Product:
        """What its kernels are told."""
        bias, residual = "bias" in self.name, "add" in self.name
        return Product(bias=bias, residual=residual, gelu="gelu" in self.name)

    @property
    def operator(self) -> Operator:
        """Its declaration."""
        return OPERATORS[self.name]

    def case(self, shape: tuple[int, int, int], weight: str, dtype: str = "bf16") -> Case:
        """Return a case of M, K and N, its sum scaled, as is the residual."""
        params: dict[str, Param] = {"weight": weight, "alpha": ALPHA}
        if self.product.residual:
            params["beta"] = BETA
        if self.form:
            params["form"] = self.form
        return Case(self.name, NAME, dict(zip("MKN", shape, strict=True)), dtype, params)

    def kernel(self, launches: Callable[[Case, Card], tuple[Launch, ...]]) -> Kernel:
        """Return the bundled source with launches of one's own."""
        return Kernel(
            name=NAME,
            operator=self.operator,
            source="matmul.cu",
            launches=launches,
            dtypes=("fp16", "bf16"),
            folder=folder("kernels") / "matmul",
        )


ENDINGS = (
    Ending("matmul"),
    Ending("matmul_bias"),
    Ending("matmul_add"),
    Ending("matmul_add_bias"),
    Ending("matmul_bias_gelu", form="erf"),
    Ending("matmul_bias_gelu", form="tanh"),
)
PLAIN, BOTH = ENDINGS[0], ENDINGS[3]
