"""An operator whose reference has other parameter names than its inputs."""

from solkit import Arg, Operator, Work

OPERATOR = Operator(
    name="twice",
    args=(Arg("x", "rows"), Arg("y", "rows", "out")),
    work=lambda case: Work(case.shape["rows"], case.shape["rows"]),
    reference=lambda values: 2 * values,
)
