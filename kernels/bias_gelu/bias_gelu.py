"""Bias + GELU: y = gelu(x + bias), in its exact (erf) or its tanh form."""

import math

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Work
from solkit.declare.gelu import GELU_FP32_FLOP, GELU_SFU_FLOP, gelu
from solkit.declare.geometry import ACCESS_BYTES, WARP, ceil_div

THREADS = 128  # a block at most
# Rows a thread walks once there are vectors enough for every SM of a large card to be full: two
# where the arithmetic is long or the bias takes several loads, so that more bytes are in flight.
ROWS = {"erf": 2, "tanh": 1}
ROWS_JOINED = 2
FULL_VECTORS = 132 * 2048
MOST_EXTENT = 2**31 - 1  # the kernel counts rows and columns in 32 bits
MOST_GRID_ROWS = 65535  # of a grid in y
FORMS = {"erf": "GeluErf", "tanh": "GeluTanh"}  # the param's values and the types of the .cu


def work(case: Case) -> Work:
    """X and the bias are read, y is written."""
    count, item = case.shape["rows"] * case.shape["cols"], case.item_bytes
    return Work(
        read_bytes=(count + case.shape["cols"]) * item,
        write_bytes=count * item,
        estimated_flop={
            "fp32": (1 + GELU_FP32_FLOP[str(case.params["form"])]) * count,
            "sfu": GELU_SFU_FLOP * count,
        },
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Return the sum, written, and read again by GELU."""
    count, item = case.shape["rows"] * case.shape["cols"], case.item_bytes
    flop = {"fp32": GELU_FP32_FLOP[str(case.params["form"])] * count, "sfu": GELU_SFU_FLOP * count}
    return (
        Step(
            "add",
            Work((count + case.shape["cols"]) * item, count * item, estimated_flop={"fp32": count}),
        ),
        Step("gelu", Work(count * item, count * item, estimated_flop=flop)),
    )


def reference(x: Array, bias: Array, form: str) -> Array:
    """Return GELU of x + bias, by its form."""
    return gelu(x + bias, form)


def refuse(case: Case) -> str | None:
    """Refuse extents that 32 bits don't count, rows joined to whole vectors included."""
    for axis in ("rows", "cols"):
        extent = case.shape[axis] * (_joined(case) if axis == "cols" else 1)
        if extent > MOST_EXTENT:
            return f"{axis} is {case.shape[axis]}, which is more than this kernel can count"
    return None


def launches(case: Case) -> tuple[Launch, ...]:
    """Fill the card first, then give a thread several rows."""
    vectors = case.shape["rows"] * case.shape["cols"] * case.item_bytes // ACCESS_BYTES
    if vectors < FULL_VECTORS:
        rows = 1
    else:
        rows = ROWS[str(case.params["form"])] if _joined(case) == 1 else ROWS_JOINED
    return (launch(case, THREADS, rows),)


def launch(case: Case, threads: int, rows_a_thread: int) -> Launch:
    """TX threads along the columns (whole warps, few of them idle), TY rows side by side."""
    vec, joined = ACCESS_BYTES // case.item_bytes, _joined(case)
    rows, cols = ceil_div(case.shape["rows"], joined), joined * case.shape["cols"]
    vectors = ceil_div(min(cols, case.shape["rows"] * case.shape["cols"]), vec)
    if vectors <= threads // 2:
        tx = vectors
    else:
        tx = min(range(threads, threads // 2 - 1, -WARP), key=lambda t: ceil_div(vectors, t) * t)
    ty = min(threads // tx, ceil_div(rows, rows_a_thread))
    groups = ceil_div(rows, ty * rows_a_thread)
    in_y = min(groups, MOST_GRID_ROWS)
    form = FORMS[str(case.params["form"])]
    return Launch(
        f"bias_gelu<{case.ctype}, {form}, {tx}, {ty}, {vec}, {rows_a_thread}, {joined}>",
        grid=(ceil_div(vectors, tx), in_y, ceil_div(groups, in_y)),
        block=(tx, ty, 1),
    )


def _joined(case: Case) -> int:
    """Return how many rows together are whole vectors."""
    vec = ACCESS_BYTES // case.item_bytes
    return vec // math.gcd(case.shape["cols"], vec)


OPERATOR = Operator(
    name="bias_gelu",
    args=(Arg("x", "rows cols"), Arg("bias", "cols"), Arg("y", "rows cols", "out")),
    params={"form": tuple(FORMS)},
    work=work,
    unfused=unfused,
    reference=reference,
    independent=("rows", "cols"),
    summary="y = gelu(x + bias), erf or tanh",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="bias_gelu.cu",
    launches=launches,
    refuse=refuse,
    summary="a thread keeps its columns' bias in registers over its rows",
)
