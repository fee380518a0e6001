"""AdamW: one step of the optimiser over flat parameters, in place, with fp32 moments."""

import math

import numpy as np

from solkit import Arg, Array, Case, Kernel, Launch, Operator, Step, Uniform, Work
from solkit.declare.geometry import ceil_div

BLOCK, VEC = 256, 4  # threads a block, elements a vector
LEARNING_RATE, BETA1, BETA2, EPSILON, DECAY, STEP = 1e-3, 0.9, 0.95, 1e-8, 0.1, 10

# What is the same for every element, computed once on the host.
KEEP = 1 - LEARNING_RATE * DECAY
STEP_SIZE = LEARNING_RATE / (1 - BETA1**STEP)
UNBIAS = 1 / math.sqrt(1 - BETA2**STEP)

STATE_BYTES = 4  # of an element of a moment


def work(case: Case) -> Work:
    """Read the gradient; read and write the parameter and both moments."""
    count, item = case.shape["elements"], case.item_bytes
    return Work(
        read_bytes=count * (2 * item + 2 * STATE_BYTES),
        write_bytes=count * (item + 2 * STATE_BYTES),
        estimated_flop={"fp32": 13 * count, "sfu": 2 * count},
    )


def unfused(case: Case) -> tuple[Step, ...]:
    """Decay, both moments and the update, each a pass over what it needs."""
    count, own, state = (
        case.shape["elements"],
        case.shape["elements"] * case.item_bytes,
        case.shape["elements"] * STATE_BYTES,
    )
    return (
        Step("decay", Work(own, own, estimated_flop={"fp32": count})),
        Step("exp_avg", Work(own + state, state, estimated_flop={"fp32": 3 * count})),
        Step("exp_avg_sq", Work(own + state, state, estimated_flop={"fp32": 4 * count})),
        Step(
            "update",
            Work(own + 2 * state, own, estimated_flop={"fp32": 5 * count, "sfu": 2 * count}),
        ),
    )


def reference(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array
) -> tuple[Array, Array, Array]:
    """Return the parameter and both moments after the step."""
    m: Array = BETA1 * exp_avg + (1 - BETA1) * grad
    v: Array = BETA2 * exp_avg_sq + (1 - BETA2) * grad * grad
    p: Array = KEEP * param - STEP_SIZE * m / (np.sqrt(v) * UNBIAS + EPSILON)
    return p, m, v


def launches(case: Case) -> tuple[Launch, ...]:
    """Take a vector of each stream a thread."""
    return (launch(case, BLOCK),)


def launch(case: Case, block: int) -> Launch:
    """Return the launch; what is left behind the last vector takes a thread an element."""
    vectors, rest = divmod(case.shape["elements"], VEC)
    return Launch(
        f"adamw<{case.ctype}, {block}, {VEC}>",
        grid=(ceil_div(vectors + rest, block), 1, 1),
        block=(block, 1, 1),
        args=(
            *(arg.name for arg in OPERATOR.args),
            "elements",
            *(KEEP, BETA1, BETA2, STEP_SIZE, UNBIAS, EPSILON),
        ),
    )


OPERATOR = Operator(
    name="adamw",
    args=(
        Arg("param", "elements", "inout"),
        Arg("grad", "elements"),
        Arg("exp_avg", "elements", "inout", dtype="fp32"),
        Arg("exp_avg_sq", "elements", "inout", dtype="fp32", init=Uniform(0.0, 1.0)),
    ),
    dtypes=("fp32", "bf16"),
    work=work,
    unfused=unfused,
    reference=reference,
    independent=("elements",),
    summary="one AdamW step, in place, fp32 moments",
)
KERNEL = Kernel(
    name="solkit",
    operator=OPERATOR,
    source="adamw.cu",
    launches=launches,
    dtypes=("fp32", "bf16"),
    summary="four streams, one vector of each a thread",
)
