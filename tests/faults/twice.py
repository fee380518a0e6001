"""The operator that the broken kernels compute, and a kernel that computes it rightly."""

from solkit import Arg, Array, Case, Kernel, Operator, Work


def work(case: Case) -> Work:
    """Every element is read once and written once."""
    count = case.shape["rows"] * case.shape["cols"] * case.item_bytes
    return Work(read_bytes=count, write_bytes=count)


def right(x: Array, y: Array) -> None:
    """Write twice x to y."""
    y[...] = 2 * x


OPERATOR = Operator(
    name="twice",
    args=(Arg("x", "rows cols"), Arg("y", "rows cols", "out")),
    work=work,
    reference=lambda x: 2 * x,
    independent=("rows",),
)
KERNELS = [
    Kernel(name=name, operator=OPERATOR, function=right, device="cpu") for name in ("right", "last")
]
