"""Products and what follows them: out = gelu(alpha x @ weight + beta residual + bias), in parts."""

from collections.abc import Callable
from functools import partial

from solkit import (
    Arg,
    Array,
    Card,
    Case,
    Kernel,
    Launch,
    Layout,
    Normal,
    Operator,
    Step,
    Tolerance,
    Work,
)
from solkit.declare import few_rows, tiles, wgmma
from solkit.declare.gelu import GELU_FP32_FLOP, GELU_SFU_FLOP, gelu
from solkit.declare.geometry import ACCESS_BYTES
from solkit.declare.product import ACTIVATIONS, Product
from solkit.dtypes import DTYPES

PRODUCTS = {
    "matmul": Product(),
    "matmul_bias": Product(bias=True),
    "matmul_bias_gelu": Product(bias=True, gelu=True),
    "matmul_add": Product(residual=True),
    "matmul_add_bias": Product(bias=True, residual=True),
}
SUMMARIES = {
    "matmul": "out = alpha x @ weight",
    "matmul_bias": "out = alpha x @ weight + bias",
    "matmul_bias_gelu": "out = gelu(alpha x @ weight + bias), erf or tanh",
    "matmul_add": "out = alpha x @ weight + beta residual",
    "matmul_add_bias": "out = alpha x @ weight + beta residual + bias",
}


def work(product: Product, case: Case) -> Work:
    """2 M N K flop in the dtype's matrix pipe; every input is read, out is written.

    What follows the product is elementwise, an estimate; a factor other than 1 is left out.
    """
    m, n, k = (case.shape[axis] for axis in ("M", "N", "K"))
    items = m * k + k * n + product.bias * n + product.residual * m * n
    additions = product.bias + product.residual
    estimated = {"fp32": additions * m * n} if additions else {}
    if product.gelu:
        estimated["fp32"] += GELU_FP32_FLOP[str(case.params["form"])] * m * n
        estimated["sfu"] = GELU_SFU_FLOP * m * n
    return Work(
        read_bytes=items * case.item_bytes,
        write_bytes=m * n * case.item_bytes,
        flop={DTYPES[case.dtype].matmul_pipe: 2 * m * n * k},
        estimated_flop=estimated,
    )


def unfused(product: Product, case: Case) -> tuple[Step, ...]:
    """Return the product, written, and read again by each step that follows it."""
    m, n, k, item = case.shape["M"], case.shape["N"], case.shape["K"], case.item_bytes
    count = m * n
    flop = {DTYPES[case.dtype].matmul_pipe: 2 * count * k}
    steps = [Step("matmul", Work((m * k + k * n) * item, count * item, flop=flop))]

    def then(name: str, also_read: int, **estimated: int) -> None:
        steps.append(
            Step(name, Work((count + also_read) * item, count * item, estimated_flop=estimated))
        )

    if product.residual:
        then("add", count, fp32=count)
    if product.bias:
        then("add_bias", n, fp32=count)
    if product.gelu:
        form = str(case.params["form"])
        then("gelu", 0, fp32=GELU_FP32_FLOP[form] * count, sfu=GELU_SFU_FLOP * count)
    return tuple(steps)


def matmul(x: Array, w: Array, alpha: float) -> Array:
    """Return alpha x @ w; w is [K, N] here, however it is stored."""
    out: Array = x @ w
    if alpha != 1:
        out *= alpha
    return out


def matmul_bias(x: Array, w: Array, bias: Array, alpha: float) -> Array:
    """Return alpha x @ w + bias."""
    out = matmul(x, w, alpha)
    out += bias
    return out


def matmul_bias_gelu(x: Array, w: Array, bias: Array, alpha: float, form: str) -> Array:
    """Return GELU of alpha x @ w + bias, by its form."""
    return gelu(matmul_bias(x, w, bias, alpha), form)


def matmul_add(x: Array, w: Array, residual: Array, alpha: float, beta: float) -> Array:
    """Return alpha x @ w + beta residual."""
    out = matmul(x, w, alpha)
    out += residual if beta == 1 else beta * residual
    return out


def matmul_add_bias(
    x: Array, w: Array, bias: Array, residual: Array, alpha: float, beta: float
) -> Array:
    """Return alpha x @ w + beta residual + bias."""
    out = matmul_add(x, w, residual, alpha, beta)
    out += bias
    return out


REFERENCES: dict[str, Callable[..., Array]] = {
    "matmul": matmul,
    "matmul_bias": matmul_bias,
    "matmul_bias_gelu": matmul_bias_gelu,
    "matmul_add": matmul_add,
    "matmul_add_bias": matmul_add_bias,
}
# Scaled so that products are about 1 for every K.
WEIGHT = Arg(
    "w", "K N", init=Normal(fan_in="K"), layout=Layout("weight", {"kn": "K N", "nk": "N K"})
)
# fp32: K products added one after another. Partial sums are about 1, so each addition errs by about
# 3e-8 and K of them by sqrt(K) times that: 3e-6 at K = 8192, and the largest of 1e8 results by six
# times as much. In the other types the accumulator's error is far below a rounding of the result.
# But a kernel may round the product before it adds to it: of a product and an addend of 2 to 4 that
# cancel, a bf16 sum is then off by up to 2^-7 (0.0078), whatever is left of it; torch.addmm was off
# by 0.0065. fp16 rounds eight times finer.
TOLERANCE = {
    "fp32": Tolerance(1e-5, 5e-5),
    "fp16": Tolerance(2e-3, 2e-3),
    "bf16": Tolerance(1.6e-2, 1.6e-2),
}


def operator(name: str, product: Product) -> Operator:
    """Declare an operator of the family."""
    bias = (Arg("bias", "N"),) if product.bias else ()
    residual = (Arg("residual", "M N"),) if product.residual else ()
    factors = ("alpha", "beta") if product.residual else ("alpha",)
    forms = {"form": tuple(ACTIVATIONS)} if product.gelu else {}
    return Operator(
        name=name,
        args=(Arg("x", "M K"), WEIGHT, *bias, *residual, Arg("out", "M N", "out")),
        params={"weight": ("kn", "nk"), **forms, **dict.fromkeys(factors, (1.0, 0.5))},
        unnamed_defaults=factors,
        work=partial(work, product),
        unfused=partial(unfused, product),
        reference=REFERENCES[name],
        tolerance=TOLERANCE,
        independent=("M", "N"),
        summary=SUMMARIES[name],
    )


OPERATORS = tuple(operator(name, product) for name, product in PRODUCTS.items())


def launches(product: Product, case: Case, card: Card) -> tuple[Launch, ...]:
    """Take the first way that is there for the case on the card."""
    if wgmma.takes(case, card):
        return wgmma.launches(product, case, card)
    if few_rows.takes(case, card):
        return few_rows.launches(product, case, card)
    return tiles.launches(product, case)


def refuse(case: Case) -> str | None:
    """Rows of every matrix must start on a 16-byte boundary."""
    items = ACCESS_BYTES // case.item_bytes
    for axis in ("N", "K"):
        if case.shape[axis] % items:
            return f"{axis} must be a multiple of {items} for {case.dtype} (16-byte rows)"
    return None


def kernels(operator: Operator) -> tuple[Kernel, ...]:
    """Declare an operator's kernel, and the ways that it takes on older cards alone."""
    product = PRODUCTS[operator.name]
    declare = partial(Kernel, operator=operator, source="matmul.cu", refuse=refuse)
    return (
        declare(
            name="solkit",
            launches=partial(launches, product),
            summary="TMA and wgmma on Hopper; few rows: a stream of weights; mma.sync; fp32: FFMA",
        ),
        declare(
            name="solkit_mma",
            launches=partial(tiles.launches, product),
            dtypes=("fp16", "bf16"),
            summary="the mma.sync tiles, on every card",
            by_name_only=True,
        ),
        declare(
            name="solkit_half",
            launches=partial(tiles.launches, product, old=True),
            dtypes=("fp16",),
            summary="the mma.sync tiles by the instructions of cards below CC 8.0, on every card",
            by_name_only=True,
        ),
    )


KERNELS = tuple(kernel for each in OPERATORS for kernel in kernels(each))
