"""What the tests of checks share: an operator that doubles, and Python kernels run by a device."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solkit.declare.arg import Arg
from solkit.declare.kernel import Kernel
from solkit.declare.operator import Operator
from solkit.measure.check import CheckFailed, compare, expect
from solkit.measure.device.cpu import CpuDevice
from solkit.model import Case, Check, Param, Verdict, Work

ROWS, COLS = 6, 5
DEVICE = CpuDevice()
Buffers = dict[str, Any]
Function = Callable[..., Any]


def operator(reference: Function = lambda x: 2 * x, **changes: Any) -> Operator:
    held: dict[str, Any] = {
        "name": "twice",
        "args": (Arg("x", "rows cols"), Arg("y", "rows cols", "out")),
        "work": lambda _case: Work(1, 1),
        "reference": reference,
        "independent": ("rows",),
    }
    return Operator(**held | changes)


def case_of(rows: int = ROWS, cols: int = COLS, **params: Param) -> Case:
    return Case("twice", "k", {"rows": rows, "cols": cols}, "fp32", dict(params))


def buffers_of(declared: Operator, case: Case) -> Buffers:
    return {arg.name: DEVICE.allocate(arg, case, 1, 3)[0] for arg in declared.args_of(case)}


def run(function: Function, declared: Operator, case: Case, buffers: Buffers) -> None:
    """Call a Python kernel as the device prepares it, and take over what it returns."""
    kernel = Kernel(name="k", operator=declared, function=function, device="cpu")
    program = DEVICE.prepare(kernel, declared, case, Path())
    program.adopt(program.bind(buffers)(), buffers)


def checked(
    function: Function, declared: Operator | None = None, case: Case | None = None
) -> Check:
    """Run a kernel once on poisoned outputs and compare."""
    declared, case = declared or operator(), case or case_of()
    buffers = buffers_of(declared, case)
    expected = expect(DEVICE, declared, case, buffers, 3)
    run(function, declared, case, buffers)
    return compare(DEVICE, declared, case, buffers, expected)


def failure(function: Function, **held: Any) -> CheckFailed:
    """Return what is found wrong with a kernel; there is always a remedy."""
    with pytest.raises(CheckFailed) as caught:
        checked(function, **held)
    assert caught.value.remedy
    return caught.value


def found(function: Function, **held: Any) -> tuple[Verdict, str]:
    """Return the verdict on a wrong kernel, and what is said."""
    error = failure(function, **held)
    return error.verdict, error.message


def right(x: Any, y: Any) -> None:
    y[...] = 2 * x
