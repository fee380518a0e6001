"""GeGLU gate: y = gelu(gate) * up, element by element, with GELU's tanh or its exact (erf) form."""

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Work
from solkit.declare.gelu import GELU_FP32_FLOP, GELU_SFU_FLOP, gelu
from solkit.declare.geometry import ACCESS_BYTES, ceil_div

# Threads a block: many where a large card is full three times over, since a block's part of each
# stream is then 16 KiB side by side (half a percent on an H200); else few, for all SMs to have one.
MANY, FEW = 1024, 256
MANY_VECTORS = 3 * 132 * 2048
FORMS = {"tanh": "GeluTanh", "erf": "GeluErf"}  # the param's values and the types of math.cuh


def _count(case: Case) -> int:
    return case.shape["rows"] * case.shape["cols"]


def _gelu_flop(case: Case) -> dict[str, int]:
    count = _count(case)
    return {
        "fp32": GELU_FP32_FLOP[str(case.params["form"])] * count,
        "sfu": GELU_SFU_FLOP * count,
    }


def work(case: Case) -> Work:
    """Two arrays are read, one is written; an element costs a GELU and a product."""
    count, flop = _count(case), _gelu_flop(case)
    return Work(
        read_bytes=2 * count * case.item_bytes,
        write_bytes=count * case.item_bytes,
        estimated_flop=flop | {"fp32": flop["fp32"] + count},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """GELU of the gate, written and read again by the product."""
    nbytes = _count(case) * case.item_bytes
    return (
        Step("gelu", Work(nbytes, nbytes, estimated_flop=_gelu_flop(case))),
        Step("mul", Work(2 * nbytes, nbytes, estimated_flop={"fp32": _count(case)})),
    )


def reference(gate: Array, up: Array, form: str) -> Array:
    """Return GELU of the gate by its form, times up."""
    y = gelu(gate, form)
    y *= up
    return y


def launches(case: Case) -> tuple[Launch, ...]:
    """Rows and columns are one flat array."""
    vec = ACCESS_BYTES // case.item_bytes
    vectors, rest = divmod(_count(case), vec)  # an item a thread behind the last vector
    block = MANY if vectors >= MANY_VECTORS else FEW
    form = FORMS[str(case.params["form"])]
    entry = f"geglu<{case.ctype}, {form}, {block}, {vec}>"
    return (Launch(entry, grid=(ceil_div(vectors + rest, block), 1, 1), block=(block, 1, 1)),)


OPERATOR = Operator(
    name="geglu",
    args=(Arg("gate", "rows cols"), Arg("up", "rows cols"), Arg("y", "rows cols", "out")),
    params={"form": tuple(FORMS)},
    work=work,
    unfused=unfused,
    reference=reference,
    independent=("rows", "cols"),
    summary="y = gelu(gate) * up, tanh or erf",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="geglu.cu",
    launches=launches,
    summary="one 16-byte load of each of two streams a thread",
)
