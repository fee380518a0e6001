"""An operator with a wrong argument list: nothing is written, and a name comes twice."""

from solkit import Arg, Operator, Work

OPERATOR = Operator(
    name="twice",
    args=(Arg("x", "rows"), Arg("x", "rows")),
    work=lambda case: Work(case.shape["rows"], 0),
    reference=lambda x: 2 * x,
)
